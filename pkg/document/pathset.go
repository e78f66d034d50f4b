package document

import (
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// node is one segment in a tree of dotted paths. A leaf stands for its path and everything below it.
type node struct {
	leaf   bool
	kids   map[string]*node
	others bool // every name that is not in kids is a leaf, too
	bare   bool // an object here goes out only with something in it
}

// kid gives the node of a name, nil where nothing of the set is below it. in says that the name itself is in the set.
func (n *node) kid(name []byte) (kid *node, in bool) {
	if n == nil {
		return nil, false
	}
	kid = n.kids[string(name)]
	switch {
	case kid == nil:
		return nil, n.others
	case kid.leaf:
		return nil, true
	case kid.kids == nil && !kid.others:
		return nil, false
	}
	return kid, false
}

func (n *node) add(path string) {
	for more := true; more && !n.leaf; {
		var seg string
		seg, path, more = strings.Cut(path, ".")
		if n.kids == nil {
			n.kids = map[string]*node{}
		}
		kid := n.kids[seg]
		if kid == nil {
			kid = &node{}
			n.kids[seg] = kid
		}
		n = kid
	}
	n.leaf, n.kids = true, nil
}

// PathSet is a set of dotted paths. It is immutable and safe for concurrent use; nil is the empty set.
type PathSet struct{ root node }

// NewPathSet makes a set. A path below another one of the set adds nothing. Empty paths are ignored.
func NewPathSet(paths ...string) *PathSet {
	s := &PathSet{}
	for _, p := range paths {
		if p != "" {
			s.root.add(p)
		}
	}
	return s
}

// NewPathTree makes a set of what is in others below some names, nil for nothing. With others, every name that below
// does not have is in the set, too.
func NewPathTree(below map[string]*PathSet, others bool) *PathSet {
	s := &PathSet{root: node{others: others, kids: make(map[string]*node, len(below))}}
	for name, set := range below {
		if set == nil {
			set = &PathSet{}
		}
		s.root.kids[name] = &set.root
	}
	return s
}

// Declared is the set with some more names at its top that are not among the other names of NewPathTree.
func (s *PathSet) Declared(names ...string) *PathSet {
	if s == nil || !s.root.others {
		return s
	}
	out := &PathSet{root: node{others: true, kids: maps.Clone(s.root.kids)}}
	for _, name := range names {
		if out.root.kids[name] == nil {
			out.root.kids[name] = &node{}
		}
	}
	return out
}

// Level is the names at the top of paths of a set.
type Level struct {
	In     []string            // names that are in the set, with all below them
	Below  map[string]*PathSet // other names, with what of the set is below them; nil for nothing
	Bare   []string            // names in Below of objects that go out only with something in them, see WithoutEmpty
	Others bool                // every name that stands in neither is in the set
}

// Level gives the first level of the set. The names In it and Bare are sorted.
func (s *PathSet) Level() Level {
	if s == nil {
		return Level{}
	}
	l := Level{Below: make(map[string]*PathSet, len(s.root.kids)), Others: s.root.others}
	for name, kid := range s.root.kids {
		switch {
		case kid.leaf:
			l.In = append(l.In, name)
		case len(kid.kids) == 0 && !kid.others:
			l.Below[name] = nil
		default:
			l.Below[name] = &PathSet{root: *kid}
			if kid.bare {
				l.Bare = append(l.Bare, name)
			}
		}
	}
	slices.Sort(l.In)
	slices.Sort(l.Bare)
	return l
}

// WithoutEmpty is the set for an object that a View leaves out where nothing is seen in it.
func (s *PathSet) WithoutEmpty() *PathSet {
	out := &PathSet{}
	if s != nil {
		*out = *s
	}
	out.root.bare = true
	return out
}

// Finds says whether a record has something at a path of the set. Paths pass through lists, as in a View.
func (s *PathSet) Finds(doc bson.D) bool { return s != nil && s.root.finds(doc) }

func (n *node) finds(v any) bool {
	switch v := v.(type) {
	case bson.D:
		for _, e := range v {
			if kid, in := n.kid([]byte(e.Key)); in || kid != nil && kid.finds(e.Value) {
				return true
			}
		}
	case bson.A:
		return slices.ContainsFunc(v, n.finds)
	}
	return false
}

// Behind gives a record with what is in the set behind the rest, by name, on every level: the order of its members doesn't
// tell what of the set was there before something else. Paths pass through lists, as in a View.
func (s *PathSet) Behind(doc bson.D) bson.D {
	if s == nil {
		return doc
	}
	return s.root.behind(doc)
}

func (n *node) behind(doc bson.D) bson.D {
	out := make(bson.D, 0, len(doc))
	var last bson.D
	for _, e := range doc {
		kid, in := n.kid([]byte(e.Key))
		if in {
			last = append(last, e)
			continue
		}
		if kid != nil {
			e.Value = kid.behindIn(e.Value)
		}
		out = append(out, e)
	}
	slices.SortFunc(last, func(a, b bson.E) int { return strings.Compare(a.Key, b.Key) })
	return append(out, last...)
}

func (n *node) behindIn(v any) any {
	switch v := v.(type) {
	case bson.D:
		return n.behind(v)
	case bson.A:
		out := make(bson.A, len(v))
		for i, item := range v {
			out[i] = n.behindIn(item)
		}
		return out
	}
	return v
}

// Covers says whether path, or a parent of it, is in the set. A segment of digits may stand for an index of a list, so
// it matches as a name and is skipped as well: "a.0.b" is covered by "a.b", "a" and "a.0".
func (s *PathSet) Covers(path string) bool {
	return s != nil && s.root.matches(path, path != "", false)
}

// Touches says whether path is covered, or is a parent of a path in the set: whether reading or writing path reaches
// anything of the set. The empty path is the parent of all.
func (s *PathSet) Touches(path string) bool {
	return s != nil && s.root.matches(path, path != "", true)
}

// Reaches is Touches without the other names of NewPathTree: whether path is covered, or is a parent of a path that the set itself names.
func (s *PathSet) Reaches(path string) bool {
	return s != nil && s.root.reaches(path, path != "")
}

func (n *node) reaches(path string, more bool) bool {
	if n.leaf {
		return true
	}
	if !more {
		for _, kid := range n.kids {
			if kid.reaches("", false) {
				return true
			}
		}
		return false
	}
	seg, rest, more := strings.Cut(path, ".")
	kid := n.kids[seg]
	if kid != nil && kid.reaches(rest, more) || kid == nil && n.others && !isDigits(seg) {
		return true
	}
	return isDigits(seg) && n.reaches(rest, more)
}

func (n *node) matches(path string, more, parents bool) bool {
	if n.leaf {
		return true
	}
	if !more {
		return parents && (len(n.kids) > 0 || n.others)
	}
	seg, rest, more := strings.Cut(path, ".")
	kid := n.kids[seg]
	if kid != nil && kid.matches(rest, more, parents) || kid == nil && n.others && !isDigits(seg) {
		return true
	}
	return isDigits(seg) && n.matches(rest, more, parents)
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// Union is a set of the paths of both.
func (s *PathSet) Union(o *PathSet) *PathSet {
	switch {
	case s == nil || s == o:
		return o
	case o == nil:
		return s
	}
	return &PathSet{root: *unite(&s.root, &o.root)}
}

// unite shares with a and b what only one of them has.
func unite(a, b *node) *node {
	if a.leaf || b.leaf {
		return &node{leaf: true}
	}
	u := &node{others: a.others || b.others, bare: a.bare || b.bare, kids: maps.Clone(a.kids)}
	if u.kids == nil && len(b.kids) > 0 {
		u.kids = make(map[string]*node, len(b.kids))
	}
	for name, kid := range a.kids {
		if b.kids[name] == nil && b.others {
			u.kids[name] = &node{leaf: true}
		} else if other := b.kids[name]; other != nil {
			u.kids[name] = unite(kid, other)
		}
	}
	for name, kid := range b.kids {
		if a.kids[name] != nil {
			continue
		}
		if a.others {
			kid = &node{leaf: true}
		}
		u.kids[name] = kid
	}
	return u
}

// Paths lists the set, sorted, without those that a shorter one covers, and without the other names of NewPathTree.
func (s *PathSet) Paths() []string {
	if s == nil {
		return nil
	}
	paths := s.root.paths("", nil)
	slices.Sort(paths)
	return paths
}

func (n *node) paths(prefix string, out []string) []string {
	for seg, kid := range n.kids {
		path := prefix + seg
		if kid.leaf {
			out = append(out, path)
			continue
		}
		out = kid.paths(path+".", out)
	}
	return out
}
