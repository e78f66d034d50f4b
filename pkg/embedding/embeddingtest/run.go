// Package embeddingtest is what every embedding provider has to do, a server that fails in every way, and a provider
// that fails on demand.
package embeddingtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/svcctl/svc/pkg/embedding"
)

// Near is how near the vectors of a text are that come from two calls, or from calls with other texts beside it.
const Near = embedding.MinCosine

// Run checks what who asks a provider relies on. open gives a provider that works.
func Run(t *testing.T, open func(t *testing.T) embedding.Provider) {
	t.Helper()
	for _, c := range []struct {
		name  string
		check func(t *testing.T, p embedding.Provider)
	}{
		{"Name", hasName},
		{"Form", givesItsForm},
		{"Order", keepsOrder},
		{"None", takesNone},
		{"Deterministic", isDeterministic},
		{"AnyText", takesAnyText},
		{"Similar", bringsSimilarTogether},
		{"Cancelled", endsWithItsContext},
		{"Concurrent", isConcurrent},
		{"Close", closesTwice},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := open(t)
			t.Cleanup(func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
			c.check(t, p)
		})
	}
}

// embed gives the vectors of texts, of which there have to be as many.
func embed(t *testing.T, p embedding.Provider, kind embedding.Kind, texts ...string) []embedding.Vector {
	t.Helper()
	vectors, err := p.Embed(t.Context(), texts, kind)
	if err != nil {
		t.Fatalf("Embed: %v", err)
	}
	if len(vectors) != len(texts) {
		t.Fatalf("%d vectors for %d texts", len(vectors), len(texts))
	}
	return vectors
}

func hasName(t *testing.T, p embedding.Provider) {
	if p.Name() == "" {
		t.Error("it has no name")
	}
}

func givesItsForm(t *testing.T, p embedding.Provider) {
	for _, kind := range []embedding.Kind{embedding.Document, embedding.Query} {
		vectors := embed(t, p, kind, "ships and anchors", "a wing in a slipstream", "bread")
		length := p.Dimensions()
		if length == 0 {
			length = len(vectors[0].Dense)
		}
		for i, v := range vectors {
			switch {
			case p.Sparse() && (v.Sparse == nil || v.Dense != nil):
				t.Errorf("%s %d is not sparse", kind, i)
			case !p.Sparse() && (v.Dense == nil || v.Sparse != nil):
				t.Errorf("%s %d is not dense", kind, i)
			case !p.Sparse() && len(v.Dense) != length:
				t.Errorf("%s %d has %d dimensions instead of %d", kind, i, len(v.Dense), length)
			}
			finite(t, v)
		}
	}
}

// finite checks that a vector is numbers, and not all of them 0.
func finite(t *testing.T, v embedding.Vector) {
	t.Helper()
	if c := embedding.Cosine(v, v); math.Abs(c-1) > 1e-6 {
		t.Errorf("a vector is not similar to itself: %v", c)
	}
}

func keepsOrder(t *testing.T, p embedding.Provider) {
	var texts []string
	for i := range embedding.BatchSize {
		texts = append(texts, fmt.Sprintf("the number %d and what is next to it, %d", i, i+1))
	}
	vectors := embed(t, p, embedding.Document, texts...)
	for i, text := range texts {
		if c := embedding.Cosine(vectors[i], embed(t, p, embedding.Document, text)[0]); c < Near {
			t.Errorf("text %d of a batch has a cosine of %v to itself alone", i, c)
		}
	}
}

func takesNone(t *testing.T, p embedding.Provider) { embed(t, p, embedding.Document) }

func isDeterministic(t *testing.T, p embedding.Provider) {
	a, b := embed(t, p, embedding.Query, "the same")[0], embed(t, p, embedding.Query, "the same")[0]
	if c := embedding.Cosine(a, b); c < Near {
		t.Errorf("the same text has a cosine of %v", c)
	}
}

func takesAnyText(t *testing.T, p embedding.Provider) {
	for _, text := range []string{
		"a", "?!", "Überfälle über 3 Äcker", "東京都の天気", "مرحبا", "👩‍👩‍👧 🏳️‍🌈", "a\x00b", "line\nline\r\n\ttab", `"quoted" \ {"json": [1]} </script>`,
		strings.Repeat("word ", 4000), strings.Repeat("x", 20000),
	} {
		embed(t, p, embedding.Document, text)
	}
}

func bringsSimilarTogether(t *testing.T, p embedding.Provider) {
	v := embed(t, p, embedding.Document, "the boundary layer of a flat plate", "boundary layers on flat plates", "a recipe for bread with onions")
	if near, far := embedding.Cosine(v[0], v[1]), embedding.Cosine(v[0], v[2]); near <= far {
		t.Errorf("texts about the same have %v, others %v", near, far)
	}
}

func endsWithItsContext(t *testing.T, p embedding.Provider) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Embed(ctx, []string{"late"}, embedding.Query); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call gave %v", err)
	}
}

func isConcurrent(t *testing.T, p embedding.Provider) {
	want := embed(t, p, embedding.Query, "at the same time")[0]
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			got, err := p.Embed(t.Context(), []string{"at the same time"}, embedding.Query)
			if err != nil || len(got) != 1 || embedding.Cosine(want, got[0]) < Near {
				t.Errorf("beside others: %d vectors, %v", len(got), err)
			}
		})
	}
	all.Wait()
}

func closesTwice(t *testing.T, p embedding.Provider) {
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
