// Package ollama is the embedding provider of Ollama: POST <baseURL>/api/embed.
package ollama

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/embedding/remote"
)

type provider struct {
	config embedding.ProviderConfig
	client *remote.Client
}

// New makes a provider of the type ollama.
func New(config embedding.ProviderConfig) (embedding.Provider, error) {
	if config.Model == "" {
		return nil, embedding.Misconfigured("embedding provider %s: model is missing", config.Name)
	}
	if config.Sparse {
		return nil, embedding.Misconfigured("embedding provider %s: the type ollama has no sparse vectors", config.Name)
	}
	client, err := remote.New(config)
	if err != nil {
		return nil, err
	}
	return &provider{config: config, client: client}, nil
}

func (p *provider) Name() string    { return p.config.Name }
func (p *provider) Dimensions() int { return p.config.Dimensions }
func (p *provider) Sparse() bool    { return false }
func (p *provider) Close() error    { return p.client.Close() }

// question has texts cut to what the model reads, which is a text's beginning.
type question struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Truncate   bool     `json:"truncate"`
	Dimensions int      `json:"dimensions,omitempty"`
}

func (p *provider) Embed(ctx context.Context, texts []string, _ embedding.Kind) ([]embedding.Vector, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	q := question{Model: p.config.Model, Input: texts, Truncate: true, Dimensions: p.config.Dimensions}
	answer, err := p.client.Post(ctx, "api/embed", q)
	if err != nil {
		return nil, err
	}
	vectors, err := decode(answer, len(texts))
	if err != nil {
		return nil, embedding.Garbage(p.config.Name, err)
	}
	return vectors, nil
}

// decode reads an answer to n texts.
func decode(answer []byte, n int) ([]embedding.Vector, error) {
	var list struct {
		Embeddings []remote.Numbers `json:"embeddings"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return nil, err
	}
	if len(list.Embeddings) != n {
		return nil, fmt.Errorf("%d vectors for %d texts", len(list.Embeddings), n)
	}
	out := make([]embedding.Vector, n)
	for i, dense := range list.Embeddings {
		if dense == nil { // null
			return nil, fmt.Errorf("embeddings[%d] is missing", i)
		}
		out[i].Dense = dense
	}
	return out, nil
}
