// Package ollama is the embedding provider of Ollama: POST <baseURL>/api/embed.
package ollama

import (
	"context"
	"encoding/json"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/embedding/remote"
)

type provider struct{ *remote.Client }

// New makes a provider of the type ollama.
func New(config embedding.ProviderConfig) (embedding.Provider, error) {
	client, err := remote.NewDense(config)
	if err != nil {
		return nil, err
	}
	return provider{client}, nil
}

// question has texts cut to what the model reads, which is a text's beginning.
type question struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Truncate   bool     `json:"truncate"`
	Dimensions int      `json:"dimensions,omitempty"`
}

func (p provider) Embed(ctx context.Context, texts []string, _ embedding.Kind) ([]embedding.Vector, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	q := question{Model: p.Config.Model, Input: texts, Truncate: true, Dimensions: p.Config.Dimensions}
	return p.Ask(ctx, "api/embed", q, len(texts), decode)
}

// decode reads an answer to n texts.
func decode(answer []byte, n int) ([]embedding.Vector, error) {
	var list struct {
		Embeddings []remote.Numbers `json:"embeddings"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return nil, err
	}
	return remote.Vectors(list.Embeddings, n)
}
