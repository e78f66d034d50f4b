package openapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/openapi"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/randtest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// load compiles the project in a directory, or of the text of one config file.
func load(t testing.TB, dir, config string) *project.Project {
	t.Helper()
	entry := "project.yaml"
	if config != "" {
		dir = t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, entry), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if _, err := os.Stat(filepath.Join(dir, entry)); err != nil {
		entry = "project.json"
	}
	p, problems := project.Load(dir, entry, func(string) (string, bool) { return "", false })
	if err := problems.Err(); err {
		t.Fatal(problems)
	}
	return p
}

// seenBy is what a caller may know of a project, going by its permission sets alone.
func seenBy(t testing.TB, p *project.Project, who *access.Principal) *openapi.View {
	t.Helper()
	v := &openapi.View{Project: p}
	for _, name := range slices.Sorted(maps.Keys(p.Collections)) {
		c := openapi.Collection{Collection: p.Collections[name], Grants: map[access.Method]access.Grant{}}
		for m := access.Get; m <= access.Delete; m++ {
			if g, err := c.Permissions.Decide(who, m, access.Env{Now: time.Now(), Namespace: p.Namespace, Collection: name}); err == nil {
				c.Grants[m] = g
			}
		}
		c.Unnameable = c.Grants[access.Get].Hidden
		c.Projections = slices.Sorted(maps.Keys(c.Collection.Projections))
		for _, s := range c.Collection.Searches {
			c.Searches = append(c.Searches, s.Name)
		}
		if len(c.Grants) > 0 {
			v.Collections = append(v.Collections, c)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Actions)) {
		a := openapi.Action{Action: p.Actions[name]}
		for _, m := range []access.Method{access.Get, access.Post} {
			if a.Action.Methods[m] != nil {
				a.Methods = append(a.Methods, m)
			}
		}
		v.Actions = append(v.Actions, a)
	}
	return v
}

func admin() *access.Principal { return &access.Principal{Kind: access.KindAdmin} }

// encoded is a document as it goes out, which is valid.
func encoded(t testing.TB, v *openapi.View) []byte {
	t.Helper()
	raw, err := openapi.AppendJSON(nil, openapi.Document(v))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Fatal(err)
	}
	var keys func(dec *json.Decoder) // no key comes twice in an object
	keys = func(dec *json.Decoder) {
		tok, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		open, ok := tok.(json.Delim)
		if !ok {
			return
		}
		seen := map[string]bool{}
		for dec.More() {
			if open == '{' {
				key, err := dec.Token()
				if err != nil {
					t.Fatal(err)
				}
				if name, _ := key.(string); seen[name] {
					t.Fatalf("%s stands twice in an object", name)
				} else {
					seen[name] = true
				}
			}
			keys(dec)
		}
		if _, err := dec.Token(); err != nil {
			t.Fatal(err)
		}
	}
	keys(json.NewDecoder(bytes.NewReader(raw)))
	return raw
}

func indented(t testing.TB, raw []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String() + "\n"
}

func TestSamples(t *testing.T) {
	for _, name := range []string{"blog", "shop"} {
		p := load(t, filepath.Join("..", "..", "projects", name), "")
		for caller, who := range map[string]*access.Principal{"public": access.Anonymous(), "admin": admin()} {
			t.Run(name+"/"+caller, func(t *testing.T) { encoded(t, seenBy(t, p, who)) })
		}
	}
}

