package guard

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"
	"github.com/dop251/goja"
)

// matchTimeout is how long one match may take. goja takes a match that ran over it for none, so that the meter ends the
// run where that may have happened.
const matchTimeout = 100 * time.Millisecond

// setMatchTimeout bounds the engine for what Go's own can't do, such as look-ahead. It is for all patterns that are
// compiled from now on.
func setMatchTimeout() {
	regexp2.DefaultMatchTimeout = matchTimeout
}

// regexpRules bound the work of one match, and see to it that many are not one call.
func regexpRules() map[string]rule {
	all := map[string]rule{
		"RegExp":                   {call: newPattern, construct: constructPattern},
		"RegExp.prototype.compile": {call: newPattern},
		"RegExp.prototype.exec":    {call: matchOnce},
		"RegExp.prototype.test":    {call: matchOnce},
	}
	for _, name := range []string{"match", "matchAll", "replace", "search", "split"} {
		all["RegExp.prototype.[Symbol."+name+"]"] = rule{call: func(m *Meter, next native, c goja.FunctionCall) goja.Value {
			return matchMany(m, next, c, name)
		}}
	}
	return all
}

func (m *Meter) checkPattern(args []goja.Value) {
	if len(args) == 0 || !isText(args[0]) {
		return
	}
	s := textOf(args[0])
	if s.Length() > maxPattern {
		m.tooMuch("the regular expression is too long: %d characters are the limit", maxPattern)
	}
	text := s.String()
	if strings.Count(text, "(")-strings.Count(text, "(?:") > maxGroups || strings.Count(text, `\p{`)+strings.Count(text, `\P{`) > maxClasses {
		m.tooMuch("the regular expression is too large: %d groups that capture and %d classes of Unicode are the limit", maxGroups, maxClasses)
	}
}

func newPattern(m *Meter, next native, c goja.FunctionCall) goja.Value {
	c.Arguments = plainArguments(c.Arguments)
	m.checkPattern(c.Arguments)
	return next(c)
}

func constructPattern(m *Meter, next ctor, args []goja.Value, target *goja.Object) *goja.Object {
	args = plainArguments(args)
	m.checkPattern(args)
	return next(args, target)
}

// plainArguments makes a text of a first argument that is neither a text nor a regular expression.
func plainArguments(args []goja.Value) []goja.Value {
	if len(args) == 0 {
		return args
	}
	if obj, ok := args[0].(*goja.Object); ok && obj.ClassName() != "RegExp" {
		return append([]goja.Value{textOf(obj)}, args[1:]...)
	}
	return args
}

// patternArgument is for the methods of texts that make a pattern of a text.
func patternArgument(m *Meter, next native, c goja.FunctionCall) goja.Value {
	m.vm.Get("RegExp") // has its methods guarded
	if len(c.Arguments) > 0 {
		c.Arguments = append([]goja.Value{}, c.Arguments...)
		if obj, ok := c.Arguments[0].(*goja.Object); ok && obj.GetSymbol(goja.SymMatch) == nil {
			c.Arguments[0] = textOf(obj)
		}
		m.checkPattern(c.Arguments)
	}
	return next(c)
}

// matchOnce is one match: bounded by the length of the text times the size of the pattern, and by its time.
func matchOnce(m *Meter, next native, c goja.FunctionCall) goja.Value {
	s := textOf(c.Argument(0))
	c.Arguments = []goja.Value{s}
	if rx, ok := c.This.(*goja.Object); ok && s.Length() > smallText && work(rx, int64(s.Length())) > maxWork {
		m.tooMuch("the text is too long for this regular expression")
	}
	return m.timed(next, c)
}

// timed calls a match. goja takes one that ran out of time for no match: it is tried once more, for the machine may only
// have been busy, and then ends the run.
func (m *Meter) timed(next native, c goja.FunctionCall) goja.Value {
	rx, ok := c.This.(*goja.Object)
	if !ok {
		return next(c)
	}
	from := rx.Get("lastIndex")
	start := time.Now()
	v := next(c)
	if time.Since(start) < matchTimeout || v.ToBoolean() || !outOfTime(rx, from) {
		return v
	}
	if err := rx.Set("lastIndex", from); err != nil {
		return v
	}
	start = time.Now()
	if v = next(c); time.Since(start) >= matchTimeout && !v.ToBoolean() {
		m.StopFor("a regular expression took longer than " + matchTimeout.String())
		m.Check()
	}
	return v
}

