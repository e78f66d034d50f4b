package fieldtype

import (
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Type is a field type. Types are stateless values; what is declared about one field is in Field.
type Type interface {
	// Name is the type's name in a config file, such as "string[]".
	Name() string
	// Parse turns a value that is not null into its stored form. The value comes from JSON or from the store (an
	// update checks the merged record), so stored forms are taken as they are. Problems go to c, at c's place.
	Parse(f *Field, v any, c *Check) any
	// Cast turns a constant of a query into the form that stored values have. A constant of another type is kept: it
	// matches nothing, as in MongoDB. Only an Untyped that can't be read is an error.
	Cast(f *Field, v any) (any, error)
}

// Untyped is a constant from the short form of a filter in a URL, filter[views][gte]=10: the field's type decides what
// it is.
type Untyped string

// All lists the field types. Adding one is a file and a line here.
func All() []Type {
	return []Type{
		stringType{},
		listType{stringType{}},
		numberType{},
		listType{numberType{}},
		booleanType{},
		objectType{},
		listType{objectType{}},
		fileType{},
		listType{fileType{}},
		dateType{},
		anyType{},
	}
}

// ByName gives the type with a name.
func ByName(name string) (Type, bool) {
	for _, t := range All() {
		if t.Name() == name {
			return t, true
		}
	}
	return nil, false
}

// Names lists the names of all types, in the order of All.
func Names() []string {
	var names []string
	for _, t := range All() {
		names = append(names, t.Name())
	}
	return names
}

// describe says what v is, for messages such as "must be a string, is a number".
func describe(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case int32, int64, float64, bson.Decimal128:
		return "a number"
	case string:
		return "a string"
	case bson.D:
		return "an object"
	case bson.A:
		return "a list"
	case bson.DateTime, time.Time:
		return "a date"
	case bson.ObjectID:
		return "an id"
	}
	return fmt.Sprintf("a %T", v)
}
