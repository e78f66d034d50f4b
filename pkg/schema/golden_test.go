package schema_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/schema"
)

// What golden queries say, and where.
func TestLoadGolden(t *testing.T) {
	t.Parallel()
	g, problems := schema.LoadGolden(files{"search/main.golden.yaml": `collection: notes
search: main
by: slug
as: { user: ann, teams: [editors] }
gates: { ndcg10: 0.8, recall100: 1 }
given: { records: fixtures/notes.yaml }
queries:
  - { q: "two words", relevant: [a, { b: 3 }, c: 0] }
  - { q: "${no} variable", relevant: [{ "${b}": 1 }] }
`, "search/fixtures/notes.yaml": "notes: [{ slug: a }]\n"}, "search/main.golden.yaml")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if g.Name() != "main" || g.Collection != "notes" || g.Search != "main" || g.By != "slug" || g.As.User != "ann" || len(g.Given.Records) != 1 {
		t.Errorf("%+v", g.Golden)
	}
	if diff := cmp.Diff(schema.GoldenGates{NDCG10: 0.8, Recall100: 1}, g.Gates); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]*schema.GoldenQuery{
		{Q: "two words", Relevant: schema.GoldenRelevant{"a": 1, "b": 3, "c": 0}}, {Q: "${no} variable", Relevant: schema.GoldenRelevant{"${b}": 1}},
	}, g.Queries); diff != "" {
		t.Error(diff)
	}
	for at, want := range map[string]string{"gates.ndcg10": "search/main.golden.yaml:5:18", "queries[1]": "search/main.golden.yaml:9:5", "given.records.notes[0]": "search/fixtures/notes.yaml:1:9"} {
		if got := g.Position(at).String(); got != want {
			t.Errorf("%s is at %s, want %s", at, got, want)
		}
	}
}

// What makes no sense is refused with its place.
func TestLoadGoldenRefuses(t *testing.T) {
	t.Parallel()
	const rest = "collection: c\ngates: { ndcg10: 1 }\n"
	many := "queries:" + strings.Repeat("\n  - { q: a, relevant: [b] }", schema.MaxGoldenQueries+1)
	for text, want := range map[string]string{
		rest:                                  "a.golden.yaml:1:1: queries: is required",
		rest + "queries: []":                  "a.golden.yaml:3:10: queries: must have at least 1 elements",
		rest + "queries: [{ q: a }]":          "queries[0].relevant: is required",
		rest + "queries: [{ relevant: [b] }]": "queries[0].q: is required",
		rest + `queries: [{ q: "", relevant: [b] }]`:                         "queries[0].q: must not be empty",
		rest + "queries: [{ q: a, relevant: [] }]":                           "a.golden.yaml:3:29: queries[0].relevant: must have a record that is relevant",
		rest + "queries: [{ q: a, relevant: [b: 0] }]":                       "must have a record that is relevant",
		rest + "queries: [{ q: a, relevant: b }]":                            "must be a list",
		rest + "queries: [{ q: a, relevant: [b, b: 2] }]":                    `a.golden.yaml:3:33: queries[0].relevant[1]: "b" is there before`,
		rest + "queries: [{ q: a, relevant: [b: 11] }]":                      "a whole number from 0 to 10",
		rest + "queries: [{ q: a, relevant: [b: 0.5] }]":                     "a whole number from 0 to 10",
		rest + "queries: [{ q: a, relevant: [b: -1] }]":                      "a whole number from 0 to 10",
		rest + "queries: [{ q: a, relevant: [12] }]":                         "must be an id in quotes",
		rest + "queries: [{ q: a, relevant: [{ b: 1, c: 1 }] }]":             "must be an id in quotes",
		rest + `queries: [{ q: a, relevant: [""] }]`:                         "must be an id in quotes",
		rest + "queries: [{ q: a, relevant: [b], relevants: [c] }]":          `did you mean "relevant"?`,
		rest + "queries: [{ q: a, relevant: [b] }, { q: a, relevant: [c] }]": "queries[1].q: is there before",
		rest + many: "queries: must have at most 500 elements",
		"collection: c\ngates: {}\nqueries: [{ q: a, relevant: [b] }]":                "a.golden.yaml:2:8: gates: needs ndcg10 or recall100",
		"collection: c\ngates: { ndcg10: 0 }\nqueries: [{ q: a, relevant: [b] }]":     "needs ndcg10 or recall100",
		"collection: c\ngates: { ndcg10: .nan }\nqueries: [{ q: a, relevant: [b] }]":  "must be a finite number",
		"collection: c\ngates: { ndcg10: 80 }\nqueries: [{ q: a, relevant: [b] }]":    "gates.ndcg10: must be at most 1",
		"collection: c\ngates: { recall10: 0.1 }\nqueries: [{ q: a, relevant: [b] }]": `did you mean "recall100"?`,
		"collection: c\nqueries: [{ q: a, relevant: [b] }]":                           "gates: is required",
		"gates: { ndcg10: 1 }\nqueries: [{ q: a, relevant: [b] }]":                    "collection: is required",
		rest + "query: b\nqueries: [{ q: a, relevant: [b] }]":                         `unknown key "query"`,
	} {
		_, problems := schema.LoadGolden(files{"a.golden.yaml": text}, "a.golden.yaml")
		if len(problems) < 1 || !strings.Contains(problems[0].String(), want) {
			t.Errorf("%.200s: %v, want %s", text, problems, want)
		}
	}
}

