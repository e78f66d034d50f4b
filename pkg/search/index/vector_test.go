package index_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

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

// TestNear finds by the first of two fields that a record has a vector in, leaves out what is too far, and raises what is new.
func TestNear(t *testing.T) {
	t.Parallel()
	db := open(t, t.TempDir())
	defer closeDB(t, db)
	ix := openIndex(t, db, "a")
	now := time.UnixMilli(1_000_000)
	apply := func(id string, one, two []float32, at int64) {
		t.Helper()
		c := index.Change{ID: []byte(id), Rev: 1, Vectors: map[index.Field][]float32{}, Values: map[index.Field]int64{9: at}}
		if one != nil {
			c.Vectors[1] = one
		}
		if two != nil {
			c.Vectors[2] = two
		}
		if err := ix.Apply(t.Context(), []index.Change{c}, nil); err != nil {
			t.Fatal(err)
		}
	}
	apply("both", []float32{0.6, 0.8}, []float32{1, 0}, 0)
	apply("one", []float32{0.8, 0.6}, nil, now.UnixMilli())
	apply("two", nil, []float32{-1, 0}, 0)
	apply("none", nil, nil, 0)
	recent := &index.Recency{Field: 9, Now: now, HalfLife: time.Second, Weight: 1}
	for _, x := range []struct {
		name string
		q    index.Near
		want string
	}{
		{"one field", index.Near{Fields: []index.Field{2}}, "both 1.0 two -1.0"},
		{"the first that there is", index.Near{Fields: []index.Field{1, 2}}, "one 0.8 both 0.6 two -1.0"},
		{"not too far", index.Near{Fields: []index.Field{1, 2}, MinScore: 0.7}, "one 0.8"},
		{"recent", index.Near{Fields: []index.Field{1, 2}, Recency: recent}, "one 1.6 both 0.6 two -1.0"},
		{"no such field", index.Near{Fields: []index.Field{5}}, ""},
	} {
		x.q.To = []float32{1, 0}
		if got := near(t, ix, x.q); got != x.want {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}

// TestSparseVectors finds by the products of tokens' weights, in memory and on the disk.
func TestSparseVectors(t *testing.T) {
	t.Parallel()
	db := open(t, t.TempDir())
	defer closeDB(t, db)
	ix := openIndex(t, db, "a")
	for id, fields := range map[string]map[index.Field][]index.Token{
		"a": {1: index.Weights(map[string]float32{"cat": 0.5, "dog": 2, "none": 0, "less": -1})},
		"b": {1: index.Weights(map[string]float32{"cat": 1.25}), 2: index.Weights(map[string]float32{"dog": 8})},
		"c": {2: index.Weights(map[string]float32{"dog": 0.25})},
	} {
		if err := ix.Apply(t.Context(), []index.Change{{ID: []byte(id), Rev: 1, Fields: fields}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, where := range []string{"memory", "disk"} {
		q := index.Near{Fields: []index.Field{1, 2}, Tokens: map[string]float32{"cat": 2, "dog": 1, "less": 9, "none": 9}}
		if got, want := near(t, ix, q), "a 3.0 b 2.5 c 0.2"; got != want {
			t.Errorf("in %s: %q, want %q", where, got, want)
		}
		if err := ix.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func near(t *testing.T, ix *index.Index, q index.Near) string {
	t.Helper()
	v, err := ix.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	m, err := v.Near(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release()
	var out []string
	for _, h := range m.Next(100) {
		out = append(out, fmt.Sprintf("%s %.1f", h.ID, h.Score))
	}
	return strings.Join(out, " ")
}

// TestVectorsThatChange writes the vectors of few records often: what is kept of them stays within bounds, and is what they are now.
func TestVectorsThatChange(t *testing.T) {
	t.Parallel()
	for _, small := range []bool{false, true} {
		vectorsThatChange(t, small)
	}
}

func vectorsThatChange(t *testing.T, small bool) {
	t.Helper()
	db, err := index.Open(index.Options{Dir: t.TempDir(), SmallVectors: small})
	if err != nil {
		t.Fatal(err)
	}
	defer closeDB(t, db)
	ix := openIndex(t, db, "a")
	r := rand.New(rand.NewPCG(*seed, 9))
	const records = 300
	is := map[string][]float32{}
	for range 30 {
		var changes []index.Change
		for i := range records {
			id := strconv.Itoa(i)
			is[id] = unit(r, 8)
			changes = append(changes, index.Change{ID: []byte(id), Rev: 1, Vectors: map[index.Field][]float32{1: is[id]}})
		}
		if err := ix.Apply(t.Context(), changes, nil); err != nil {
			t.Fatal(err)
		}
		if rows := index.Rows(ix, 1); rows > 2*records+1024 {
			t.Fatalf("%d rows are kept of %d records", rows, records)
		}
	}
	for id, v := range is {
		if got := nearest(t, ix, v, 1); math.Abs(float64(got[id])-1) > 1e-5 {
			t.Fatalf("small %t: what is nearest to the vector of %s is %v", small, id, got)
		}
	}
}
