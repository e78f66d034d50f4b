package embedding_test

import (
	"math"
	"testing"

	"github.com/svcctl/svc/pkg/embedding"
)

func TestCosine(t *testing.T) {
	t.Parallel()
	dense := func(x ...float32) embedding.Vector { return embedding.Vector{Dense: x} }
	sparse := func(m map[string]float32) embedding.Vector { return embedding.Vector{Sparse: m} }
	for _, tt := range []struct {
		name string
		a, b embedding.Vector
		want float64
	}{
		{"same direction", dense(1, 2), dense(2, 4), 1},
		{"opposite", dense(1, 0), dense(-3, 0), -1},
		{"at right angles", dense(1, 0), dense(0, 1), 0},
		{"45 degrees", dense(1, 0), dense(1, 1), math.Sqrt2 / 2},
		{"large", dense(3e38, 0), dense(3e38, 3e38), math.Sqrt2 / 2},
		{"other lengths", dense(1), dense(1, 0), 0},
		{"no direction", dense(0, 0), dense(1, 1), 0},
		{"none", embedding.Vector{}, dense(1, 1), 0},
		{"sparse", sparse(map[string]float32{"a": 1}), sparse(map[string]float32{"a": 1, "b": 1}), math.Sqrt2 / 2},
		{"sparse, nothing in common", sparse(map[string]float32{"a": 1}), sparse(map[string]float32{"b": 1}), 0},
		{"other forms", sparse(map[string]float32{"a": 1}), dense(1), 0},
	} {
		if got := embedding.Cosine(tt.a, tt.b); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		if a, b := embedding.Cosine(tt.a, tt.b), embedding.Cosine(tt.b, tt.a); math.Abs(a-b) > 1e-12 {
			t.Errorf("%s: %v one way, %v the other", tt.name, a, b)
		}
	}
}
