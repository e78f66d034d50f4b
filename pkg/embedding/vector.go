package embedding

import (
	"fmt"
	"math"
)

// Vector is what a text became: Dense or Sparse, by the provider. One that has neither stands for a text without content.
type Vector struct {
	Dense  []float32
	Sparse map[string]float32 // token to weight
}

// IsZero says whether there is no vector.
func (v Vector) IsZero() bool { return v.Dense == nil && v.Sparse == nil }

// Cosine is the similarity of two vectors of one reference, -1 to 1. Vectors of different forms or lengths, and those
// without a direction, are not similar: 0.
func Cosine(a, b Vector) float64 {
	var dot, aa, bb float64
	switch {
	case a.Dense != nil && len(a.Dense) == len(b.Dense):
		for i, x := range a.Dense {
			y := float64(b.Dense[i])
			dot += float64(x) * y
			aa += float64(x) * float64(x)
			bb += y * y
		}
	case a.Sparse != nil && b.Sparse != nil:
		for token, x := range a.Sparse {
			dot += float64(x) * float64(b.Sparse[token])
			aa += float64(x) * float64(x)
		}
		for _, y := range b.Sparse {
			bb += float64(y) * float64(y)
		}
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return dot / math.Sqrt(aa) / math.Sqrt(bb)
}

// normalized is a vector as groups give it: dense ones of length 1, sparse ones without tokens that weigh nothing.
// dimensions 0 are any.
func normalized(v Vector, sparse bool, dimensions int) (Vector, error) {
	switch {
	case sparse && (v.Sparse == nil || v.Dense != nil):
		return Vector{}, deviates("a vector is not sparse")
	case !sparse && (v.Dense == nil || v.Sparse != nil):
		return Vector{}, deviates("a vector is not dense")
	case sparse:
		return normalizedSparse(v)
	case dimensions > 0 && len(v.Dense) != dimensions:
		return Vector{}, deviates(fmt.Sprintf("a vector has %d dimensions instead of %d", len(v.Dense), dimensions))
	}
	var sum float64
	for _, x := range v.Dense {
		sum += float64(x) * float64(x)
	}
	if !isFinite(sum) || sum == 0 {
		return Vector{}, fmt.Errorf("a vector has no direction (its squared length is %v)", sum)
	}
	out, by := make([]float32, len(v.Dense)), 1/math.Sqrt(sum)
	for i, x := range v.Dense {
		out[i] = float32(float64(x) * by)
	}
	return Vector{Dense: out}, nil
}

func normalizedSparse(v Vector) (Vector, error) {
	out := make(map[string]float32, len(v.Sparse))
	for token, weight := range v.Sparse {
		if !isFinite(float64(weight)) {
			return Vector{}, fmt.Errorf("a token's weight is %v", weight)
		}
		if weight != 0 {
			out[token] = weight
		}
	}
	return Vector{Sparse: out}, nil
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
