package embedded_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// keys of the store that damaged makes: collection "db/things" has the number 1, its indexes "n" (unique) and "tags" the
// numbers 2 and 3.
func numberedKey(space byte, numbers ...uint32) []byte {
	key := []byte{space}
	for _, n := range numbers {
		key = binary.BigEndian.AppendUint32(key, n)
	}
	return key
}

func join(parts ...[]byte) []byte { return []byte(strings.Join(texted(parts), "")) }

func texted(parts [][]byte) []string {
	var out []string
	for _, p := range parts {
		out = append(out, string(p))
	}
	return out
}

func keyOf(t *testing.T, v any) []byte {
	t.Helper()
	return document.AppendKey(nil, value(t, v), false)
}

func feedKey(seq uint64) []byte { return binary.BigEndian.AppendUint64([]byte("\x04db\x00"), seq) }

func stored(t *testing.T, doc bson.D) []byte { t.Helper(); return append([]byte{0}, raw(t, doc)...) }

// TestDamage does one kind of damage after the other to a store: each is found, and repaired if it can be.
func TestDamage(t *testing.T) {
	id := keyOf(t, int32(3))
	length := []byte{byte(len(id))}
	catalog := []byte("\x01\x02db\x00things")
	for _, test := range []struct {
		name string
		key  []byte
		set  []byte // nil: the key is deleted
		want string // is in the text of a problem
		lost bool   // can't be repaired
	}{
		{"entry gone", join(numberedKey(3, 1, 2), keyOf(t, int32(30)), id), nil, "has no entry", false},
		{"entry damaged", join(numberedKey(3, 1, 2), keyOf(t, int32(30)), id), []byte{99}, "is damaged", false},
		{"entry of another value", join(numberedKey(3, 1, 2), keyOf(t, int32(31)), id), length, "of no document", false},
		{"entry of no document", join(numberedKey(3, 1, 3), keyOf(t, int32(31)), keyOf(t, "x")), []byte{byte(len(keyOf(t, "x")))}, "of no document", false},
		{"entry of another document in a unique index", join(numberedKey(3, 1, 2), keyOf(t, int32(40)), id), length, "of no document", false},
		{"entry that is no entry", numberedKey(3, 1, 2), nil, "", false}, // nothing to delete: no damage
		{"entry without fields", join(numberedKey(3, 1, 2), []byte{1}), []byte{77}, "is damaged", false},
		{"document gone", join(numberedKey(2, 1), id), nil, "of no document", false},
		{"document damaged", join(numberedKey(2, 1), id), []byte{0, 1, 2, 3, 4, 5, 6, 7}, "is damaged", true},
		{"document of another encoding", join(numberedKey(2, 1), id), append([]byte{7}, stored(t, bson.D{})...), "is damaged", true},
		{"document with another _id", join(numberedKey(2, 1), id), stored(t, bson.D{{Key: "_id", Value: int32(4)}, {Key: "n", Value: int32(30)}}), "has another _id", true},
		{"document changed", join(numberedKey(2, 1), id), stored(t, bson.D{{Key: "_id", Value: int32(3)}, {Key: "n", Value: bson.A{int32(77)}}}), "has no entry", false},
		{"document with a taken key", join(numberedKey(2, 1), id), stored(t, bson.D{{Key: "_id", Value: int32(3)}, {Key: "n", Value: int32(40)}}), "has no entry", true},
		{"document with a list", join(numberedKey(2, 1), id), stored(t, bson.D{{Key: "_id", Value: int32(3)}, {Key: "n", Value: bson.A{int32(30)}}}), "has lists in fields", false},
		{"counters gone", numberedKey(5, 1), nil, "counted are 0 documents", false},
		{"counters wrong", numberedKey(5, 1), []byte{2, 2}, "counted are 1 documents with 1 bytes", false},
		{"counters damaged", numberedKey(5, 1), []byte{255}, "counted are -1 documents", false},
		{"a number that was given", []byte{1, 1}, []byte{0, 0, 0, 2}, "the next one to be given is 2", false},
		{"feed with a gap", feedKey(4), nil, "goes on with 5 after 3", false},
		{"feed damaged", feedKey(4), []byte{1}, "entry 4 of the feed of db is damaged", false},
		{"feed damaged at its end", feedKey(10), []byte{1}, "the last entry of the feed of db, 10, is damaged", true},
		{"feed without a number", []byte("\x04db\x00x"), []byte{1}, "belongs to no feed", false},
		{"document of no collection", join(numberedKey(2, 99), id), stored(t, bson.D{}), "belong to nothing", false},
		{"entry of no index", join(numberedKey(3, 1, 99), id), length, "belong to nothing", false},
		{"counters of no collection", numberedKey(5, 99), []byte{2, 2}, "belong to nothing", false},
		{"progress of no build", numberedKey(7, 1, 2), []byte{0, 0, 0, 0}, "belong to nothing", false},
		{"key that is no key", []byte{1, 1, 7}, []byte{1}, "belong to nothing", false},
		{"key of no space", []byte{0x60, 1}, []byte{1}, "belong to nothing", false},
		{"key of a space alone", []byte{2}, []byte{1}, "belong to nothing", false},
		{"key of an index space alone", []byte{3, 0}, []byte{1}, "belong to nothing", false},
		{"last of all keys", []byte{0xff, 0xff}, []byte{1}, "belong to nothing", false},
		{"catalog damaged", catalog, []byte{1}, "the catalog can't be read", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			opts := embedded.Options{Dir: t.TempDir(), Ballast: -1, OnFatal: func(error) {}}
			s, err := embedded.Open(t.Context(), opts)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			unique := index("n", "n")
			unique.Unique = true
			createIndex(t, collection(s), unique)
			createIndex(t, collection(s), index("tags", "tags"))
			for i := range 10 {
				doc := bson.D{{Key: "_id", Value: int32(i)}, {Key: "n", Value: int32(10 * i)}, {Key: "tags", Value: bson.A{int32(1), int32(i)}}}
				must(t, collection(s), insert(t, doc))
			}
			if err := validate(t.Context(), s); err != nil {
				t.Fatalf("before: %v", err)
			}
			if err := embedded.Damage(s, test.key, test.set); err != nil {
				t.Fatal(err)
			}
			wantProblem(t, validate(t.Context(), s), test.want)
			// What is in memory says no more than what is on disk.
			if !strings.Contains(test.name, "catalog") {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if s, err = embedded.Open(t.Context(), opts); err != nil {
					t.Fatal(err)
				}
				wantProblem(t, validate(t.Context(), s), test.want)
			}
			var found []string
			report := func(p store.Problem) { found = append(found, p.Text) }
			if err := s.Repair(t.Context(), report, nil); err != nil {
				t.Fatalf("Repair: %v", err)
			}
			if test.want != "" && len(found) == 0 {
				t.Error("Repair reports nothing")
			}
			after := validate(t.Context(), s)
			if test.lost != (after != nil) {
				t.Errorf("after the repair: %v", after)
			}
			if test.lost {
				return
			}
			must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: "writes go on"}, {Key: "n", Value: -1}}))
			validateAndClose(t, s)
			validateAndClose(t, open(t, opts))
		})
	}
}

