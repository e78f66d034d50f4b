package audit_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// eachStore runs a test on every store, beside others.
func eachStore(t *testing.T, test func(t *testing.T, s store.Store)) {
	t.Helper()
	t.Parallel()
	teststore.Each(t, test)
}

// fixture is a log in a database of its own.
type fixture struct {
	*testing.T
	store    store.Store
	database string
	clock    *teststore.Clock
	logs     *audit.Logs
	log      *audit.Log
}

func newFixture(t *testing.T, s store.Store) *fixture {
	t.Helper()
	f := &fixture{T: t, store: s, database: "audit-" + strings.ToLower(bson.NewObjectID().Hex()), clock: teststore.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	t.Cleanup(func() {
		if err := s.DropDatabase(context.WithoutCancel(t.Context()), f.database); err != nil {
			t.Error(err)
		}
	})
	f.logs = f.another()
	f.log = f.logs.Of(f.database)
	return f
}

// another is a second instance on the same store.
func (f *fixture) another() *audit.Logs {
	return audit.New(audit.Options{Store: f.store, Now: f.clock.Now, SystemDatabase: f.database})
}

func (f *fixture) append(entries ...audit.Entry) {
	f.Helper()
	if err := f.log.Append(f.Context(), entries...); err != nil {
		f.Fatal(err)
	}
}

// keep is how long the entries of fill are kept.
const keep = 365 * 24 * time.Hour

// fill writes n sealed entries, a second apart.
func (f *fixture) fill(n int) {
	f.Helper()
	for i := range n {
		f.append(audit.Entry{
			Kind: audit.Records, Op: audit.OpUpdate, Collection: "articles", RecordID: strconv.Itoa(i + 1),
			After:   marshal(f.T, bson.D{{Key: "n", Value: int64(i + 1)}}),
			Expires: f.clock.Now().Add(keep),
		})
		f.clock.Pass(time.Second)
	}
	if err := f.log.Seal(f.Context()); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) verify() *audit.Report {
	f.Helper()
	report, err := f.log.Verify(f.Context(), nil)
	if err != nil {
		f.Fatal(err)
	}
	return report
}

// found is what a report says, in short: "changed 3 (record 3)".
func (f *fixture) found(report *audit.Report) []string {
	out := []string{}
	for _, p := range report.Problems {
		line := short(p)
		if (p.ID == "") != (p.Problem == audit.Missing) {
			f.Errorf("%s has the id %q", line, p.ID)
		}
		out = append(out, line)
	}
	return out
}

func short(p audit.Problem) string {
	line := fmt.Sprintf("%s %d", p.Problem, p.Seq)
	if p.Through > 0 {
		line += fmt.Sprintf("-%d", p.Through)
	}
	return line
}

func marshal(t *testing.T, d bson.D) bson.Raw {
	t.Helper()
	raw, err := document.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// entries reads what is stored, in the chain's order.
func (f *fixture) entries() []bson.D {
	f.Helper()
	var out []bson.D
	q := store.Query{Sort: mql.Sort{{Path: "seq"}, {Path: "_id"}}}
	err := f.store.Database(f.database).Collection("svc.audit").Find(f.Context(), q, func(doc bson.Raw) error {
		d, err := document.Unmarshal(doc)
		out = append(out, d)
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	return out
}

// tamper writes to a log past the service.
func (f *fixture) tamper(collection string, ops ...store.Op) {
	f.Helper()
	results, err := f.store.Database(f.database).Collection(collection).Write(f.Context(), ops, true)
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			f.Fatal(r.Err)
		}
	}
}

// of is a filter for the entry of a place.
func of(seq ...int64) *mql.Filter {
	in := bson.A{}
	for _, n := range seq {
		in = append(in, n)
	}
	return mql.MustCompile(bson.D{{Key: "seq", Value: bson.D{{Key: "$in", Value: in}}}})
}

func set(path string, v any) *mql.Update {
	return mql.MustCompileUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: path, Value: v}}}})
}

