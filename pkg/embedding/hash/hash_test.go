package hash_test

import (
	"testing"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/embedding/embeddingtest"
	"github.com/svcctl/svc/pkg/embedding/hash"
)

func open(t *testing.T, config embedding.ProviderConfig) embedding.Provider {
	t.Helper()
	config.Name = "hash"
	p, err := hash.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProvider(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]embedding.ProviderConfig{"default": {}, "384": {Dimensions: 384}, "32": {Dimensions: 32}, "sparse": {Sparse: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			embeddingtest.Run(t, func(t *testing.T) embedding.Provider { t.Helper(); return open(t, config) })
		})
	}
}

// TestOneDimension has features cancel each other out.
func TestOneDimension(t *testing.T) {
	t.Parallel()
	p := open(t, embedding.ProviderConfig{Dimensions: 1})
	for _, text := range []string{"", "?", "a b c d e f", "one two three four"} {
		got, err := p.Embed(t.Context(), []string{text}, embedding.Query)
		if err != nil || got[0].Dense[0] != 1 && got[0].Dense[0] != -1 {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// TestVectorsStay holds the vectors against those of earlier versions: who keeps vectors of it relies on them.
func TestVectorsStay(t *testing.T) {
	t.Parallel()
	got, err := open(t, embedding.ProviderConfig{Dimensions: 4}).Embed(t.Context(), []string{"Hello, wörld 7"}, embedding.Document)
	if err != nil {
		t.Fatal(err)
	}
	want := embedding.Vector{Dense: []float32{-0.35043833, 0.45056355, 0.50062615, 0.65081406}}
	if c := embedding.Cosine(got[0], want); c < 0.999999 {
		t.Errorf("the vector is %v now, it was %v", got[0].Dense, want.Dense)
	}
}
