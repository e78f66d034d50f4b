package plan

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/search/quality"
)

// Judge tells how well a search of a project answers golden queries that were compiled against it, with the records that they give: no
// record of the service is read, and nothing is changed.
type Judge interface {
	Judge(ctx context.Context, p *project.Project, g *project.Golden) (quality.Report, error)
}

// Golden is what golden queries a plan has. They are asked where a search changes, as it is served and as it would be.
type Golden struct {
	Queries  []*project.Golden // of the next config
	Problems schema.Problems   // of files that can't be asked for them
	Judge    Judge             // nil: none are asked, which counts as if they failed
	Time     time.Duration     // how long they are asked for one plan; 0: DefaultJudgeTime
}

// DefaultJudgeTime is how long golden queries are asked for one plan.
const DefaultJudgeTime = 10 * time.Second

// judgedSearch is a search whose answers may be others.
type judgedSearch struct{ collection, search string }

// judge asks the golden queries of searches that change. What can't be found out is told, and taken for the worst.
func judge(ctx context.Context, items []*item, served, next *project.Project, o Golden) error {
	items = slices.DeleteFunc(slices.Clone(items), func(it *item) bool { return it.judged == nil })
	if len(items) == 0 {
		return nil
	}
	if o.Problems.Err() {
		i := slices.IndexFunc(o.Problems, func(p schema.Problem) bool { return !p.Warning })
		items[0].unasked("golden queries", o.Problems[i].String())
	}
	if o.Time <= 0 {
		o.Time = DefaultJudgeTime
	}
	box, cancel := context.WithTimeout(ctx, o.Time)
	defer cancel()
	for _, g := range o.Queries {
		it := touchedBy(items, g)
		if it == nil {
			continue
		}
		name := "golden " + g.Name()
		if o.Judge == nil {
			it.unasked(name, "they are for files of the service, and for administrators")
			continue
		}
		after, err := o.Judge.Judge(box, next, g)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case box.Err() != nil:
			it.unasked(name, "there was no time for it")
			continue
		case err != nil:
			it.unasked(name, err.Error())
			continue
		}
		var before *quality.Report
		if old, bad := project.CompileGolden(served, g.LoadedGolden); !bad.Err() {
			if r, err := o.Judge.Judge(box, served, old); err == nil {
				before = &r
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		it.judgedAs(name, quality.Gates(g.Gates), before, after)
	}
	return nil
}

// touchedBy gives the item that changes what golden queries get: that of their search, else of one that it is fused of.
func touchedBy(items []*item, g *project.Golden) *item {
	of := func(name string) *item {
		for _, it := range items {
			if *it.judged == (judgedSearch{g.Of.Name, name}) {
				return it
			}
		}
		return nil
	}
	if it := of(g.Config.Name); it != nil || g.Config.Mode != search.RRF {
		return it
	}
	for _, s := range g.Config.Sources {
		if it := of(s.Name); it != nil {
			return it
		}
	}
	return nil
}

// judgedAs tells what golden queries give, and that a gate fails.
func (it *item) judgedAs(name string, gates quality.Gates, before *quality.Report, after quality.Report) {
	var was []quality.Gate
	if before != nil {
		was = gates.Of(*before)
	}
	var parts []string
	for i, g := range gates.Of(after) {
		text := g.Measure + " "
		if was != nil {
			if !g.Asked && math.Abs(was[i].Got-g.Got) < 0.005 {
				continue
			}
			text += was[i].Rounded() + " -> "
		} else if !g.Asked {
			continue
		}
		text += g.Rounded()
		if g.Asked {
			text += " (gate " + g.LeastText() + ")"
		}
		if !g.Held {
			text += ": below"
			it.raise(api.RiskBreaking)
		}
		parts = append(parts, text)
	}
	it.Detail += fmt.Sprintf("; %s: %s", name, strings.Join(parts, ", "))
}

// unasked takes the worst for golden queries that could not be asked.
func (it *item) unasked(name, why string) {
	it.Detail += fmt.Sprintf("; %s: not evaluated: %s", name, why)
	it.raise(api.RiskBreaking)
}
