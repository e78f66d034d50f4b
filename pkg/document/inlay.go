package document

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Inlay is what goes out in the place of a value of a record.
type Inlay interface {
	// AppendJSON appends what stands for v, as JSON.
	AppendJSON(dst []byte, v bson.RawValue) []byte
	// AppendElement appends it as an element of a document.
	AppendElement(dst []byte, name string, v bson.RawValue) []byte
}

// Extra is a member that a view adds to records. Its Inlay is given the whole record, with all that the view does not show.
type Extra struct {
	Name string
	With Inlay
}

// inlay is one segment in a tree of dotted paths, which leads to what is in the place of values.
type inlay struct {
	name string
	kids []*inlay // few: to look at each is quicker than a map, which every field of every record would be looked up in
	with Inlay
	gone bool // another value of this name is added
}

// kid gives the segment of a name below this one; nil if there is none.
func (n *inlay) kid(name []byte) *inlay {
	for _, kid := range n.kids {
		if kid.name == string(name) {
			return kid
		}
	}
	return nil
}

// below is kid, which is made if there is none.
func (n *inlay) below(name string) *inlay {
	if kid := n.kid([]byte(name)); kid != nil {
		return kid
	}
	kid := &inlay{name: name}
	n.kids = append(n.kids, kid)
	return kid
}

// With is a view with other values in the place of those at some dotted paths, as far as it shows them, and with more
// members at its top, whatever it shows. v may be nil.
func (v *View) With(places map[string]Inlay, members []Extra) *View {
	out := &View{mask: v.root(), members: members}
	root := &inlay{}
	for path, with := range places {
		at := root
		for name := range strings.SplitSeq(path, ".") {
			at = at.below(name)
		}
		at.with = with
	}
	for _, m := range members {
		*root.below(m.Name) = inlay{name: m.Name, gone: true}
	}
	out.mask.inlay = root
	return out
}

// appendMembers writes what the view adds to a record, into the object whose first field is at start.
func (v *View) appendMembers(dst []byte, start int, doc bson.Raw) []byte {
	for _, m := range v.members {
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = append(appendJSONString(dst, []byte(m.Name)), ':')
		dst = m.With.AppendJSON(dst, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc})
	}
	return dst
}
