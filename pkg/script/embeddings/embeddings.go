// Package embeddings is the module embeddings of scripts: the vectors that the embedding groups of the service give.
//
// What does not live here: the groups themselves, and what asks them for searches.
package embeddings

import (
	"context"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/errs"
)

// Limits of a call, and of a project.
const (
	MaxTexts = 128
	MaxBytes = 1 << 20 // of the texts of a call
	MaxCalls = 4       // of a project that are under way at once: searches ask the same groups
)

// Module gives one project's scripts vectors. It implements script.Host for embeddings.*.
type Module struct {
	group func(name string) (*embedding.Group, error)
	slots chan struct{}
}

// New makes the module of a project. group finds a group by its name.
func New(group func(name string) (*embedding.Group, error)) *Module {
	return &Module{group: group, slots: make(chan struct{}, MaxCalls)}
}

// Call is embeddings.query or embeddings.documents.
func (m *Module) Call(ctx context.Context, op string, args bson.A) (any, error) {
	if op != "embeddings.query" && op != "embeddings.documents" {
		return nil, errs.New(errs.Invalid, "no_module", "%s is not there", op)
	}
	var name string
	var given any
	if len(args) > 0 {
		name, _ = args[0].(string)
	}
	if len(args) > 1 {
		given = args[1]
	}
	texts, err := textsOf(op, given)
	switch {
	case name == "":
		return nil, errs.New(errs.Invalid, "embeddings_invalid", "%s takes the name of an embedding group first", op)
	case err != nil:
		return nil, err
	}
	g, err := m.group(name)
	if err != nil {
		return nil, err
	}
	select {
	case m.slots <- struct{}{}:
		defer func() { <-m.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if op == "embeddings.query" {
		v, err := g.Query(ctx, texts[0])
		if err != nil {
			return nil, err
		}
		return valueOf(v), nil
	}
	vectors, err := g.Documents(ctx, texts)
	if err != nil {
		return nil, err
	}
	out := make(bson.A, len(vectors))
	for i, v := range vectors {
		out[i] = valueOf(v)
	}
	return out, nil
}

// textsOf reads the text of a query, or the list of those of documents.
func textsOf(op string, given any) ([]string, error) {
	list := bson.A{given}
	what := "a text"
	if op == "embeddings.documents" {
		list, _ = given.(bson.A)
		what = "a list of texts"
		if list == nil {
			list = bson.A{nil}
		}
	}
	if len(list) > MaxTexts {
		return nil, errs.New(errs.Limit, "embeddings_too_many", "%s takes at most %d texts at once, and these are %d: call it several times", op, MaxTexts, len(list))
	}
	texts, size := make([]string, len(list)), 0
	for i, one := range list {
		text, ok := one.(string)
		if !ok {
			return nil, errs.New(errs.Invalid, "embeddings_invalid", "%s takes the name of a group, and %s", op, what)
		}
		texts[i] = text
		size += len(text)
	}
	if size > MaxBytes {
		return nil, errs.New(errs.Limit, "embeddings_too_many", "%s takes at most 1 MiB of text at once: call it several times, or with less of each text", op)
	}
	return texts, nil
}

// valueOf is a vector for scripts; nil: the text had no content.
func valueOf(v embedding.Vector) any {
	switch {
	case v.Sparse != nil:
		out := make(bson.D, 0, len(v.Sparse))
		for _, token := range slices.Sorted(maps.Keys(v.Sparse)) {
			out = append(out, bson.E{Key: token, Value: float64(v.Sparse[token])})
		}
		return out
	case v.Dense != nil:
		out := make(bson.A, len(v.Dense))
		for i, x := range v.Dense {
			out[i] = float64(x)
		}
		return out
	}
	return nil
}
