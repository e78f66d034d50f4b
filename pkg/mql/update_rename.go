package mql

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// rename is $rename: it stands at the new path and takes the value from the old one.
type rename struct{ from []string }

// renamed stands at the old path: a value there goes.
type renamed struct{}

func compileRename(op *updateOp, v any) (change, bson.RawValue, error) {
	to, ok := v.(string)
	if !ok {
		return nil, bson.RawValue{}, badUpdate("update: $rename %s needs a text, the new path", op.path)
	}
	names := strings.Split(to, ".")
	shorter := min(len(names), len(op.segs))
	switch {
	case slices.ContainsFunc(op.segs, isPosition) || slices.ContainsFunc(names, isPosition):
		return nil, bson.RawValue{}, badUpdate("update: $rename %s: there can't be positions in a path to rename", op.path)
	case slices.Equal(op.segs[:shorter], names[:shorter]):
		return nil, bson.RawValue{}, badUpdate("update: $rename %s: the new path must be another, not above or below it", op.path)
	}
	return &rename{op.segs}, text(to), nil
}

// addRename puts both ends into the tree. op is at the old path.
func (c *updateCompiler) addRename(op *updateOp, move *rename) error {
	to := &updateOp{name: op.name, path: string(op.operand.Value[4 : len(op.operand.Value)-1]), change: move}
	to.segs = strings.Split(to.path, ".")
	if err := checkUpdatePath(to); err != nil {
		return err
	}
	op.change = renamed{}
	if err := c.add(op); err != nil {
		return err
	}
	return c.add(to)
}

func (renamed) apply(_ *updating, _ *updateOp, old bson.RawValue) (bson.Type, verdict, error) {
	if old.Type == 0 {
		return 0, kept, nil
	}
	return 0, removed, nil // where that can't be, the other end fails
}

func (c *rename) apply(s *updating, op *updateOp, _ bson.RawValue) (bson.Type, verdict, error) {
	v, err := c.source(s.doc, op)
	if err != nil || v.Type == 0 {
		return 0, kept, err
	}
	if throughList(s.doc, op.segs) {
		return 0, kept, op.fail("the new path leads into a list, where nothing can be moved to")
	}
	if len(op.segs)+depthOf(v) > maxStored {
		return 0, kept, op.fail("the value would be nested more than %d levels deep", maxStored)
	}
	s.out = append(s.out, v.Value...)
	return v.Type, written, nil
}

// source is the value to move; its type is 0 if there is none.
func (c *rename) source(doc bson.Raw, op *updateOp) (bson.RawValue, error) {
	v := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}
	inList := false
	for i, name := range c.from {
		switch {
		case v.Type == bson.TypeEmbeddedDocument:
			v = field(v.Value, name)
		case v.Type == bson.TypeArray && updateIndex(name) >= 0:
			inList = true
			v = elementAt(v.Value, updateIndex(name))
		default:
			return v, op.fail("the old path leads through %s at %s", typeName(v.Type), strings.Join(c.from[:i], "."))
		}
		if v.Type == 0 {
			return v, nil
		}
	}
	if inList {
		return v, op.fail("the old path leads into a list, where nothing can be moved from")
	}
	return v, nil
}

// throughList says whether a list is above the end of a path.
func throughList(doc bson.Raw, path []string) bool {
	v := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}
	for _, name := range path {
		if v.Type == bson.TypeArray {
			return true
		}
		if v.Type != bson.TypeEmbeddedDocument {
			return false
		}
		v = field(v.Value, name)
	}
	return false
}

// elementAt is an element of a list, or the zero value.
func elementAt(list []byte, index int) bson.RawValue {
	for it := document.NewIter(list); it.Next(); index-- {
		if index == 0 {
			return it.Value()
		}
	}
	return bson.RawValue{}
}
