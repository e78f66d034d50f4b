package document

import (
	"slices"
	"strings"
)

// node is one segment in a tree of dotted paths. A leaf stands for its path and everything below it.
type node struct {
	leaf bool
	kids map[string]*node
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

func (n *node) matches(path string, more, parents bool) bool {
	if n.leaf {
		return true
	}
	if !more {
		return parents && len(n.kids) > 0
	}
	seg, rest, more := strings.Cut(path, ".")
	if kid := n.kids[seg]; kid != nil && kid.matches(rest, more, parents) {
		return true
	}
	return isDigits(seg) && n.matches(rest, more, parents)
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// Union is a set of the paths of both.
func (s *PathSet) Union(o *PathSet) *PathSet {
	return NewPathSet(append(s.Paths(), o.Paths()...)...)
}

// Paths lists the set, sorted, without those that a shorter one covers.
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
