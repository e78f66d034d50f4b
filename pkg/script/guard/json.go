package guard

import (
	"slices"

	"github.com/dop251/goja"
)

// jsonRules bound JSON in both ways.
func jsonRules() map[string]rule {
	return map[string]rule{
		"JSON.parse":     {call: parseJSON},
		"JSON.stringify": {call: stringifyJSON},
		"JSON.rawJSON":   {call: parseJSON},
	}
}

// parseJSON counts levels and values before goja makes them.
func parseJSON(m *Meter, next native, c goja.FunctionCall) goja.Value {
	s := textOf(c.Argument(0))
	c.Arguments = append([]goja.Value{s}, c.Arguments[min(1, len(c.Arguments)):]...)
	if s.Length() < maxNesting {
		return next(c)
	}
	depth, values, quoted := 0, 0, false
	text := s.String()
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '[' || b == '{':
			depth++
			values++
		case b == ']' || b == '}':
			depth--
		case b == ',':
			values++
		}
		if depth > maxNesting || values > maxValues {
			m.tooMuch("the JSON is too much: %d levels and %d values are the limit", maxNesting, maxValues)
		}
	}
	return next(c)
}

// stringifyJSON puts a function in between that counts.
func stringifyJSON(m *Meter, next native, c goja.FunctionCall) goja.Value {
	if v, ok := c.Argument(0).(*goja.Object); !ok || v == nil {
		if s, ok := c.Argument(0).(goja.String); ok {
			m.checkText(6, int64(s.Length()))
		}
		return next(c)
	}
	counter := &jsonCounter{m: m, indented: !goja.IsUndefined(c.Argument(2))}
	if f, ok := c.Argument(1).(*goja.Object); ok {
		if list, is := isList(f); is {
			counter.only = m.names(list)
		} else if call, is := goja.AssertFunction(f); is {
			counter.replace = call
		}
	}
	args := append([]goja.Value{}, c.Arguments...)
	for len(args) < 2 {
		args = append(args, goja.Undefined())
	}
	args[1] = m.vm.ToValue(counter.step)
	c.Arguments = args
	return next(c)
}

// names reads the list of member names that JSON.stringify takes.
func (m *Meter) names(list *goja.Object) map[string]bool {
	m.checkLength(list, maxApplied)
	names := map[string]bool{}
	for i := range int(lengthOf(list)) {
		if v := item(list, i); v != nil && !goja.IsUndefined(v) {
			names[v.String()] = true
		}
	}
	return names
}

// jsonCounter is the replacer of one JSON.stringify.
type jsonCounter struct {
	m        *Meter
	replace  goja.Callable   // the script's own
	only     map[string]bool // the names that it takes
	indented bool
	holders  []*goja.Object // from the outermost to where it is
	values   int
	size     int64
}

// step is called with each value, this being what holds it.
func (j *jsonCounter) step(c goja.FunctionCall) goja.Value {
	m := j.m
	m.Check()
	holder, _ := c.This.(*goja.Object)
	for len(j.holders) > 0 && j.holders[len(j.holders)-1] != holder {
		if !j.within(holder) {
			break
		}
		j.holders = j.holders[:len(j.holders)-1]
	}
	if len(j.holders) == 0 || j.holders[len(j.holders)-1] != holder {
		if j.holders = append(j.holders, holder); len(j.holders) > maxNesting {
			m.tooMuch("the value is nested too deep for JSON: %d levels are the limit", maxNesting)
		}
	}
	v := c.Argument(1)
	if j.replace != nil {
		var err error
		if v, err = j.replace(c.This, c.Arguments...); err != nil {
			panic(err)
		}
	}
	if j.only != nil && len(j.holders) > 1 && holder.ClassName() != "Array" && !j.only[c.Argument(0).String()] {
		return goja.Undefined()
	}
	if obj, ok := v.(*goja.Object); ok {
		m.checkMembers(obj)
	}
	j.values++
	j.size += 4
	if key, ok := c.Argument(0).(goja.String); ok {
		j.size += int64(key.Length())
	}
	if s, ok := v.(goja.String); ok {
		j.size += int64(s.Length())
	}
	if j.indented {
		j.size += int64(10 * len(j.holders))
	}
	if j.values > 2*maxValues || j.size > maxText {
		m.tooMuch("the value is too large for JSON: %d values and %d characters are the limit", 2*maxValues, maxText)
	}
	return v
}

// within says whether a holder is one of those the walk is inside of.
func (j *jsonCounter) within(holder *goja.Object) bool {
	return slices.Contains(j.holders, holder)
}
