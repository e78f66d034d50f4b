package query_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/query"
)

var update = flag.Bool("update", false, "write the golden files")

// field declares a field by name and type, with what is inside it.
func field(t testing.TB, name, typeName string, sub ...*fieldtype.Field) *fieldtype.Field {
	t.Helper()
	ft, ok := fieldtype.ByName(typeName)
	if !ok {
		t.Fatal(typeName)
	}
	f := &fieldtype.Field{Name: name, Path: name, Type: ft}
	if sub != nil {
		f.Sub = fieldtype.NewTree(sub, false)
	}
	return f
}

func filterOf(t testing.TB, text string) *mql.Filter {
	t.Helper()
	d, err := document.ParseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return mql.MustCompile(d)
}

// sources are the collections of the golden test:
//
//   - items hides secret, seo.score and parts.cost, and shows what is on
//   - people hides mail, and shows what is active
//   - plain hides nothing
//   - strict leaves out what is not declared
//   - anything declares nothing, and hides k
//   - spoken has translations, and hides secret and seo.score in every language; written is the same with nothing but what is declared
//   - closed may not be read
func sources(t testing.TB) map[string]query.Source {
	t.Helper()
	limits := query.DefaultLimits()
	limits.MaxLookups, limits.MaxLookupDepth, limits.MaxInValues = 3, 2, 3
	author := field(t, "author", "string")
	author.Foreign = &fieldtype.Foreign{Collection: "people"}
	tree := fieldtype.NewTree([]*fieldtype.Field{
		field(t, "n", "number"), field(t, "name", "string"), field(t, "on", "boolean"), field(t, "at", "date"), field(t, "tags", "string[]"), author,
		field(t, "secret", "string"), field(t, "seo", "object", field(t, "title", "string"), field(t, "score", "number")),
		field(t, "parts", "object[]", field(t, "sku", "string"), field(t, "cost", "number")), field(t, "data", "any"),
	}, false)
	people := fieldtype.NewTree([]*fieldtype.Field{
		field(t, "name", "string"), field(t, "mail", "string"), field(t, "active", "boolean"), field(t, "boss", "string"),
	}, false)
	strict := fieldtype.NewTree([]*fieldtype.Field{
		field(t, "title", "string"), field(t, "own", "string"), field(t, "data", "any", field(t, "x", "number")),
	}, true)
	strict.Fields()[2].Strict = true
	translate := func(strict bool) *fieldtype.Tree {
		fields := []*fieldtype.Field{
			field(t, "title", "string"), field(t, "secret", "string"), field(t, "seo", "object", field(t, "title", "string"), field(t, "score", "number")),
		}
		for _, f := range fields {
			f.Translated = true
		}
		return fieldtype.NewTranslatedTree(fields, strict, fieldtype.Languages{Default: "en", Others: []string{"de", "fr"}})
	}
	translated := func(tree *fieldtype.Tree) query.Source {
		hidden := document.NewPathSet(tree.WithTranslations([]string{"secret", "seo.score"})...)
		return query.Source{Paths: query.Resolver{Tree: tree, Hidden: tree.Undeclared().Union(hidden), Limits: limits}, Undeclared: tree.Undeclared()}
	}
	offLimits := limits
	offLimits.Regex = "off"
	return map[string]query.Source{
		"items": {
			Paths:  query.Resolver{Tree: tree, Hidden: document.NewPathSet("secret", "seo.score", "parts.cost"), Limits: limits},
			Filter: filterOf(t, `{"on": true}`),
		},
		"people": {
			Paths:  query.Resolver{Tree: people, Hidden: document.NewPathSet("mail"), Limits: limits},
			Filter: filterOf(t, `{"active": true, "name": {"$regex": "(?m)^[a-z]"}}`),
		},
		"plain": {Paths: query.Resolver{Tree: people, Limits: limits}},
		"strict": {
			Paths:      query.Resolver{Tree: strict, Hidden: strict.Undeclared().Union(document.NewPathSet("own")), Limits: offLimits},
			Undeclared: strict.Undeclared(),
		},
		"spoken":   translated(translate(false)),
		"written":  translated(translate(true)),
		"anything": {Paths: query.Resolver{Tree: fieldtype.NewTree(nil, false), Hidden: document.NewPathSet("k"), Limits: limits}},
	}
}

