// Package all is the list of embedding providers: a line for each type.
package all

import (
	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/embedding/hash"
	"github.com/svcctl/svc/pkg/embedding/local"
	"github.com/svcctl/svc/pkg/embedding/ollama"
	"github.com/svcctl/svc/pkg/embedding/openai"
	"github.com/svcctl/svc/pkg/embedding/tei"
)

// Types makes providers by the type that the settings name.
func Types() embedding.Types {
	return embedding.Types{
		"hash":   hash.New,
		"local":  local.New,
		"ollama": ollama.New,
		"openai": openai.New,
		"tei":    tei.New,
	}
}