// TestTampering does to a log of seven entries what whoever has the store could do, and looks whether verify names it.
func TestTampering(t *testing.T) {
	with := document.Set
	for _, tt := range []struct {
		name   string
		tamper func(f *fixture)
		want   []string
	}{
		{"nothing", func(*fixture) {}, []string{}},
		{"a value changed", func(f *fixture) {
			f.tamper("svc.audit", store.Op{Kind: store.Update, Filter: of(3), Update: set("after.n", int64(99))})
		}, []string{"changed 3"}},
		{"the actor changed", func(f *fixture) {
			f.tamper("svc.audit", store.Op{Kind: store.Update, Filter: of(1), Update: set("actor.name", "mallory")})
		}, []string{"changed 1"}},
		{"the newest changed", func(f *fixture) {
			f.tamper("svc.audit", store.Op{Kind: store.Update, Filter: of(7), Update: set("at", bson.NewDateTimeFromTime(time.Unix(1, 0)))})
		}, []string{"changed 7"}},
		{"a field added", func(f *fixture) {
			f.tamper("svc.audit", store.Op{Kind: store.Update, Filter: of(4), Update: set("note", "x")})
		}, []string{"changed 4"}},
		{"the hash changed", func(f *fixture) {
			f.tamper("svc.audit", store.Op{Kind: store.Update, Filter: of(4), Update: set("hash", strings.Repeat("0", 64))})
		}, []string{"changed 4", "changed 4"}},
		{"changed, with a hash that fits", func(f *fixture) {
			d := with(f.entries()[2], "after.n", int64(99))
			f.tamper("svc.audit", store.Op{Kind: store.Replace, Doc: rehash(f.T, d)})
		}, []string{"changed 3"}},
		{"the newest changed, with a hash that fits", func(f *fixture) {
			d := with(f.entries()[6], "after.n", int64(99))
			f.tamper("svc.audit", store.Op{Kind: store.Replace, Doc: rehash(f.T, d)})
		}, []string{"changed 7"}},
		{"one taken away", func(f *fixture) {
			f.tamper("svc.audit", store.Op{Kind: store.Delete, Filter: of(4)})
		}, []string{"missing 4-4"}},
		{"some taken away", func(f *fixture) {
			f.tamper("svc.audit", store.Op{Kind: store.Delete, Filter: of(2, 3, 5), Many: true})
		}, []string{"missing 2-3", "missing 5-5"}},
		{"the oldest taken away", func(f *fixture) {
			f.tamper("svc.audit", store.Op{Kind: store.Delete, Filter: of(1, 2), Many: true})
		}, []string{"missing 1-2"}},
		{"the end cut off", func(f *fixture) {
			f.tamper("svc.audit", store.Op{Kind: store.Delete, Filter: of(6, 7), Many: true})
		}, []string{"missing 6-7"}},
		{"all taken away", func(f *fixture) {
			f.tamper("svc.audit", store.Op{Kind: store.Delete, Filter: of(1, 2, 3, 4, 5, 6, 7), Many: true})
		}, []string{"missing 1-7"}},
		{"the head taken away", func(f *fixture) {
			f.tamper("svc.audit_head", store.Op{Kind: store.Delete, Filter: mql.MustCompile(nil), Many: true})
		}, []string{"foreign 1", "foreign 2", "foreign 3", "foreign 4", "foreign 5", "foreign 6", "foreign 7"}},
		{"a copy put in", func(f *fixture) {
			d := with(f.entries()[3], "_id", bson.NewObjectID())
			f.tamper("svc.audit", store.Op{Kind: store.Insert, Doc: marshal(f.T, d)})
		}, []string{"foreign 4"}},
		{"one put in at the end", func(f *fixture) {
			last := f.entries()[6]
			d := with(with(last, "_id", bson.NewObjectID()), "seq", int64(8))
			prev, _ := document.Get(last, "hash")
			f.tamper("svc.audit", store.Op{Kind: store.Insert, Doc: rehash(f.T, with(d, "prev", prev))})
		}, []string{"foreign 8"}},
		{"one put in without a place", func(f *fixture) {
			f.tamper("svc.audit", store.Op{Kind: store.Insert, Doc: marshal(f.T, bson.D{{Key: "_id", Value: "x"}, {Key: "seq", Value: "one"}})})
		}, []string{"foreign 0"}},
		{"one too large to be sealed", func(f *fixture) {
			d := foreign(f)
			f.tamper("svc.audit", store.Op{Kind: store.Insert, Doc: marshal(f.T, append(d, bson.E{Key: "after", Value: bson.D{{Key: "x", Value: strings.Repeat("x", 15<<20)}}}))})
		}, []string{"foreign 0"}},
		{"one of another form to be sealed", func(f *fixture) {
			f.tamper("svc.audit", store.Op{Kind: store.Insert, Doc: marshal(f.T, append(foreign(f), bson.E{Key: "note", Value: "x"}))})
		}, []string{"foreign 0"}},
		{"one with a strange id to be sealed", func(f *fixture) {
			f.tamper("svc.audit", store.Op{Kind: store.Insert, Doc: marshal(f.T, with(foreign(f), "_id", "x"))})
		}, []string{"foreign 0"}},
		{"the oldest made to expire", func(f *fixture) {
			past := bson.NewDateTimeFromTime(time.Unix(1, 0))
			f.tamper("svc.audit", store.Op{Kind: store.Update, Filter: of(1, 2), Update: set("expires", past), Many: true})
			if err := f.log.Prune(f.Context()); err == nil {
				f.Error("they are cut off")
			}
		}, []string{"changed 1", "changed 2"}},
		{"two that changed places", func(f *fixture) {
			all := f.entries()
			a, b := with(all[2], "seq", int64(4)), with(all[3], "seq", int64(3))
			f.tamper("svc.audit", store.Op{Kind: store.Replace, Doc: marshal(f.T, a)}, store.Op{Kind: store.Replace, Doc: marshal(f.T, b)})
		}, []string{"changed 3", "changed 4", "changed 4"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachStore(t, func(t *testing.T, s store.Store) {
				f := newFixture(t, s)
				f.fill(7)
				tt.tamper(f)
				if diff := cmp.Diff(tt.want, f.found(f.verify())); diff != "" {
					t.Error(diff)
				}
				f.append(audit.Entry{Kind: audit.System, Op: audit.OpUpdate, RecordID: "later"})
				f.verify()
				page, err := f.log.List(t.Context(), query.Params{Where: where("recordId", "later")}, nil)
				if err != nil || len(page.Items) != 1 || page.Items[0].Seq == 0 {
					t.Errorf("what comes afterwards is not sealed: %+v, %v", page, err)
				}
			})
		})
	}
}

