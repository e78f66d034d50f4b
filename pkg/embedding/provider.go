package embedding

import "context"

// Kind is what a text is to a model that tells the two apart.
type Kind uint8

// The kinds of texts.
const (
	Document Kind = iota // what is found
	Query                // what is looked for
)

// String gives the name that golden files have for a kind.
func (k Kind) String() string {
	if k == Query {
		return "query"
	}
	return "document"
}

// Provider computes vectors. Implementations are safe for concurrent use, and a call ends soon after its context does.
//
// Errors are those of errors.go, so that who asks knows whether the text, the moment or the provider is to blame. Their
// public texts hold nothing that the provider said.
type Provider interface {
	// Name is the provider's name in the settings.
	Name() string

	// Dimensions is the length of the dense vectors, 0 where only the answers tell it.
	Dimensions() int

	// Sparse says which form vectors have: weights by token, or dense ones.
	Sparse() bool

	// Embed gives a vector for each text, in their order. Prefixes are in the texts already.
	Embed(ctx context.Context, texts []string, kind Kind) ([]Vector, error)

	// Close lets go of what the provider holds. It may be called again.
	Close() error
}

// Types makes providers of each type that the settings can name.
type Types map[string]func(ProviderConfig) (Provider, error)
