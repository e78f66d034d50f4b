package fieldtype

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
)

// Rule is one validator rule of a field, made by ParseRules. It is immutable.
type Rule struct {
	Name string
	Arg  any // the argument in the value model: true for a flag, "now" or a bson.DateTime for a moment

	// Other is the field of the same object that the value is compared with, by its path from there; "" for other rules.
	Other string

	Size int // of a pattern: how many steps its program has

	across  func(v, other any) (message string)
	perItem bool                                   // of a list, each item is judged
	test    func(v any, c *Check) (message string) // "" if v passes; nil for rules that others carry out
}

// ruleDef is what is known of a rule: adding one is a func and a line in ruleDefs.
type ruleDef struct {
	name    string
	types   string // the field types it applies to, separated by blanks; "" is every type. any always counts
	perItem bool
	compile func(arg any, t Type) (Rule, error)
	doc     string // what its argument says
}

const (
	texts   = "string string[]"
	numbers = "number number[]"
	lists   = "string[] number[] object[] file[]"
	scalars = texts + " " + numbers + " boolean date"
	ordered = numbers + " date"
)

// ruleDefs lists the rules.
func ruleDefs() []ruleDef {
	return []ruleDef{
		{name: "required", compile: flag(nil), doc: "true: there must be a value."}, // an absent field is found by Tree.Check, an empty one by its run
		{name: "min", types: "string number " + lists, compile: ruleMin, doc: "The least: of a number its value, of a string its length, of a list its items."},
		{name: "max", types: "string number " + lists, compile: ruleMax, doc: "The most: of a number its value, of a string its length, of a list its items."},
		{name: "len", types: "string " + lists, compile: ruleLen, doc: "How long a string is, or how many items a list has."},
		{name: "pattern", types: texts, perItem: true, compile: rulePattern, doc: "A regular expression that is found in the text; ^ and $ tie it to the ends."},
		{name: "email", types: texts, perItem: true, compile: flag(testEmail), doc: "true: an e-mail address."},
		{name: "url", types: texts, perItem: true, compile: flag(testURL), doc: "true: an http or https address."},
		{name: "uuid", types: texts, perItem: true, compile: flag(testUUID), doc: "true: a UUID."},
		{name: "slug", types: texts, perItem: true, compile: flag(testSlug), doc: "true: lowercase letters, digits and single hyphens between them."},
		{name: "oneof", types: texts + " " + numbers, perItem: true, compile: ruleOneOf, doc: "A list of the values allowed."},
		{name: "unique", types: scalars, compile: flag(nil), doc: "true: no other record has the value."},
		{name: "gt", types: ordered, perItem: true, compile: ruleOrder("gt"), doc: "More than a value, or than {field: path}."},
		{name: "gte", types: ordered, perItem: true, compile: ruleOrder("gte"), doc: "A value, or {field: path}, or more."},
		{name: "lt", types: ordered, perItem: true, compile: ruleOrder("lt"), doc: "Less than a value, or than {field: path}."},
		{name: "lte", types: ordered, perItem: true, compile: ruleOrder("lte"), doc: "A value, or {field: path}, or less."},
		{name: "before", types: "date", perItem: true, compile: ruleOrder("before"), doc: "Before a date, or {field: path}."},
		{name: "after", types: "date", perItem: true, compile: ruleOrder("after"), doc: "After a date, or {field: path}."},
		{name: "minItems", types: lists, compile: ruleMinItems, doc: "The fewest items."},
		{name: "maxItems", types: lists, compile: ruleMaxItems, doc: "The most items."},
		{name: "uniqueItems", types: lists, compile: flag(testUniqueItems), doc: "true: no two items are the same."},
		{name: "eq", types: scalars, perItem: true, compile: ruleEq, doc: "This value, or that of {field: path}."},
		{name: "ne", types: scalars, perItem: true, compile: ruleNe, doc: "Any but this value, or that of {field: path}."},
		{name: "startsWith", types: texts, perItem: true, compile: ruleStartsWith, doc: "How the text begins."},
		{name: "endsWith", types: texts, perItem: true, compile: ruleEndsWith, doc: "How the text ends."},
		{name: "exists", types: texts + " " + numbers, compile: flag(nil), doc: "true: the record that the field refers to (meta.foreign) is there, and who writes may read it."},
		{name: "script", compile: ruleScript, doc: "The path of a script that judges the value."},
	}
}

// RuleNames lists the validator rules.
func RuleNames() []string {
	var names []string
	for _, def := range ruleDefs() {
		names = append(names, def.name)
	}
	return names
}

// RuleDoc says in a line what a validator rule asks for, or is "" for a name that is none.
func RuleDoc(name string) string {
	for _, def := range ruleDefs() {
		if def.name == name {
			return def.doc
		}
	}
	return ""
}