// foreign is an entry that others have put in, for the sealer to seal.
func foreign(f *fixture) bson.D {
	d := document.Unset(document.Unset(f.entries()[3], "prev"), "hash")
	return document.Set(document.Set(d, "_id", bson.NewObjectIDFromTimestamp(time.Unix(1, 0))), "seq", int64(0))
}

// rehash gives an entry the hash that fits it, as one who knows how it is made would.
func rehash(t *testing.T, d bson.D) bson.Raw {
	t.Helper()
	d = document.Unset(d, "hash")
	return marshal(t, append(d, bson.E{Key: "hash", Value: audit.Digest(marshal(t, d))}))
}

// TestWriteIsWithItsChange writes a change and its entry, which are there together or not at all.
func TestWriteIsWithItsChange(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		f := newFixture(t, s)
		db := s.Database(f.database)
		errNo := errors.New("no")
		for _, result := range []error{nil, errNo} {
			err := f.log.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
				doc := marshal(t, bson.D{{Key: "_id", Value: fmt.Sprint(result)}})
				if _, err := tx.Collection("things").Write(ctx, []store.Op{{Kind: store.Insert, Doc: doc}}, true); err != nil {
					return err
				}
				return result
			}, audit.Entry{Kind: audit.Records, Op: audit.OpCreate})
			if !errors.Is(err, result) {
				t.Fatalf("Write: %v, want %v", err, result)
			}
		}
		n, err := db.Collection("things").Count(t.Context(), nil, 0)
		if got := len(f.entries()); err != nil || n != 1 || got != 1 {
			t.Errorf("%d things and %d entries, %v; want one of each", n, got, err)
		}
		if names, err := db.CollectionNames(t.Context()); err != nil || len(names) != 1 {
			t.Errorf("the log shows among the collections: %v, %v", names, err)
		}
	})
}

