// Package tei is the embedding provider of Hugging Face's Text Embeddings Inference: POST <baseURL>/embed, and
// /embed_sparse for models of that kind. The server has one model; the settings' model only names it.
package tei

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/embedding/remote"
)

type provider struct{ *remote.Client }

// New makes a provider of the type tei.
func New(config embedding.ProviderConfig) (embedding.Provider, error) {
	client, err := remote.New(config)
	if err != nil {
		return nil, err
	}
	return provider{client}, nil
}

// question has texts cut to what the model reads, which is a text's beginning.
type question struct {
	Inputs   []string `json:"inputs"`
	Truncate bool     `json:"truncate"`
}

func (p provider) Embed(ctx context.Context, texts []string, _ embedding.Kind) ([]embedding.Vector, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	path, decode := "embed", decodeDense
	if p.Config.Sparse {
		path, decode = "embed_sparse", decodeSparse
	}
	return p.Ask(ctx, path, question{Inputs: texts, Truncate: true}, len(texts), decode)
}

// decodeDense reads an answer of /embed to n texts.
func decodeDense(answer []byte, n int) ([]embedding.Vector, error) {
	var list []remote.Numbers
	if err := json.Unmarshal(answer, &list); err != nil {
		return nil, err
	}
	return remote.Vectors(list, n)
}

// decodeSparse reads an answer of /embed_sparse to n texts. The tokens are their numbers in the model's vocabulary.
func decodeSparse(answer []byte, n int) ([]embedding.Vector, error) {
	var list [][]struct {
		Index *uint32  `json:"index"`
		Value *float32 `json:"value"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return nil, err
	}
	if len(list) != n {
		return nil, fmt.Errorf("%d vectors for %d texts", len(list), n)
	}
	out := make([]embedding.Vector, n)
	for i, tokens := range list {
		if tokens == nil {
			return nil, fmt.Errorf("[%d] is no list", i)
		}
		out[i].Sparse = make(map[string]float32, len(tokens))
		for _, t := range tokens {
			if t.Index == nil || t.Value == nil {
				return nil, errors.New("a token has no index or no value")
			}
			out[i].Sparse[strconv.FormatUint(uint64(*t.Index), 10)] = *t.Value
		}
	}
	return out, nil
}
