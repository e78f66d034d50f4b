package pipeline

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/expr"
)

// needs is the fields at the top of documents that stages look at.
type needs struct {
	all     bool
	names   []string
	ordered bool // their order counts, too
}

func (n *needs) path(path string) {
	name, _, _ := strings.Cut(path, ".")
	switch {
	case name == "":
		n.all = true
	case !slices.Contains(n.names, name):
		n.names = append(n.names, name)
	}
}

// read adds what an expression or an accumulator reads.
func (n *needs) read(x reader) {
	x.Paths(func(variable, path string) {
		if variable == "ROOT" {
			n.path(path)
		}
	})
}

// needsOf is what stages need, up to the first that makes other documents.
func needsOf(stages []stage) needs {
	n := needs{names: []string{}}
	for i, s := range stages {
		switch s := s.(type) {
		case skip, limit:
		case count:
			return n
		case *restore:
			return n.and(s.needs(needsOf(stages[i+1:])))
		case *sorting:
			for _, f := range s.by {
				n.path(f.Path)
			}
		case *unwind:
			n.path(s.path[0])
		case *lookup:
			if s.piped {
				return needs{all: true}
			}
			n.path(s.local)
			n.path(s.as[0])
		case *group:
			n.read(s.id)
			for _, a := range s.values {
				n.read(a)
			}
			return n
		case several:
			return n.and(needsOf(s))
		case *project:
			if s.mode != including {
				return needs{all: true}
			}
			n.branch(s.root)
			n.ordered = true
			return n
		default:
			return needs{all: true}
		}
	}
	return needs{all: true}
}

// and is what is needed by both.
func (n needs) and(o needs) needs {
	if n.all || o.all {
		return needs{all: true}
	}
	return needs{names: append(n.names, o.names...), ordered: n.ordered || o.ordered}
}

// part appends what is needed of a document. The field whose name is replaced keeps its place, without its value.
func (n *needs) part(dst []byte, doc bson.Raw, replaced string) []byte {
	start, dst := openDoc(dst)
	if !n.ordered {
		for _, name := range n.names {
			if name == replaced {
				continue
			}
			if v, ok := document.Field(doc, name); ok {
				dst = document.AppendElement(dst, name, v)
			}
		}
		return document.Close(dst, start)
	}
	for it := document.NewIter(doc); it.Next(); {
		switch name := it.Key(); {
		case string(name) == replaced:
			dst = appendName(dst, bson.TypeNull, name)
		case slices.ContainsFunc(n.names, func(s string) bool { return s == string(name) }):
			dst = document.AppendElement(dst, name, it.Value())
		}
	}
	return document.Close(dst, start)
}

// branch adds the fields that an inclusion takes, and those that it computes from.
func (n *needs) branch(b *branch) {
	for _, f := range b.fields {
		n.path(f.name)
	}
	b.each(func(x *expr.Expr) { n.read(x) })
}

func (b *branch) each(fn func(*expr.Expr)) {
	for _, f := range b.fields {
		if f.value != nil {
			fn(f.value)
		}
		if f.below != nil {
			f.below.each(fn)
		}
	}
}