// TestSealersAtOnce lets several instances write and seal at once: all entries end up in one chain.
func TestSealersAtOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		const instances, writes = 3, 20
		f := newFixture(t, s)
		var g errgroup.Group
		for range instances {
			log := f.another().Of(f.database)
			g.Go(func() error {
				for range writes {
					if err := log.Append(t.Context(), audit.Entry{Kind: audit.System, Op: audit.OpLogin}); err != nil {
						return err
					}
					if err := log.Seal(t.Context()); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		report := f.verify()
		if got := f.found(report); len(got) > 0 || report.Entries != instances*writes || report.Head.Seq != instances*writes {
			t.Errorf("%d entries, head %v, problems %v", report.Entries, report.Head, got)
		}
	})
}

// TestCrashBeforeSealing leaves entries unsealed, as a process does that is killed; the next one seals them at its start.
func TestCrashBeforeSealing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() store.Store {
		s, err := embedded.Open(t.Context(), embedded.Options{Dir: dir, OnFatal: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	f := &fixture{T: t, store: s, database: "svc", clock: teststore.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	f.logs = f.another()
	f.log = f.logs.Of(f.database)
	f.append(audit.Entry{Kind: audit.System, Op: audit.OpLogin}, audit.Entry{Kind: audit.System, Op: audit.OpLogout})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	f.store = open()
	defer f.store.Close()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	f.logs = f.another()
	f.log = f.logs.Of(f.database)
	running.Go(func() {
		f.logs.Run(ctx, func(context.Context) ([]string, error) { stop(); return []string{f.database}, nil })
	})
	running.Wait() // its last pass is done
	for i, e := range f.entries() {
		if seq, _ := document.Get(e, "seq"); seq != int64(i+1) {
			t.Errorf("entry %d has the place %v", i, seq)
		}
	}
	if report := f.verify(); report.Entries != 2 || len(report.Problems) > 0 {
		t.Errorf("%+v", report)
	}
}

// TestRetention cuts off what has expired, from the old end: what is kept longer keeps what is behind it.
func TestRetention(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		f := newFixture(t, s)
		day := 24 * time.Hour
		for _, days := range []int{1, 1, 5, 1} {
			f.append(audit.Entry{Kind: audit.Records, Op: audit.OpCreate, Expires: f.clock.Now().Add(time.Duration(days) * day)})
		}
		patrol := func() *audit.Report {
			t.Helper()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if err := f.log.Seal(ctx); err != nil {
				t.Fatal(err)
			}
			if err := f.log.Prune(ctx); err != nil {
				t.Fatal(err)
			}
			return f.verify()
		}
		for _, step := range []struct {
			after           time.Duration
			entries, anchor int64
		}{{0, 4, 0}, {2 * day, 2, 2}, {day, 2, 2}, {3 * day, 0, 4}} {
			f.clock.Pass(step.after)
			report := patrol()
			if report.Entries != step.entries || report.Anchor.Seq != step.anchor || len(report.Problems) > 0 {
				t.Errorf("after %v: %+v", step.after, report)
			}
		}
		f.append(audit.Entry{Kind: audit.Records, Op: audit.OpCreate})
		if report := f.verify(); report.Head.Seq != 5 || len(report.Problems) > 0 {
			t.Errorf("the chain goes on with %+v", report)
		}
	})
}

func TestList(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		f := newFixture(t, s)
		ctx := audit.With(t.Context(), audit.NewCaller(&access.Principal{Kind: access.KindUser, ID: "u1", Name: "ann"}, "req-1", "192.0.2.1"))
		for i := range 9 {
			err := f.log.Append(ctx, audit.Entry{
				Kind: audit.Records, Op: []string{audit.OpCreate, audit.OpUpdate, audit.OpDelete}[i%3], RecordID: strconv.Itoa(i),
			})
			if err != nil {
				t.Fatal(err)
			}
			f.clock.Pass(time.Second)
		}
		even := func(e *audit.Entry) bool { return e.RecordID[0]%2 == 0 }
		limit := int64(2)
		for _, tt := range []struct {
			name   string
			params query.Params
			see    audit.Reader
			want   []string
			more   bool
			total  int64
		}{
			{"newest first", query.Params{}, nil, []string{"8", "7", "6", "5", "4", "3", "2", "1", "0"}, false, 9},
			{"a filter", query.Params{Where: where("op", "create")}, nil, []string{"6", "3", "0"}, false, 3},
			{"by actor", query.Params{Where: where("actor.name", "bob")}, nil, nil, false, 0},
			{"by request", query.Params{Where: where("requestId", "req-1"), Sort: "at", Limit: &limit}, nil, []string{"0", "1"}, true, 9},
			{"of a reader", query.Params{}, even, []string{"8", "6", "4", "2", "0"}, false, 5},
			{"a reader's page", query.Params{Limit: &limit, Offset: 1}, even, []string{"6", "4"}, true, 5},
		} {
			tt.params.Count = true
			page, err := f.log.List(t.Context(), tt.params, tt.see)
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
			if diff := cmp.Diff(tt.want, ids(page)); diff != "" || page.HasMore != tt.more || *page.Total != tt.total {
				t.Errorf("%s: more %v, total %d, %s", tt.name, page.HasMore, *page.Total, diff)
			}
		}
		var all []string
		for after := ""; ; {
			page, err := f.log.List(t.Context(), query.Params{Limit: &limit, After: after}, even)
			if err != nil {
				t.Fatal(err)
			}
			if all = append(all, ids(page)...); !page.HasMore {
				break
			}
			after = page.Next
		}
		if diff := cmp.Diff([]string{"8", "6", "4", "2", "0"}, all); diff != "" {
			t.Error(diff)
		}
		if _, err := f.log.List(t.Context(), query.Params{Where: where("after.n", "1")}, nil); err == nil {
			t.Error("a list can be filtered by what changed")
		}
	})
}

