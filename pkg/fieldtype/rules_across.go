package fieldtype

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// A rule such as {after: {field: startsAt}} compares a field with another one of the same object, or of one inside. It is
// judged when the whole object has been read, and only where both have a value.

// acrossRule makes a rule that compares with another field; is is false where arg says something else.
func acrossRule(name string, arg any, t Type) (rule Rule, is bool, err error) {
	d, ok := arg.(bson.D)
	must, holds := comparison(name)
	if !ok || holds == nil {
		return Rule{}, false, nil
	}
	path, isText := "", false
	if len(d) == 1 && d[0].Key == "field" {
		path, isText = d[0].Value.(string)
	}
	if !isText || path == "" {
		return Rule{}, true, errors.New("takes a value, or {field: <another field of the same object>}")
	}
	if _, list := t.(listType); list {
		return Rule{}, true, errors.New("compares a list with no other field")
	}
	return Rule{Arg: d, Other: path, across: func(v, other any) string {
		if holds(v, other) {
			return ""
		}
		return must + path
	}}, true, nil
}

// comparison gives what a rule asks of a value and another one, and says where that does not hold; nil: it compares nothing.
func comparison(name string) (must string, holds func(v, other any) bool) {
	switch name {
	case "eq":
		return "must be the same as ", equal
	case "ne":
		return "must not be the same as ", func(v, other any) bool { return !equal(v, other) }
	}
	o := orderingOf(name)
	if o.passes == nil {
		return "", nil
	}
	return o.must, func(v, other any) bool {
		order, alike := compareValues(v, other)
		return !alike || o.passes(order) // what is of another type has been told of
	}
}

// checkAcross judges the rules of one object level that compare its fields.
func (t *Tree) checkAcross(doc bson.D, c *Check) {
	for _, f := range t.across {
		v, has := document.Member(doc, f.Name)
		if !has {
			continue
		}
		level := c.path()
		c.enter(f.Name)
		for _, r := range f.Rules {
			if r.across == nil {
				continue
			}
			other, has := memberAt(doc, r.Other)
			if !has {
				continue
			}
			if message := r.across(v, other); message != "" {
				c.Problems = append(c.Problems, errs.FieldError{
					Path: c.path(), Rule: r.Name, Message: message, Other: strings.TrimPrefix(level+"."+r.Other, "."),
				})
			}
		}
		c.leave()
	}
}

func memberAt(doc bson.D, path string) (any, bool) {
	name, rest, nested := strings.Cut(path, ".")
	v, has := document.Member(doc, name)
	if !nested {
		return v, has
	}
	inner, _ := v.(bson.D)
	return memberAt(inner, rest)
}

// CheckAcross says what keeps a field from being compared with another one of its level; "" is nothing.
func (f *Field) CheckAcross(level []*Field, other string) string {
	var found *Field
	for name := range strings.SplitSeq(other, ".") {
		i := slices.IndexFunc(level, func(x *Field) bool { return x.Name == name })
		if i < 0 || found != nil && found.IsList() {
			return fmt.Sprintf("there is no field %q beside it", other)
		}
		found, level = level[i], nil
		if found.Sub != nil {
			level = found.Sub.fields
		}
	}
	switch {
	case found == f:
		return "a field can't be compared with itself"
	case found.Type != f.Type && found.Type != (anyType{}) && f.Type != (anyType{}), found.holdsIDs() != f.holdsIDs():
		return fmt.Sprintf("%s is of type %s, which is not the same", other, found.Type.Name())
	}
	return ""
}
