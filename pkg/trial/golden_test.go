package trial_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/trial"
	"github.com/svcctl/svc/pkg/trial/report"
)

const config = `namespace: notes
collections:
  - name: notes
    fields: [{name: slug, type: string}, {name: text, type: string}, {name: open, type: boolean}, {name: secret, type: string}]
    queryLimits: {maxLimit: 3, defaultLimit: 2}
    search:
      - {name: words, mode: text, fields: [text, secret], score: {weights: {text: 3}}}
      - {name: parts, mode: ngram, fields: [text]}
      - {name: both, mode: rrf, rrf: {sources: [words, parts]}}
      - {name: near, mode: vector, vector: {group: texts, fields: [text]}}
      - {name: mixed, mode: rrf, rrf: {sources: [words, near]}}
      - {name: open, mode: text, fields: [text], filter: {open: true}}
    permissions:
      public: {methods: {get: true}, filter: {open: true}, hiddenFields: [secret]}
      user: {methods: {get: true}}
  - name: closed
    fields: [{name: text, type: string}]
    search: [{name: main, mode: text, fields: [text]}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
`

const given = `by: slug
given:
  records:
    notes:
      - {slug: gate, text: the garden gate, open: true}
      - {slug: hidden, text: another garden gate}
      - {slug: fence, text: a fence, open: true, secret: gate}
      - {slug: wall, text: a garden wall, open: true}
      - {slug: path, text: the garden path, open: true}
      - {slug: shed, text: the garden shed, open: true}
`

// run runs a project's golden queries.
func run(t *testing.T, golden string) (cases []report.Case, end *report.End) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "search"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"project.yaml": config, "search/a.golden.yaml": golden} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := trial.Run(t.Context(), trial.Options{Dir: dir, Entry: "project.yaml", Emit: func(e report.Event) error {
		if e.Case != nil {
			cases = append(cases, *e.Case)
		}
		end = e.End
		return nil
	}})
	if err != nil || end == nil {
		t.Fatal(err, end)
	}
	return cases, end
}

// Golden queries are asked as who they say, by the search that they say, and have to reach their gates.
func TestGolden(t *testing.T) {
	t.Parallel()
	const query = "queries: [{q: garden gate, relevant: [gate: 2, hidden]}]\n"
	for _, tc := range []struct {
		name, golden string
		text         string
		failures     []string
	}{
		{"who sees all", "as: {user: ann}\ngates: {ndcg10: 0.9, recall100: 1}\n" + query, "nDCG@10 1.00 (gate 0.90), recall@100 1.00 (gate 1.00)", nil},
		{
			"who sees less finds less", "gates: {recall100: 0.75, ndcg10: 0.8}\n" + query, "nDCG@10 0.83 (gate 0.80), recall@100 0.50 (gate 0.75)",
			[]string{"recall@100 is below its gate: want 0.75 at least, got 0.50", "q=garden gate has nDCG@10 0.83, recall@100 0.50: want gate, hidden, got gate, wall, path, shed"},
		},
		{
			"a search with a filter", "as: admin\nsearch: open\ngates: {ndcg10: 0.9}\n" + query, "nDCG@10 0.83 (gate 0.90), recall@100 0.50",
			[]string{"nDCG@10 is below its gate: want 0.90 at least, got 0.83", "q=garden gate has nDCG@10 0.83, recall@100 0.50: want gate, hidden, got gate, wall, path, shed"},
		},
		{"parts of words", "as: admin\nsearch: parts\ngates: {ndcg10: 0.9, recall100: 1}\n" + query, "nDCG@10 1.00 (gate 0.90), recall@100 1.00 (gate 1.00)", nil},
		{"by vectors", "as: admin\nsearch: near\ngates: {ndcg10: 0.9, recall100: 1}\n" + query, "nDCG@10 1.00 (gate 0.90), recall@100 1.00 (gate 1.00)", nil},
		{"several", "as: admin\nsearch: both\ngates: {ndcg10: 0.9, recall100: 1}\n" + query, "nDCG@10 1.00 (gate 0.90), recall@100 1.00 (gate 1.00)", nil},
		{
			"vectors know no meaning here", "as: admin\nsearch: near\ngates: {ndcg10: 1}\nqueries: [{q: fence, relevant: [shed]}]\n", "nDCG@10 0.43 (gate 1.00), recall@100 1.00",
			[]string{"nDCG@10 is below its gate; here vectors are of hashed words, which know no meaning: svcctl search eval asks the model of a service: want 1.00 at least, got 0.43", "q=fence has nDCG@10 0.43, recall@100 1.00: want shed, got fence, wall, path, shed, gate, hidden"},
		},
		{
			"nor do those of a source", "as: admin\nsearch: mixed\ngates: {ndcg10: 1}\nqueries: [{q: fence, relevant: [shed]}]\n", "nDCG@10 0.43 (gate 1.00), recall@100 1.00",
			[]string{"nDCG@10 is below its gate; here vectors are of hashed words, which know no meaning: svcctl search eval asks the model of a service: want 1.00 at least, got 0.43", "q=fence has nDCG@10 0.43, recall@100 1.00: want shed, got fence, wall, path, shed, gate, hidden"},
		},
		{
			"nobody looks into a hidden field", "gates: {ndcg10: 1}\nqueries: [{q: gate, relevant: [fence]}]\n", "nDCG@10 0.00 (gate 1.00), recall@100 0.00",
			[]string{"nDCG@10 is below its gate: want 1.00 at least, got 0.00", "q=gate has nDCG@10 0.00, recall@100 0.00: want fence, got gate"},
		},
		{
			"the worst are shown, the worst first",
			"as: admin\ngates: {ndcg10: 0.8}\nqueries: [{q: gate, relevant: [gate, hidden, fence]}, {q: wall, relevant: [path]}, {q: shed, relevant: [shed]}, {q: fence, relevant: [fence, wall]}, {q: nothing, relevant: [wall]}]\n",
			"nDCG@10 0.52 (gate 0.80), recall@100 0.50",
			[]string{
				"nDCG@10 is below its gate: want 0.80 at least, got 0.52", "q=wall has nDCG@10 0.00, recall@100 0.00: want path, got wall",
				"q=nothing has nDCG@10 0.00, recall@100 0.00: want wall, got nothing", "q=fence has nDCG@10 0.61, recall@100 0.50: want fence, wall, got fence",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cases, end := run(t, "collection: notes\n"+given+tc.golden)
			if len(cases) != 1 || cases[0].Golden == nil {
				t.Fatalf("%+v, %+v", cases, end)
			}
			var failures []string
			for _, f := range cases[0].Failures {
				failures = append(failures, f.Path+" "+f.Message+": want "+f.Expected+", got "+f.Actual)
			}
			if diff := cmp.Diff(tc.failures, failures); diff != "" || cases[0].Golden.Text != tc.text || (cases[0].Status == report.Passed) != (tc.failures == nil) {
				t.Errorf("%s: %s\n%s", cases[0].Status, cases[0].Golden.Text, diff)
			}
		})
	}
}

