package fieldtype_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/fieldtype"
)

// TestRules judges values by each rule: those in pass give no problem, those in fail the message, once.
func TestRules(t *testing.T) {
	date := func(s string) any { return s }
	tests := []struct {
		typ, rule string
		pass      []any
		fail      []any
		message   string
	}{
		{"string", "required", []any{"x", " "}, []any{""}, "is required and must not be empty"},
		{"string[]", "required", []any{bson.A{""}}, []any{bson.A{}}, "is required and must not be empty"},
		{"number", "required", []any{int64(0)}, nil, ""},
		{"boolean", "required", []any{false}, nil, ""},
		{"string", "min=2", []any{"ab", "üü"}, []any{"ü"}, "must have at least 2 characters, has 1"},
		{"string", "max=2", []any{"", "日本"}, []any{"日本語"}, "must have at most 2 characters, has 3"},
		{"string", "len=2", []any{"日本"}, []any{"a"}, "must have exactly 2 characters, has 1"},
		{"number", "min=2", []any{int64(2), 2.0, 2.5}, []any{int64(1), 1.999}, "must be at least 2"},
		{"number", "max=-1.5", []any{int64(-2), -1.5}, []any{int64(-1), 0.0}, "must be at most -1.5"},
		{"number", "max=9007199254740992", []any{int64(9007199254740992)}, []any{int64(9007199254740993)}, "must be at most 9007199254740992"},
		{"number", "max=1e300", []any{int64(1<<63 - 1)}, []any{1e301}, "must be at most 1e+300"},
		{"number", "min=-1e300", []any{int64(-1 << 63)}, []any{-1e301}, "must be at least -1e+300"},
		{"string[]", "min=1", []any{bson.A{""}}, []any{bson.A{}}, "must have at least 1 items, has 0"},
		{"object[]", "max=1", []any{bson.A{bson.D{}}}, []any{bson.A{bson.D{}, bson.D{}}}, "must have at most 1 items, has 2"},
		{"number[]", "len=2", []any{bson.A{int64(1), int64(1)}}, []any{bson.A{}}, "must have exactly 2 items, has 0"},
		{"string", `pattern=^a{1,3}$`, []any{"aa"}, []any{"", "aaaa"}, "must match the pattern ^a{1,3}$"},
		{"string", `pattern=b`, []any{"abc"}, []any{"ac"}, "must match the pattern b"},
		{"string", "email", []any{"a@b.example", "first.last+tag@b"}, []any{"a", "a@", "@b", "a b@c.example", "A <a@b.example>", "a@b..example", strings.Repeat("a", 250) + "@b.example"}, "must be an e-mail address, such as name@example.com"},
		{"string", "url", []any{"https://a.example/x?y#z", "HTTP://a.example"}, []any{"a.example", "/x", "https://", "javascript://x/%0aalert(1)", "data:text/html,x", "https://[", ""}, "must be an absolute URL, such as https://example.com/page"},
		{"string", "uuid", []any{"123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-426614174000"}, []any{"123e4567e89b12d3a456426614174000", "123e4567-e89b-12d3-a456-42661417400g"}, "must be a UUID, such as 123e4567-e89b-12d3-a456-426614174000"},
		{"string", "slug", []any{"a", "a-1-b"}, []any{"", "A", "-a", "a--b", "a-", "a b", "ü"}, "must be a slug: lower-case letters, digits and single hyphens between them"},
		{"string", "oneof=a b", []any{"a", "b"}, []any{"c", "a b", ""}, `must be one of "a", "b"`},
		{"number", "oneof=1 2.5", []any{int64(1), 1.0, 2.5}, []any{int64(2)}, "must be one of 1, 2.5"},
		{"number", "gt=1", []any{1.1, int64(2)}, []any{int64(1), 1.0}, "must be greater than 1"},
		{"number", "gte=1", []any{int64(1)}, []any{0.9}, "must be at least 1"},
		{"number", "lt=1", []any{0.9}, []any{int64(1)}, "must be less than 1"},
		{"number", "lte=1", []any{int64(1)}, []any{1.1}, "must be at most 1"},
		{"date", "gte=2026-01-01", []any{date("2026-01-01")}, []any{date("2025-12-31")}, "must be at least 2026-01-01T00:00:00Z"},
		{"date", "lt=now", []any{date("2026-05-01T11:59:59Z")}, []any{date("2026-05-01T12:00:00Z")}, "must be less than now"},
		{"date", "before=2026-01-01T00:00:00Z", []any{date("2025-12-31")}, []any{date("2026-01-01")}, "must be before 2026-01-01T00:00:00Z"},
		{"date", "after=now", []any{date("2026-05-01T12:00:00.001Z")}, []any{date("2026-05-01T12:00:00Z")}, "must be after now"},
		{"string[]", "minItems=1", []any{bson.A{"a"}}, []any{bson.A{}}, "must have at least 1 items, has 0"},
		{"file[]", "maxItems=0", []any{bson.A{}}, []any{bson.A{bson.D{{Key: "src", Value: "x"}, {Key: "path", Value: "y"}}}}, "must have at most 0 items, has 1"},
		{"number[]", "uniqueItems", []any{bson.A{int64(1), int64(2)}, bson.A{}}, []any{bson.A{int64(1), 1.0}}, "items must differ: items 0 and 1 are the same"},
		{"object[]", "uniqueItems", []any{bson.A{bson.D{}, bson.D{{Key: "a", Value: nil}}}}, []any{bson.A{bson.D{{Key: "a", Value: "x"}}, bson.D{{Key: "a", Value: "x"}}}}, "items must differ: items 0 and 1 are the same"},
		{"boolean", "eq=true", []any{true}, []any{false}, "must be true"},
		{"number", "eq=1", []any{int64(1), 1.0}, []any{int64(2)}, "must be 1"},
		{"date", "eq=2026-01-01", []any{date("2026-01-01T01:00:00+01:00")}, []any{date("2026-01-02")}, "must be 2026-01-01T00:00:00Z"},
		{"string", "ne=admin", []any{"x", ""}, []any{"admin"}, `must not be "admin"`},
		{"string", "startsWith=/", []any{"/x"}, []any{"x", ""}, `must start with "/"`},
		{"string", "endsWith=.js", []any{".js"}, []any{"js"}, `must end with ".js"`},
		{"any", "min=2", []any{int64(2), "ab", bson.A{1, 2}}, []any{int64(1)}, "must be at least 2"},
		{"any", "min=2", nil, []any{true}, "must be a number, a string or a list, is a boolean"},
		{"any", "len=1", []any{"a"}, []any{int64(1)}, "must be a string or a list, is a number"},
		{"any", "minItems=1", []any{bson.A{""}}, []any{"a"}, "must be a list, is a string"},
		{"any", "uniqueItems", []any{bson.A{"a"}}, []any{"a"}, "must be a list, is a string"},
		{"any", "email", []any{"a@b.example"}, []any{int64(1), bson.D{}}, "must be an e-mail address, such as name@example.com"},
		{"any", "gt=1", []any{int64(2)}, []any{int64(1), "2"}, "must be greater than 1"},
		{"any", "eq=1", []any{int64(1)}, []any{"1"}, "must be 1"},
		{"number", "unique", []any{int64(1)}, nil, ""},
		{"any", "script=check.js", []any{int64(1)}, nil, ""},
	}
	seen := map[string]bool{}
	for _, tt := range tests {
		name, _, _ := strings.Cut(tt.rule, "=")
		seen[name] = true
		t.Run(tt.typ+" "+tt.rule, func(t *testing.T) {
			tree := fieldtype.NewTree([]*fieldtype.Field{field(t, "f", tt.typ, tt.rule)}, true)
			for _, v := range tt.pass {
				c := &fieldtype.Check{Now: noon}
				tree.Check(bson.D{{Key: "f", Value: v}}, c)
				if len(c.Problems) > 0 {
					t.Errorf("%v must pass: %v", v, problems(c.Problems))
				}
			}
			for _, v := range tt.fail {
				c := &fieldtype.Check{Now: noon}
				tree.Check(bson.D{{Key: "f", Value: v}}, c)
				want := []string{"f " + name + ": " + tt.message}
				if diff := cmp.Diff(want, problems(c.Problems)); diff != "" {
					t.Errorf("%v must fail (-want +got):\n%s", v, diff)
				}
			}
		})
	}
	seen["exists"] = true // TestCheckStoresGoodRecords
	for _, name := range fieldtype.RuleNames() {
		if !seen[name] {
			t.Errorf("no test of the rule %s", name)
		}
	}
}

