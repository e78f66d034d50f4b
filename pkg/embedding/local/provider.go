package local

import (
	"context"
	"errors"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/errs"
)

// provider is a model in the process as a provider of vectors.
type provider struct {
	name  string
	model *Model
}

// New makes a provider of the type local: it loads the model of modelPath, which takes as much memory as its file.
func New(config embedding.ProviderConfig) (embedding.Provider, error) {
	switch {
	case config.ModelPath == "":
		return nil, embedding.Misconfigured("embedding provider %s: the type local needs modelPath, the folder of a sentence-transformers model", config.Name)
	case config.Sparse:
		return nil, embedding.Misconfigured("embedding provider %s: the type local has dense vectors only: leave sparse out", config.Name)
	case config.BaseURL != "" || config.APIKey != "":
		return nil, embedding.Misconfigured("embedding provider %s: the type local asks nobody: leave baseURL and apiKey out", config.Name)
	}
	model, err := Load(config.ModelPath, Options{})
	if err != nil {
		return nil, errs.New(errs.Invalid, errs.From(err).Code,
			"embedding provider %s: the folder of its modelPath holds no model that can be used; svcctl embedding status --service says why", config.Name).With(err)
	}
	if config.Dimensions != 0 && config.Dimensions != model.Dimensions() {
		return nil, embedding.Misconfigured("embedding provider %s: the model of modelPath has %d dimensions, not %d: leave dimensions out or correct it",
			config.Name, model.Dimensions(), config.Dimensions)
	}
	return &provider{name: config.Name, model: model}, nil
}

func (p *provider) Name() string    { return p.name }
func (p *provider) Dimensions() int { return p.model.Dimensions() }
func (p *provider) Sparse() bool    { return false }
func (p *provider) Close() error    { return nil }

func (p *provider) Embed(ctx context.Context, texts []string, _ embedding.Kind) ([]embedding.Vector, error) {
	vectors, err := p.model.Encode(ctx, texts)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, embedding.TimedOut(p.name, err)
	case ctx.Err() != nil && err != nil:
		return nil, err
	case err != nil:
		return nil, embedding.Garbage(p.name, err)
	}
	out := make([]embedding.Vector, len(vectors))
	for i, v := range vectors {
		out[i].Dense = v
	}
	return out, nil
}