// A query that is refused fails its file at its place, and so does a record that can't be created.
func TestGoldenRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ golden, want string }{
		{
			"collection: closed\ngiven: {records: {closed: [{id: 64b5f0a1b2c3d4e5f6a7b8c9, text: gate}]}}\ngates: {ndcg10: 1}\nqueries: [{q: gate, relevant: [64b5f0a1b2c3d4e5f6a7b8c9]}]\n",
			"search/a.golden.yaml:4:15: q=gate was refused: 403",
		},
		{
			"collection: notes\nas: {token: x}\nby: slug\ngiven: {records: {notes: [{slug: 5}]}}\ngates: {ndcg10: 1}\nqueries: [{q: gate, relevant: [a]}]\n", "is not among the given records",
		},
		{"collection: notes\nby: slug\ngiven: {records: {notes: [{slug: a, open: 1}]}}\ngates: {ndcg10: 1}\nqueries: [{q: gate, relevant: [a]}]\n", "the record that is given can't be created"},
		{
			"collection: notes\nas: {token: wrong}\nby: slug\ngiven: {records: {notes: [{slug: a}]}}\ngates: {ndcg10: 1}\nqueries: [{q: gate, relevant: [a]}]\n", "q=gate was refused: 403",
		},
		{"collection: notes\ngiven: {records: {notes: [{id: a}]}}\ngates: {ndcg10: 1}\nqueries: [{q: gate, relevant: [a]}]\n", "24 hex digits"},
		{"collection: notes\nby: secret\ngiven: {records: {notes: [{secret: a}]}}\ngates: {ndcg10: 1}\nqueries: [{q: gate, relevant: [a]}]\n", "unknown field: secret"},
	} {
		cases, end := run(t, tc.golden)
		var said strings.Builder
		for _, p := range end.Problems {
			fmt.Fprintf(&said, "%s: %s\n", p.File, p.Message)
		}
		for _, c := range cases {
			for _, f := range c.Failures {
				fmt.Fprintf(&said, "%s:%d:%d: %s %s\n", f.File, f.Line, f.Column, f.Path, f.Message)
			}
		}
		if !strings.Contains(said.String(), tc.want) || end.Passed > 0 {
			t.Errorf("%s: %swant %s", tc.golden, said.String(), tc.want)
		}
	}
}

// Records may come with their ids, by which they are judged where no field names them.
func TestGoldenByID(t *testing.T) {
	t.Parallel()
	cases, end := run(t, `collection: notes
given: {records: {notes: [{id: 64b5f0a1b2c3d4e5f6a7b8c9, text: gate, open: true}, {text: wall, open: true}]}}
gates: {ndcg10: 1}
queries: [{q: gate, relevant: [64b5f0a1b2c3d4e5f6a7b8c9]}]
`)
	if end.Passed != 1 {
		t.Errorf("%+v, %+v", cases, end)
	}
}

// The records of other tests may come with their ids, too, each with its own.
func TestGivenIDs(t *testing.T) {
	t.Parallel()
	const id = "64b5f0a1b2c3d4e5f6a7b8c9"
	for _, tc := range []struct{ records, want string }{
		{"{id: " + id + ", text: a, open: true}", ""},
		{"{id: " + id + ", text: a}, {id: " + id + ", text: b}", "id: there is another record with " + id},
		{"{id: 5, text: a}", "id: must be 24 hex digits in quotes"},
	} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "tests"), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"project.yaml":   config,
			"tests/ids.yaml": "given: {records: {notes: [" + tc.records + "]}}\ncases: [{name: one, when: {get: /notes/" + id + "}, expect: {body: {text: a}}}]\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		said := ""
		err := trial.Run(t.Context(), trial.Options{Dir: dir, Entry: "project.yaml", Emit: func(e report.Event) error {
			if e.Case != nil && len(e.Case.Failures) > 0 {
				said = e.Case.Failures[0].Message
			}
			return nil
		}})
		if err != nil || (said == "") != (tc.want == "") || !strings.Contains(said, tc.want) {
			t.Errorf("%s: %v, %q, want %q", tc.records, err, said, tc.want)
		}
	}
}
