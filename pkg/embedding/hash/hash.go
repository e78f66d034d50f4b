// Package hash is an embedding provider without a model: it hashes the words of a text and the trigrams of these into
// dimensions. Texts that share words, or spellings, are near each other; nothing is known about meanings. It is
// deterministic on every machine, and for tests and demos only.
package hash

import (
	"context"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/svcctl/svc/pkg/embedding"
)

// DefaultDimensions is how long vectors are where the settings don't say.
const DefaultDimensions = 256

// The shares of features: a word counts as much as a few of its trigrams.
const (
	wordShare    = 1
	trigramShare = 0.3
)

// provider is stateless.
type provider struct {
	name       string
	dimensions int
	sparse     bool
}

// New makes a provider of the type hash.
func New(config embedding.ProviderConfig) (embedding.Provider, error) {
	p := &provider{name: config.Name, dimensions: config.Dimensions, sparse: config.Sparse}
	if p.dimensions == 0 && !p.sparse {
		p.dimensions = DefaultDimensions
	}
	return p, nil
}

func (p *provider) Name() string    { return p.name }
func (p *provider) Dimensions() int { return p.dimensions }
func (p *provider) Sparse() bool    { return p.sparse }
func (p *provider) Close() error    { return nil }

func (p *provider) Embed(ctx context.Context, texts []string, _ embedding.Kind) ([]embedding.Vector, error) {
	out := make([]embedding.Vector, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if p.sparse {
			out[i].Sparse = weights(text)
		} else {
			out[i].Dense = p.vector(text)
		}
	}
	return out, nil
}

// words gives the words of a text in their order, in lower case.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}

// weights is 1 + log(how often) for each word.
func weights(text string) map[string]float32 {
	out := map[string]float32{}
	for _, word := range words(text) {
		out[word]++
	}
	for word, n := range out {
		out[word] = float32(1 + math.Log(float64(n)))
	}
	return out
}

func (p *provider) vector(text string) []float32 {
	sums := make([]float64, p.dimensions)
	list := words(text)
	if len(list) == 0 { // still it has a direction
		list = []string{"\x00" + text}
	}
	for _, word := range list {
		add(sums, "w"+word, wordShare)
		runes := []rune("^" + word + "$")
		for i := range max(0, len(runes)-2) {
			add(sums, "t"+string(runes[i:i+3]), trigramShare)
		}
	}
	if !slices.ContainsFunc(sums, func(x float64) bool { return x != 0 }) {
		sums[0] = 1 // what was added has cancelled itself out
	}
	return unit(sums)
}

// add puts a feature where its hash says, with its sign: features that meet in a dimension cancel each other on average.
func add(sums []float64, feature string, share float64) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(feature)) // it never fails
	sum := h.Sum64()
	if sum>>63 == 1 {
		share = -share
	}
	sums[(sum&(1<<63-1))%uint64(len(sums))] += share
}

// unit scales to length 1.
func unit(sums []float64) []float32 {
	var square float64
	for _, x := range sums {
		square += x * x
	}
	out, by := make([]float32, len(sums)), 1/math.Sqrt(square)
	for i, x := range sums {
		out[i] = float32(x * by)
	}
	return out
}
