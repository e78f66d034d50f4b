package expr

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// variable makes the node that reads a path of a variable; an empty path is the variable itself.
func (c *compiler) variable(name, path string) (node, error) {
	var segments []string
	if path != "" {
		segments = strings.Split(path, ".")
	}
	if slot := c.slot(name); slot >= 0 {
		return &slotPath{slot: slot, segments: segments}, nil
	}
	if i := slices.Index(c.outside, name); i >= 0 {
		return &outsidePath{name: name, index: i, segments: segments}, nil
	}
	switch name {
	case "ROOT", "CURRENT":
		return &rootPath{path: path, segments: segments}, nil
	case "REMOVE":
		return &constant{}, nil
	case "NOW":
		return &now{segments: segments}, nil
	default:
		return nil, bad(17276, "there is no variable %s", document.Readable("$$"+name))
	}
}

// rootPath is a field of the document, or the whole document.
type rootPath struct {
	leaf
	path     string
	segments []string
}

func (p *rootPath) eval(env *Env) (bson.RawValue, error) {
	if len(p.segments) == 1 && env.Root.Type == bson.TypeEmbeddedDocument {
		v, _ := document.Field(env.Root.Value, p.segments[0])
		return v, nil
	}
	return env.follow(env.Root, p.segments)
}

func (p *rootPath) fold(*folder) (node, error) { return p, nil }

func (p *rootPath) reads(fn func(variable, path string)) { fn("ROOT", p.path) }

// slotPath is a variable of the expression itself.
type slotPath struct {
	leaf
	slot     int
	segments []string
}

func (p *slotPath) eval(env *Env) (bson.RawValue, error) {
	return env.follow(env.slots[p.slot], p.segments)
}

func (p *slotPath) fold(*folder) (node, error) { return p, nil }

// outsidePath is a variable that is bound outside.
type outsidePath struct {
	leaf
	name     string
	index    int
	segments []string
}

func (p *outsidePath) eval(env *Env) (bson.RawValue, error) {
	if p.index >= len(env.Vars) {
		return missing, nil
	}
	return env.follow(env.Vars[p.index], p.segments)
}

func (p *outsidePath) fold(*folder) (node, error) { return p, nil }

func (p *outsidePath) reads(fn func(variable, path string)) {
	fn(p.name, strings.Join(p.segments, "."))
}

// now is $$NOW.
type now struct {
	leaf
	segments []string
}

func (n *now) eval(env *Env) (bson.RawValue, error) {
	if len(n.segments) > 0 {
		return missing, nil
	}
	return env.date(env.Now.UnixMilli()), nil
}

func (n *now) fold(*folder) (node, error) { return n, nil }

// follow walks a path. A list on the way becomes the list of what its objects have there; a name never is an index.
func (env *Env) follow(v bson.RawValue, path []string) (bson.RawValue, error) {
	for i, name := range path {
		switch v.Type {
		case bson.TypeEmbeddedDocument:
			v, _ = document.Field(v.Value, name)
		case bson.TypeArray:
			start := len(env.arena)
			env.followList(v, path[i:])
			return env.value(bson.TypeArray, start), env.room(0)
		default:
			return missing, nil
		}
	}
	return v, nil
}

// followList writes the list of what the path leads to in the objects of a list.
func (env *Env) followList(list bson.RawValue, path []string) {
	start, n := env.open(), 0
	for it := items(list); it.Next(); {
		if it.Value().Type == bson.TypeEmbeddedDocument && env.followItem(it.Value(), path, n) {
			n++
		}
	}
	env.close(bson.TypeArray, start)
}

// followItem writes an element of such a list, unless the path leads to nothing.
func (env *Env) followItem(v bson.RawValue, path []string, index int) bool {
	for i, name := range path {
		switch v.Type {
		case bson.TypeEmbeddedDocument:
			v, _ = document.Field(v.Value, name)
		case bson.TypeArray:
			env.item(index, bson.RawValue{Type: bson.TypeArray})
			env.followList(v, path[i:])
			return true
		default:
			return false
		}
	}
	if v.Type == 0 {
		return false
	}
	env.item(index, v)
	return true
}
