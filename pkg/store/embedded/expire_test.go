package embedded_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

func ids(t *testing.T, c store.Collection) string {
	t.Helper()
	var out []string
	for _, d := range find(t, c, store.Query{Sort: sortBy("_id")}) {
		out = append(out, d.Lookup("_id").StringValue())
	}
	return strings.Join(out, " ")
}

func TestExpire(t *testing.T) {
	start := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	at := func(d time.Duration) bson.DateTime { return bson.NewDateTimeFromTime(start.Add(d)) }
	for _, path := range []string{"at", "-at"} {
		t.Run(path, func(t *testing.T) {
			now := start
			s := open(t, embedded.Options{InMemory: true, Now: func() time.Time { return now }})
			c := collection(s)
			x := index("at", path)
			x.ExpireAfter = time.Hour
			x.Partial = mql.MustCompile(bson.D{{Key: "keep", Value: bson.D{{Key: "$in", Value: bson.A{nil, 0}}}}})
			createIndex(t, c, x)
			for id, v := range map[string]any{
				"a": at(0), "b": at(time.Minute), "c": bson.A{at(2 * time.Hour), at(time.Minute), "x"}, "d": at(-100 * 365 * 24 * time.Hour),
				"list of others": bson.A{1, "x"}, "number": 0, "null": nil, "timestamp": bson.Timestamp{T: 1}, "text": "2020-01-01", "embedded": bson.D{{Key: "at", Value: at(0)}},
			} {
				must(t, c, insert(t, bson.D{{Key: "_id", Value: id}, {Key: "at", Value: v}}))
			}
			must(t, c, insert(t, bson.D{{Key: "_id", Value: "kept"}, {Key: "at", Value: at(0)}, {Key: "keep", Value: 1}}))
			must(t, c, insert(t, bson.D{{Key: "_id", Value: "missing"}}))
			others := " embedded kept list of others missing null number text timestamp"
			feed := first(t, s.Database("db"))
			for _, step := range []struct {
				after time.Duration
				left  string
			}{
				{0, "a b c"},
				{time.Hour - time.Millisecond, "a b c"},
				{time.Hour, "b c"},
				{time.Hour + time.Minute, ""},
			} {
				now = start.Add(step.after)
				embedded.Sweep(t.Context(), s)
				if got, want := ids(t, c), strings.TrimSpace(step.left+others); got != want {
					t.Errorf("after %v there are %s, want %s", step.after, got, want)
				}
			}
			got := texts(events(t, s.Database("db"), store.Watch{After: feed}))
			if want := []string{`things deleted "d"`, `things deleted "a"`, `things deleted "b"`, `things deleted "c"`}; !slices.Equal(got[:2], want[:2]) || len(got) != 4 {
				t.Errorf("the feed tells of %q", got)
			}
		})
	}
}

// A document that was given more time after the sweep has found it stays; so do those of a full disk, until there is
// room.
func TestExpireRechecks(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	fs := newSpace()
	s := open(t, embedded.Options{Dir: "/store", FS: fs, Ballast: -1, Now: func() time.Time { return now }})
	c := collection(s)
	x := index("at", "at")
	x.ExpireAfter = time.Hour
	createIndex(t, c, x)
	var ops []store.Op
	for range 250 {
		ops = append(ops, insert(t, bson.D{{Key: "_id", Value: bson.NewObjectID().Hex()}, {Key: "at", Value: now}}))
	}
	must(t, c, ops...)
	must(t, c, insert(t, bson.D{{Key: "_id", Value: "more"}, {Key: "at", Value: now}}))
	now = now.Add(2 * time.Hour)
	fs.free.Store(0)
	embedded.Sweep(t.Context(), s)
	if n, err := c.Count(t.Context(), nil, 0); n != 251 || err != nil {
		t.Errorf("on a full disk %d documents are left, %v", n, err)
	}
	fs.free.Store(1 << 40)
	must(t, c, store.Op{Kind: store.Replace, Doc: raw(t, bson.D{{Key: "_id", Value: "more"}, {Key: "at", Value: now}})})
	if err := embedded.ExpireFound(t.Context(), c, "at", value(t, "more")); err != nil {
		t.Error(err)
	}
	embedded.Sweep(t.Context(), s)
	if got := ids(t, c); got != "more" {
		t.Errorf("left are %s", got)
	}
	if err := c.DropIndex(t.Context(), "at"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Hour)
	embedded.Sweep(t.Context(), s)
	if got := ids(t, c); got != "more" {
		t.Errorf("without an index %q are left", got)
	}
}

