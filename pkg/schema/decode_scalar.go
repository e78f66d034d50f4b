package schema

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
)

func (d *decoder) str(n *node, path string, v reflect.Value, m *member) {
	if n.kind != kindString {
		d.wrongType(n, path, "a string")
		return
	}
	if d.text(n, path, m) {
		v.SetString(n.text)
	}
}

// text checks a string against the member's list and pattern.
func (d *decoder) text(n *node, path string, m *member) bool {
	switch {
	case m.enum != nil && !slices.Contains(m.enum, n.text):
		d.notInEnum(n, path, m, m.enum)
		return false
	case m.pattern != "" && !patterns[m.pattern].expr.MatchString(n.text):
		d.problem(n.pos, path, CodePattern, "must be %s", patterns[m.pattern].words)
		return false
	case m.required && n.text == "" && m.enum == nil && m.pattern == "":
		d.problem(n.pos, path, CodeRange, "must not be empty")
		return false
	}
	return true
}

func (d *decoder) notInEnum(n *node, path string, m *member, known []string) {
	hint := ""
	if !n.secret && !m.secret && len(n.text) <= maxCompared {
		hint = fmt.Sprintf(", not %q", n.text)
		if near := nearest(n.text, known); near != "" {
			hint += fmt.Sprintf("; did you mean %q?", near)
		}
	}
	one := "one of "
	if len(known) == 1 {
		one = ""
	}
	d.problem(n.pos, path, CodeEnum, "must be %s%s%s", one, strings.Join(known, ", "), hint)
}

func (d *decoder) boolean(n *node, path string, v reflect.Value, m *member) {
	if n.kind != kindBool {
		d.wrongType(n, path, aBoolean)
		return
	}
	if m.only == "false" && n.boolean {
		d.problem(n.pos, path, CodeEnum, "must be false, or absent")
		return
	}
	v.SetBool(n.boolean)
}

func (d *decoder) integer(n *node, path string, v reflect.Value, m *member) {
	switch {
	case n.kind == kindFloat:
		d.problem(n.pos, path, CodeType, "must be a whole number")
	case n.kind != kindInt:
		d.wrongType(n, path, "a whole number")
	case d.inRange(n, path, float64(n.integer), m):
		v.SetInt(n.integer)
	}
}

func (d *decoder) float(n *node, path string, v reflect.Value, m *member) {
	x := n.float
	switch n.kind {
	case kindInt:
		x = float64(n.integer)
	case kindFloat:
	default:
		d.wrongType(n, path, "a number")
		return
	}
	if d.inRange(n, path, x, m) {
		v.SetFloat(x)
	}
}

// maxInt bounds the whole numbers of configs, so that they fit everywhere.
const maxInt = math.MaxInt32

func (d *decoder) inRange(n *node, path string, x float64, m *member) bool {
	switch {
	case m.min != nil && x < *m.min:
		d.problem(n.pos, path, CodeRange, "must be at least %g", *m.min)
	case m.max != nil && x > *m.max:
		d.problem(n.pos, path, CodeRange, "must be at most %g", *m.max)
	case n.kind == kindInt && (x > maxInt || x < -maxInt):
		d.problem(n.pos, path, CodeRange, "must be at most %d", maxInt)
	default:
		return true
	}
	return false
}

func (d *decoder) time(n *node, path string, v reflect.Value) {
	if n.kind != kindString {
		d.wrongType(n, path, "a date such as 2027-01-31T00:00:00Z")
		return
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, n.text); err == nil {
			v.Set(reflect.ValueOf(t.UTC()))
			return
		}
	}
	d.problem(n.pos, path, CodePattern, "must be a date such as 2027-01-31T00:00:00Z")
}

// free takes a value as it is.
func (d *decoder) free(n *node, path string, v reflect.Value, m *member) {
	if !d.takes(n.size(), n.pos, path) {
		return
	}
	if d.failedInside(n) {
		d.broken[path] = true
		return
	}
	switch v.Type() {
	case freeObject:
		if n.kind != kindMap {
			d.wrongType(n, path, "an object")
			return
		}
	case freeList:
		if n.kind != kindList {
			d.wrongType(n, path, aList)
			return
		}
	default:
		if m.types != nil && !slices.Contains(m.types, n.jsonType()) {
			d.wrongType(n, path, wordList(m.types))
			return
		}
		if n.kind == kindString && m.enum != nil && !slices.Contains(m.enum, n.text) {
			d.notInEnum(n, path, m, m.enum)
			return
		}
		if n.kind == kindNull {
			return
		}
	}
	v.Set(reflect.ValueOf(n.value(d.refs)))
}

// jsonType names the type in the words of the types tag.
func (n *node) jsonType() string {
	return [...]string{"null", "boolean", "number", "number", "string", "object", "list"}[n.kind]
}

// wordList turns {"boolean", "list"} into "a boolean or a list".
func wordList(types []string) string {
	words := make([]string, len(types))
	for i, t := range types {
		words[i] = "a " + t
		if t == "object" {
			words[i] = "an object"
		}
	}
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// size counts the values below a node, up to what a config may have.
func (n *node) size() int {
	total := 0
	count(n, &total)
	return total
}

func count(n *node, total *int) {
	if *total++; *total > maxNodes {
		return
	}
	for _, e := range n.entries {
		count(e.value, total)
	}
	for _, item := range n.items {
		count(item, total)
	}
}

// failedInside says that a value below n could not be read, which has been reported.
func (d *decoder) failedInside(n *node) bool {
	if n.failed {
		return true
	}
	for _, e := range n.entries {
		if d.failedInside(e.value) {
			return true
		}
	}
	return slices.ContainsFunc(n.items, d.failedInside)
}
