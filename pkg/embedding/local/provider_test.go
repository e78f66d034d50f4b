package local_test

import (
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/embedding/embeddingtest"
	"github.com/svcctl/svc/pkg/embedding/local"
	"github.com/svcctl/svc/pkg/embedding/local/minilm"
	"github.com/svcctl/svc/pkg/errs"
)

// TestProvider is what every provider has to do, with a real model.
func TestProvider(t *testing.T) {
	t.Parallel()
	dir := minilm.Dir(t)
	embeddingtest.Run(t, func(t *testing.T) embedding.Provider {
		t.Helper()
		p, err := local.New(embedding.ProviderConfig{Name: "minilm", Type: "local", ModelPath: dir, Dimensions: 384})
		if err != nil {
			t.Fatal(err)
		}
		return p
	})
}

// TestProviderRefused is settings that can't work, and that the error says what to write.
func TestProviderRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config embedding.ProviderConfig
		want   string
	}{
		"no folder": {embedding.ProviderConfig{}, "modelPath"},
		"not there": {embedding.ProviderConfig{ModelPath: t.TempDir() + "/none"}, "holds no model"},
		"sparse":    {embedding.ProviderConfig{ModelPath: t.TempDir(), Sparse: true}, "leave sparse out"},
		"address":   {embedding.ProviderConfig{ModelPath: t.TempDir(), BaseURL: "http://127.0.0.1:1"}, "leave baseURL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.config.Name = "mine"
			_, err := local.New(c.config)
			if e := errs.From(err); e == nil || e.Kind != errs.Invalid || !strings.Contains(e.Message, "mine") || !strings.Contains(e.Message, c.want) {
				t.Errorf("got %v, want one with %q", err, c.want)
			}
		})
	}
	t.Run("dimensions", func(t *testing.T) {
		t.Parallel()
		_, err := local.New(embedding.ProviderConfig{Name: "mine", ModelPath: minilm.Dir(t), Dimensions: 512})
		if e := errs.From(err); e == nil || !strings.Contains(e.Message, "has 384 dimensions, not 512") {
			t.Errorf("got %v", err)
		}
	})
}
