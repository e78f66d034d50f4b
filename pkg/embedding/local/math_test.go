package local_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/embedding/local"
)

func TestErf(t *testing.T) {
	t.Parallel()
	for x := -6.0; x <= 6; x += 1.0 / 1024 {
		if got, want := float64(local.Erf(float32(x))), math.Erf(x); math.Abs(got-want) > 1e-6 {
			t.Fatalf("erf(%v) is %v, want %v", x, got, want)
		}
	}
	if x := local.Erf(float32(math.NaN())); x == x {
		t.Errorf("erf(NaN) is %v", x)
	}
}

func TestExp(t *testing.T) {
	t.Parallel()
	for x := -87.0; x <= 0; x += 1.0 / 256 {
		if got, want := float64(local.Exp(float32(x))), math.Exp(x); math.Abs(got-want) > 3e-7*want {
			t.Fatalf("exp(%v) is %v, want %v", x, got, want)
		}
	}
	if one := local.Exp(0); one != 1 {
		t.Errorf("exp(0) is %v", one)
	}
	for _, x := range []float64{-88, -1e9, math.Inf(-1), math.NaN()} {
		if got := local.Exp(float32(x)); got != 0 {
			t.Errorf("exp(%v) is %v", x, got)
		}
	}
}

func TestSoftmax(t *testing.T) {
	t.Parallel()
	xs := []float32{8, 0, -8, 80000, 79992}
	local.Softmax(xs, 0.125)
	e := math.Exp(-1)
	for i, want := range []float64{0, 0, 0, 1 / (1 + e), e / (1 + e)} {
		if math.Abs(float64(xs[i])-want) > 1e-6 {
			t.Errorf("share %d is %v, want %v", i, xs[i], want)
		}
	}
}

func TestLayerNorm(t *testing.T) {
	t.Parallel()
	xs := []float32{1, 2, 3, 4}
	local.LayerNorm(xs, []float32{1, 1, 2, 1}, []float32{0, 0, 0, 1}, 0.75)
	scale := 1 / math.Sqrt(1.25+0.75)
	for i, want := range []float64{-1.5 * scale, -0.5 * scale, 2 * 0.5 * scale, 1.5*scale + 1} {
		if math.Abs(float64(xs[i])-want) > 1e-6 {
			t.Errorf("value %d is %v, want %v", i, xs[i], want)
		}
	}
}

func TestPool(t *testing.T) {
	t.Parallel()
	rows := []float32{1, 2, 3, 6, 5, 10}
	if diff := cmp.Diff([]float32{3, 6}, local.Pool(false, rows, 2)); diff != "" {
		t.Errorf("mean: %s", diff)
	}
	if diff := cmp.Diff([]float32{1, 2}, local.Pool(true, rows, 2)); diff != "" {
		t.Errorf("cls: %s", diff)
	}
}

func random(rnd *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(rnd.NormFloat64())
	}
	return out
}

func TestMulT(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, size := range [][3]int{{1, 1, 8}, {4, 3, 8}, {5, 7, 16}, {17, 5, 24}, {33, 10, 392}, {2, 4, 1536}} {
		n, m, k := size[0], size[1], size[2]
		a, b, bias := random(rnd, n*k), random(rnd, m*k), random(rnd, m)
		got := local.MulT(a, b, n, m, k, bias)
		for i := range n {
			for j := range m {
				want := float64(bias[j])
				for c := range k {
					want += float64(a[i*k+c]) * float64(b[j*k+c])
				}
				if math.Abs(float64(got[i*m+j])-want) > 1e-6*float64(k) {
					t.Fatalf("%v: (%d, %d) is %v, want %v", size, i, j, got[i*m+j], want)
				}
			}
		}
		alone := local.MulT(a[(n-1)*k:], b[(m-1)*k:], 1, 1, k, bias[m-1:])
		if alone[0] != got[n*m-1] {
			t.Errorf("%v: a product differs from itself alone: %v and %v", size, got[n*m-1], alone[0])
		}
	}
}

func TestDotTile(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, k := range []int{8, 16, 104, 384} {
		fast, plain := local.DotTile(random(rnd, 4*k), random(rnd, 3*k), k)
		for i := range plain {
			if math.Abs(float64(fast[i]-plain[i])) > 1e-6*float64(k) {
				t.Errorf("%d columns: product %d is %v, and %v in plain Go", k, i, fast[i], plain[i])
			}
		}
	}
}
