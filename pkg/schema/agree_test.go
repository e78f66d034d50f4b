package schema_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/svcctl/svc/pkg/schema"
)

var (
	agreeSeed  = flag.Uint64("agree.seed", 1, "the first seed of the configs that TestAgree makes")
	agreeCount = flag.Int("agree.count", 2000, "how many configs TestAgree makes")
)

// TestAgree makes configs from the JSON Schema, spoils most of them in a few places, and asks the loader and the JSON Schema
// about each: an editor that follows the schema may neither mark what the service takes, nor be silent about what it refuses for
// its structure. What only the loader can know (names that are taken, files, schedules, …) is no part of that.
func TestAgree(t *testing.T) {
	t.Parallel()
	data, err := schema.JSONSchema("project")
	if err != nil {
		t.Fatal(err)
	}
	root := parseJSON(t, string(data)).(map[string]any)
	compiled := compileSchema(t, "project")
	accepted, refused := 0, 0
	for i := range uint64(*agreeCount) {
		seed := *agreeSeed + i
		g := &configs{Rand: rand.New(rand.NewPCG(seed, 0)), root: root}
		config := g.value(root, 0)
		for range g.IntN(3) {
			config = g.spoil(config)
		}
		a := ask(t, compiled, config)
		if a.schema == nil {
			accepted++
		} else {
			refused++
		}
		if a.differ() {
			small := shrink(config, func(c any) bool { return ask(t, compiled, c).differ() })
			a := ask(t, compiled, small)
			text, _ := json.Marshal(small) //nolint:errchkjson // it was made of JSON
			t.Errorf("-agree.seed %d: %s\nthe loader says %v\nthe JSON Schema says %v", seed, text, a.problems, a.schema)
		}
	}
	if least := *agreeCount / 10; accepted < least || refused < least {
		t.Errorf("%d configs were accepted and %d refused: that shows little", accepted, refused)
	}
}

// answers are what the loader and the JSON Schema say about a config.
type answers struct {
	problems schema.Problems
	schema   error
	plain    error // what the JSON Schema says when values stand in the place of variables
}

func ask(t *testing.T, compiled *jsonschema.Schema, config any) answers {
	t.Helper()
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	_, problems := schema.LoadProject(files{"project.json": string(data)}, "project.json", wordOf, nil)
	plain := substituted.ReplaceAllStringFunc(string(data), func(s string) string {
		word, _ := wordOf(s[len("${env:") : len(s)-1])
		return word
	})
	return answers{problems, compiled.Validate(parseJSON(t, string(data))), compiled.Validate(parseJSON(t, plain))}
}

var substituted = regexp.MustCompile(`\$\{env:W[0-9]+\}`)

// differ says that the schema refuses what the loader takes, or the other way round. What a variable holds is not known to it.
func (a answers) differ() bool {
	if a.schema != nil || a.plain != nil {
		return !a.problems.Err()
	}
	return slices.ContainsFunc(a.problems, func(p schema.Problem) bool {
		return !p.Warning && slices.Contains(structural, p.Code) && !loaderOnly.MatchString(p.Message)
	})
}

// loaderOnly are messages of what no form of a text can say: the range of hours and days of a schedule, a name that follows from
// another member.
var loaderOnly = regexp.MustCompile("^not a schedule: |^the schedule never|^an interval is between|is not an interval|^the job has no name, ")

// configs makes configs from a JSON Schema.
type configs struct {
	*rand.Rand

	root map[string]any
}

// words are strings that something or other in a config takes, or nothing does.
var words = []string{
	"", "a", "b", "title", "a.b", "author.name", "-createdAt", "--a", "$where", "a b", "Blog", "blog", "by_title", "de", "de-AT", "x_Y", "0",
	"a.js", "hooks/a.js", "/etc/a", "uploads/a", "required,min=3", "required,nonsense", "5m", "90d", "1y2m", "1h30m", "25MB", "10 KiB", "lots",
	"image/*", "image/png", "https://example.com", "*", "https://*.example.com", "example.com", "*.example.com:443", "0 3 * * *", "@daily",
	"2027-01-31T00:00:00Z", "tomorrow", "true", "team:eds", "token:abcdef-abcdef-abcdef", "token:", "X-Auth-Token:x", "GET", "get", "string", "bogus", "ß",
	strings.Repeat("a1", 32), strings.Repeat("x", 300),
}

// wordOf gives a word as the environment variable of its number, such as W0.
func wordOf(name string) (string, bool) {
	number, ok := strings.CutPrefix(name, "W")
	i, err := strconv.Atoi(number)
	if !ok || err != nil || i >= len(words) {
		return "", false
	}
	return words[i], true
}

func pick[T any](g *configs, of []T) T { return of[g.IntN(len(of))] }

