package mql

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// EachValue calls fn for the values that path has in doc, as MongoDB's distinct finds them, and stops at its first error.
// A number as a name picks an element of a list, any other name is that of a field of its objects; of a list at the end
// the elements are values (one level). Values alias doc.
func EachValue(doc bson.Raw, path string, fn func(v bson.RawValue) error) error {
	name, rest, more := strings.Cut(path, ".")
	v, _ := document.Field(doc, name)
	switch {
	case v.Type == 0:
		return nil
	case !more && v.Type != bson.TypeArray:
		return fn(v)
	case v.Type == bson.TypeEmbeddedDocument, v.Type == bson.TypeArray && more && startsWithNumber(rest):
		return EachValue(v.Value, rest, fn) // a list is taken as an object with its indexes for names
	case v.Type != bson.TypeArray:
		return nil
	}
	for it := document.NewIter(v.Value); it.Next(); {
		element := it.Value()
		var err error
		switch {
		case !more:
			err = fn(element)
		case element.Type == bson.TypeEmbeddedDocument:
			err = EachValue(element.Value, rest, fn)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// startsWithNumber says whether the first name of path is a number, leading zeros allowed.
func startsWithNumber(path string) bool {
	name, _, _ := strings.Cut(path, ".")
	return name != "" && strings.Trim(name, "0123456789") == ""
}