func TestRename(t *testing.T) {
	opts := embedded.Options{Dir: t.TempDir(), Ballast: -1}
	s := open(t, opts)
	db := s.Database("db")
	start := first(t, db)
	fill(t, db.Collection("a"), 3)
	unique := index("n", "n")
	unique.Unique = true
	createIndex(t, db.Collection("a"), unique)
	fill(t, db.Collection("b"), 5)
	createIndex(t, db.Collection("b"), index("m", "m"))
	rename := func(from, to string, replace bool, want string) {
		t.Helper()
		code := ""
		if err := db.RenameCollection(t.Context(), from, to, replace); err != nil {
			code = errs.From(err).Code
		}
		if code != want {
			t.Errorf("renaming %s to %s: %q, want %q", from, to, code, want)
		}
	}
	rename("none", "c", false, errs.ErrNotFound.Code)
	rename("a", "b", false, "collection_exists")
	rename("a", "a", false, "collection_exists")
	rename("a", "a", true, "")
	rename("a", "", true, "bad_name")
	rename("a", "x$y", true, "bad_name")
	rename("a", strings.Repeat("x", 121), true, "bad_name")
	rename("a", "c", false, "")
	rename("c", "b", true, "")
	check := func(db store.Database) {
		t.Helper()
		if names, err := db.CollectionNames(t.Context()); err != nil || !slices.Equal(names, []string{"b"}) {
			t.Errorf("there are %v, %v", names, err)
		}
		wantIndexed(t, db.Collection("b"), 3)
		if got, err := db.Collection("b").Indexes(t.Context()); err != nil || len(got) != 1 {
			t.Errorf("indexes %v, %v", got, err)
		}
		got, err := db.Collection("b").Stats(t.Context())
		if err != nil || got.Documents != 3 || got.Bytes == 0 || len(got.IndexBytes) != 1 {
			t.Errorf("statistics %+v, %v", got, err)
		}
	}
	check(db)
	got := texts(events(t, db, store.Watch{After: start}))
	if want := []string{"a renamed c", "c renamed b"}; !slices.Equal(got[len(got)-2:], want) {
		t.Errorf("the feed tells of %q", got)
	}
	if got := texts(events(t, db, store.Watch{After: start, Collections: []string{"b"}})); got[len(got)-1] != "c renamed b" || len(got) != 6 {
		t.Errorf("of b the feed tells %q", got)
	}
	validateAndClose(t, s)
	check(open(t, opts).Database("db"))
}

// A build goes on under its collection's new name.
func TestRenameDuringBuild(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	db := s.Database("db")
	fill(t, collection(s), 10)
	release := embedded.HoldBuilds(s)
	built := make(chan error, 1)
	go func() { built <- collection(s).CreateIndex(t.Context(), index("n", "n")) }()
	waitUntilBuilding(t, collection(s), built)
	if err := db.RenameCollection(t.Context(), "things", "others", false); err != nil {
		t.Fatal(err)
	}
	must(t, db.Collection("others"), insert(t, bson.D{{Key: "_id", Value: 10}, {Key: "n", Value: 10}}))
	release()
	if err := <-built; err != nil {
		t.Error(err)
	}
	wantIndexed(t, db.Collection("others"), 11)
}

func TestStatsAndCount(t *testing.T) {
	opts := embedded.Options{Dir: t.TempDir(), Ballast: -1}
	s := open(t, opts)
	c := collection(s)
	if got, err := c.Stats(t.Context()); err != nil || got.Documents != 0 || got.IndexBytes == nil {
		t.Errorf("of nothing: %+v, %v", got, err)
	}
	fill(t, c, 1000)
	createIndex(t, c, index("n", "n"))
	must(t, c, store.Op{Kind: store.Delete, ID: value(t, 5)})
	doc := raw(t, bson.D{{Key: "_id", Value: 6}, {Key: "pad", Value: strings.Repeat("x", 1000)}})
	must(t, c, store.Op{Kind: store.Replace, Doc: doc})
	size := int64(len(doc) + 998*len(raw(t, bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 1}})))
	if err := embedded.Flush(s); err != nil {
		t.Fatal(err)
	}
	for _, reopen := range []bool{false, true} {
		if reopen {
			validateAndClose(t, s)
			s = open(t, opts)
			c = collection(s)
		}
		got, err := c.Stats(t.Context())
		if err != nil || got.Documents != 999 || got.Bytes != size || got.DiskBytes == 0 || got.IndexBytes["n"] == 0 {
			t.Errorf("%+v, %v", got, err)
		}
		for limit, want := range map[int64]int64{0: 999, 10: 10, 5000: 999} {
			if n, err := c.Count(t.Context(), nil, limit); n != want || err != nil {
				t.Errorf("count up to %d: %d, %v", limit, n, err)
			}
		}
	}
}
