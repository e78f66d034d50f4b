package index_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/svcctl/svc/pkg/search/index"
)

// TestProducts compares the processor's own instructions with a loop, at all lengths and with the greatest numbers.
func TestProducts(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(*seed, 7))
	for n := range 200 {
		a, b, c, d := make([]float32, n), make([]float32, n), make([]int16, n), make([]int8, n)
		var want float64
		var wantSmall int32
		for i := range n {
			a[i], b[i] = r.Float32()-0.5, r.Float32()-0.5
			c[i], d[i] = int16(r.IntN(255)-127), int8(r.IntN(255)-127)
			if n%3 == 0 {
				c[i], d[i] = 127, 127
			}
			want += float64(a[i]) * float64(b[i])
			wantSmall += int32(c[i]) * int32(d[i])
		}
		floats, small := index.Products(a, b, c, d)
		if math.Abs(float64(floats[0])-want) > 1e-5 || math.Abs(float64(floats[1])-want) > 1e-5 {
			t.Errorf("%d numbers: %v, want %v", n, floats, want)
		}
		if small != [2]int32{wantSmall, wantSmall} {
			t.Errorf("%d small numbers: %v, want %d", n, small, wantSmall)
		}
	}
}

// TestSmallVectors compares what is found with a byte for each dimension with what is found without, before and after it was written.
func TestSmallVectors(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(*seed, 8))
	const records, dimensions, limit = 2000, 48, 10
	var changes []index.Change
	for i := range records {
		changes = append(changes, index.Change{ID: fmt.Append(nil, i), Rev: 1, Vectors: map[index.Field][]float32{1: unit(r, dimensions)}})
	}
	exact := open(t, t.TempDir())
	defer closeDB(t, exact)
	small, err := index.Open(index.Options{Dir: t.TempDir(), SmallVectors: true})
	if err != nil {
		t.Fatal(err)
	}
	defer closeDB(t, small)
	both := [2]*index.Index{openIndex(t, exact, "a"), openIndex(t, small, "a")}
	for _, ix := range both {
		if err := ix.Apply(t.Context(), changes, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, where := range []string{"memory", "disk"} {
		same := 0
		for range 20 {
			to := unit(r, dimensions)
			var hits [2]map[string]float32
			for i, ix := range both {
				hits[i] = nearest(t, ix, to, limit)
			}
			for id, score := range hits[1] {
				if exact, ok := hits[0][id]; ok && math.Abs(float64(exact-score)) < 1e-6 {
					same++
				}
			}
		}
		if recall := float64(same) / (20 * limit); recall < 0.99 {
			t.Errorf("in %s: %.3f of what is nearest was found with its score", where, recall)
		}
		for _, ix := range both {
			if err := ix.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func nearest(t *testing.T, ix *index.Index, to []float32, limit int) map[string]float32 {
	t.Helper()
	v, err := ix.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	hits, err := v.Nearest(t.Context(), 1, to, limit)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float32{}
	for _, h := range hits {
		out[string(h.ID)] = h.Score
	}
	return out
}

// TestVectorsOfOtherModels refuses vectors that can't be compared.
func TestVectorsOfOtherModels(t *testing.T) {
	t.Parallel()
	db := open(t, t.TempDir())
	defer closeDB(t, db)
	ix := openIndex(t, db, "a")
	apply := func(n int) error {
		return ix.Apply(t.Context(), []index.Change{{ID: []byte("x"), Rev: 1, Vectors: map[index.Field][]float32{1: make([]float32, n)}}}, nil)
	}
	if err := apply(3); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 2, 4} {
		if err := apply(n); err == nil {
			t.Errorf("a vector of %d dimensions was taken in beside one of 3", n)
		}
	}
	v, err := ix.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if hits, err := v.Nearest(t.Context(), 1, make([]float32, 2), 1); err == nil {
		t.Errorf("a vector of 2 dimensions was compared with some of 3: %v", hits)
	}
}
