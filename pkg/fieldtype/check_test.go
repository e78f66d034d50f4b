package fieldtype_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
)

var (
	noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	id   = bson.ObjectID{0x65, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
)

// typ gives a type that exists.
func typ(tb testing.TB, name string) fieldtype.Type {
	tb.Helper()
	ft, ok := fieldtype.ByName(name)
	if !ok {
		tb.Fatalf("no type %s", name)
	}
	return ft
}

// field makes a field with rules, which must be good ones.
func field(tb testing.TB, name, typeName string, rules any) *fieldtype.Field {
	tb.Helper()
	ft := typ(tb, typeName)
	parsed, problems := fieldtype.ParseRules(rules, ft)
	if len(problems) > 0 {
		tb.Fatalf("rules of %s: %v", name, problems)
	}
	return &fieldtype.Field{Name: name, Path: name, Type: ft, Rules: parsed}
}

func with(f *fieldtype.Field, change func(f *fieldtype.Field)) *fieldtype.Field {
	change(f)
	return f
}

// parse reads a JSON object as a body is read.
func parse(tb testing.TB, text string) bson.D {
	tb.Helper()
	doc, err := document.ParseJSON([]byte(text))
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return doc
}

// problems prints problems as "path rule: message".
func problems(list []errs.FieldError) []string {
	var out []string
	for _, p := range list {
		out = append(out, p.Path+" "+p.Rule+": "+p.Message)
	}
	return out
}

func TestParse(t *testing.T) {
	foreign := &fieldtype.Foreign{Collection: "authors"}
	byName := &fieldtype.Foreign{Collection: "authors", Key: "name"}
	date := bson.NewDateTimeFromTime(noon)
	tests := []struct {
		name    string
		typ     string
		foreign *fieldtype.Foreign
		in      any
		want    any
		problem string
	}{
		{name: "string", typ: "string", in: "5", want: "5"},
		{name: "string from a number", typ: "string", in: int64(5), problem: "f type: must be a string, is a number"},
		{name: "string from a boolean", typ: "string", in: true, problem: "f type: must be a string, is a boolean"},
		{name: "string from a list", typ: "string", in: bson.A{}, problem: "f type: must be a string, is a list"},
		{name: "string from an object", typ: "string", in: bson.D{}, problem: "f type: must be a string, is an object"},
		{name: "id", typ: "string", foreign: foreign, in: id.Hex(), want: id},
		{name: "id in upper case", typ: "string", foreign: foreign, in: strings.ToUpper(id.Hex()), want: id},
		{name: "stored id", typ: "string", foreign: foreign, in: id, want: id},
		{name: "bad id", typ: "string", foreign: foreign, in: "xyz", problem: "f type: must be an id: 24 hex digits"},
		{name: "number for an id", typ: "string", foreign: foreign, in: int64(1), problem: "f type: must be an id (24 hex digits), is a number"},
		{name: "foreign by another key", typ: "string", foreign: byName, in: id.Hex(), want: id.Hex()},
		{name: "strings", typ: "string[]", in: bson.A{"a", ""}, want: bson.A{"a", ""}},
		{name: "strings from a string", typ: "string[]", in: "a", problem: "f type: must be a list, is a string"},
		{name: "strings with a number", typ: "string[]", in: bson.A{"a", int64(1)}, problem: "f.1 type: must be a string, is a number"},
		{name: "strings with null", typ: "string[]", in: bson.A{nil}, problem: "f.0 type: must be a string, is null"},
		{name: "ids", typ: "string[]", foreign: foreign, in: bson.A{id.Hex(), id}, want: bson.A{id, id}},
		{name: "big integer", typ: "number", in: int64(1<<53 + 1), want: int64(1<<53 + 1)},
		{name: "stored int32", typ: "number", in: int32(7), want: int64(7)},
		{name: "float", typ: "number", in: 1.5, want: 1.5},
		{name: "number from a string", typ: "number", in: "5", problem: "f type: must be a number, is a string"},
		{name: "numbers", typ: "number[]", in: bson.A{int64(1), 2.5}, want: bson.A{int64(1), 2.5}},
		{name: "numbers with a string", typ: "number[]", in: bson.A{"1"}, problem: "f.0 type: must be a number, is a string"},
		{name: "boolean", typ: "boolean", in: false, want: false},
		{name: "boolean from a number", typ: "boolean", in: int64(0), problem: "f type: must be a boolean, is a number"},
		{name: "object", typ: "object", in: bson.D{{Key: "a", Value: nil}}, want: bson.D{{Key: "a", Value: nil}}},
		{name: "object from a list", typ: "object", in: bson.A{}, problem: "f type: must be an object, is a list"},
		{name: "objects", typ: "object[]", in: bson.A{bson.D{}}, want: bson.A{bson.D{}}},
		{name: "objects from an object", typ: "object[]", in: bson.D{}, problem: "f type: must be a list, is an object"},
		{name: "objects with a string", typ: "object[]", in: bson.A{"x"}, problem: "f.0 type: must be an object, is a string"},
		{name: "date", typ: "date", in: "2026-05-01T14:00:00+02:00", want: date},
		{name: "date alone", typ: "date", in: "2026-05-01", want: date - 12*3600*1000},
		{name: "stored date", typ: "date", in: date, want: date},
		{name: "time", typ: "date", in: noon, want: date},
		{name: "bad date", typ: "date", in: "yesterday", problem: "f type: must be a date in RFC 3339, such as 2006-01-02T15:04:05Z"},
		{name: "date from a number", typ: "date", in: int64(1), problem: "f type: must be a date in RFC 3339, is a number"},
		{name: "any", typ: "any", in: bson.A{int64(1), "x", nil}, want: bson.A{int64(1), "x", nil}},
		{
			name: "file", typ: "file",
			in:   bson.D{{Key: "src", Value: "data:,x"}, {Key: "path", Value: "x.txt"}, {Key: "credit", Value: true}},
			want: bson.D{{Key: "src", Value: "data:,x"}, {Key: "path", Value: "x.txt"}, {Key: "credit", Value: true}},
		},
		{name: "file from a string", typ: "file", in: "x.png", problem: "f type: must be a file: an object with src and path, is a string"},
		{name: "file without path", typ: "file", in: bson.D{{Key: "src", Value: "data:,x"}}, problem: "f.path required: is required"},
		{name: "file with a bad width", typ: "file[]", in: bson.A{bson.D{{Key: "src", Value: "x"}, {Key: "path", Value: "x"}, {Key: "width", Value: "1"}}}, problem: "f.0.width type: must be a number, is a string"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &fieldtype.Field{Name: "f", Type: typ(t, tt.typ), Foreign: tt.foreign}
			c := &fieldtype.Check{Now: noon}
			got := fieldtype.NewTree([]*fieldtype.Field{f}, true).Check(bson.D{{Key: "f", Value: tt.in}}, c)
			if tt.problem != "" {
				if diff := cmp.Diff([]string{tt.problem}, problems(c.Problems)); diff != "" {
					t.Errorf("problems (-want +got):\n%s", diff)
				}
				return
			}
			if len(c.Problems) > 0 {
				t.Fatalf("unexpected problems: %v", problems(c.Problems))
			}
			if diff := cmp.Diff(bson.D{{Key: "f", Value: tt.want}}, got); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAllTypesAreNamed(t *testing.T) {
	want := []string{"string", "string[]", "number", "number[]", "boolean", "object", "object[]", "file", "file[]", "date", "any"}
	if diff := cmp.Diff(want, fieldtype.Names()); diff != "" {
		t.Error(diff)
	}
	if _, ok := fieldtype.ByName("text"); ok {
		t.Error("there is no type text")
	}
}

// article is a tree with a bit of everything.
func article(tb testing.TB, strict bool) *fieldtype.Tree {
	tb.Helper()
	variants := fieldtype.NewTree([]*fieldtype.Field{
		field(tb, "sku", "string", "required,slug"),
		field(tb, "stock", "number", "min=0"),
	}, true)
	return fieldtype.NewTree([]*fieldtype.Field{
		field(tb, "title", "string", "required,min=3,max=20"),
		with(field(tb, "status", "string", nil), func(f *fieldtype.Field) {
			f.Default = "draft"
			f.Choices = []any{"draft", "published"}
		}),
		with(field(tb, "tags", "string[]", "maxItems=3,uniqueItems"), func(f *fieldtype.Field) { f.Choices = []any{"a", "b", "c"} }),
		with(field(tb, "colors", "string[]", nil), func(f *fieldtype.Field) { f.Choices = []any{"red"}; f.FreeSolo = true }),
		with(field(tb, "variants", "object[]", nil), func(f *fieldtype.Field) { f.Sub = variants }),
		with(field(tb, "author", "string", "exists"), func(f *fieldtype.Field) { f.Foreign = &fieldtype.Foreign{Collection: "authors"} }),
		field(tb, "publishedAt", "date", "before=now"),
		field(tb, "seo", "object", nil),
		with(field(tb, "settings", "object", nil), func(f *fieldtype.Field) {
			f.Default = map[string]any{"color": "red", "n": 1}
		}),
		field(tb, "cover", "file", nil),
		with(field(tb, "extra", "any", nil), func(f *fieldtype.Field) { f.Sub = variants }),
	}, strict)
}

func TestCheckReportsEverything(t *testing.T) {
	body := parse(t, `{"title": "ab", "status": "gone", "tags": ["a", "x", "b", "a"], "colors": ["any"], "variants":
		[{"sku": "ok", "stock": 1}, {"stock": -1, "shelf": 2}, 5], "author": "nobody", "publishedAt": "2026-05-02",
		"bogus": 1, "id": "1", "_rev": 4, "extra": [{"sku": "A B"}, 7]}`)
	c := &fieldtype.Check{Now: noon, Create: true}
	article(t, true).Check(body, c)
	want := []string{
		"id readonly: is set by the service and can't be given",
		"_rev readonly: is set by the service and can't be given",
		"title min: must have at least 3 characters, has 2",
		`status choices: must be one of "draft", "published"`,
		`tags.1 choices: must be one of "a", "b", "c"`,
		"tags maxItems: must have at most 3 items, has 4",
		"tags uniqueItems: items must differ: items 0 and 3 are the same",
		"variants.1.shelf unknown: unknown field",
		"variants.1.stock min: must be at least 0",
		"variants.1.sku required: is required",
		"variants.2 type: must be an object, is a number",
		"author type: must be an id: 24 hex digits",
		"publishedAt before: must be before now",
		"bogus unknown: unknown field",
		"extra.0.sku slug: must be a slug: lower-case letters, digits and single hyphens between them",
	}
	got := problems(c.Problems)
	if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func sorted(list []string) map[string]int {
	m := map[string]int{}
	for _, s := range list {
		m[s]++
	}
	return m
}

func TestCheckStoresGoodRecords(t *testing.T) {
	tree := article(t, true)
	body := parse(t, `{"title": "Über", "seo": null, "tags": ["b"], "author": "`+id.Hex()+`", "variants": [{"sku": "x", "stock": 3}]}`)
	before := parse(t, `{"title": "Über", "seo": null, "tags": ["b"], "author": "`+id.Hex()+`", "variants": [{"sku": "x", "stock": 3}]}`)
	want := bson.D{
		{Key: "title", Value: "Über"},
		{Key: "tags", Value: bson.A{"b"}},
		{Key: "author", Value: id},
		{Key: "variants", Value: bson.A{bson.D{{Key: "sku", Value: "x"}, {Key: "stock", Value: int64(3)}}}},
		{Key: "status", Value: "draft"},
		{Key: "settings", Value: bson.D{{Key: "color", Value: "red"}, {Key: "n", Value: int64(1)}}},
	}
	c := &fieldtype.Check{Now: noon, Create: true}
	got := tree.Check(body, c)
	if len(c.Problems) > 0 {
		t.Fatal(problems(c.Problems))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, body); diff != "" {
		t.Errorf("the body was changed (-want +got):\n%s", diff)
	}
	if len(c.Deferred) != 1 || c.Deferred[0].Rule.Name != "exists" || c.Deferred[0].Path != "author" || c.Deferred[0].Value != id {
		t.Errorf("deferred: %+v", c.Deferred)
	}

	again := &fieldtype.Check{Now: noon}
	if diff := cmp.Diff(want, tree.Check(got, again)); diff != "" || len(again.Problems) > 0 {
		t.Errorf("a stored record must pass as it is: %v\n%s", problems(again.Problems), diff)
	}
	if settings, ok := got[5].Value.(bson.D); ok {
		settings[0].Value = "blue"
	}
	fresh := tree.Check(body, &fieldtype.Check{Now: noon, Create: true})
	if diff := cmp.Diff(want, fresh); diff != "" {
		t.Errorf("a record shares its default with another (-want +got):\n%s", diff)
	}
}

func TestCheckDefaults(t *testing.T) {
	tests := []struct {
		name, body string
		create     bool
		want       bson.D
	}{
		{"create", `{}`, true, bson.D{{Key: "n", Value: int64(1)}}},
		{"update", `{}`, false, bson.D{}},
		{"null stays absent", `{"n": null}`, true, bson.D{}},
		{"given", `{"n": 2}`, true, bson.D{{Key: "n", Value: int64(2)}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := with(field(t, "n", "number", nil), func(f *fieldtype.Field) { f.Default = 1 })
			c := &fieldtype.Check{Now: noon, Create: tt.create}
			got := fieldtype.NewTree([]*fieldtype.Field{f}, true).Check(parse(t, tt.body), c)
			if diff := cmp.Diff(tt.want, got); diff != "" || len(c.Problems) > 0 {
				t.Errorf("%v\n%s", c.Problems, diff)
			}
		})
	}
}

func TestCheckUnknownNames(t *testing.T) {
	sub := func(strict bool) *fieldtype.Tree {
		return fieldtype.NewTree([]*fieldtype.Field{field(t, "a", "string", nil)}, strict)
	}
	object := func(strict, inner bool) []*fieldtype.Field {
		return []*fieldtype.Field{with(field(t, "o", "object", nil), func(f *fieldtype.Field) { f.Sub = sub(inner); f.Strict = strict })}
	}
	tests := []struct {
		name string
		tree *fieldtype.Tree
		body string
		want []string
	}{
		{"open", fieldtype.NewTree(object(false, false), false), `{"x": 1, "o": {"y": 1}}`, nil},
		{"strict top", fieldtype.NewTree(object(false, false), true), `{"x": 1, "o": {"y": 1}}`, []string{"x unknown: unknown field"}},
		{"strict inside", fieldtype.NewTree(object(false, true), false), `{"x": 1, "o": {"y": 1}}`, []string{"o.y unknown: unknown field"}},
		{"strict field", fieldtype.NewTree(object(true, false), false), `{"o": {"y": 1}}`, []string{"o.y unknown: unknown field"}},
		{"nothing declared", fieldtype.NewTree(nil, true), `{"x": 1}`, nil},
		{"dollar", fieldtype.NewTree(nil, false), `{"x": {"$y": 1}}`, []string{"x.$y name: a field name can't begin with $"}},
		{"prototype", fieldtype.NewTree(nil, false), `{"__proto__": 1}`, []string{"__proto__ name: the field name __proto__ is reserved; choose another"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &fieldtype.Check{Now: noon}
			tt.tree.Check(parse(t, tt.body), c)
			if diff := cmp.Diff(tt.want, problems(c.Problems)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCheckDepth(t *testing.T) {
	nest := func(levels int) bson.D { // levels objects, one in another
		doc := bson.D{}
		for range levels - 1 {
			doc = bson.D{{Key: "a", Value: doc}}
		}
		return doc
	}
	a := &fieldtype.Field{Name: "a", Type: typ(t, "object")}
	for range document.MaxDepth {
		a = &fieldtype.Field{Name: "a", Type: typ(t, "object"), Sub: fieldtype.NewTree([]*fieldtype.Field{a}, true)}
	}
	trees := map[string]*fieldtype.Tree{
		"undeclared": fieldtype.NewTree(nil, false),
		"any":        fieldtype.NewTree([]*fieldtype.Field{field(t, "a", "any", nil)}, false),
		"object":     fieldtype.NewTree([]*fieldtype.Field{field(t, "a", "object", nil)}, false),
		"declared":   fieldtype.NewTree([]*fieldtype.Field{a}, true),
	}
	for name, tree := range trees {
		t.Run(name, func(t *testing.T) {
			c := &fieldtype.Check{}
			tree.Check(nest(document.MaxDepth), c)
			if len(c.Problems) > 0 {
				t.Errorf("%d levels: %v", document.MaxDepth, problems(c.Problems))
			}
			c = &fieldtype.Check{}
			tree.Check(nest(document.MaxDepth+1), c)
			if len(c.Problems) != 1 || c.Problems[0].Rule != "depth" {
				t.Errorf("%d levels: %v", document.MaxDepth+1, problems(c.Problems))
			}
		})
	}
}

func TestSplitSystem(t *testing.T) {
	doc := bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: 2}, {Key: "_rev", Value: 3}, {Key: "b", Value: 4}}
	system, own := fieldtype.SplitSystem(doc)
	if diff := cmp.Diff(bson.D{{Key: "_id", Value: 1}, {Key: "_rev", Value: 3}}, system); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(bson.D{{Key: "a", Value: 2}, {Key: "b", Value: 4}}, own); diff != "" {
		t.Error(diff)
	}
	if system, own := fieldtype.SplitSystem(own); system != nil || len(own) != 2 {
		t.Error(system, own)
	}
}

func TestCheckConfig(t *testing.T) {
	sub := fieldtype.NewTree(nil, false)
	foreign := &fieldtype.Foreign{Collection: "authors"}
	tests := []struct {
		name  string
		field *fieldtype.Field
		want  []string
	}{
		{"good", with(field(t, "f", "date", "after=2020-01-01"), func(f *fieldtype.Field) { f.Default = "2026-01-01" }), nil},
		{"file", field(t, "f", "file", nil), nil},
		{"default of another type", with(field(t, "f", "number", nil), func(f *fieldtype.Field) { f.Default = "x" }), []string{"meta.defaultValue config: must be a number, is a string"}},
		{"default against a rule", with(field(t, "f", "number", "min=3"), func(f *fieldtype.Field) { f.Default = 2 }), []string{"meta.defaultValue config: must be at least 3"}},
		{"default that is no choice", with(field(t, "f", "string", nil), func(f *fieldtype.Field) { f.Default = "x"; f.Choices = []any{"y"} }), []string{`meta.defaultValue config: must be one of "y"`}},
		{"choice of another type", with(field(t, "f", "number[]", nil), func(f *fieldtype.Field) { f.Choices = []any{1, "2"} }), []string{"meta.choices config: must be a number, is a string"}},
		{"subFields", with(field(t, "f", "string", nil), func(f *fieldtype.Field) { f.Sub = sub }), []string{"subFields config: a field of type string has no subFields; only object, object[] and any have"}},
		{"foreign", with(field(t, "f", "date", nil), func(f *fieldtype.Field) { f.Foreign = foreign }), []string{"meta.foreign config: a field of type date can't refer to records; use string, string[], number, number[] or any"}},
		{"exists", field(t, "f", "string", "exists"), []string{"validator.exists config: exists needs meta.foreign, which says where the record must exist"}},
		{"text rule on ids", with(field(t, "f", "string[]", "slug,min=1"), func(f *fieldtype.Field) { f.Foreign = foreign }), []string{"validator.slug config: slug does not apply to a field that holds ids"}},
		{"number for an id", with(field(t, "f", "number", nil), func(f *fieldtype.Field) { f.Foreign = foreign }), []string{"meta.foreign config: ids are stored in fields of type string and string[]; use one of them, or give foreign another key"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, problems(tt.field.CheckConfig())); diff != "" {
				t.Error(diff)
			}
		})
	}
	tree := fieldtype.NewTree([]*fieldtype.Field{field(t, "f", "file", nil)}, false)
	if got := tree.Fields()[0].CheckConfig(); got != nil {
		t.Errorf("a field in a tree: %v", got)
	}
}

func BenchmarkCheck(b *testing.B) {
	tree := article(b, true)
	body := parse(b, `{"title": "A title", "status": "draft", "tags": ["b"], "author": "`+id.Hex()+`", "variants": [{"sku": "x", "stock": 3}]}`)
	b.ReportAllocs()
	for b.Loop() {
		c := fieldtype.Check{Now: noon}
		tree.Check(body, &c)
	}
}
