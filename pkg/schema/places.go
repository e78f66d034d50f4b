package schema

import (
	"path"
	"regexp"
)

// Place is where in a config something from outside is taken: the member, without positions in lists, and what it is
// (env:NAME or file:PATH).
type Place struct{ Path, Source string }

// outside finds what a text takes from outside.
var outside = regexp.MustCompile(`\$\{(env|file):([^}]*)\}`)

// Places gives the places of every ${…} that the config has, wherever what it stands for has come by references, aliases and
// merges. ok is false where there are more values than a config may have.
func (l *Loaded) Places() (places map[Place]bool, ok bool) {
	w := &placeWalk{l: l, found: map[Place]bool{}}
	if !l.substitutes {
		return w.found, true
	}
	w.node(l.root, "", 0)
	return w.found, w.visited <= maxNodes
}

// placeWalk goes through a config.
type placeWalk struct {
	l       *Loaded
	found   map[Place]bool
	visited int
}

func (w *placeWalk) node(n *node, at string, depth int) {
	if target, ok := w.l.refs[n]; ok {
		w.note(n.raw, n.pos.File, at)
		n = target
	}
	if w.visited++; depth > maxDepth*maxReferences || len(at) > maxText {
		w.visited = maxNodes + 1
	}
	if w.visited > maxNodes {
		return
	}
	w.note(n.raw, n.pos.File, at)
	for _, e := range n.entries {
		inner := join(at, e.label())
		w.note(e.raw, e.pos.File, inner)
		w.node(e.value, inner, depth+1)
	}
	for _, item := range n.items {
		w.node(item, at+"[]", depth+1)
	}
}

// note keeps what a text of a file refers to.
func (w *placeWalk) note(raw, file, at string) {
	for _, m := range outside.FindAllStringSubmatch(raw, -1) {
		source, target := m[1], m[2]
		if source == "file" && !path.IsAbs(target) {
			target = path.Join(path.Dir(file), target)
		}
		w.found[Place{at, source + ":" + target}] = true
	}
}
