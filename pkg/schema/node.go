package schema

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// kind is what a node holds.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindInt
	kindFloat
	kindString
	kindMap
	kindList
)

// String names a kind in messages.
func (k kind) String() string {
	switch k {
	case kindNull:
		return "null"
	case kindBool:
		return "a boolean"
	case kindInt, kindFloat:
		return "a number"
	case kindString:
		return "a string"
	case kindMap:
		return "an object"
	default:
		return "a list"
	}
}

// node is one value of a config file, the same for YAML and JSON. Nodes are immutable once their file is parsed; YAML
// aliases and repeated references share them.
type node struct {
	pos     Position
	kind    kind
	text    string
	integer int64
	float   float64
	boolean bool
	entries []entry
	items   []*node

	raw    string // text as it is in the file, where a value was substituted in it
	secret bool   // text holds a substituted value: never print it
	failed bool   // a problem has been reported for it: report no other
}

// entry is one member of an object.
type entry struct {
	key    string
	pos    Position
	value  *node
	raw    string // the key as it is in the file, where a value was substituted in it
	secret bool   // the key holds a substituted value
	hidden bool   // the key may be a secret as a whole
	failed bool   // its substitution was reported
}

// label is the key as problems may print it.
func (e entry) label() string {
	if e.hidden {
		return "***"
	}
	if e.secret {
		if prefix, _, ok := strings.Cut(e.key, ":"); ok {
			return prefix + ":***"
		}
		return "***"
	}
	return maskKey(e.key)
}

// maskKey hides what may be a credential in a key: whatever follows a colon, but for a team's slug.
func maskKey(key string) string {
	prefix, _, ok := strings.Cut(key, ":")
	if !ok || prefix == "team" {
		return key
	}
	return prefix + ":***"
}

// get finds a member of an object.
func (n *node) get(key string) (*node, bool) {
	for _, e := range n.entries {
		if e.key == key {
			return e.value, true
		}
	}
	return nil, false
}

// join adds a key to a path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// value gives a node as a free value. refs tells which strings were references that have been followed.
func (n *node) value(refs map[*node]*node) any {
	if target, ok := refs[n]; ok {
		n = target
	}
	switch n.kind {
	case kindNull:
		return nil
	case kindBool:
		return n.boolean
	case kindInt:
		return n.integer
	case kindFloat:
		return n.float
	case kindString:
		return n.text
	case kindMap:
		doc := make(bson.D, 0, len(n.entries))
		for _, e := range n.entries {
			doc = append(doc, bson.E{Key: e.key, Value: e.value.value(refs)})
		}
		return doc
	default:
		list := make(bson.A, 0, len(n.items))
		for _, item := range n.items {
			list = append(list, item.value(refs))
		}
		return list
	}
}
