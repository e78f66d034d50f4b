package schema

import (
	"reflect"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// member is one key that a config object may have, from the tags of its struct field.
type member struct {
	name     string
	index    int // of the struct field
	required bool
	nullable bool // null is a value of its own
	listref  bool // the whole list may be in a file
	enum     []string
	only     string // the one boolean allowed
	pattern  string // a row of patterns, for the string or the elements of the list
	keys     string // a row of patterns, for the keys of the map
	types    []string
	def      string
	min, max *float64
	secret   bool
	doc      string
}

// object is what the decoder knows of one struct type.
type object struct {
	members []member
	rest    int // the struct field that takes unnamed keys, or -1
	raw     int // the struct field that takes the whole object, or -1
}

// describeStruct reads the tags of a struct type.
func describeStruct(t reflect.Type) *object {
	o := &object{rest: -1, raw: -1}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("cfg"), ",")
		switch {
		case options == "rest":
			o.rest = i
		case options == "raw":
			o.raw = i
		case name != "":
			o.members = append(o.members, describeField(f, name, options))
		}
	}
	return o
}

func describeField(f reflect.StructField, name, options string) member {
	m := member{
		name: name, index: f.Index[0],
		only: f.Tag.Get("only"), pattern: f.Tag.Get("pattern"), keys: f.Tag.Get("keys"),
		def: f.Tag.Get("default"), secret: f.Tag.Get("secret") != "", doc: f.Tag.Get("doc"),
		enum: splitTag(f.Tag.Get("enum")), types: splitTag(f.Tag.Get("types")),
		min: numberTag(f.Tag.Get("min")), max: numberTag(f.Tag.Get("max")),
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "required":
			m.required = true
		case "nullable":
			m.nullable = true
		case "listref":
			m.listref = true
		}
	}
	return m
}

func splitTag(tag string) []string {
	if tag == "" {
		return nil
	}
	return strings.Split(tag, ",")
}

func numberTag(tag string) *float64 {
	n, err := strconv.ParseFloat(tag, 64)
	if err != nil {
		return nil
	}
	return &n
}

func (o *object) find(name string) *member {
	for i := range o.members {
		if o.members[i].name == name {
			return &o.members[i]
		}
	}
	return nil
}

func (o *object) names() []string {
	names := make([]string, len(o.members))
	for i, m := range o.members {
		names[i] = m.name
	}
	return names
}

// node gives the default as if it had been written in the file.
func (m *member) node(t reflect.Type, pos Position) *node {
	if t.Kind() == reflect.Slice {
		n := &node{pos: pos, kind: kindList}
		for _, s := range splitTag(m.def) {
			n.items = append(n.items, &node{pos: pos, kind: kindString, text: s})
		}
		return n
	}
	if b, err := strconv.ParseBool(m.def); err == nil && t.Kind() == reflect.Bool {
		return &node{pos: pos, kind: kindBool, boolean: b}
	}
	if i, err := strconv.ParseInt(m.def, 10, 64); err == nil && t.Kind() != reflect.String {
		return &node{pos: pos, kind: kindInt, integer: i}
	}
	return &node{pos: pos, kind: kindString, text: m.def}
}

// The types that hold free values.
var (
	freeObject = reflect.TypeFor[bson.D]()
	freeList   = reflect.TypeFor[bson.A]()
	freeValue  = reflect.TypeFor[any]()
)

// holdsObject says that values of t are objects in the file, so that a string in their place is a reference.
func holdsObject(t reflect.Type) bool {
	if t == freeObject {
		return true
	}
	switch t.Kind() {
	case reflect.Pointer:
		return holdsObject(t.Elem())
	case reflect.Struct, reflect.Map:
		return true
	default:
		return false
	}
}