// guarded is what runs of a caller's pipeline on a collection, a stage a line, or the error that the caller is told.
func guarded(t *testing.T, all map[string]query.Source, collection, text string) string {
	t.Helper()
	guard := query.Guard{MaxStages: 6, Other: func(name string) (query.Source, error) {
		src, ok := all[name]
		if !ok {
			return src, errs.ErrDenied
		}
		return src, nil
	}}
	d, err := document.ParseJSON([]byte(`{"stages": ` + text + `}`))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	stages, _ := d[0].Value.(bson.A)
	out, err := guard.Pipeline(all[collection], nil, stages)
	if err != nil {
		e := errs.From(err)
		return fmt.Sprintf("! %s: %s", e.Code, e.Message)
	}
	compiled, err := pipeline.Compile(out, pipeline.Options{Stages: pipeline.Scripts})
	if err != nil {
		t.Fatalf("%s: what is guarded can't run: %v", text, err)
	}
	var lines []string
	for _, stage := range compiled.Raw() {
		lines = append(lines, string(document.AppendJSONValue(nil, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: stage}, nil)))
	}
	return "= " + abbreviated(strings.Join(lines, "\n= "))
}

// abbreviated shortens the expressions that make documents anew without what is hidden: what they do is tried with records.
func abbreviated(text string) string {
	at := -1
	for _, begin := range []string{`{"$arrayToObject":`, `{"$let":{"vars":{"v":`} {
		if i := strings.Index(text, begin); i >= 0 && (at < 0 || i < at) {
			at = i
		}
	}
	if at < 0 {
		return text
	}
	end, depth := at, 0
	for ; end == at || depth > 0; end++ {
		switch text[end] {
		case '{':
			depth++
		case '}':
			depth--
		}
	}
	return text[:at] + "WITHOUT" + abbreviated(text[end:])
}

const guardFile = "testdata/guard.txt"

// TestGuard shows what a caller sends ("items [...]") and what the store is asked to run of it ("= ..."), or the error that
// the caller is told ("! ..."). Rows S1, S3, S4, S5, S6 and S15 of the fault list.
func TestGuard(t *testing.T) {
	data, err := os.ReadFile(guardFile)
	if err != nil {
		t.Fatal(err)
	}
	all := sources(t)
	var got strings.Builder
	cases := 0
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "= "), strings.HasPrefix(line, "! "):
			continue
		case line == "", strings.HasPrefix(line, "# "):
			got.WriteString(line + "\n")
			continue
		}
		collection, text, _ := strings.Cut(line, " ")
		got.WriteString(line + "\n" + guarded(t, all, collection, text) + "\n")
		cases++
	}
	if cases < 80 {
		t.Errorf("only %d cases", cases)
	}
	if *update {
		if err := os.WriteFile(guardFile, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got.String() != string(data) {
		t.Errorf("%s is not what comes out; look at the difference that -update makes", guardFile)
	}
}

// A hidden field is answered exactly like one that does not exist, wherever a stage names it. What it hides is out of reach
// of the rest.
func TestGuardTellsHiddenFromNothing(t *testing.T) {
	all := sources(t)
	data, err := os.ReadFile(guardFile)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for line := range strings.Lines(string(data)) {
		collection, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if collection != "items" || !strings.Contains(text, "secret") {
			continue
		}
		other := strings.ReplaceAll(text, "secret", "nothing")
		want := guarded(t, all, collection, other)
		got := guarded(t, all, collection, text)
		removal := strings.NewReplacer(`{"$unset":["parts.cost","secret","seo.score"]}`, "", `{"$replaceWith":WITHOUT}`, "") // either is the same
		want, got = removal.Replace(want), strings.ReplaceAll(removal.Replace(got), "secret", "nothing")
		if got != want {
			t.Errorf("%s\n%s\nbut %s\n%s", text, got, other, want)
		}
		compared++
	}
	if compared < 25 {
		t.Errorf("only %d cases", compared)
	}
}
