package trial

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/search/quality"
	"github.com/svcctl/svc/pkg/trial/report"
)

// goldenJob makes a case of a file of golden queries: it begins with the same, and asks what is judged.
func goldenJob(l *schema.LoadedGolden) job {
	name := "golden queries of " + l.Collection
	if l.Search != "" {
		name += "/" + l.Search
	}
	return job{
		file: l.File, of: l.Suite(), golden: l,
		TestCase: &schema.TestCase{Name: name, Path: "collection", At: l.Position("collection")},
	}
}

// judge measures the search, and holds that against its gates.
func (b *bench) judge() bool {
	g, problems := project.CompileGolden(b.project, b.golden)
	if problems.Err() {
		return b.fail(b.Path, "", problems[0].Message)
	}
	who := principal(b.golden.As)
	r, failed := b.measure(g, who)
	if failed != "" {
		return false
	}
	gates := quality.Gates(b.golden.Gates)
	b.out.Golden = goldenOf(g, r)
	missed := "is below its gate"
	if g.ByMeaning() {
		missed += "; here vectors are of hashed words, which know no meaning: svcctl search eval asks the model of a service"
	}
	for _, gate := range gates.Of(r) {
		if gate.Held {
			continue
		}
		pos := b.of.Position("gates." + gate.Key)
		b.out.Failures = append(b.out.Failures, report.Failure{
			File: pos.File, Line: pos.Line, Column: pos.Column, Path: gate.Measure, Message: missed,
			Expected: gate.LeastText() + " at least", Actual: gate.Rounded(),
		})
	}
	if len(b.out.Failures) == 0 {
		return true
	}
	for _, s := range r.Worst(quality.Shown) {
		b.out.Failures = append(b.out.Failures, b.told(s))
	}
	return false
}

// goldenOf is a report for programs.
func goldenOf(g *project.Golden, r quality.Report) *report.Golden {
	var parts []string
	for _, gate := range quality.Gates(g.Gates).Of(r) {
		parts = append(parts, gate.String())
	}
	return &report.Golden{
		Collection: g.Of.Name, Search: g.Config.Name, Queries: r.Queries, NDCG10: r.NDCG10, Recall100: r.Recall,
		Gates: report.Gates(g.Gates), Text: strings.Join(parts, ", "),
	}
}

// told is a query that is not answered well.
func (b *bench) told(s quality.Scored) report.Failure {
	pos := b.of.Position("queries")
	for i, q := range b.golden.Queries {
		if q.Q == s.Query {
			pos = b.of.Position("queries[" + strconv.Itoa(i) + "]")
		}
	}
	return report.Failure{
		File: pos.File, Line: pos.Line, Column: pos.Column, Path: "q=" + s.Query,
		Message:  s.Text(),
		Expected: quality.First(s.Ideal()), Actual: quality.First(s.Found),
	}
}

// measure asks every query as the one who searches. failed says why one could not be asked, which is taken down, too.
func (b *bench) measure(g *project.Golden, who *access.Principal) (r quality.Report, failed string) {
	var judged []quality.Judged
	at := map[string]string{}
	for i, q := range g.Queries {
		judged = append(judged, quality.Judged{Query: q.Q, Relevant: q.Relevant})
		at[q.Q] = "queries[" + strconv.Itoa(i) + "].q"
	}
	r, err := quality.Measure(judged, func(q string) ([]string, error) {
		ids, err := b.found(g, q, who)
		if err != nil {
			b.fail(at[q], "q="+q, err.Error())
		}
		return ids, err
	})
	if err != nil {
		failed = err.Error()
	}
	return r, failed
}

// found gives what records that were found are called, the best first.
func (b *bench) found(g *project.Golden, q string, who *access.Principal) ([]string, error) {
	by := "id"
	query := url.Values{api.ParamQ: {q}, api.ParamQName: {g.Config.Name}, api.ParamLimit: {strconv.Itoa(min(quality.Depth, g.Of.Limits.List.MaxLimit))}}
	if g.By != "" {
		by = g.By
	}
	query.Set(api.ParamSelect, by)
	return quality.Found(func(offset int) (names []string, more bool, err error) {
		query.Set(api.ParamOffset, strconv.Itoa(offset))
		a := b.get(b.base()+"/"+g.Of.Name+"?"+query.Encode(), who)
		if err := b.ctx.Err(); err != nil {
			return nil, false, err
		}
		if a.status != http.StatusOK {
			return nil, false, fmt.Errorf("was refused: %s", refusal(a))
		}
		items, _ := at(a.body, "items").(bson.A)
		for _, item := range items {
			name, _ := at(item, by).(string)
			if name == "" {
				name = textOf(at(item, "id"))
			}
			names = append(names, name)
		}
		return names, at(a.body, "hasMore") == true, nil
	})
}