// value makes one that a schema takes, as far as it is easily done.
func (g *configs) value(s map[string]any, depth int) any {
	if ref, ok := s["$ref"].(string); ok {
		v := g.value(g.root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any), depth)
		if one, ok := s["oneOf"].([]any); ok { // of which one member is to be there
			o := v.(map[string]any)
			for _, option := range one {
				delete(o, option.(map[string]any)["required"].([]any)[0].(string))
			}
			o[pick(g, one).(map[string]any)["required"].([]any)[0].(string)] = strings.Repeat("a1", 32)
		}
		return v
	}
	if options, ok := s["anyOf"].([]any); ok {
		if last, _ := options[len(options)-1].(map[string]any); strings.HasPrefix(fmt.Sprint(last["pattern"]), `\$`) { // spoil does that
			options = options[:len(options)-1]
		}
		first := options[0].(map[string]any)
		if pattern, _ := first["pattern"].(string); strings.Contains(pattern, "yaml") { // a reference: there is no other file
			options = options[1:]
		}
		return g.value(pick(g, options).(map[string]any), depth)
	}
	if v, ok := s["const"]; ok {
		return v
	}
	if enum, ok := s["enum"].([]any); ok {
		return pick(g, enum)
	}
	switch s["type"] {
	case "string":
		return g.word(s)
	case "boolean":
		return g.IntN(2) == 0
	case "null":
		return nil
	case "integer", "number":
		low, ok := s["minimum"].(float64)
		if !ok {
			low = -3
		}
		high, ok := s["maximum"].(float64)
		if !ok {
			high = low + 1000
		}
		return pick(g, []float64{low, high, low + 1})
	case "array":
		list := []any{}
		least, _ := s["minItems"].(float64)
		items, _ := s["items"].(map[string]any)
		for range int(least) + g.IntN(max(1, 3-depth/4)) {
			list = append(list, g.value(items, depth+1))
		}
		return list
	case "object":
		return g.object(s, depth)
	}
	return pick(g, []any{"x", 1.0, true, nil, []any{}, map[string]any{"x": 1.0}}) // anything
}

func (g *configs) word(s map[string]any) any {
	pattern, _ := s["pattern"].(string)
	expr := regexp.MustCompile(pattern)
	var fits []string
	least, _ := s["minLength"].(float64)
	for _, w := range words {
		if expr.MatchString(w) && len(w) >= int(least) {
			fits = append(fits, w)
		}
	}
	if len(fits) == 0 {
		return "x"
	}
	return pick(g, fits)
}

func (g *configs) object(s map[string]any, depth int) any {
	o := map[string]any{}
	required, _ := s["required"].([]any)
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if name != "$schema" && (slices.Contains(required, any(name)) || g.IntN(4+3*depth) == 0) {
			o[name] = g.value(properties[name].(map[string]any), depth+1)
		}
	}
	if rest, ok := s["additionalProperties"].(map[string]any); ok {
		names := map[string]any{}
		if all, ok := s["propertyNames"].(map[string]any); ok {
			names = all
			if options, ok := all["anyOf"].([]any); ok {
				names = options[0].(map[string]any)
			}
		}
		for range g.IntN(3) {
			o[g.word(names).(string)] = g.value(rest, depth+1)
		}
	}
	patterns, _ := s["patternProperties"].(map[string]any)
	for _, pattern := range slices.Sorted(maps.Keys(patterns)) {
		if g.IntN(4) == 0 {
			o[g.word(map[string]any{"pattern": pattern}).(string)] = g.value(patterns[pattern].(map[string]any), depth+1)
		}
	}
	return o
}

// spoil changes a config in one place, which may leave it valid.
func (g *configs) spoil(config any) any {
	odd := []any{
		nil, true, false, 0.0, -1.0, 1.5, 1e10, 1e300,
		[]any{},
		[]any{1.0},
		[]any{"a"},
		[]any{map[string]any{}},
		map[string]any{},
		map[string]any{"bogus": 1.0},
		map[string]any{"$schema": "x"},
	}
	for _, w := range words {
		odd = append(odd, w)
	}
	all := places(config)
	at := pick(g, all)
	if i := slices.IndexFunc(words, func(w string) bool { return any(w) == at.value }); i >= 0 && g.IntN(2) == 0 {
		return at.set(fmt.Sprintf("${env:W%d}", i)) // the same text from elsewhere
	}
	switch o := at.value.(type) {
	case map[string]any:
		switch g.IntN(3) {
		case 0:
			o[pick(g, append(words, "$schema", "name", "type", "methods", "public"))] = pick(g, odd)
			return config
		case 1:
			if len(o) > 0 {
				delete(o, pick(g, slices.Sorted(maps.Keys(o))))
				return config
			}
		}
	case []any:
		if g.IntN(2) == 0 {
			return at.set(append(o, pick(g, odd)))
		}
	}
	return at.set(pick(g, odd))
}

// place is a value in a config, and how another one is put there; that gives the config.
type place struct {
	value any
	set   func(any) any
	drop  func() any // leaves it out; nil at the top
}

// places lists all values of a config.
func places(config any) []place {
	var out []place
	var walk func(p place)
	walk = func(p place) {
		out = append(out, p)
		switch v := p.value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(place{v[key], func(x any) any { v[key] = x; return config }, func() any { delete(v, key); return config }})
			}
		case []any:
			for i := range v {
				walk(place{v[i], func(x any) any { v[i] = x; return config }, func() any { return p.set(slices.Delete(slices.Clone(v), i, i+1)) }})
			}
		}
	}
	walk(place{value: config, set: func(x any) any { return x }})
	return out
}

// shrink leaves out of a config what it can while the rest is still interesting.
func shrink(config any, interesting func(any) bool) any {
	for again := true; again; {
		again = false
		for i := 1; i < len(places(config)); i++ {
			smaller := copied(config)
			if smaller = places(smaller)[i].drop(); interesting(smaller) {
				config, again = smaller, true
				i--
			}
		}
	}
	return config
}

func copied(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			out[key] = copied(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = copied(v[i])
		}
		return out
	}
	return v
}