func TestRulesJudgeItems(t *testing.T) {
	tree := fieldtype.NewTree([]*fieldtype.Field{field(t, "f", "string[]", "slug,required"), field(t, "g", "number[]", "gt=0")}, true)
	c := &fieldtype.Check{}
	tree.Check(parse(t, `{"f": ["a", "B", "c d"], "g": [1, 0]}`), c)
	var got []string
	for _, p := range c.Problems {
		got = append(got, p.Path+" "+p.Rule)
	}
	if diff := cmp.Diff([]string{"f.1 slug", "f.2 slug", "g.1 gt"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestRuleNotFromParseRulesFails(t *testing.T) {
	f := field(t, "f", "string", nil)
	f.Rules = []fieldtype.Rule{{Name: "email"}}
	c := &fieldtype.Check{}
	fieldtype.NewTree([]*fieldtype.Field{f}, true).Check(bson.D{{Key: "f", Value: "x"}}, c)
	if len(c.Problems) != 1 {
		t.Error("a rule without its test let a value through")
	}
}

func TestParseRules(t *testing.T) {
	tests := []struct {
		name string
		typ  string
		in   any
		want string // rules as name=argument
		err  []string
	}{
		{"nothing", "string", nil, "", nil},
		{"empty tag", "string", "", "", nil},
		{"tag", "string", "required, min=1,max=100", "required=true min=1 max=100", nil},
		{"object", "string", bson.D{{Key: "min", Value: int64(1)}, {Key: "max", Value: 100.0}}, "min=1", []string{"max validator: max takes a whole number from 0 up, not 100"}},
		{"map", "number", map[string]any{"max": 3, "min": uint64(1)}, "max=3 min=1", nil},
		{"flag off", "string", bson.D{{Key: "required", Value: false}, {Key: "email", Value: true}}, "email=true", nil},
		{"flag off in a tag", "string", "required=false,slug=true", "slug=true", nil},
		{"pattern last", "string", `required,pattern=^a{1,3},[b,c]$`, "required=true pattern=^a{1,3},[b,c]$", nil},
		{"pattern between", "string", `pattern=^[a,b]$,max=3`, "pattern=^[a,b]$ max=3", nil},
		{"oneof", "number", bson.D{{Key: "oneof", Value: bson.A{int64(1), int64(2)}}}, "oneof=[1 2]", nil},
		{"script", "any", "script=rules/check.js", "script=rules/check.js", nil},
		{"no type", "", "min=1", "min=1", nil},
		{"unknown", "string", "requierd", "", []string{`requierd validator: unknown rule "requierd"; the nearest is "required"`}},
		{"unknown case", "string", bson.D{{Key: "MinItems", Value: int64(1)}}, "", []string{`MinItems validator: unknown rule "MinItems"; the nearest is "minItems"`}},
		{"empty token", "string", "required,", "required=true", []string{" validator: a rule has no name; write rules like required,min=1"}},
		{"all problems", "number", "email,min=x,foo", "", []string{
			"email validator: email does not apply to a field of type number; it applies to string, string[], any",
			`min validator: min takes a number, not "x"`,
			`foo validator: unknown rule "foo"; the nearest is "min"`,
		}},
		{"twice", "string", "min=1,min=2", "min=1", []string{"min validator: min is given twice"}},
		{"min above max", "string", "min=3,max=2", "min=3 max=2", []string{"min validator: min is above max, so no value passes"}},
		{"number", "string", int64(3), "", []string{" validator: must be an object of rules or a string such as required,min=1, is a number"}},
		{"flag of another type", "string", bson.D{{Key: "required", Value: "yes"}}, "", []string{`required validator: required takes true or false, not "yes"`}},
		{"flag with a list", "string", bson.D{{Key: "required", Value: bson.A{true}}}, "", []string{`required validator: required takes true or false, not a list`}},
		{"negative length", "string", "min=-1", "", []string{`min validator: min takes a whole number from 0 up, not "-1"`}},
		{"length as text", "string", bson.D{{Key: "len", Value: "3"}}, "", []string{`len validator: len takes a number, not "3"`}},
		{"bad pattern", "string", "pattern=(", "", []string{"pattern validator: pattern is no regular expression in RE2 syntax: error parsing regexp: missing closing ): `(`"}},
		{"empty pattern", "string", "pattern=", "", []string{"pattern validator: pattern takes a string that is not empty"}},
		{"prefix of another type", "string", bson.D{{Key: "startsWith", Value: int64(1)}}, "", []string{"startsWith validator: startsWith takes a string, not 1"}},
		{"bad date", "date", "before=later", "", []string{`before validator: before takes "now" or a date in RFC 3339, not "later"`}},
		{"min of a date", "date", "min=1", "", []string{"min validator: min does not apply to a field of type date; it applies to string, number, string[], number[], object[], file[], any"}},
		{"eq of another type", "number", bson.D{{Key: "eq", Value: "1"}}, "", []string{"eq validator: eq takes what the field takes: must be a number, is a string"}},
		{"eq now", "date", "eq=now", "", []string{`eq validator: eq takes what the field takes: must be a date in RFC 3339, such as 2006-01-02T15:04:05Z, is "now"`}},
		{"oneof of another type", "number", "oneof=1 x", "", []string{`oneof validator: oneof takes what the field takes: must be a number, is "x"`}},
		{"oneof of nothing", "string", bson.D{{Key: "oneof", Value: bson.A{}}}, "", []string{"oneof validator: oneof takes at least one value"}},
		{"script off", "string", bson.D{{Key: "script", Value: false}}, "", []string{"script validator: script takes a string, not false"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ft, _ := fieldtype.ByName(tt.typ)
			rules, probs := fieldtype.ParseRules(tt.in, ft)
			if diff := cmp.Diff(tt.want, printRules(rules)); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.err, problems(probs)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func printRules(rules []fieldtype.Rule) string {
	var out []string
	for _, r := range rules {
		out = append(out, r.Name+"="+fmt.Sprint(r.Arg))
	}
	return strings.Join(out, " ")
}

// FuzzParseRules holds that a tag either gives rules or problems, that rules are known, and that they can judge values.
func FuzzParseRules(f *testing.F) {
	for _, tag := range []string{"required,min=1", "pattern=^a,b$", "oneof=a b", "before=now", ",,", "min=1e999", "len=-0"} {
		for i := range fieldtype.All() {
			f.Add(tag, uint8(i), "text")
		}
	}
	f.Fuzz(func(t *testing.T, tag string, pick uint8, text string) {
		types := fieldtype.All()
		ft := types[int(pick)%len(types)]
		rules, probs := fieldtype.ParseRules(tag, ft)
		known := map[string]bool{}
		for _, name := range fieldtype.RuleNames() {
			known[name] = true
		}
		for _, r := range rules {
			if !known[r.Name] || r.Arg == nil {
				t.Errorf("%q gives %v", tag, r)
			}
		}
		if len(rules) == 0 && len(probs) == 0 && strings.TrimSpace(tag) != "" && !strings.Contains(tag, "=false") {
			t.Errorf("%q gives nothing", tag)
		}
		tree := fieldtype.NewTree([]*fieldtype.Field{{Name: "f", Type: ft, Rules: rules}}, true)
		for _, v := range []any{text, int64(len(text)), 0.5, true, nil, bson.A{text, text}, bson.A{bson.D{}}, bson.D{{Key: text, Value: text}}, id} {
			tree.Check(bson.D{{Key: "f", Value: v}}, &fieldtype.Check{Now: noon, Create: true})
		}
	})
}
