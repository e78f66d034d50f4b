package embeddingtest

import (
	"net/http"
	"testing"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/embedding/hash"
)

// Vectors computes what a provider's test server answers, by the provider hash.
func Vectors(t testing.TB, r *http.Request, config embedding.ProviderConfig, texts []string) []embedding.Vector {
	t.Helper()
	config.Name = "hash"
	p, err := hash.New(config)
	if err != nil {
		t.Error(err)
		return nil
	}
	vectors, err := p.Embed(r.Context(), texts, embedding.Document)
	if err != nil {
		t.Logf("the client is gone: %v", err)
		return nil
	}
	return vectors
}
