package trial_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/plan"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/trial"
)

var _ plan.Judge = trial.Judge{}

// compiled makes a project with golden queries, which its scripts are beside.
func compiled(t testing.TB, more, golden string) (*project.Project, *project.Golden) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "search"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a.js": "module.exports = () => { while (true) {} }", "search/a.golden.yaml": golden,
		"project.yaml": `namespace: notes
collections:
  - name: notes
    fields: [{name: slug, type: string}, {name: text, type: string}, {name: open, type: boolean}]
    search: [{name: words, mode: text, fields: [text]}]
` + more,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, problems := project.Load(dir, "project.yaml", nil)
	if p == nil {
		t.Fatal(problems)
	}
	list, problems := project.Goldens(p)
	if len(list) != 1 {
		t.Fatal(problems)
	}
	return p, list[0]
}

const judged = `collection: notes
by: slug
gates: {ndcg10: 1}
queries: [{q: gate, relevant: [gate, shed]}, {q: garden path, relevant: [path]}]
given:
  records:
    notes:
      - {slug: gate, text: the garden gate, open: true}
      - {slug: shed, text: a shed at the gate}
      - {slug: path, text: the garden path, open: true}
`

// Within the service, golden queries give what they give in a project's own tests, and no script runs: these would not end.
func TestJudge(t *testing.T) {
	t.Parallel()
	const open = "    permissions: {public: {methods: {get: true}, filter: {open: true}}, user: {methods: {get: true}}}\n"
	script := "{type: javascript, file: a.js}"
	for _, tc := range []struct {
		name, more, golden string
		ndcg               float64
		err                string
	}{
		{"readers", open, judged, (1 + 1/(1+1/math.Log2(3))) / 2, ""},
		{"who sees all", open, "as: {user: ann}\n" + judged, 1, ""},
		{
			"hooks are left out", open + "    hooks: {post: {bind: " + script + "}, get: {read: " + script + ", return: " + script + "}}\n",
			"as: {user: ann}\n" + judged, 1, "",
		},
		{
			"rules by scripts can't be known", "    permissions: {public: {methods: {get: true}, filter: " + script + "}, user: {methods: {}}}\n", judged, 0,
			"scripts say who may read what, and a plan runs none",
		},
		{
			"what is refused", "    permissions: {public: {methods: {}}, user: {methods: {}}}\n", judged, 0, "search/a.golden.yaml:4:15: q=gate was refused: 403",
		},
		{"what can't be created", strings.Replace(open, "permissions", "strictFields: true\n    permissions", 1), strings.Replace(judged, "shed at the gate}", "shed at the gate, n: 1}", 1), 0, "search/a.golden.yaml:9:9: the record that is given can't be created"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p, g := compiled(t, tc.more, tc.golden)
			r, err := trial.Judge{}.Judge(t.Context(), p, g)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%v, want %s", err, tc.err)
				}
				return
			}
			if err != nil || r.Queries != 2 || math.Abs(r.NDCG10-tc.ndcg) > 1e-9 {
				t.Errorf("%+v, %v, want %v", r, err, tc.ndcg)
			}
		})
	}
}

// Who gives up is not answered with measures.
func TestJudgeEnds(t *testing.T) {
	t.Parallel()
	p, g := compiled(t, "    permissions: {public: {methods: {get: true}}, user: {methods: {}}}\n", judged)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := (trial.Judge{}).Judge(ctx, p, g); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", r, err)
	}
}

// BenchmarkJudge is a file as large as they may be.
func BenchmarkJudge(b *testing.B) {
	var records, queries strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&records, "      - {slug: n%d, text: \"the note %d of the garden and gate %d\", open: true}\n", i, i, i%100)
	}
	for i := range 500 {
		fmt.Fprintf(&queries, "  - {q: gate %d, relevant: [n%d]}\n", i, i)
	}
	golden := "collection: notes\nby: slug\ngates: {ndcg10: 1}\ngiven:\n  records:\n    notes:\n" + records.String() + "queries:\n" + queries.String()
	p, g := compiled(b, "    permissions: {public: {methods: {get: true}}, user: {methods: {}}}\n", golden)
	for b.Loop() {
		if _, err := (trial.Judge{}).Judge(b.Context(), p, g); err != nil {
			b.Fatal(err)
		}
	}
}
