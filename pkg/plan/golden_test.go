package plan_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/plan"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/search/quality"
)

// judge gives measures by the mode and the weight of the first field of a search, and notes what was asked.
type judge struct {
	asked []string
	wait  bool // until the time is over
	err   error
}

func (j *judge) Judge(ctx context.Context, p *project.Project, g *project.Golden) (quality.Report, error) {
	j.asked = append(j.asked, g.Name()+" of "+g.Path())
	if j.wait {
		<-ctx.Done()
		return quality.Report{}, ctx.Err()
	}
	if p.Collections[g.Of.Name] != g.Of {
		return quality.Report{}, errors.New("the golden queries are of another project")
	}
	r := quality.Report{Queries: 1, NDCG10: 0.5, Recall: 1}
	if len(g.Config.Fields) > 0 {
		r.NDCG10 += g.Config.Fields[0].Weight / 10
	}
	return r, j.err
}

const judged = `fields: [{name: a, type: string}, {name: b, type: string}]
search:
  - {name: main, mode: text, fields: [a], score: {weights: {a: 3}}}
  - {name: parts, mode: ngram, fields: [a]}
  - {name: both, mode: rrf, rrf: {sources: [main, parts]}}` + nobody

// goldens are those that a project would have in its directory.
func goldens(t *testing.T, p *project.Project, files map[string]string) ([]*project.Golden, schema.Problems) {
	t.Helper()
	bundle := project.Bundle{Files: map[string][]byte{}}
	for name, text := range files {
		bundle.Files["search/"+name+".golden.yaml"] = []byte("collection: c\nby: a\ngiven: {records: {c: [{a: x}]}}\nqueries: [{q: x, relevant: [x]}]\n" + text)
	}
	return bundle.Goldens(p)
}

// Where a search changes, its golden queries are asked before and after, and a gate that fails is a risk.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name         string
		from, to     string // what is replaced in judged
		files        map[string]string
		object, want string // an item, and how its detail ends
		risk         api.Risk
		asked        int
	}{
		{
			"better", "{a: 3}", "{a: 4}",
			map[string]string{"x": "search: main\ngates: {ndcg10: 0.85}"},
			"c.main", "score changes; golden x: nDCG@10 0.80 -> 0.90 (gate 0.85)", api.RiskSafe, 2,
		},
		{
			"below", "{a: 3}", "{a: 2}",
			map[string]string{"x": "search: main\ngates: {ndcg10: 0.8, recall100: 0.5}"},
			"c.main", "score changes; golden x: nDCG@10 0.80 -> 0.70 (gate 0.80): below, recall@100 1.00 -> 1.00 (gate 0.50)", api.RiskBreaking, 2,
		},
		{
			"the first search, and what is told without a gate", "{a: 3}", "{a: 2}",
			map[string]string{"x": "gates: {recall100: 1}"},
			"c.main", "score changes; golden x: nDCG@10 0.80 -> 0.70, recall@100 1.00 -> 1.00 (gate 1.00)", api.RiskSafe, 2,
		},
		{
			"several files", "{a: 3}", "{a: 2}",
			map[string]string{"x": "search: main\ngates: {ndcg10: 0.5}", "y": "search: main\ngates: {ndcg10: 0.9}", "z": "search: parts\ngates: {ndcg10: 0.9}"},
			"c.main", "golden x: nDCG@10 0.80 -> 0.70 (gate 0.50); golden y: nDCG@10 0.80 -> 0.70 (gate 0.90): below", api.RiskBreaking, 4,
		},
		{
			"what is fused of it", "mode: ngram, fields: [a]", "mode: ngram, fields: [b]",
			map[string]string{"x": "search: both\ngates: {ndcg10: 0.4}"},
			"c.parts", "golden x: nDCG@10 0.50 -> 0.50 (gate 0.40)", api.RiskSafe, 2,
		},
		{
			"a new search", "  - {name: parts,", "  - {name: new, mode: text, fields: [b]}\n  - {name: parts,",
			map[string]string{"x": "search: new\ngates: {ndcg10: 0.7}"},
			"c.new", "text (b); records: 0; golden x: nDCG@10 0.60 (gate 0.70): below", api.RiskBreaking, 1,
		},
		{"what does not matter to what is found", "mode: ngram, fields: [a]", "mode: ngram, fields: [a], async: true", map[string]string{"x": "search: parts\ngates: {ndcg10: 1}"}, "c.parts", "async changes", api.RiskSafe, 0},
		{"nothing of searches", "{name: b, type: string}", "{name: b, type: number}", map[string]string{"x": "gates: {ndcg10: 1}"}, "c.b", "", api.RiskBreaking, 0},
		{
			"a file with a problem", "{a: 3}", "{a: 2}",
			map[string]string{"x": "search: mian\ngates: {ndcg10: 1}"},
			"c.main", `golden queries: not evaluated: search/x.golden.yaml:5:9: search: there is no search "mian" of c; did you mean "main"?`, api.RiskBreaking, 0,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			served, next := load(t, collection(judged)), load(t, collection(strings.Replace(judged, tc.from, tc.to, 1)))
			j := &judge{}
			o := plan.Options{Records: records{}, Now: now, Box: time.Minute, Golden: plan.Golden{Judge: j, Time: time.Minute}}
			o.Golden.Queries, o.Golden.Problems = goldens(t, next, tc.files)
			p, err := plan.Make(t.Context(), served, next, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range p.Items {
				if it.Object == tc.object && (!strings.HasSuffix(it.Detail, tc.want) || it.Risk != tc.risk) {
					t.Errorf("%s: %s, want %s: %s", it.Risk, it.Detail, tc.risk, tc.want)
				}
			}
			if len(p.Items) != 1 || p.Items[0].Object != tc.object || p.Risk != tc.risk || len(j.asked) != tc.asked {
				t.Errorf("%+v; %v was asked", p.Items, j.asked)
			}
		})
	}
}

// What can't be asked is taken for the worst, and the plan is made all the same, but for who gives up.
func TestGoldenNotAsked(t *testing.T) {
	t.Parallel()
	served, next := load(t, collection(judged)), load(t, collection(strings.Replace(judged, "{a: 3}", "{a: 2}", 1)))
	queries, problems := goldens(t, next, map[string]string{"x": "gates: {ndcg10: 0.1}"})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	without, err := plan.Make(t.Context(), served, next, plan.Options{Records: records{}, Now: now})
	if err != nil || without.Risk != api.RiskSafe {
		t.Fatal(err, without)
	}
	for why, o := range map[string]plan.Golden{
		"there was no time for it": {Judge: &judge{wait: true}, Time: time.Nanosecond},
		"it is broken":             {Judge: &judge{err: errors.New("it is broken")}},
		"they are for files of the service, and for administrators": {},
	} {
		o.Queries = queries
		p, err := plan.Make(t.Context(), served, next, plan.Options{Records: records{}, Now: now, Golden: o})
		if err != nil || p.Risk != api.RiskBreaking || !strings.HasSuffix(p.Items[0].Detail, "golden x: not evaluated: "+why) || p.Hash != without.Hash {
			t.Errorf("%s: %v, %+v", why, err, p)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := plan.Make(ctx, served, next, plan.Options{Now: now, Golden: plan.Golden{Queries: queries, Judge: &judge{wait: true}}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
