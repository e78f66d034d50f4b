package guard

import (
	"slices"
	"strings"

	"github.com/dop251/goja"
)

// listRules bound what the methods of lists go through. A true list may have any length; what is like a list, which may
// change its length while it is read, is made one, or refused where the method changes it.
func listRules() map[string]rule {
	all := map[string]rule{
		"Array":      {call: newList, construct: constructList},
		"Array.from": {call: listFrom},

		"Array.prototype.concat":   {call: concat},
		"Array.prototype.flat":     {call: flat},
		"Array.prototype.join":     {call: joinList},
		"Array.prototype.sort":     {call: sortList},
		"Array.prototype.toSorted": {call: sortList},
	}
	for _, name := range []string{
		"at", "entries", "every", "filter", "find", "findIndex", "findLast", "findLastIndex", "flatMap", "forEach", "keys", "map", "reduce",
		"reduceRight", "slice", "some", "toLocaleString", "toReversed", "toSpliced", "toString", "values", "with", "[Symbol.iterator]",
	} {
		all["Array.prototype."+name] = rule{call: readList}
	}
	for _, name := range []string{"includes", "indexOf", "lastIndexOf"} {
		all["Array.prototype."+name] = rule{call: searchList}
	}
	for _, name := range []string{"copyWithin", "fill", "pop", "push", "reverse", "shift", "splice", "unshift"} {
		all["Array.prototype."+name] = rule{call: changeList}
	}
	return all
}

func newList(m *Meter, next native, c goja.FunctionCall) goja.Value {
	m.checkSize(c.Arguments)
	return next(c)
}

func constructList(m *Meter, next ctor, args []goja.Value, target *goja.Object) *goja.Object {
	m.checkSize(args)
	return next(args, target)
}

func (m *Meter) checkSize(args []goja.Value) {
	if len(args) == 1 && goja.IsNumber(args[0]) && args[0].ToFloat() > maxLength {
		m.tooMuch("a list of that length is too long: %d is the limit", maxLength)
	}
}

// listThis makes this of a method a true list of a length that is allowed.
func (m *Meter) listThis(c *goja.FunctionCall) *goja.Object {
	if list, ok := isList(c.This); ok {
		m.checkLength(list, maxLength)
		return list
	}
	if goja.IsUndefined(c.This) || goja.IsNull(c.This) {
		return nil
	}
	list := m.copied(c.This.ToObject(m.vm), maxCopied)
	c.This = list
	return list
}

func readList(m *Meter, next native, c goja.FunctionCall) goja.Value {
	if f, ok := c.This.(*goja.Object); ok && f.ClassName() != "Array" && len(c.Arguments) == 0 && f.Get("join") == nil {
		return next(c) // toString of anything
	}
	m.listThis(&c)
	return next(c)
}

func changeList(m *Meter, next native, c goja.FunctionCall) goja.Value {
	list, ok := isList(c.This)
	if !ok {
		m.refuse("this method changes true lists only")
	}
	m.checkLength(list, maxLength)
	return next(c)
}

// longText is from where on a comparison of two texts takes its time.
const longText = 1 << 12

// searchList compares one item after the other where comparing takes its time.
func searchList(m *Meter, next native, c goja.FunctionCall) goja.Value {
	list := m.listThis(&c)
	if s, ok := c.Argument(0).(goja.String); ok && list != nil && s.Length() > longText && int64(s.Length())*lengthOf(list) > 1<<28 {
		m.tooMuch("the text is too long to be looked for in a list of that length")
	}
	return next(c)
}

// sortList compares texts by a function of its own, which looks at the meter.
func sortList(m *Meter, next native, c goja.FunctionCall) goja.Value {
	list, ok := isList(c.This)
	if !ok {
		m.refuse("this method sorts true lists only")
	}
	m.checkLength(list, maxCopied)
	if goja.IsUndefined(c.Argument(0)) {
		c.Arguments = []goja.Value{m.vm.ToValue(func(pair goja.FunctionCall) goja.Value {
			m.Check()
			return m.vm.ToValue(textOf(pair.Argument(0)).CompareTo(textOf(pair.Argument(1))))
		})}
	}
	return next(c)
}

