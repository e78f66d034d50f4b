package mql_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/mqltest"
)

// otherNames has every field of random documents stored by another name, down to some levels. The order of names stays,
// for objects are compared by it, too.
func otherNames(depth int) *document.Names {
	stored, below := map[string]string{}, map[string]*document.Names{}
	for _, name := range []string{"a", "b", "c"} {
		stored[name] = name + string(rune('p'+depth))
		if depth > 0 {
			below[name] = otherNames(depth - 1)
		}
	}
	return document.NewNames(stored, below)
}

// Filters hold for what is stored exactly where they hold for what is read.
func TestStoredFilters(t *testing.T) {
	t.Parallel()
	names := otherNames(6)
	r := rand.New(rand.NewPCG(1, 2))
	matched := 0
	for range 5_000 {
		filter := mqltest.Filter(r)
		f, err := mql.Compile(filter)
		if err != nil {
			t.Fatal(err)
		}
		s := f.Stored(names)
		for range 3 {
			doc := raw(t, mqltest.Doc(r, 1))
			want := f.Match(doc)
			if want {
				matched++
			}
			if got := s.Match(names.Document(doc)); got != want {
				t.Fatalf("%v\nof %v: %v, and as stored %v", filter, doc, want, got)
			}
		}
	}
	if matched < 300 {
		t.Errorf("only %d have matched", matched)
	}
}

func TestStoredUpdates(t *testing.T) {
	t.Parallel()
	names := otherNames(6)
	r := rand.New(rand.NewPCG(3, 4))
	applied := 0
	for range 10_000 {
		doc, filters := mqltest.Update(r)
		u, err := mql.CompileUpdate(doc, filters)
		if err != nil {
			continue
		}
		s, err := u.Stored(names)
		if err != nil {
			if hasRename(doc) || len(filters) > 0 {
				continue // what no names can tell
			}
			t.Fatalf("%v: %v", doc, err)
		}
		before := raw(t, mqltest.Doc(r, 1))
		filter := mql.MustCompile(mqltest.Filter(r))
		after, err := u.Apply(before, mql.Applying{Filter: filter})
		got, errStored := s.Apply(names.Document(before), mql.Applying{Filter: filter.Stored(names)})
		if (err == nil) != (errStored == nil) {
			t.Fatalf("%v\nof %v: %v, and as stored %v", doc, before, err, errStored)
		}
		if err != nil {
			continue
		}
		if want := names.Document(after); !bytes.Equal(got, want) {
			t.Fatalf("%v\nof %v:\n%v as stored, want\n%v", doc, before, got, want)
		}
		if !bytes.Equal(after, before) {
			applied++
		}
	}
	if applied < 300 {
		t.Errorf("only %d have changed anything", applied)
	}
}

func hasRename(update bson.D) bool {
	_, has := document.Member(update, "$rename")
	return has
}

func TestStoredProjectionsAndSorts(t *testing.T) {
	t.Parallel()
	names := otherNames(6)
	r := rand.New(rand.NewPCG(5, 6))
	for range 5_000 {
		doc := raw(t, mqltest.Doc(r, 1))
		projection := mqltest.Projection(r)
		if p, err := mql.CompileProjection(projection); err == nil {
			filter := mql.MustCompile(mqltest.Filter(r))
			want, errWant := p.Apply(nil, doc, filter)
			got, err := p.Stored(names).Apply(nil, names.Document(doc), filter.Stored(names))
			if (err == nil) != (errWant == nil) || err == nil && !bytes.Equal(got, names.Document(want)) {
				t.Fatalf("%v of %v:\n%v %v as stored, want\n%v %v", projection, doc, bson.Raw(got), err, names.Document(want), errWant)
			}
		}
		order := mqltest.Sort(r)
		want, got := order.Key(doc), order.Stored(names).Key(names.Document(doc))
		for i, f := range order {
			if v := names.At(f.Path).Value(want[i]); v.Type != got[i].Type || !bytes.Equal(v.Value, got[i].Value) {
				t.Fatalf("%v of %v: %v as stored, want %v", order, doc, got, want)
			}
		}
	}
}

// With names, what is refused is refused by the names that the caller has given.
func TestErrorsOfStoredUpdates(t *testing.T) {
	t.Parallel()
	names := document.NewNames(map[string]string{"title": "name"}, nil)
	u, err := mql.CompileUpdate(bson.D{{Key: "$inc", Value: bson.D{{Key: "title", Value: 1}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := u.Stored(names)
	if err != nil {
		t.Fatal(err)
	}
	_, want := u.Apply(raw(t, bson.D{{Key: "title", Value: "x"}}), mql.Applying{})
	_, err = s.Apply(raw(t, bson.D{{Key: "name", Value: "x"}}), mql.Applying{})
	if want == nil || err == nil || want.Error() != err.Error() {
		t.Errorf("as stored: %v, want: %v", err, want)
	}
}

func TestStoredRenamesOfDifferentFields(t *testing.T) {
	t.Parallel()
	inner := document.NewNames(map[string]string{"full": "fullname"}, nil)
	names := document.NewNames(nil, map[string]*document.Names{"author": inner})
	for from, to := range map[string]string{"author": "editor", "editor": "author"} {
		u, err := mql.CompileUpdate(bson.D{{Key: "$rename", Value: bson.D{{Key: from, Value: to}}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = u.Stored(names); err == nil {
			t.Errorf("%s to %s: what is in it would have other names", from, to)
		}
	}
}