// outOfTime says whether a match of rx from there can run out of time: Go's own engine, which starts at the beginning
// only, has no limit.
func outOfTime(rx *goja.Object, from goja.Value) bool {
	return backtracks(rx) || from != nil && goja.IsNumber(from) && from.ToInteger() > 0
}

// The work of a match is counted in characters times states.
const (
	smallText = 200
	maxWork   = 20_000_000
	fastWork  = 5_000_000
)

// matchMany is all matches in a text. Where they could take their time, goja is made to look for one after the other by
// exec, which is guarded.
func matchMany(m *Meter, next native, c goja.FunctionCall, name string) goja.Value {
	s := textOf(c.Argument(0))
	c.Arguments = append([]goja.Value{s}, c.Arguments[min(1, len(c.Arguments)):]...)
	n := int64(s.Length())
	if name == "replace" && len(c.Arguments) > 1 && isText(c.Arguments[1]) { // of split it is a limit, and undefined is none
		by := textOf(c.Arguments[1])
		c.Arguments[1] = by
		if n*int64(by.Length()+1) > maxText || strings.Contains(by.String(), "$") {
			m.checkReplaced(s, by, 1)
			if !strings.Contains(by.String(), "$") {
				c.Arguments[1] = m.countedReplacement(by)
			} else {
				m.checkText(int64(by.Length()), n+1)
			}
		}
	}
	rx, ok := c.This.(*goja.Object)
	if !ok || rx.ClassName() != "RegExp" || n*work(rx, n) <= fastWork && !backtracks(rx) {
		return next(c)
	}
	// An own exec makes goja leave its short cut: the prototype's, which is guarded.
	if own := rx.Get("exec"); own != nil {
		if err := rx.DefineDataProperty("exec", own, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE); err != nil {
			m.refuse("a frozen regular expression can't search a text of this length")
		}
	}
	start := time.Now()
	v := next(c)
	if name == "split" && time.Since(start) >= matchTimeout && backtracks(rx) { // it makes a pattern of its own
		m.StopFor("a regular expression took longer than " + matchTimeout.String())
		m.Check()
	}
	return v
}

// countedReplacement is a replacement that counts what it makes.
func (m *Meter) countedReplacement(by goja.String) goja.Value {
	total := int64(0)
	return m.vm.ToValue(func(goja.FunctionCall) goja.Value {
		m.Check()
		total += int64(by.Length())
		m.checkText(total, 1)
		return by
	})
}

// counts matches the counted repetitions of a pattern.
var counts = regexp.MustCompile(`\{(\d+)(?:,(\d*))?\}`)

// work estimates the work of one match in a text of n characters.
func work(rx *goja.Object, n int64) int64 {
	source := sourceOf(rx)
	states := int64(len(source))
	if strings.Contains(source, "{") {
		repeated := int64(1)
		for _, m := range counts.FindAllStringSubmatch(source, -1) {
			low, _ := strconv.ParseInt(m[1], 10, 32)
			high, _ := strconv.ParseInt(m[2], 10, 32)
			repeated = min(1000, repeated*max(1, low, high))
		}
		states *= repeated
	}
	return n * max(states, 1)
}

// backtracks says whether a pattern is none for Go's own engine, which takes time in proportion to the text.
func backtracks(rx *goja.Object) bool {
	source := sourceOf(rx)
	if strings.Contains(source, "(?=") || strings.Contains(source, "(?!") || strings.Contains(source, "(?<") {
		return true
	}
	for i := 0; i+1 < len(source); i++ {
		if source[i] == '\\' {
			if i++; source[i] >= '1' && source[i] <= '9' || source[i] == 'k' {
				return true
			}
		}
	}
	return false
}

func sourceOf(rx *goja.Object) string {
	if v := rx.Get("source"); v != nil {
		return v.String()
	}
	return ""
}
