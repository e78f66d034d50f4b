package index_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/svcctl/svc/pkg/search/index"
)

// TestS19StepsOfASearch is row S19: what takes long goes by the step of who searches, which can end it, and a phrase costs what its
// different words do.
func TestS19StepsOfASearch(t *testing.T) {
	t.Parallel()
	db := open(t, t.TempDir())
	defer closeDB(t, db)
	ix := openIndex(t, db, "steps")
	word := record{rev: 1, fields: map[index.Field]string{1: "red red red fox", 2: "bird"}, vector: []float32{1, 0}}
	if err := ix.Apply(t.Context(), []index.Change{word.change("a")}, nil); err != nil {
		t.Fatal(err)
	}
	v, err := ix.View()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}()
	leaf := func(terms ...string) index.Query {
		l := index.Leaf{Field: 1, Terms: terms, Boost: 1}
		for i := range terms {
			l.Phrase = append(l.Phrase, uint32(i))
		}
		return index.Query{Groups: []index.Group{{Leaves: []index.Leaf{l}}}}
	}
	search := func(q index.Query) func(ctx context.Context) (int, error) {
		return func(ctx context.Context) (int, error) {
			m, err := v.Search(ctx, q)
			if err != nil {
				return 0, err
			}
			defer m.Release()
			return m.Len(), nil
		}
	}
	errStep := errors.New("somebody else is next")
	for _, x := range []struct {
		name        string
		do          func(ctx context.Context) (int, error)
		found, most int
	}{
		{"words", search(index.Query{Groups: []index.Group{{Leaves: []index.Leaf{{Field: 1, Terms: []string{"red", "fox"}, Boost: 1}}}}}), 1, 2},
		{"a phrase", search(leaf("red", "red", "red", "fox")), 1, 4},
		{"another phrase", search(leaf("red", "fox", "red")), 0, 4},
		{"a long phrase", search(leaf(slices.Repeat([]string{"red"}, 400)...)), 0, 2},
		{"a prefix", func(ctx context.Context) (int, error) {
			found, err := v.Expand(ctx, 1, "r", 0, 10)
			return len(found), err
		}, 1, 1},
		{"near", func(ctx context.Context) (int, error) {
			m, err := v.Near(ctx, index.Near{Fields: []index.Field{9}, To: []float32{0, 1}})
			if err != nil {
				return 0, err
			}
			defer m.Release()
			return m.Len(), nil
		}, 1, 1},
	} {
		steps := 0
		found, err := x.do(index.WithStep(t.Context(), func(context.Context) error { steps++; return nil }))
		if err != nil || found != x.found || steps == 0 || steps > x.most {
			t.Errorf("%s: %d found in %d steps, %v; want %d in 1 to %d", x.name, found, steps, err, x.found, x.most)
		}
		if _, err := x.do(index.WithStep(t.Context(), func(context.Context) error { return errStep })); !errors.Is(err, errStep) {
			t.Errorf("%s goes on although its step has failed: %v", x.name, err)
		}
	}
}
