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
		return nil, bson.RawValue{}, coded(codeBadValue, badUpdate("update: $rename %s needs a text, the new path", op.path))
	}
	names := strings.Split(to, ".")
	shorter := min(len(names), len(op.segs))
	switch {
	case slices.ContainsFunc(op.segs, isPosition) || slices.ContainsFunc(names, isPosition):
		return nil, bson.RawValue{}, coded(codeBadValue, badUpdate("update: $rename %s: there can't be positions in a path to rename", op.path))
	case slices.Equal(op.segs[:shorter], names[:shorter]):
		return nil, bson.RawValue{}, coded(codeBadValue, badUpdate("update: $rename %s: the new path must be another, not above or below it", op.path))
	}
	return &rename{}, text(to), nil
}

// addRename puts both ends into the tree. op is at the old path.
func (c *updateCompiler) addRename(op *updateOp, move *rename) error {
	to := &updateOp{name: op.name, path: string(op.operand.Value[4 : len(op.operand.Value)-1]), change: move}
	stored := c.names.Path(to.path)
	to.segs = strings.Split(stored, ".")
	if err := checkUpdatePath(to); err != nil {
		return err
	}
	if op.below != c.names.At(to.path) {
		return badUpdate("update: $rename %s: fields inside of it, or of %s, were renamed: set the new field and unset the old one", op.path, to.path)
	}
	c.fields = append(c.fields, clause{strings.Join(op.segs, "."), text(stored)})
	move.from = op.segs
	op.change = renamed{}
	c.renames = append(c.renames, op.segs, to.segs)
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
	v, err := c.source(s, op)
	if err != nil || v.Type == 0 {
		return 0, kept, err
	}
	if throughList(s, op.segs) {
		return 0, kept, op.fail("the new path leads into a list, where nothing can be moved to")
	}
	if len(op.segs)+depthOf(v) > maxStored {
		return 0, kept, coded(codeOverflow, op.fail("the value would be nested more than %d levels deep", maxStored))
	}
	s.out = append(s.out, v.Value...)
	return v.Type, written, nil
}

// source is the value to move; its type is 0 if there is none.
func (c *rename) source(s *updating, op *updateOp) (bson.RawValue, error) {
	v := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: s.doc}
	inList := false
	for i, name := range c.from {
		switch {
		case v.Type == bson.TypeEmbeddedDocument:
			v = s.field(v.Value, name)
		case v.Type == bson.TypeArray && updateIndex(name) >= 0:
			inList = true
			v = s.item(v.Value, updateIndex(name))
		default:
			return v, coded(codePathNotViable, op.fail("the old path leads through %s at %s", typeName(v.Type), strings.Join(c.from[:i], ".")))
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
func throughList(s *updating, path []string) bool {
	v := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: s.doc}
	for _, name := range path {
		if v.Type == bson.TypeArray {
			return true
		}
		if v.Type != bson.TypeEmbeddedDocument {
			return false
		}
		v = s.field(v.Value, name)
	}
	return false
}

// found is what the paths of many $rename lead to. Each object and list on the way is read once for all of them, not
// once for each.
type found struct {
	names   map[string]struct{} // of the paths
	indexes map[int]struct{}    // those that are indexes
	fields  map[*byte]map[string]bson.RawValue
	items   map[*byte]map[int]bson.RawValue
}

// field gives the value of a field of an object in the document, or the zero value.
func (s *updating) field(doc []byte, name string) bson.RawValue {
	if len(s.renames) <= fewNames {
		v, _ := document.Field(doc, name)
		return v
	}
	f := s.paths()
	values, ok := f.fields[&doc[0]]
	if !ok {
		values = map[string]bson.RawValue{}
		for it := document.NewIter(doc); it.Next(); {
			key := string(it.Key())
			if _, wanted := f.names[key]; wanted && values[key].Type == 0 { // of fields of one name the first counts
				values[key] = it.Value()
			}
		}
		f.fields[&doc[0]] = values
	}
	return values[name]
}

// item gives an element of a list in the document, or the zero value.
func (s *updating) item(list []byte, index int) bson.RawValue {
	if len(s.renames) <= fewNames {
		v, _ := document.Element(list, index)
		return v
	}
	f := s.paths()
	values, ok := f.items[&list[0]]
	if !ok {
		values = map[int]bson.RawValue{}
		it := document.NewIter(list)
		for i := 0; it.Next(); i++ {
			if _, wanted := f.indexes[i]; wanted {
				values[i] = it.Value()
			}
		}
		f.items[&list[0]] = values
	}
	return values[index]
}

func (s *updating) paths() *found {
	if s.found != nil {
		return s.found
	}
	s.found = &found{
		map[string]struct{}{}, map[int]struct{}{}, map[*byte]map[string]bson.RawValue{}, map[*byte]map[int]bson.RawValue{},
	}
	for _, path := range s.renames {
		for _, name := range path {
			s.found.names[name] = struct{}{}
			s.found.indexes[updateIndex(name)] = struct{}{}
		}
	}
	return s.found
}
