package fieldtype

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// Check is one validation of one record. Set Now and Create, call Tree.Check, read Problems and Deferred. It is not
// safe for concurrent use.
type Check struct {
	Now    time.Time // what "now" means in rules
	Create bool      // the record is new: absent fields get their defaults

	Problems []errs.FieldError // every problem found, in the record's order
	Deferred []Deferred        // rules that need the store or a script, for the caller to carry out

	at []step // where the check is
}

// Deferred is a value that a rule of another room must still judge: exists (does the foreign record exist?) or script.
type Deferred struct {
	Rule  Rule
	Field *Field
	Path  string // where the value stands in the record, for the problem
	Value any    // as it will be stored; of a list the whole list
}

// step is one segment of a place: a name, or a list position when name is "".
type step struct {
	name  string
	index int
}

// Fail adds a problem at the place where the check is.
func (c *Check) Fail(rule, message string) {
	c.Problems = append(c.Problems, errs.FieldError{Path: c.path(), Rule: rule, Message: message})
}

func (c *Check) wrongType(want string, v any) {
	c.Fail("type", fmt.Sprintf("must be %s, is %s", want, describe(v)))
}

func (c *Check) path() string {
	var b strings.Builder
	for i, s := range c.at {
		if i > 0 {
			b.WriteByte('.')
		}
		if s.name == "" {
			b.WriteString(strconv.Itoa(s.index))
		} else {
			b.WriteString(s.name)
		}
	}
	return b.String()
}

func (c *Check) enter(name string) { c.at = append(c.at, step{name: name}) }
func (c *Check) enterItem(i int)   { c.at = append(c.at, step{index: i}) }
func (c *Check) leave()            { c.at = c.at[:len(c.at)-1] }

// Check turns a whole record, as a body or a merged update gives it, into what is stored: values parsed by their
// fields, defaults applied when c.Create, null taken as absent. All problems go to c; the result is worth storing only
// if there are none. doc is not changed. System fields are refused: they are the service's own (see SplitSystem).
func (t *Tree) Check(doc bson.D, c *Check) bson.D {
	system, own := SplitSystem(doc)
	for _, e := range system {
		c.enter(e.Key)
		c.Fail("readonly", "is set by the service and can't be given")
		c.leave()
	}
	c.Problems = append(c.Problems, document.CheckNames(own)...)
	return t.check(own, t.strict, c)
}

// check does one object level.
func (t *Tree) check(doc bson.D, strict bool, c *Check) bson.D {
	if len(c.at) >= document.MaxDepth {
		c.Fail("depth", fmt.Sprintf("is nested deeper than %d levels", document.MaxDepth))
		return doc
	}
	out := make(bson.D, 0, len(doc)+len(t.defaults))
	for _, e := range doc {
		c.enter(e.Key)
		f := t.byName[e.Key]
		switch {
		case f == nil && strict && len(t.fields) > 0:
			c.Fail("unknown", "unknown field")
		case f == nil:
			c.checkDepth(e.Value)
			out = append(out, e)
		case e.Value != nil: // null means absent
			out = append(out, bson.E{Key: e.Key, Value: f.check(e.Value, c)})
		}
		c.leave()
	}
	if c.Create {
		out = t.applyDefaults(doc, out, c)
	}
	for _, f := range t.required {
		if !has(out, f.Name) {
			c.enter(f.Name)
			c.Fail("required", "is required")
			c.leave()
		}
	}
	t.checkAcross(out, c)
	return out
}

// applyDefaults adds the default of every field that the body doesn't name. A field given as null stays absent: its
// writer asked for that.
func (t *Tree) applyDefaults(doc, out bson.D, c *Check) bson.D {
	for _, f := range t.defaults {
		if has(doc, f.Name) {
			continue
		}
		c.enter(f.Name)
		out = append(out, bson.E{Key: f.Name, Value: f.check(normalize(f.Default), c)})
		c.leave()
	}
	return out
}

func has(doc bson.D, name string) bool {
	for i := range doc {
		if doc[i].Key == name {
			return true
		}
	}
	return false
}

// check parses one value and, if it is of the right type, runs the field's choices and rules on it.
func (f *Field) check(v any, c *Check) any {
	before := len(c.Problems)
	v = f.Type.Parse(f, v, c)
	if len(c.Problems) > before {
		return v
	}
	f.checkChoices(v, c)
	for i := range f.Rules {
		f.Rules[i].run(f, v, c)
	}
	return v
}

func (f *Field) checkChoices(v any, c *Check) {
	if len(f.choices) == 0 || f.FreeSolo {
		return
	}
	each(v, c, func(item any) {
		if !contains(f.choices, item) {
			c.Fail("choices", "must be one of "+listing(f.Choices))
		}
	})
}

// each calls fn with v, or with each item when v is a list, at its place.
func each(v any, c *Check, fn func(item any)) {
	list, ok := v.(bson.A)
	if !ok {
		fn(v)
		return
	}
	for i, item := range list {
		c.enterItem(i)
		fn(item)
		c.leave()
	}
}

// checkDepth refuses an undeclared value that would make the record too deep.
func (c *Check) checkDepth(v any) {
	if tooDeep(v, document.MaxDepth-len(c.at)) {
		c.Fail("depth", fmt.Sprintf("makes the record deeper than %d levels", document.MaxDepth))
	}
}

// tooDeep says that v has more than left levels of objects and lists.
func tooDeep(v any, left int) bool {
	switch v := v.(type) {
	case bson.D:
		if left <= 0 {
			return true
		}
		for _, e := range v {
			if tooDeep(e.Value, left-1) {
				return true
			}
		}
	case bson.A:
		if left <= 0 {
			return true
		}
		for _, item := range v {
			if tooDeep(item, left-1) {
				return true
			}
		}
	}
	return false
}
