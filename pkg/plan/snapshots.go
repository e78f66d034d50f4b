package plan

import (
	"strconv"
	"strings"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
)

// snapshots compares the profiles of snapshots. Snapshots that there are stay, but for what a retention removes that keeps less.
func (d *differ) snapshots() {
	byName := func(p *project.Project) map[string]*schema.Snapshot {
		out := map[string]*schema.Snapshot{}
		for _, s := range p.Config.Snapshots {
			out[s.Name] = s
		}
		return out
	}
	a, b := byName(d.old), byName(d.next)
	for _, name := range both(a, b) {
		old, next := a[name], b[name]
		switch changed := members(old, next); {
		case old == nil:
			d.add("snapshot", name, api.PlanCreate, api.RiskSafe, taken(next))
		case next == nil:
			d.add("snapshot", name, api.PlanDelete, api.RiskBreaking, "is not taken any more; snapshots of it stay")
		case len(changed) > 0:
			risk, detail := api.RiskSafe, strings.Join(changed, ", ")+" changes"
			if taken(old) != taken(next) {
				detail += "; " + taken(next) + ", before " + taken(old)
			}
			if keepsLess(old, next) {
				risk = api.RiskDestructive
				detail += "; snapshots that it does not keep are removed"
			}
			d.add("snapshot", name, api.PlanUpdate, risk, detail)
		}
	}
}

func taken(s *schema.Snapshot) string {
	switch {
	case !s.Enabled:
		return "by hand"
	case s.Schedule == "":
		return "enabled, without a schedule"
	}
	return "schedule " + strconv.Quote(string(s.Schedule))
}

// keepsLess says that snapshots may be removed that were not before.
func keepsLess(old, next *schema.Snapshot) bool {
	if !next.Enabled || next.Retention == nil {
		return false
	}
	if !old.Enabled || old.Retention == nil {
		return true
	}
	a, b := counts(old.Retention), counts(next.Retention)
	for i := range a {
		if b[i] < a[i] {
			return true
		}
	}
	return false
}

// counts are the counts and parts of the span of a retention: one in which none is less keeps no less.
func counts(r *schema.Retention) [10]int {
	w := r.KeepWithin
	return [10]int{r.KeepLast, r.KeepHourly, r.KeepDaily, r.KeepWeekly, r.KeepMonthly, r.KeepYearly, w.Years, w.Months, w.Days, w.Hours}
}
