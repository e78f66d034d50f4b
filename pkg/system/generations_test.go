package system_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
	"github.com/svcctl/svc/pkg/system"
)

var (
	files = system.Actor{Kind: system.ActorFiles}
	ann   = system.Actor{Kind: "user", Name: "ann"}
)

// config is one of one file, whose revision is its content.
func config(revision string) system.Config {
	return system.Config{Revision: revision, Entry: "project.yaml", Files: map[string][]byte{"project.yaml": []byte(revision)}}
}

// onStores runs a test on every store, in a database of its own.
func onStores(t *testing.T, test func(t *testing.T, st store.Store)) {
	t.Helper()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		t.Helper()
		own := prefixed{s, "test_" + bson.NewObjectID().Hex() + "_"}
		t.Cleanup(func() {
			if err := s.DropDatabase(context.WithoutCancel(t.Context()), own.prefix+system.DatabaseName); err != nil {
				t.Error(err)
			}
		})
		test(t, own)
	})
}

// prefixed is a store whose databases have other names.
type prefixed struct {
	store.Store
	prefix string
}

func (p prefixed) Database(name string) store.Database { return p.Store.Database(p.prefix + name) }

// documents counts what the store has of generations.
func documents(t *testing.T, st store.Store) int64 {
	t.Helper()
	n, err := st.Database(system.DatabaseName).Collection("generations").Count(t.Context(), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestGenerationsAreNumberedUntilTheyAreRemoved(t *testing.T) {
	onStores(t, func(t *testing.T, st store.Store) {
		t.Helper()
		generations := system.New(st, system.Options{Now: time.Now}).Generations
		for _, step := range []struct {
			project, revision string
			want              int64
		}{{"a", "x", 1}, {"a", "x", 1}, {"a", "y", 2}, {"b", "x", 1}, {"a", "x", 3}, {"a", "", 0}, {"a", "", 0}, {"a", "x", 1}, {"b", "y", 2}} {
			if step.revision == "" {
				if err := generations.Remove(t.Context(), step.project); err != nil {
					t.Fatal(err)
				}
				if n := documents(t, st); n != 2 {
					t.Errorf("%d documents, want the head and the files of the other project", n)
				}
				continue
			}
			if got, err := generations.Number(t.Context(), step.project, system.AnyGeneration, config(step.revision), files); got != step.want || err != nil {
				t.Errorf("%+v: %d, %v", step, got, err)
			}
		}
	})
}

func TestTheLatestGenerationsAreKeptWhole(t *testing.T) {
	onStores(t, func(t *testing.T, st store.Store) {
		t.Helper()
		g := system.New(st, system.Options{Now: time.Now}).Generations
		if _, err := g.Head(t.Context(), "p"); !errors.Is(err, errs.ErrNotFound) {
			t.Fatalf("before any: %v", err)
		}
		const all = system.KeptGenerations + 3
		for i := range all {
			if _, err := g.Number(t.Context(), "p", system.AnyGeneration, config(strconv.Itoa(i+1)), ann); err != nil {
				t.Fatal(err)
			}
		}
		head, err := g.Head(t.Context(), "p")
		if err != nil || head.Number != all || len(head.History) != system.KeptGenerations || head.History[0].Number != all-system.KeptGenerations+1 {
			t.Fatalf("%+v, %v", head, err)
		}
		if n := documents(t, st); n != system.KeptGenerations+1 {
			t.Errorf("%d documents", n)
		}
		for _, gen := range head.History {
			c, err := g.Config(t.Context(), "p", gen.Number)
			if diff := cmp.Diff(config(strconv.FormatInt(gen.Number, 10)), c); diff != "" || err != nil {
				t.Errorf("generation %d: %v (-want +got):\n%s", gen.Number, err, diff)
			}
			if gen.By != ann || !gen.Kept || gen.Files != 1 || gen.Since.IsZero() {
				t.Errorf("%+v", gen)
			}
		}
		for _, number := range []int64{0, 1, all + 1} {
			if _, err := g.Config(t.Context(), "p", number); !errors.Is(err, system.ErrNoGeneration) {
				t.Errorf("generation %d: %v", number, err)
			}
		}
	})
}

// What is too large for the store is told of, and not kept; the oldest lose their files when all together are.
func TestGenerationsAreBoundedBySize(t *testing.T) {
	t.Parallel()
	st := teststore.Memory(t)
	g := system.New(st, system.Options{Now: time.Now}).Generations
	add := func(revision string, size int) {
		t.Helper()
		c := system.Config{Revision: revision, Entry: "e", Files: map[string][]byte{"e": make([]byte, size)}}
		if _, err := g.Number(t.Context(), "p", system.AnyGeneration, c, files); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		add(strconv.Itoa(i), 8<<20)
	}
	add("too large", 8<<20+1)
	head, err := g.Head(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	var kept []int64
	for _, gen := range head.History {
		if gen.Kept {
			kept = append(kept, gen.Number)
		}
	}
	if want := []int64{3, 4, 5, 6, 7, 8, 9, 10}; !slices.Equal(kept, want) || head.Number != 11 {
		t.Errorf("kept of %d: %v, want %v", head.Number, kept, want)
	}
	for _, number := range []int64{2, 11} {
		if _, err := g.Config(t.Context(), "p", number); errs.From(err).Code != "generation_not_kept" {
			t.Errorf("generation %d: %v", number, err)
		}
	}
	if n := documents(t, st); n != 9 {
		t.Errorf("%d documents", n)
	}
}

func TestRollbacksAreGenerationsOfTheirOwn(t *testing.T) {
	onStores(t, func(t *testing.T, st store.Store) {
		t.Helper()
		g := system.New(st, system.Options{Now: time.Now}).Generations
		for _, revision := range []string{"a", "b", "c"} {
			if _, err := g.Number(t.Context(), "p", system.AnyGeneration, config(revision), files); err != nil {
				t.Fatal(err)
			}
		}
		for _, step := range []struct {
			name           string
			do             func() (int64, error)
			want, of       int64
			revision, over string
		}{
			{"to the latest", func() (int64, error) { return g.RollBack(t.Context(), "p", 3, "c", ann) }, 3, 0, "c", ""},
			{"back", func() (int64, error) { return g.RollBack(t.Context(), "p", 1, "c", ann) }, 4, 1, "a", "c"},
			{"the same again", func() (int64, error) { return g.RollBack(t.Context(), "p", 1, "c", ann) }, 4, 1, "a", "c"},
			{"to what it is", func() (int64, error) { return g.RollBack(t.Context(), "p", 4, "c", ann) }, 4, 1, "a", "c"},
			{"to another", func() (int64, error) { return g.RollBack(t.Context(), "p", 2, "c", ann) }, 5, 2, "b", "c"},
			{"to a rollback", func() (int64, error) { return g.RollBack(t.Context(), "p", 4, "c", ann) }, 6, 1, "a", "c"},
			{"the files are that", func() (int64, error) { return g.Number(t.Context(), "p", system.AnyGeneration, config("a"), files) }, 6, 1, "a", ""},
			{"and are still", func() (int64, error) { return g.Number(t.Context(), "p", system.AnyGeneration, config("a"), files) }, 6, 1, "a", ""},
			{"over what can't be read", func() (int64, error) { return g.RollBack(t.Context(), "p", 2, system.UnreadableFiles, ann) }, 7, 2, "b", system.UnreadableFiles},
			{"a reload", func() (int64, error) { return g.Number(t.Context(), "p", system.AnyGeneration, config("c"), ann) }, 8, 0, "c", ""},
		} {
			got, err := step.do()
			if err != nil || got != step.want {
				t.Fatalf("%s: %d, %v, want %d", step.name, got, err, step.want)
			}
			head, err := g.Head(t.Context(), "p")
			if err != nil {
				t.Fatal(err)
			}
			latest := head.History[len(head.History)-1]
			if head.Number != step.want || latest.Number != step.want || latest.Of != step.of || head.Revision != step.revision || head.Over != step.over {
				t.Errorf("%s: head %d %s over %q, latest %+v", step.name, head.Number, head.Revision, head.Over, latest)
			}
			if c, err := g.Config(t.Context(), "p", head.Number); err != nil || string(c.Files["project.yaml"]) != step.revision {
				t.Errorf("%s: the files are %q, %v", step.name, c.Files["project.yaml"], err)
			}
		}
		if _, err := g.RollBack(t.Context(), "p", 99, "c", ann); !errors.Is(err, system.ErrNoGeneration) {
			t.Errorf("to none: %v", err)
		}
	})
}

// Many instances that find changed files at once give them one number.
func TestGenerationsOfManyWriters(t *testing.T) {
	onStores(t, func(t *testing.T, st store.Store) {
		t.Helper()
		g := system.New(st, system.Options{Now: time.Now}).Generations
		for round := range int64(5) {
			numbers := make(chan int64, 6)
			var all sync.WaitGroup
			for range cap(numbers) {
				all.Go(func() {
					n, err := g.Number(t.Context(), "p", system.AnyGeneration, config(strconv.FormatInt(round, 10)), files)
					if err != nil {
						t.Error(err)
					}
					numbers <- n
				})
			}
			all.Wait()
			close(numbers)
			for n := range numbers {
				if n != round+1 {
					t.Errorf("round %d: generation %d", round, n)
				}
			}
		}
		if n := documents(t, st); n != 6 {
			t.Errorf("%d documents", n)
		}
	})
}

// Files that were read before another instance had newer ones are refused, unless they are the same.
func TestFilesBehindAGeneration(t *testing.T) {
	t.Parallel()
	g := system.New(teststore.Memory(t), system.Options{Now: time.Now}).Generations
	for _, step := range []struct {
		after    int64
		revision string
		want     int64
		err      error
	}{{0, "a", 1, nil}, {0, "a", 1, nil}, {0, "b", 0, system.ErrMoved}, {1, "b", 2, nil}, {1, "a", 0, system.ErrMoved}, {1, "b", 2, nil}, {2, "a", 3, nil}} {
		if n, err := g.Number(t.Context(), "p", step.after, config(step.revision), files); n != step.want && err == nil || !errors.Is(err, step.err) {
			t.Errorf("%+v: %d, %v", step, n, err)
		}
	}
}

// Heads of before there was a history are read, and go on.
func TestHeadsWithoutAHistory(t *testing.T) {
	t.Parallel()
	st := teststore.Memory(t)
	old, err := bson.Marshal(bson.D{
		{Key: "_id", Value: "p"},
		{Key: "_rev", Value: int64(7)},
		{Key: "number", Value: int64(7)},
		{Key: "revision", Value: "a"},
		{Key: "since", Value: time.Unix(1_700_000_000, 0)},
		{Key: "entry", Value: "project.yaml"},
		{Key: "files", Value: bson.A{bson.D{{Key: "name", Value: "project.yaml"}, {Key: "data", Value: []byte("a")}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.WriteAll(t.Context(), st.Database(system.DatabaseName).Collection("generations"), store.Op{Kind: store.Insert, Doc: old}); err != nil {
		t.Fatal(err)
	}
	g := system.New(st, system.Options{Now: time.Now}).Generations
	check := func(when string) {
		t.Helper()
		if c, err := g.Config(t.Context(), "p", 7); err != nil || !cmp.Equal(c, config("a")) {
			t.Errorf("%s: %+v, %v", when, c, err)
		}
	}
	check("before a write")
	if n, err := g.Number(t.Context(), "p", system.AnyGeneration, config("a"), files); n != 7 || err != nil {
		t.Errorf("the same files: %d, %v", n, err)
	}
	if n, err := g.Number(t.Context(), "p", system.AnyGeneration, config("b"), files); n != 8 || err != nil {
		t.Errorf("others: %d, %v", n, err)
	}
	check("after one")
	if err := g.Remove(t.Context(), "p"); err != nil || documents(t, st) != 0 {
		t.Errorf("%d documents stay, %v", documents(t, st), err)
	}
}
