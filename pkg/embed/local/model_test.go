package local_test

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reference is what testdata/reference.py has made of a text.
type reference struct {
	Text   string  `json:"text"`
	IDs    []int32 `json:"ids"`
	Vector []byte  `json:"vector"`
}

func references(tb testing.TB) []reference {
	tb.Helper()
	text, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		tb.Fatal(err)
	}
	var all []reference
	if err := json.Unmarshal(text, &all); err != nil {
		tb.Fatal(err)
	}
	if len(all) < 40 {
		tb.Fatalf("%d texts", len(all))
	}
	return all
}

func (r reference) vector() []float32 {
	out := make([]float32, len(r.Vector)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(r.Vector[4*i:]))
	}
	return out
}

func short(text string) string {
	if r := []rune(text); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return text
}

func TestReference(t *testing.T) {
	t.Parallel()
	m := miniLM(t)
	for _, r := range references(t) {
		t.Run(short(r.Text), func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(r.IDs, m.Tokens(r.Text)); diff != "" {
				t.Fatalf("tokens (-want +got):\n%s", diff)
			}
			got, err := m.Encode(t.Context(), []string{r.Text})
			if err != nil {
				t.Fatal(err)
			}
			want := r.vector()
			if len(got[0]) != len(want) {
				t.Fatalf("%d dimensions, want %d", len(got[0]), len(want))
			}
			if c := cosine(got[0], want); c < 0.9999999 {
				t.Errorf("cosine %.9f", c)
			}
			worst := 0.0
			for i := range want {
				worst = max(worst, math.Abs(float64(got[0][i]-want[i])))
			}
			if worst > 2e-6 {
				t.Errorf("a value is off by %g", worst)
			}
		})
	}
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

