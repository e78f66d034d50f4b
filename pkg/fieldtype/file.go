package fieldtype

import "go.mongodb.org/mongo-driver/v2/bson"

// fileType holds what is known of a file: {src, path, size, type, width, height, hash, alt, …}. Here only the shape is
// checked; storing an upload is the work of others.
type fileType struct{}

func (fileType) Name() string { return "file" }

func (fileType) Parse(f *Field, v any, c *Check) any {
	doc, ok := v.(bson.D)
	if !ok {
		c.wrongType("a file: an object with src and path", v)
		return v
	}
	return f.file.check(doc, false, c)
}

func (fileType) Cast(f *Field, v any) (any, error) { return objectType{}.Cast(f, v) }

// fileTree is the members of a file at a path that have a meaning; others are the client's own and kept.
func fileTree(path string) *Tree {
	required, _ := ParseRules("required", stringType{})
	fields := []*Field{
		{Name: "src", Type: stringType{}, Rules: required},
		{Name: "path", Type: stringType{}, Rules: required},
		{Name: "size", Type: numberType{}},
		{Name: "type", Type: stringType{}},
		{Name: "width", Type: numberType{}},
		{Name: "height", Type: numberType{}},
		{Name: "hash", Type: stringType{}},
		{Name: "alt", Type: stringType{}},
	}
	for _, f := range fields {
		f.Path = path + "." + f.Name
	}
	return NewTree(fields, false)
}
