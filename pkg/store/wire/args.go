package wire

import (
	"math"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
)

// args reads the fields of a command, or of a statement in one. The first that has a wrong type is the error; what is
// read after that is empty.
type args struct {
	body      bson.Raw
	sequences []sequence
	err       error
}

func (a *args) value(name string) bson.RawValue {
	v, _ := document.Field(a.body, name)
	if v.Type == bson.TypeUndefined {
		return bson.RawValue{}
	}
	return v
}

func (a *args) wrong(name string, v bson.RawValue, want string) {
	if a.err == nil {
		a.err = fail(codeTypeMismatch, "BSON field '%s' is the wrong type '%s', expected %s", name, v.Type, want)
	}
}

// isNothing says whether a field says what its absence says.
func isNothing(v bson.RawValue) bool {
	switch v.Type { //nolint:exhaustive // all others say something
	case 0, bson.TypeNull, bson.TypeUndefined:
		return true
	case bson.TypeBoolean:
		return !v.Boolean()
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		return len(v.Value) <= 5
	}
	return false
}

func (a *args) text(name string) string {
	v := a.value(name)
	s, ok := v.StringValueOK()
	if !ok && v.Type != 0 {
		a.wrong(name, v, "string")
	}
	return s
}

func (a *args) binary(name string) []byte {
	v := a.value(name)
	if s, ok := v.StringValueOK(); ok {
		return []byte(s)
	}
	_, data, ok := v.BinaryOK()
	if !ok {
		a.wrong(name, v, "binData")
	}
	return data
}

func (a *args) boolean(name string, def bool) bool {
	switch v := a.value(name); v.Type {
	case 0, bson.TypeNull:
		return def
	case bson.TypeBoolean:
		return v.Boolean()
	default:
		n, ok := whole(v)
		if !ok {
			a.wrong(name, v, "bool")
		}
		return n != 0
	}
}

// integer reads a number, whatever type of number it has.
func (a *args) integer(name string, def int64) int64 {
	v := a.value(name)
	if v.Type == 0 || v.Type == bson.TypeNull {
		return def
	}
	n, ok := whole(v)
	if f, double := v.DoubleOK(); double && f == f { // what is behind the point is left out, and what is too large cut, as a server does
		n, ok = cut(f), true
	}
	if !ok {
		a.wrong(name, v, "a number")
		return def
	}
	return n
}

// cut gives the whole number that is next to f, towards 0.
func cut(f float64) int64 {
	switch {
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	default:
		return int64(f)
	}
}

func whole(v bson.RawValue) (int64, bool) {
	if f, ok := v.DoubleOK(); ok {
		n := int64(f)
		return n, f == math.Trunc(f) && math.Abs(f) < 1<<62
	}
	switch v.Type { //nolint:exhaustive // decimals are no counts
	case bson.TypeInt32, bson.TypeInt64:
		return v.AsInt64OK()
	}
	return 0, false
}

// document reads an object; nil if there is none.
func (a *args) document(name string) bson.Raw {
	v := a.value(name)
	if v.Type == 0 || v.Type == bson.TypeNull {
		return nil
	}
	d, ok := v.DocumentOK()
	if !ok {
		a.wrong(name, v, "object")
	}
	return d
}

// documents reads a list of objects, which may have come beside the command.
func (a *args) documents(name string) []bson.Raw {
	for _, s := range a.sequences {
		if s.name == name {
			return s.docs
		}
	}
	v := a.value(name)
	if v.Type == 0 {
		return nil
	}
	if v.Type != bson.TypeArray {
		a.wrong(name, v, "array")
		return nil
	}
	var docs []bson.Raw
	for it := document.NewIter(v.Value); it.Next(); {
		d, ok := it.Value().DocumentOK()
		if !ok {
			a.wrong(name+"."+string(it.Key()), it.Value(), "object")
			return nil
		}
		docs = append(docs, d)
	}
	return docs
}