// Golden queries are no part of a config that takes all files of a folder.
func TestGoldenIsNoConfig(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"search/main.golden.yaml": true, "a.golden.yml": true, "a.golden.json": true, "golden.yaml": false, "a.golden": false, "a.golden.txt": false, "a-golden.yaml": false,
	} {
		if got := schema.IsGolden(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
	loaded, problems := schema.LoadProject(files{
		"project.yaml": `namespace: a
collections: [{name: c, fields: [{name: t, type: string}], search: ["search/*.yaml"], permissions: {public: {methods: {}}, user: {methods: {}}}}]
`, "search/main.yaml": "name: main\nmode: text\nfields: [t]\n", "search/main.golden.yaml": "collection: c\n",
	}, "project.yaml", nil, nil)
	if len(problems) > 0 || len(loaded.Project.Collections[0].Search) != 1 {
		t.Fatal(problems)
	}
}

// FuzzLoadGolden holds that no text takes the loader down, and that what it passes is whole.
func FuzzLoadGolden(f *testing.F) {
	addSamples(f, "*/search/*.golden.yaml")
	f.Add("collection: c\ngates: a.golden.yaml\nqueries: [a.golden.yaml]")
	f.Add("collection: c\ngates: {ndcg10: .nan}\nqueries: &a [{q: a, relevant: [*a, b: 1, b: 99999999999]}]")
	f.Fuzz(func(t *testing.T, text string) {
		g, problems := schema.LoadGolden(files{"a.golden.yaml": text}, "a.golden.yaml")
		for _, p := range problems {
			if p.Line < 1 || p.Column < 1 {
				t.Fatalf("no such place: %v", p)
			}
		}
		if problems.Err() {
			return
		}
		for _, gate := range []float64{g.Gates.NDCG10, g.Gates.Recall100} {
			if !(gate >= 0 && gate <= 1) {
				t.Fatalf("no gates: %+v", g.Gates)
			}
		}
		if g.Collection == "" || len(g.Queries) == 0 || g.Gates == (schema.GoldenGates{}) {
			t.Fatalf("not whole: %+v", g.Golden)
		}
		for _, q := range g.Queries {
			best := 0
			for id, grade := range q.Relevant {
				if best = max(best, grade); id == "" || grade < 0 {
					t.Fatalf("no judgement: %+v", q)
				}
			}
			if q.Q == "" || best == 0 {
				t.Fatalf("no query: %+v", q)
			}
		}
	})
}
