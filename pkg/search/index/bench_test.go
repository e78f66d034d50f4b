package index_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/svcctl/svc/pkg/search/index"
)

// zipf draws words as texts have them.
type zipf struct{ *rand.Zipf }

func newZipf(seed uint64) zipf {
	return zipf{rand.NewZipf(rand.New(rand.NewPCG(seed, 0)), 1.1, 20, 200_000)}
}

func (z zipf) word() string { return fmt.Sprintf("w%dx", z.Uint64()) }

func (z zipf) tokens(n int) []index.Token {
	out := make([]index.Token, n)
	for i := range out {
		out[i] = index.Token{Term: z.word(), Position: uint32(i)}
	}
	return out
}

func (z zipf) change(i int) index.Change {
	return index.Change{
		ID: fmt.Appendf(nil, "%024d", i), Rev: 1,
		Fields: map[index.Field][]index.Token{1: z.tokens(8), 2: z.tokens(240)},
		In:     func(*index.Set) bool { return i%2 == 0 },
	}
}

const benchRecords = 100_000

func filled(b *testing.B) *index.Index {
	b.Helper()
	db, err := index.Open(index.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close(b.Context()) })
	ix, err := db.Index("a")
	if err != nil {
		b.Fatal(err)
	}
	z := newZipf(1)
	var batch []index.Change
	for i := range benchRecords {
		batch = append(batch, z.change(i))
		if len(batch) == 500 {
			if err := ix.Apply(b.Context(), batch, nil); err != nil {
				b.Fatal(err)
			}
			batch = batch[:0]
		}
	}
	if err := ix.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	return ix
}

// BenchmarkApply takes in records of 248 words in batches of 500; the words are made beforehand.
func BenchmarkApply(b *testing.B) {
	db, err := index.Open(index.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close(b.Context()) }()
	ix, err := db.Index("a")
	if err != nil {
		b.Fatal(err)
	}
	z := newZipf(1)
	batch := make([]index.Change, 500)
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		for j := range batch {
			batch[j] = z.change(i*len(batch) + j)
		}
		b.StartTimer()
		if err := ix.Apply(b.Context(), batch, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*len(batch))/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkSearch looks for two words in two fields of 100,000 records.
func BenchmarkSearch(b *testing.B) {
	ix := filled(b)
	z := newZipf(2)
	for _, set := range []string{"all", "half"} {
		b.Run(set, func(b *testing.B) {
			for b.Loop() {
				v, err := viewOf(b, ix, set)
				if err != nil {
					b.Fatal(err)
				}
				search(b, v, z)
			}
		})
	}
}

// viewOf gives all records, or each other one.
func viewOf(b *testing.B, ix *index.Index, set string) (*index.View, error) {
	if set == "all" {
		return ix.View()
	}
	return ix.ViewSet(b.Context(), set, nil, func(_ context.Context, add func([]byte, int64) error) error {
		for i := 0; i < benchRecords; i += 2 {
			if err := add(fmt.Appendf(nil, "%024d", i), 1); err != nil {
				return err
			}
		}
		return nil
	})
}

// search asks for two words in two fields, and for the 20 best of what was found.
func search(b *testing.B, v *index.View, z zipf) {
	var q index.Query
	for range 2 {
		w := []string{z.word()}
		q.Groups = append(q.Groups, index.Group{Leaves: []index.Leaf{{Field: 1, Terms: w, Boost: 3}, {Field: 2, Terms: w, Boost: 1}}})
	}
	m, err := v.Search(b.Context(), q)
	if err != nil {
		b.Fatal(err)
	}
	m.Top(20)
	m.Release()
	if err := v.Close(); err != nil {
		b.Fatal(err)
	}
}