// ParseRules reads a field's validator: an object {"min": 1, "max": 100} or a tag string "required,min=1,max=100". A
// pattern in a tag string may contain commas: it goes on until only known rules follow. t is the field's type, which
// decides what rules and arguments fit; nil checks the names and takes every type. A flag set to false is no rule.
// Problems have the rule's name as Path and the Rule "validator".
func ParseRules(v any, t Type) ([]Rule, []errs.FieldError) {
	if t == nil {
		t = anyType{}
	}
	var members bson.D
	switch v := normalize(v).(type) {
	case nil:
		return nil, nil
	case string:
		members = parseTag(v)
	case bson.D:
		members = v
	default:
		return nil, []errs.FieldError{problem("", "must be an object of rules or a string such as required,min=1, is "+describe(v))}
	}
	var rules []Rule
	var problems []errs.FieldError
	for _, m := range members {
		rule, on, err := compileRule(m.Key, m.Value, t)
		switch {
		case err != nil:
			problems = append(problems, problem(m.Key, err.Error()))
		case on && slices.ContainsFunc(rules, func(r Rule) bool { return r.Name == rule.Name }):
			problems = append(problems, problem(m.Key, m.Key+" is given twice"))
		case on:
			rules = append(rules, rule)
		}
	}
	return rules, append(problems, checkBounds(rules)...)
}

func problem(path, message string) errs.FieldError {
	return errs.FieldError{Path: path, Rule: "validator", Message: message}
}

// compileRule makes one rule; on is false for a flag that is off.
func compileRule(name string, arg any, t Type) (rule Rule, on bool, err error) {
	defs := ruleDefs()
	i := slices.IndexFunc(defs, func(d ruleDef) bool { return d.name == name })
	switch {
	case name == "":
		return Rule{}, false, errors.New("a rule has no name; write rules like required,min=1")
	case i < 0:
		return Rule{}, false, fmt.Errorf("unknown rule %q; the nearest is %q", name, nearest(name, RuleNames()))
	}
	def := defs[i]
	if !def.fits(t) {
		return Rule{}, false, fmt.Errorf("%s does not apply to a field of type %s; it applies to %s",
			name, t.Name(), strings.Join(strings.Fields(def.types+" any"), ", "))
	}
	rule, is, err := acrossRule(name, arg, t)
	if !is {
		rule, err = def.compile(arg, t)
	}
	if err != nil {
		return Rule{}, false, fmt.Errorf("%s %w", name, err)
	}
	rule.Name, rule.perItem = name, def.perItem
	return rule, rule.Arg != false, nil
}

func (d ruleDef) fits(t Type) bool {
	return d.types == "" || t == anyType{} || slices.Contains(strings.Fields(d.types), t.Name())
}

// checkBounds refuses a lower bound above its upper bound: nothing would pass.
func checkBounds(rules []Rule) []errs.FieldError {
	arg := func(name string) any {
		for _, r := range rules {
			if r.Name == name {
				return r.Arg
			}
		}
		return nil
	}
	var problems []errs.FieldError
	for _, pair := range [][2]string{{"min", "max"}, {"minItems", "maxItems"}, {"gte", "lte"}} {
		if c, ok := compareValues(arg(pair[0]), arg(pair[1])); ok && c > 0 {
			problems = append(problems, problem(pair[0], pair[0]+" is above "+pair[1]+", so no value passes"))
		}
	}
	return problems
}

// parseTag splits "required,min=1,pattern=^a{1,3}$" into rules and their arguments.
func parseTag(tag string) bson.D {
	if strings.TrimSpace(tag) == "" {
		return nil
	}
	var members bson.D
	tokens := strings.Split(tag, ",")
	for i := 0; i < len(tokens); i++ {
		name, arg, _ := strings.Cut(strings.TrimSpace(tokens[i]), "=")
		if name == "pattern" {
			end := i + 1
			for end < len(tokens) && !allRules(tokens[end:]) {
				end++
			}
			arg = strings.Join(append([]string{arg}, tokens[i+1:end]...), ",")
			i = end - 1
		}
		members = append(members, bson.E{Key: name, Value: Untyped(arg)})
	}
	return members
}

// allRules says that every token begins with the name of a rule.
func allRules(tokens []string) bool {
	names := RuleNames()
	return !slices.ContainsFunc(tokens, func(token string) bool {
		name, _, _ := strings.Cut(strings.TrimSpace(token), "=")
		return !slices.Contains(names, name)
	})
}

// run judges the value v of f, which is of the right type and not null.
func (r *Rule) run(f *Field, v any, c *Check) {
	fail := func(v any) {
		if message := r.test(v, c); message != "" {
			c.Fail(r.Name, message)
		}
	}
	switch {
	case r.Name == "required":
		if empty(v) {
			c.Fail(r.Name, "is required and must not be empty")
		}
	case r.across != nil: // judged when the whole object is there
	case r.Name == "unique": // kept by a unique index
	case r.Name == "exists" || r.Name == "script":
		c.Deferred = append(c.Deferred, Deferred{Rule: *r, Field: f, Path: c.path(), Value: v})
	case r.test == nil: // not made by ParseRules: better refused than let through
		c.Fail(r.Name, "can't be judged by the rule "+r.Name)
	case r.perItem:
		each(v, c, fail)
	default:
		fail(v)
	}
}

// empty says that a value is there but holds nothing: "" or an empty list. 0 and false are values.
func empty(v any) bool {
	switch v := v.(type) {
	case string:
		return v == ""
	case bson.A:
		return len(v) == 0
	}
	return false
}

// nearest gives the name that is the fewest edits away from a mistyped one.
func nearest(name string, names []string) string {
	best, least := "", 0
	for _, candidate := range names {
		d := distance(strings.ToLower(name), strings.ToLower(candidate))
		if best == "" || d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance is the number of edits (insert, delete, replace a byte) between two names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