// TestDocument has a project with all that can be said in a config.
func TestDocument(t *testing.T) {
	config, err := os.ReadFile(filepath.Join("testdata", "everything.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p := load(t, "", string(config))
	for name, who := range map[string]*access.Principal{"public": access.Anonymous(), "admin": admin()} {
		t.Run(name, func(t *testing.T) {
			v := seenBy(t, p, who)
			v.Lang = "de"
			got := indented(t, encoded(t, v))
			got = strings.ReplaceAll(got, p.Revision, "REVISION")
			golden := filepath.Join("testdata", "everything."+name+".json")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
			if name == "public" && strings.Contains(got, "canary") {
				t.Error("what is hidden is told of")
			}
		})
	}
}

// schemaOf compiles the schema of a component.
func schemaOf(t testing.TB, doc []byte, name string) *jsonschema.Schema {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("doc.json", value); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("doc.json#/components/schemas/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSchemasAndRules holds the schemas of writes against the service's own rules: what these take, the schema takes. What the schema takes,
// they take as well, but for what JSON Schema has no words for.
func TestSchemasAndRules(t *testing.T) {
	config, err := os.ReadFile(filepath.Join("testdata", "everything.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p := load(t, "", string(config))
	c := p.Collections["things"]
	s := schemaOf(t, encoded(t, seenBy(t, p, admin())), "things.create")
	var both, neither, looser int
	cases := 5_000 // other ones each time
	if os.Getenv("SOAK") != "" {
		cases = 200_000
	}
	r := randtest.Of(t)
	for range cases {
		body := randomBody(r, c.Tree)
		if r.IntN(3) > 0 {
			body = mended(r, c.Tree, body)
		}
		raw, err := document.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		text := document.AppendJSON(nil, raw, nil)
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		check := fieldtype.Check{Now: time.Now(), Create: true}
		c.Tree.Check(body, &check)
		valid := s.Validate(value)
		switch takes := len(check.Problems) == 0; {
		case takes && valid == nil:
			both++
		case !takes && valid != nil:
			neither++
		case takes:
			t.Fatalf("the service takes %s, and its schema does not: %v", text, valid)
		default:
			looser++
			for _, p := range check.Problems {
				if !slices.Contains([]string{"after", "before", "gt", "gte", "lt", "lte", "email", "url", "pattern"}, p.Rule) {
					t.Fatalf("the schema takes %s, and the service does not: %+v", text, check.Problems)
				}
			}
		}
	}
	t.Logf("both took %d, both refused %d, %d were refused by the service alone", both, neither, looser)
	if both < 500 || neither < 500 {
		t.Error("this tested little")
	}
}

// mended makes most fields anew in which something is wrong.
func mended(r *rand.Rand, tree *fieldtype.Tree, body bson.D) bson.D {
	for range 20 {
		check := fieldtype.Check{Now: time.Now(), Create: true}
		tree.Check(body, &check)
		if len(check.Problems) == 0 {
			break
		}
		wrong := map[string]bool{}
		for _, p := range check.Problems {
			name, _, _ := strings.Cut(p.Path, ".")
			wrong[name] = true
		}
		body = slices.DeleteFunc(body, func(e bson.E) bool { return wrong[e.Key] })
		for _, f := range tree.Fields() {
			if wrong[f.Name] && !f.Holds() && !f.Hidden && !f.Readonly {
				body = append(body, bson.E{Key: f.Name, Value: randomValue(r, f, f.Type.Name())})
			}
		}
	}
	return body
}

// randomBody makes a record, most of whose fields are right.
func randomBody(r *rand.Rand, tree *fieldtype.Tree) bson.D {
	var out bson.D
	for _, f := range tree.Fields() {
		if f.Holds() || f.Hidden || f.Readonly || r.IntN(8) == 0 && !slices.Contains(tree.Required(), f) {
			continue
		}
		out = append(out, bson.E{Key: f.Name, Value: randomValue(r, f, f.Type.Name())})
	}
	if r.IntN(40) == 0 {
		out = append(out, bson.E{Key: "undeclared", Value: 1})
	}
	return out
}

func randomValue(r *rand.Rand, f *fieldtype.Field, kind string) any {
	if r.IntN(60) == 0 {
		return []any{nil, "text", int64(5), true, bson.D{}, bson.A{}}[r.IntN(6)]
	}
	if item, isList := strings.CutSuffix(kind, "[]"); isList {
		out := bson.A{}
		for range r.IntN(4) {
			out = append(out, randomValue(r, f, item))
		}
		return out
	}
	if len(f.Choices) > 0 && r.IntN(20) > 0 {
		return f.Choices[r.IntN(len(f.Choices))]
	}
	switch kind {
	case "string":
		if f.HoldsIDs() {
			return "650102030405060708090a0b"
		}
		texts := []string{"", "a", "abc", "some-slug", "ann@example.com", "https://example.com/", "123e4567-e89b-12d3-a456-426614174000", "begins", "it ends", "AB12", "längere Wörter mit Leerzeichen"}
		return texts[r.IntN(len(texts))]
	case "number":
		return []any{int64(0), int64(1), int64(7), 2.5, int64(-3), int64(1000)}[r.IntN(6)]
	case "boolean":
		return r.IntN(2) == 0
	case "date":
		return []any{"2026-01-02T03:04:05Z", "2031-01-02T03:04:05.678+02:00", "tomorrow"}[r.IntN(3)]
	case "object":
		if f.Sub != nil {
			return randomBody(r, f.Sub)
		}
		return bson.D{{Key: "free", Value: "form"}}
	case "file":
		return bson.D{{Key: "src", Value: "data:text/plain,x"}, {Key: "path", Value: "x.txt"}}
	}
	return []any{"any", int64(1), bson.D{{Key: "x", Value: 1}}}[r.IntN(3)]
}
