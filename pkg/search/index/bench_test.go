package index_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

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
	text := 0
	var batch []index.Change
	for i := range benchRecords {
		c := z.change(i)
		for _, tokens := range c.Fields {
			for _, t := range tokens {
				text += len(t.Term) + 1
			}
		}
		batch = append(batch, c)
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
	s, err := ix.Stats()
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d MB of text, %.2f of that on disk, %d MB in memory", text>>20, float64(s.Disk)/float64(text), s.Memory>>20)
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
			var times []time.Duration
			for b.Loop() {
				begun := time.Now()
				search(b, ix, set, z)
				times = append(times, time.Since(begun))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
		})
		b.Run(set+"/16", func(b *testing.B) {
			b.SetParallelism(max(1, 16/runtime.GOMAXPROCS(0)))
			var seed atomic.Uint64
			b.RunParallel(func(pb *testing.PB) {
				z := newZipf(seed.Add(1) + 100)
				for pb.Next() {
					search(b, ix, set, z)
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "searches/s")
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
func search(b *testing.B, ix *index.Index, set string, z zipf) {
	v, err := viewOf(b, ix, set)
	if err != nil {
		b.Error(err)
		return
	}
	var q index.Query
	for range 2 {
		w := []string{z.word()}
		q.Groups = append(q.Groups, index.Group{Leaves: []index.Leaf{{Field: 1, Terms: w, Boost: 3}, {Field: 2, Terms: w, Boost: 1}}})
	}
	m, err := v.Search(b.Context(), q)
	if err != nil {
		b.Error(err)
		return
	}
	m.Top(20)
	m.Release()
	if err := v.Close(); err != nil {
		b.Error(err)
	}
}

// BenchmarkNearest looks for the 10 nearest of 100,000 vectors, which are in groups as those of texts are.
func BenchmarkNearest(b *testing.B) {
	for _, small := range []bool{false, true} {
		b.Run(map[bool]string{false: "exact", true: "small"}[small], func(b *testing.B) {
			db, err := index.Open(index.Options{Dir: b.TempDir(), SmallVectors: small})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = db.Close(b.Context()) }()
			ix, err := db.Index("a")
			if err != nil {
				b.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 1))
			for from := 0; from < benchRecords; from += 500 {
				changes := make([]index.Change, 500)
				for i := range changes {
					changes[i] = index.Change{ID: fmt.Appendf(nil, "%024d", from+i), Rev: 1, Vectors: map[index.Field][]float32{1: unit(r, 384)}}
				}
				if err := ix.Apply(b.Context(), changes, nil); err != nil {
					b.Fatal(err)
				}
			}
			if err := ix.Flush(b.Context()); err != nil {
				b.Fatal(err)
			}
			if s, err := ix.Stats(); err == nil {
				b.Logf("%d MB in memory", s.Memory>>20)
			}
			v, err := ix.View()
			if err != nil {
				b.Fatal(err)
			}
			defer v.Close()
			to := unit(r, 384)
			for b.Loop() {
				if _, err := v.Nearest(b.Context(), 1, to, 10); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
