package actions

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/schema"
)

// outputOf is what of a result is shown to people, as the config maps it: summary and details. Each is the path of a
// member, a list of paths, or an object of names and paths. Members that are not there are left out.
func outputOf(m *schema.ActionMapping, result any) bson.D {
	var out bson.D
	if m == nil {
		return nil
	}
	for _, part := range []struct {
		name string
		spec any
	}{{"summary", m.Summary}, {"details", m.Details}} {
		if v, ok := pick(part.spec, result); ok {
			out = append(out, bson.E{Key: part.name, Value: v})
		}
	}
	return out
}

func pick(spec, result any) (any, bool) {
	var out bson.D
	add := func(name string, path any) {
		if text, ok := path.(string); ok {
			if v, found := at(result, text); found {
				out = append(out, bson.E{Key: name, Value: v})
			}
		}
	}
	switch spec := spec.(type) {
	case string:
		return at(result, spec)
	case bson.A:
		for _, path := range spec {
			if text, ok := path.(string); ok {
				add(text, path)
			}
		}
	case bson.D:
		for _, e := range spec {
			add(e.Key, e.Value)
		}
	}
	return out, len(out) > 0
}

// at gives the member of a value at a dotted path.
func at(v any, path string) (any, bool) {
	doc, ok := v.(bson.D)
	if !ok {
		return nil, false
	}
	return document.Get(doc, path)
}

// progressOf reads what a script gave to ctx.progress, whose members the config may map from others.
func progressOf(m *schema.ActionMapping, v any) operation.Progress {
	doc, ok := v.(bson.D)
	if m == nil || !ok {
		return operation.ProgressOf(v)
	}
	names, _ := m.Progress.(bson.D)
	mapped := append(bson.D(nil), doc...)
	for _, e := range names {
		if path, ok := e.Value.(string); ok {
			from, _ := at(v, path)
			mapped = append(mapped, bson.E{Key: e.Key, Value: from})
		}
	}
	return operation.ProgressOf(mapped)
}