func where(path, v string) query.Where { return query.Where{Filter: bson.D{{Key: path, Value: v}}} }

func ids(page query.Page[audit.Entry]) (out []string) {
	for _, e := range page.Items {
		out = append(out, e.RecordID)
	}
	return out
}

func TestState(t *testing.T) {
	t.Parallel()
	secret := document.NewPathSet("password", "seo.score", "parts.cost")
	doc := bson.D{
		{Key: "password", Value: "x"},
		{Key: "n", Value: int64(1)},
		{Key: "seo", Value: bson.D{{Key: "title", Value: "t"}, {Key: "score", Value: int64(3)}}},
		{Key: "parts", Value: bson.A{bson.D{{Key: "cost", Value: int64(4)}}, int64(5)}},
	}
	got, err := audit.State(marshal(t, doc), secret)
	want := `{"password":"[redacted]","n":1,"seo":{"title":"t","score":"[redacted]"},"parts":[{"cost":"[redacted]"},5]}`
	if text := string(document.AppendJSON(nil, got, nil)); err != nil || text != want {
		t.Errorf("%s, %v", text, err)
	}
	large := strings.Repeat("x", 2<<20)
	for name, want := range map[string]string{
		"text": fmt.Sprintf(`{"_omitted":%d}`, len(marshal(t, bson.D{{Key: "text", Value: large}}))), "password": `{"password":"[redacted]"}`,
	} {
		got, err = audit.State(marshal(t, bson.D{{Key: name, Value: large}}), secret)
		if text := string(document.AppendJSON(nil, got, nil)); err != nil || text != want {
			t.Errorf("%.100s, %v", text, err)
		}
	}
}
