package local_test

import (
	"strings"
	"testing"
)

// BenchmarkEncode measures one text of so many tokens, which one core does alone.
func BenchmarkEncode(b *testing.B) {
	m := miniLM(b)
	for _, bench := range []struct {
		name string
		text string
	}{
		{"tokens=12", "how do i bake a good bread without yeast"},
		{"tokens=128", strings.Repeat("bread ", 126)},
		{"tokens=256", strings.Repeat("bread ", 254)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportMetric(float64(len(m.Tokens(bench.text))), "tokens")
			for b.Loop() {
				if _, err := m.Encode(b.Context(), []string{bench.text}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