func wantProblem(t *testing.T, err error, text string) {
	t.Helper()
	switch {
	case text == "" && err != nil:
		t.Errorf("found %v", err)
	case text != "" && (err == nil || !strings.Contains(err.Error(), text)):
		t.Errorf("found %v, want %q", err, text)
	}
}

// Of many problems of one kind, some are named and the others counted.
func TestManyProblems(t *testing.T) {
	s, err := embedded.Open(t.Context(), embedded.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	createIndex(t, collection(s), index("n", "n"))
	fill(t, collection(s), 100)
	for i := range 100 {
		key := join(numberedKey(3, 1, 2), keyOf(t, int32(i)), keyOf(t, int32(i)))
		if err := embedded.Damage(s, key, nil); err != nil {
			t.Fatal(err)
		}
	}
	var found []store.Problem
	if err := s.Database("db").Validate(t.Context(), func(p store.Problem) { found = append(found, p) }); err != nil {
		t.Fatal(err)
	}
	if len(found) != 21 || !found[20].Repairable || found[20].Index != "n" || found[20].Text != "80 more like: the document with the key … has no entry …" {
		t.Errorf("%d problems, the last one %+v", len(found), found[len(found)-1])
	}
}

// Writes, builds and drops beside a validation are no problem to it.
func TestValidateBesideWrites(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true, MemTableSize: 256 << 10})
	c := collection(s)
	unique := index("u", "u")
	unique.Unique = true
	createIndex(t, c, unique)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id := fmt.Sprint(w, " ", i%300)
				doc := bson.D{{Key: "_id", Value: id}, {Key: "n", Value: bson.A{i, i + 1}}, {Key: "u", Value: fmt.Sprint(w, " ", i)}}
				op := store.Op{Kind: store.Replace, Doc: raw(t, doc), Filter: nil, Upsert: true}
				if i%5 == 4 {
					op = store.Op{Kind: store.Delete, ID: value(t, id)}
				}
				if _, err := c.Write(ctx, []store.Op{op}, false); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			x := index(fmt.Sprint("n", i%3), "n")
			err := errors.Join(c.CreateIndex(ctx, x), c.DropIndex(ctx, fmt.Sprint("n", (i+1)%3)))
			other := s.Database("db").Collection("other")
			_, writeErr := other.Write(ctx, []store.Op{insert(t, bson.D{{Key: "_id", Value: i}})}, false)
			err = errors.Join(err, writeErr)
			if i%3 == 0 {
				err = errors.Join(err, s.Database("db").DropCollection(ctx, "other"))
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	for n := int64(0); n < 200; {
		var err error
		if n, err = c.Count(t.Context(), nil, 0); err != nil {
			t.Fatal(err)
		}
		if err := validate(t.Context(), s); err != nil {
			t.Errorf("found %v", err)
			break
		}
	}
	var last embedded.Progress
	if err := s.Validate(t.Context(), func(store.Problem) {}, func(p embedded.Progress) { last = p }); err != nil || last.Done == 0 {
		t.Errorf("progress %+v, %v", last, err)
	}
	stop()
	wg.Wait()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Validate(canceled, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
