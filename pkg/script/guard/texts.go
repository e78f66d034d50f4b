package guard

import (
	"strings"

	"github.com/dop251/goja"
)

// textRules bound the texts that the methods of texts make, and the work they do by themselves.
func textRules() map[string]rule {
	pad := func(m *Meter, next native, c goja.FunctionCall) goja.Value {
		m.checkText(1, c.Argument(0).ToInteger())
		return next(c)
	}
	linguistic := func(m *Meter, next native, c goja.FunctionCall) goja.Value {
		for _, v := range append([]goja.Value{c.This}, c.Arguments...) {
			if textOf(v).Length() > maxCopied/2 {
				m.tooMuch("the text is too long for that: %d characters are the limit", maxCopied/2)
			}
		}
		return next(c)
	}
	search := func(m *Meter, next native, c goja.FunctionCall) goja.Value {
		if s, ok := c.This.(goja.String); ok && len(c.Arguments) > 0 {
			if part, ok := c.Arguments[0].(goja.String); ok && int64(s.Length())*int64(part.Length()) > 1<<29 {
				m.tooMuch("the texts are too long to look for one in the other")
			}
		}
		return next(c)
	}
	all := map[string]rule{
		"String.raw": {call: rawText},
		"String.prototype.repeat": {call: func(m *Meter, next native, c goja.FunctionCall) goja.Value {
			s, n := textOf(c.This), c.Argument(0).ToInteger()
			m.checkText(int64(s.Length()), n)
			return next(goja.FunctionCall{This: s, Arguments: []goja.Value{m.vm.ToValue(n)}})
		}},
		"String.prototype.padStart": {call: pad}, "String.prototype.padEnd": {call: pad},
		"String.prototype.concat": {call: concatText},
		"String.prototype.split":  {call: splitText},
		"String.prototype.replaceAll": {call: func(m *Meter, next native, c goja.FunctionCall) goja.Value {
			if len(c.Arguments) > 0 && isText(c.This) && isText(c.Arguments[0]) {
				s, part := textOf(c.This), textOf(c.Arguments[0])
				if s.Length() > maxCopied && count(s, part) > maxCopied {
					m.tooMuch("the text has more than %d matches", maxCopied)
				}
			}
			return replaceText(m, next, c)
		}},
		"String.prototype.replace":       {call: replaceText},
		"String.prototype.match":         {call: patternArgument},
		"String.prototype.matchAll":      {call: patternArgument},
		"String.prototype.search":        {call: patternArgument},
		"String.prototype.normalize":     {call: linguistic},
		"String.prototype.localeCompare": {call: linguistic},
	}
	for _, name := range []string{"indexOf", "lastIndexOf", "includes"} {
		all["String.prototype."+name] = rule{call: search}
	}
	return all
}

// textOf is ToString, once: the rule and the built-in see the same text.
func textOf(v goja.Value) goja.String {
	if s, ok := v.ToString().(goja.String); ok {
		return s
	}
	var b goja.StringBuilder // a number is its own text to goja
	b.WriteUTF8String(v.String())
	return b.String()
}

// isText says whether a value is a text, or becomes one without code of the script.
func isText(v goja.Value) bool {
	_, ok := v.(*goja.Object)
	return !ok
}

func rawText(m *Meter, next native, c goja.FunctionCall) goja.Value {
	if obj, ok := c.Argument(0).(*goja.Object); ok {
		if list, ok := isList(obj.Get("raw")); !ok {
			m.refuse("String.raw is for template literals")
		} else {
			m.checkLength(list, maxApplied)
			total := int64(0)
			for i := range int(lengthOf(list)) {
				if v := item(list, i); v != nil {
					total += int64(textOf(v).Length())
				}
				m.checkText(total, 1)
			}
		}
	}
	return next(c)
}

func concatText(m *Meter, next native, c goja.FunctionCall) goja.Value {
	total := int64(0)
	args := make([]goja.Value, len(c.Arguments))
	for i, v := range c.Arguments {
		s := textOf(v)
		total += int64(s.Length())
		m.checkText(total, 1)
		args[i] = s
	}
	c.Arguments = args
	return next(c)
}

func splitText(m *Meter, next native, c goja.FunctionCall) goja.Value {
	if len(c.Arguments) == 0 || !isText(c.This) || !isText(c.Arguments[0]) || goja.IsUndefined(c.Arguments[0]) {
		return next(c)
	}
	s := textOf(c.This)
	if s.Length() <= maxCopied || goja.IsNumber(c.Argument(1)) && c.Argument(1).ToInteger() <= maxCopied {
		return next(c)
	}
	if separator := textOf(c.Arguments[0]); separator.Length() == 0 || count(s, separator) > maxCopied {
		m.tooMuch("split makes more than %d parts", maxCopied)
	}
	return next(c)
}

// replaceText bounds what a text with replacements can become.
func replaceText(m *Meter, next native, c goja.FunctionCall) goja.Value {
	if len(c.Arguments) < 2 || !isText(c.This) || !isText(c.Arguments[0]) || !isText(c.Arguments[1]) {
		return next(c)
	}
	s, part, by := textOf(c.This), textOf(c.Arguments[0]), textOf(c.Arguments[1])
	if int64(s.Length()+1)*int64(by.Length()+1) > maxText || strings.Contains(by.String(), "$") {
		m.checkReplaced(s, by, count(s, part))
	}
	return next(goja.FunctionCall{This: s, Arguments: []goja.Value{part, by}})
}

// checkReplaced bounds a text in which matches are replaced by a template with references.
func (m *Meter) checkReplaced(s, by goja.String, matches int64) {
	text := by.String()
	n := int64(s.Length())
	references := int64(strings.Count(text, "$"))
	total := int64(by.Length())
	if strings.Contains(text, "$`") || strings.Contains(text, "$'") {
		total += references * n
	}
	m.checkText(max(total, 1), max(matches, 1))
	m.checkText(n, max(references, 1)) // the matches together are no longer than the text
}
