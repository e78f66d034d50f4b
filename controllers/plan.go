package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/plan"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/system"
)

// plansAtOnce is how many plans are made at a time: each compiles a config, and may read all records of a project.
const plansAtOnce = 2

// step is a change from one revision to another that somebody has looked at.
type step struct {
	from, to string
	by       system.Actor
}

// Plan tells what a reload would change, with the files on disk, or with those of a bundle, which then are read from
// nowhere else. An invalid config is a *project.ConfigError. Without counting, no records are looked at, and the worst is
// taken for each item that depends on them.
func (c *Control) Plan(ctx context.Context, id string, bundle *project.Bundle, counting bool) (*api.Plan, error) {
	p, _, err := c.plan(ctx, id, bundle, counting)
	return p, err
}

// place waits for one of some places, and gives what leaves it.
func place(ctx context.Context, places chan struct{}) (leave func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// plan makes a plan, and gives the revisions that it leads from and to.
func (c *Control) plan(ctx context.Context, id string, bundle *project.Bundle, counting bool) (*api.Plan, *step, error) {
	reg, err := c.Projects.ByID(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	leave, err := place(ctx, c.planning)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	served := c.Registry.ByID(id)
	next, err := c.next(reg, served, bundle)
	if err != nil {
		return nil, nil, err
	}
	if err := c.name(ctx, next, served, false); err != nil {
		return nil, nil, err
	}
	o := plan.Options{Now: c.Now(), Box: c.PlanTime}
	if bundle != nil {
		o.Golden.Queries, o.Golden.Problems = bundle.Goldens(next)
	} else {
		o.Golden.Queries, o.Golden.Problems = project.Goldens(next)
	}
	if counting {
		o.Records, o.Golden.Judge = plan.Stored(c.Store.Database(project.DatabaseName(reg.Namespace))), c.Judge
	}
	out, err := plan.Make(ctx, served, next, o)
	if err != nil {
		return nil, nil, err
	}
	return out, &step{from: out.Revision, to: out.Next, by: system.ActorOf(ctx)}, nil
}

// next compiles what would be served.
func (c *Control) next(reg system.Project, served *project.Project, bundle *project.Bundle) (*project.Project, error) {
	dir, entry, err := project.Locate(c.ProjectsDir, reg.ConfigFile)
	var p *project.Project
	switch {
	case bundle != nil:
		b := *bundle
		if served != nil {
			b.Entry = cmp.Or(b.Entry, served.Bundle.Entry)
		}
		if b.Entry = cmp.Or(b.Entry, entry); b.Entry == "" {
			return nil, err // the registration's file is gone, and nothing is served
		}
		bad := &project.ConfigError{}
		if p, bad.Problems = c.projects.loader.LoadUploaded(b, dir, served); p == nil {
			return nil, bad
		}
	case err != nil:
		return nil, err
	default:
		bad := &project.ConfigError{}
		if p, bad.Problems = c.projects.loader.Load(dir, entry); p == nil {
			return nil, bad
		}
	}
	if p.Namespace != reg.Namespace {
		return nil, errs.New(errs.Limit, "namespace_changed",
			"the files name the project %s, this registration is for %s: register it by itself", p.Namespace, reg.Namespace)
	}
	return p, nil
}

// ReloadPlanned is a Reload that is waited for, unless it would change something else than the plan with that hash, or has a
// greater risk than is allowed: then nothing changes. Either may be empty, for any.
func (c *Control) ReloadPlanned(ctx context.Context, id, hash string, allow api.Risk) error {
	if err := c.notSuspended(ctx, id); err != nil {
		return err
	}
	p, next, err := c.plan(ctx, id, nil, true)
	if err != nil {
		return err
	}
	if hash != "" && hash != p.Hash {
		return errPlanChanged
	}
	if allow != "" && p.Risk.Above(allow) {
		return tooRisky(p, allow)
	}
	done := c.projects.expect(id, next)
	defer done()
	c.indexes.request(id, 0)
	if err := c.Manager.ReconcileNow(ctx, projectController, id); err != nil {
		return err
	}
	if now := c.Registry.ByID(id); now == nil || now.Revision != next.to {
		return errPlanChanged // between the plan and the reload
	}
	return c.Manager.Trigger(indexController, id)
}

var errPlanChanged = errs.New(errs.Conflict, "plan_changed",
	"what a reload would change is not what was planned any more: the files, or what is served, have changed meanwhile; look at the plan again, and reload with its hash")

// tooRisky names what is above the risk that is allowed.
func tooRisky(p *api.Plan, allow api.Risk) error {
	var above []string
	more := 0
	for _, it := range p.Items {
		switch {
		case !it.Risk.Above(allow):
		case len(above) < 10:
			above = append(above, fmt.Sprintf("%s %s %s (%s)", it.Action, it.Kind, it.Object, it.Risk))
		default:
			more++
		}
	}
	if more > 0 {
		above = append(above, fmt.Sprintf("and %d more", more))
	}
	return errs.New(errs.Limit, "plan_above_risk", "nothing was changed: above the allowed risk %s are: %s; allow %s, or change the files",
		allow, strings.Join(above, ", "), p.Risk)
}

// expect has the next runs of a key serve what they find, whatever the watch mode, if that is this one step. It gives the
// call that ends that.
func (r *projectReconciler) expect(id string, s *step) (done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expected[id] = append(r.expected[id], s)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.expected[id] = slices.DeleteFunc(r.expected[id], func(x *step) bool { return x == s }); len(r.expected[id]) == 0 {
			delete(r.expected, id)
		}
	}
}

// expecting says that a step is expected.
func (r *projectReconciler) expecting(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.expected[id]) > 0
}

// expects says who waits for the step from what is served, which may be nil, to p; nil: nobody does.
func (r *projectReconciler) expects(id string, served, p *project.Project) asked {
	from := ""
	if served != nil {
		from = served.Revision
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.expected[id] {
		if s.from == from && s.to == p.Revision {
			return &s.by
		}
	}
	return nil
}