func listFrom(m *Meter, next native, c goja.FunctionCall) goja.Value {
	obj, ok := c.Argument(0).(*goja.Object)
	if !ok || obj.GetSymbol(goja.SymIterator) != nil {
		return next(c)
	}
	c.Arguments = append([]goja.Value{m.copied(obj, maxCopied)}, c.Arguments[1:]...)
	return next(c)
}

func concat(m *Meter, next native, c goja.FunctionCall) goja.Value {
	total := int64(0)
	for _, v := range append([]goja.Value{c.This}, c.Arguments...) {
		if list, ok := isList(v); ok {
			total += lengthOf(list)
		} else if obj, ok := v.(*goja.Object); ok && obj.GetSymbol(goja.SymIsConcatSpreadable) != nil {
			m.refuse("concat takes true lists and single values")
		}
		if total++; total > maxLength {
			m.tooMuch("the lists together are too long: %d items are the limit", maxLength)
		}
	}
	return next(c)
}

// flat is Array.prototype.flat: a list that holds another one twice, and so on, grows without bound when it is flattened.
func flat(m *Meter, _ native, c goja.FunctionCall) goja.Value {
	depth := int64(1)
	if v := c.Argument(0); !goja.IsUndefined(v) {
		depth = min(v.ToInteger(), maxNesting)
	}
	list := m.listThis(&c)
	if list == nil {
		m.refuse("flat is a method of lists")
	}
	var items []any
	var walk func(list *goja.Object, depth int64)
	walk = func(list *goja.Object, depth int64) {
		m.checkLength(list, maxCopied)
		for i, n := 0, int(lengthOf(list)); i < n; i++ {
			m.Check()
			v := item(list, i)
			if v == nil {
				continue
			}
			if inner, ok := isList(v); ok && depth > 0 {
				walk(inner, depth-1)
				continue
			}
			if items = append(items, v); len(items) > maxCopied {
				m.tooMuch("the flat list is too long: %d items are the limit", maxCopied)
			}
		}
	}
	walk(list, depth)
	return m.vm.NewArray(items...)
}

// joinList is Array.prototype.join with a bound.
func joinList(m *Meter, _ native, c goja.FunctionCall) goja.Value {
	list := m.listThis(&c)
	if list == nil {
		m.refuse("join is a method of lists")
	}
	if slices.Contains(m.joining, list) {
		return m.vm.ToValue("") // a list that holds itself, as everywhere
	}
	m.joining = append(m.joining, list)
	defer func() { m.joining = m.joining[:len(m.joining)-1] }()
	separator := m.vm.ToValue(",")
	if v := c.Argument(0); !goja.IsUndefined(v) {
		separator = v.ToString()
	}
	var b goja.StringBuilder
	total := 0
	add := func(v goja.Value) {
		s := textOf(v)
		if total += s.Length(); total > maxText {
			m.tooMuch("the text is too long: %d characters are the limit", maxText)
		}
		b.WriteString(s)
	}
	for i, n := 0, int(lengthOf(list)); i < n; i++ {
		m.Check()
		if i > 0 {
			add(separator)
		}
		if v := item(list, i); v != nil && !goja.IsUndefined(v) && !goja.IsNull(v) {
			add(v)
		}
	}
	return b.String()
}

// checkText refuses a text of that length, that many times.
func (m *Meter) checkText(length, times int64) {
	if length > 0 && times > maxText/length {
		m.tooMuch("the text is too long: %d characters are the limit", maxText)
	}
}

// count is how often part occurs in s.
func count(s, part goja.Value) int64 {
	return int64(strings.Count(s.String(), part.String()))
}
