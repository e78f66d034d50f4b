package mql

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Projection is a compiled choice of the parts of documents. It is immutable and safe for concurrent use.
type Projection struct {
	include bool      // what is not named goes
	root    partition // what is named, as a tree
	appends []*part   // the $elemMatch of an inclusion: they come last
	// position is set if a path ends in $.
	position bool
	raw      bson.Raw
	named    []namedPart // what it was made of
}

// part is one name in the tree of a projection.
type part struct {
	name  string
	parts partition // of what is below; empty for a leaf
	// A leaf is taken or left out as a whole unless it has one of these.
	slice *slice
	elem  *ElemMatch
	// position: the path with the $ goes through here.
	position bool
}

// partition is the named parts of an object, sorted by name.
type partition []*part

// find gives the part of a name, or nil. It does not allocate for its conversions of name.
func (p partition) find(name []byte) *part {
	low, high := 0, len(p)
	for high-low > 8 {
		if mid := (low + high) / 2; p[mid].name > string(name) {
			high = mid
		} else {
			low = mid
		}
	}
	for _, part := range p[low:high] {
		if part.name == string(name) {
			return part
		}
	}
	return nil
}

// insert adds a part whose name is new.
func (p partition) insert(n *part) partition {
	i, _ := slices.BinarySearchFunc(p, n.name, func(o *part, name string) int { return strings.Compare(o.name, name) })
	return slices.Insert(p, i, n)
}

// slice is the elements of a list that $slice leaves: limit behind the first skip, or, with skip below 0, from that
// far before the end.
type slice struct{ skip, limit int64 }

// bounds gives the first element of a list of n, and the one behind the last.
func (s *slice) bounds(n int64) (from, to int64) {
	from = min(s.skip, n)
	if s.skip < 0 {
		from = max(n+s.skip, 0)
	}
	return from, min(n, from+s.limit)
}

// CompileProjection checks a projection and makes it runnable. It takes inclusion or exclusion of paths, $slice,
// $elemMatch, and the position path.$, whose element is what the query's filter matched. Expressions, literals and
// $meta are errs.Invalid with code "bad_projection" and a message that names operator and path.
//
// As in MongoDB, an object as a value names paths below; only _id may be left out of an inclusion or named in an
// exclusion; and a projection of nothing but $slice leaves everything else in, one of nothing but $elemMatch does not.
func CompileProjection(doc bson.D) (*Projection, error) {
	c := projectionCompiler{}
	if err := c.object(doc, "", 0); err != nil {
		return nil, err
	}
	return newProjection(c.named), nil
}

// newProjection makes the projection of what was checked.
func newProjection(all []namedPart) *Projection {
	c := projectionCompiler{named: all}
	p := &Projection{include: c.includes(), named: all}
	for _, named := range all {
		p.position = p.position || named.position
		if named.elem != nil && p.include {
			p.appends = append(p.appends, &part{name: named.path, elem: named.elem})
		}
		if p.keeps(named) {
			p.root = p.root.with(strings.Split(named.path, "."), named)
		}
	}
	if p.include && !c.namesID() {
		p.root = p.root.insert(&part{name: idField})
	}
	p.raw = c.encode()
	return p
}

// keeps says whether the tree has to name a path: the tree of an inclusion has what is taken, that of an exclusion
// what is changed.
func (p *Projection) keeps(named namedPart) bool {
	if p.include {
		return named.take && named.elem == nil
	}
	return !named.take || named.slice != nil || named.elem != nil
}

// with adds a path that does not collide.
func (p partition) with(names []string, named namedPart) partition {
	child := p.find([]byte(names[0]))
	if child == nil {
		child = &part{name: names[0]}
		p = p.insert(child)
	}
	child.position = child.position || named.position
	if len(names) > 1 {
		child.parts = child.parts.with(names[1:], named)
		return p
	}
	child.slice, child.elem = named.slice, named.elem
	return p
}

// Raw is the projection as a MongoDB server is sent it, made of what CompileProjection understood. The caller must not
// change it.
func (p *Projection) Raw() bson.Raw { return p.raw }

// Positional says whether p has the position $: what it stands for is known only of documents that the filter has
// matched. A nil projection has none.
func (p *Projection) Positional() bool { return p != nil && p.position }

const (
	idField  = "_id"
	maxParts = 1000 // paths of a projection
)

// namedPart is a path of a projection and what is done with it.
type namedPart struct {
	path     string
	take     bool // for a leaf
	slice    *slice
	elem     *ElemMatch
	position bool
}
