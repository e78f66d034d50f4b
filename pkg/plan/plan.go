package plan

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
)

// DefaultBox is how long the records are looked at for one plan.
const DefaultBox = 5 * time.Second

// Options is what Make works with.
type Options struct {
	Records Records // nil: none are looked at, and the worst is taken for what depends on them
	Now     time.Time
	Box     time.Duration // how long records are looked at; 0: DefaultBox
	Golden  Golden
}

// Make tells what next would change in the place of served, which is nil where nothing is served. The same two projects
// give the same items in the same order and the same hash; numbers of records, what golden queries give and times of jobs are no part of that.
func Make(ctx context.Context, served, next *project.Project, o Options) (*api.Plan, error) {
	if o.Box <= 0 {
		o.Box = DefaultBox
	}
	items := compare(served, next)
	out := &api.Plan{
		Namespace: next.Namespace, Next: next.Revision, Empty: len(items) == 0,
		Risk: api.RiskSafe, Counts: map[api.Risk]int{}, Items: []api.PlanItem{}, Warnings: []api.ConfigProblem{},
	}
	if served != nil {
		out.Generation, out.Revision = served.Generation, served.Revision
	}
	for _, w := range next.Warnings {
		out.Warnings = append(out.Warnings, api.ConfigProblem{
			File: w.File, Line: w.Line, Column: w.Column, Path: w.Path, Code: w.Code, Message: w.Message, Warning: w.Warning,
		})
	}
	out.Hash = hashOf(out, items)
	if err := count(ctx, items, o); err != nil {
		return nil, err
	}
	if err := judge(ctx, items, served, next, o.Golden); err != nil {
		return nil, err
	}
	for _, it := range items {
		if it.job != nil {
			it.Detail += nextRuns(it.job, o.Now)
		}
		it.Object, it.Detail = next.Redact(it.Object), next.Redact(it.Detail)
		if served != nil {
			it.Object, it.Detail = served.Redact(it.Object), served.Redact(it.Detail)
		}
		out.Items = append(out.Items, it.PlanItem)
		out.Counts[it.Risk]++
		out.Risk = worse(out.Risk, it.Risk)
	}
	return out, nil
}

// item is one change, and what has to be found out about it.
type item struct {
	api.PlanItem

	test   *test         // what to count; nil: nothing
	job    *project.Job  // whose next runs are told; nil: none
	judged *judgedSearch // whose golden queries are asked; nil: of none
}

// raise gives the item a risk, unless it has a greater one.
func (it *item) raise(r api.Risk) { it.Risk = worse(it.Risk, r) }

func worse(a, b api.Risk) api.Risk {
	if b.Above(a) {
		return b
	}
	return a
}

// compare gives all changes, sorted.
func compare(served, next *project.Project) []*item {
	d := &differ{old: served, next: next}
	if served == nil {
		d.old = &project.Project{Config: &schema.Project{}}
		d.add("project", next.Namespace, api.PlanCreate, api.RiskSafe, "nothing is served yet")
	}
	d.settings()
	d.collections()
	d.actions()
	d.jobs()
	d.snapshots()
	d.assets()
	d.scripts()
	d.adminTokens()
	slices.SortStableFunc(d.items, func(a, b *item) int {
		return cmp.Or(
			cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), strings.Compare(a.Object, b.Object),
			strings.Compare(a.Action, b.Action), strings.Compare(a.Detail, b.Detail),
		)
	})
	return d.items
}

// kinds is the order of items.
var kinds = []string{ //nolint:gochecknoglobals // never written
	"project", "collection", "field", "index", "search", "permission", "token", "projection", "imageFilter", "hook", "script", "action", "job", "snapshot", "asset", "route",
}

// hashOf is the name of a plan: what is served, what would be, and what that changes. What records there are has no part in it,
// for they change all the time; the risk that they make is found out anew by a reload that caps it.
func hashOf(p *api.Plan, items []*item) string {
	h := sha256.New()
	write := func(words ...string) {
		for _, w := range words { // each with its length, so that none runs into the next
			_, _ = fmt.Fprintf(h, "%d:%s;", len(w), w) // never fails
		}
	}
	write(p.Namespace, p.Revision, p.Next)
	for _, it := range items {
		write(it.Kind, it.Object, it.Action, it.Detail)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// nextRuns tells when a job would run.
func nextRuns(j *project.Job, now time.Time) string {
	if j.Schedule == nil {
		return "; it runs by hand only"
	}
	var times []string
	for t := now; len(times) < 3; {
		if t = j.Schedule.Next(t); t.IsZero() {
			break
		}
		times = append(times, t.UTC().Format(time.RFC3339))
	}
	return "; next runs: " + strings.Join(times, ", ")
}
