package pipeline

import (
	"slices"
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
}

// keeping makes documents only of what is needed.
func (u *unwind) keeping(n needs) *unwind {
	if n.all {
		return u
	}
	own := *u
	n.path(u.path[0])
	own.keep = &n
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
		return u.give(doc, null)
	}
	if u.keep != nil {
		doc = u.part(doc)
	}
	i := int64(0)
	for it := document.NewIter(v.Value); it.Next(); i++ {
		u.out = appendSet(reuse(u.out), doc, u.path, it.Value())
		if err := u.give(u.out, long(i)); err != nil {
			return err
		}
	}
	if i > 0 || !u.preserve {
		return nil
	}
	u.out = appendSet(reuse(u.out), doc, u.path, bson.RawValue{})
	return u.give(u.out, null)
}

// part is what is needed of a document, without the list itself.
func (u *unwinding) part(doc bson.Raw) bson.Raw {
	start, out := openDoc(reuse(u.base))
	for it := document.NewIter(doc); it.Next(); {
		switch name := it.Key(); {
		case len(u.path) == 1 && string(name) == u.path[0]:
			out = appendName(out, bson.TypeNull, name)
		case slices.ContainsFunc(u.keep.names, func(s string) bool { return s == string(name) }):
			out = document.AppendElement(out, name, it.Value())
		}
	}
	u.base = document.Close(out, start)
	return u.base
}

// give passes a document on, with an index if one is wanted.
func (u *unwinding) give(doc []byte, index bson.RawValue) error {
	if u.index != nil {
		u.other = appendSet(reuse(u.other), doc, u.index, index)
		doc = u.other
	}
	return u.r.give(u.next, doc)
}

func (u *unwinding) end() error { return u.next.end() }