// texts reads a list of texts; what is none is an empty one.
func texts(v bson.RawValue) (list []string) {
	if v.Type != bson.TypeArray {
		return nil
	}
	for it := document.NewIter(v.Value); it.Next(); {
		s, _ := it.Value().StringValueOK()
		list = append(list, s)
	}
	return list
}

// compileFilter makes a filter runnable; nil and {} match everything.
func compileFilter(raw bson.Raw) (*mql.Filter, error) {
	if len(raw) <= 5 {
		return nil, nil
	}
	d, err := document.Unmarshal(raw)
	if err != nil {
		return nil, err
	}
	return mql.Compile(d)
}

// compileSort reads an order.
func compileSort(raw bson.Raw) (mql.Sort, error) {
	var sort mql.Sort
	for it := document.NewIter(raw); len(raw) > 0 && it.Next(); {
		n, ok := whole(it.Value())
		if f, double := it.Value().DoubleOK(); double && f == f { // what is behind the point is left out, as a server does
			n, ok = cut(f), true
		}
		if ok && n != 1 && n != -1 {
			return nil, fail(codeBadSortOrder, "$sort key ordering must be 1 (for ascending) or -1 (for descending)")
		}
		if !ok {
			return nil, fail(codeBadSort, "Illegal key in $sort specification: %s: a sort is by fields, each 1 or -1", clip(string(it.Key())))
		}
		if string(it.Key()) == "$natural" {
			sort = append(sort, mql.SortField{Path: "_id", Desc: n < 0}) // the order in which they lie
			continue
		}
		if err := checkSortPath(string(it.Key())); err != nil {
			return nil, err
		}
		sort = append(sort, mql.SortField{Path: string(it.Key()), Desc: n < 0})
	}
	return sort, nil
}

// direction is that of a field of an order or of an index, as clients write it.
func direction(desc bool) int32 {
	if desc {
		return -1
	}
	return 1
}

// checkSortPath refuses what is no path of a field, with the codes that tell why.
func checkSortPath(path string) error {
	switch {
	case path == "":
		return fail(codeEmptyPath, "FieldPath cannot be constructed with empty string")
	case strings.HasSuffix(path, "."):
		return fail(40353, "FieldPath must not end with a '.'.")
	}
	for name := range strings.SplitSeq(path, ".") {
		switch {
		case name == "":
			return fail(codeEmptyInPath, "FieldPath field names may not be empty strings.")
		case name[0] == '$':
			return fail(codeBadFieldPath, "FieldPath field names may not start with '$'. Consider using $getField or $setField.")
		}
	}
	return nil
}

func compileProjection(raw bson.Raw) (*mql.Projection, error) {
	if len(raw) <= 5 {
		return nil, nil
	}
	d, err := document.Unmarshal(raw)
	if err != nil {
		return nil, err
	}
	p, err := mql.CompileProjection(d)
	if err != nil {
		return nil, projectionFailure(d, err)
	}
	return p, nil
}

// projectionFailure tells what is wrong with a projection with the codes that tell why, where a path is.
func projectionFailure(d bson.D, err error) error {
	f := failureOf(err)
	for _, e := range d {
		names := strings.Split(e.Key, ".")
		last := len(names) - 1
		switch {
		case e.Key == "":
			f.code = 40352
		case last > 0 && slices.Contains(names[1:last], "$"):
			f.code = 31394
		case last > 1 && names[last] == "$" && names[last-1] == "":
			f.code = 40353
		case slices.ContainsFunc(names[:last], isDollar), last == 0 && isDollar(e.Key), names[last] != "$" && isDollar(names[last]):
			f.code = 16410
		case names[last] == "$" && slices.Contains([]any{false, int32(0), int64(0), 0.0}, e.Value):
			f.code = 31395
		default:
			continue
		}
		return f
	}
	return f
}

func isDollar(name string) bool { return strings.HasPrefix(name, "$") }
