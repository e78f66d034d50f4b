package pipeline

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// unwind is $unwind: a document for each element of a list.
type unwind struct {
	path     []string
	index    []string // where the index goes; nil: nowhere
	preserve bool     // keep documents without elements
	keep     *needs   // nil: all fields
	replaced string   // the field, if it is at the top, whose value is not needed
}

// keeping makes documents only of what is needed.
func (u *unwind) keeping(n needs) stage {
	if n.all {
		return u
	}
	own := *u
	n.path(u.path[0])
	own.keep = &n
	if len(u.path) == 1 {
		own.replaced = u.path[0]
	}
	return &own
}

func compileUnwind(_ *compiler, name string, spec any) (stage, any, error) {
	u := &unwind{}
	var path string
	switch spec := spec.(type) {
	case string:
		path = spec
	case bson.D:
		var err error
		if path, err = u.options(name, spec); err != nil {
			return nil, nil, err
		}
	default:
		return nil, nil, bad(15981, "%s needs a path, or an object with a path", name)
	}
	if path == "" {
		return nil, nil, bad(28812, "%s needs a path", name)
	}
	inner, ok := strings.CutPrefix(path, "$")
	if !ok {
		return nil, nil, bad(28818, "%s: the path %q has to begin with $", name, document.Readable(path))
	}
	if err := checkPath(inner); err != nil {
		return nil, nil, err
	}
	u.path = strings.Split(inner, ".")
	raw := bson.D{{Key: "path", Value: path}, {Key: "preserveNullAndEmptyArrays", Value: u.preserve}}
	if u.index != nil {
		raw = append(raw, bson.E{Key: "includeArrayIndex", Value: strings.Join(u.index, ".")})
	}
	return u, raw, nil
}

func (u *unwind) options(name string, spec bson.D) (path string, err error) {
	for _, e := range spec {
		var ok bool
		switch e.Key {
		case "path":
			if path, ok = e.Value.(string); !ok {
				return "", bad(28808, "%s needs a text as path", name)
			}
		case "preserveNullAndEmptyArrays":
			if u.preserve, ok = e.Value.(bool); !ok {
				return "", bad(28809, "%s: preserveNullAndEmptyArrays has to be true or false", name)
			}
		case "includeArrayIndex":
			index, _ := e.Value.(string)
			switch {
			case index == "":
				return "", bad(28810, "%s: includeArrayIndex has to be the name of a field", name)
			case index[0] == '$':
				return "", bad(28822, "%s: includeArrayIndex can't begin with $", name)
			}
			if err := checkPath(index); err != nil {
				return "", err
			}
			u.index = strings.Split(index, ".")
		default:
			return "", bad(28811, "%s does not know %s", name, document.Readable(e.Key))
		}
	}
	return path, nil
}

func (u *unwind) open(r *run, next sink) sink { return &unwinding{unwind: u, r: r, next: next} }

type unwinding struct {
	*unwind
	r          *run
	next       sink
	out, other []byte
	base       []byte
}

func (u *unwinding) push(doc bson.Raw) error {
	v := fieldAt(doc, u.path)
	if v.Type != bson.TypeArray {
		if isNull(v.Type) && !u.preserve {
			return nil
		}
		return u.give(doc, noIndex)
	}
	if u.keep != nil {
		u.base = u.keep.part(reuse(u.base), doc, u.replaced)
		doc = u.base
	}
	i := 0
	for it := document.NewIter(v.Value); it.Next(); i++ {
		u.out = appendSet(reuse(u.out), doc, u.path, it.Value())
		if err := u.give(u.out, i); err != nil {
			return err
		}
	}
	if i > 0 || !u.preserve {
		return nil
	}
	u.out = appendSet(reuse(u.out), doc, u.path, bson.RawValue{})
	return u.give(u.out, noIndex)
}

// noIndex is for a document that is not made of an element.
const noIndex = -1

// give passes a document on, with an index if one is wanted.
func (u *unwinding) give(doc []byte, index int) error {
	if u.index != nil {
		v := null
		if index != noIndex {
			v = long(int64(index))
		}
		u.other = appendSet(reuse(u.other), doc, u.index, v)
		doc = u.other
	}
	return u.r.give(u.next, doc)
}

func (u *unwinding) end() error { return u.next.end() }
