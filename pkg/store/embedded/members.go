package embedded

import (
	"hash/maphash"
	"iter"
	"maps"
	"slices"

	"github.com/svcctl/svc/pkg/store"
)

// members is the collections of one database at one moment, with the indexes that they had. It is immutable, so that a
// transaction or a view has them for nothing; nil is none. A change copies one part of it.
type members struct {
	parts [memberParts]map[string]member
}

const memberParts = 256 // so that one part of 100,000 collections is copied in microseconds

// member is a collection with its indexes.
type member struct {
	coll    *collection
	indexes *indexSet
}

var memberSeed = maphash.MakeSeed() //nolint:gochecknoglobals // a constant

func memberPart(name string) uint64 { return maphash.String(memberSeed, name) % memberParts }

// with gives the collections with another one of a name, or, if it is the zero member, with none.
func (m *members) with(name string, coll member) *members {
	out := &members{}
	if m != nil {
		*out = *m
	}
	part := &out.parts[memberPart(name)]
	*part = maps.Clone(*part)
	if coll.coll == nil {
		delete(*part, name)
	} else {
		out.set(name, coll)
	}
	return out
}

// set adds a collection while nobody else has m.
func (m *members) set(name string, coll member) {
	part := &m.parts[memberPart(name)]
	if *part == nil {
		*part = map[string]member{}
	}
	(*part)[name] = coll
}

// get gives the zero member if there is none of that name.
func (m *members) get(name string) member {
	if m == nil {
		return member{}
	}
	return m.parts[memberPart(name)][name]
}

// all gives the collections in no order.
func (m *members) all() iter.Seq[member] {
	return func(yield func(member) bool) {
		if m == nil {
			return
		}
		for _, part := range &m.parts {
			for _, coll := range part {
				if !yield(coll) {
					return
				}
			}
		}
	}
}

// names lists the collections without those for bookkeeping, sorted.
func (m *members) names() []string {
	out := []string{}
	for c := range m.all() {
		if name := c.coll.name.collection; !store.IsBookkeeping(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
