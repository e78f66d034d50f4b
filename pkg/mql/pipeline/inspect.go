package pipeline

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Use is what a stage does with the fields of the documents that come to it.
type Use struct {
	Reads   []string // the paths that it names; an empty one is the whole document
	Sets    []string // the fields, at the top of documents, that it sets
	Remakes bool     // what it gives are other documents than those that came
}

// Inspect compiles one stage and tells what it does. Filters are left out: mql.Rewrite tells of their paths. So are the
// pipelines in a stage, and the other collection that it reads.
func Inspect(stage bson.D, o Options) (Use, error) {
	var u Use
	c := &compiler{options: o, stages: new(int), reading: u.read}
	s, _, err := c.stage(stage[0].Key, stage[0].Value)
	if err != nil {
		return Use{}, err
	}
	u.stage(s)
	return u, nil
}

func (u *Use) read(variable, path string) {
	if variable == "ROOT" {
		u.Reads = append(u.Reads, path)
	}
}

// stage adds what is no expression.
func (u *Use) stage(s stage) {
	switch s := s.(type) {
	case *match, skip, limit, sample:
	case *sorting:
		for _, f := range s.by {
			u.Reads = append(u.Reads, f.Path)
		}
	case *unwind:
		u.Reads = append(u.Reads, strings.Join(s.path, "."))
		u.sets(s.index)
	case *project:
		u.project(s)
	case *windows:
		for _, f := range s.by {
			u.Reads = append(u.Reads, f.Path)
		}
		for _, f := range s.set.root.fields {
			u.sets([]string{f.name})
		}
	case *lookup:
		if s.local != "" {
			u.Reads = append(u.Reads, s.local)
		}
		u.sets(s.as)
	case *graphLookup:
		u.sets(s.as)
	default:
		u.Remakes = true
	}
}

func (u *Use) sets(path []string) {
	if len(path) > 0 {
		u.Sets = append(u.Sets, path[0])
	}
}

func (u *Use) project(s *project) {
	u.Remakes = s.mode == including
	if s.mode == adding {
		for _, f := range s.root.fields {
			u.Sets = append(u.Sets, f.name)
		}
		return
	}
	s.root.named("", func(path string) { u.Reads = append(u.Reads, path) })
}

// named calls fn for the paths that are taken or left out, and not computed.
func (b *branch) named(prefix string, fn func(path string)) {
	for _, f := range b.fields {
		path := join(prefix, f.name)
		switch {
		case f.below != nil:
			f.below.named(path, fn)
		case f.value == nil:
			fn(path)
		}
	}
}

// reader is an expression, or an accumulator.
type reader interface {
	Paths(fn func(variable, path string))
}

// note tells Inspect what an expression reads.
func (c *compiler) note(x reader) {
	if c.reading != nil {
		x.Paths(c.reading)
	}
}
