package plan

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
)

// hooks compares which scripts the stages of a collection have. What is in them is an item of its own.
func (d *differ) hooks(collection string, old, next *project.Collection) {
	stages := func(c *project.Collection) map[string][]schema.Script {
		out := map[string][]schema.Script{}
		if c.Config.Hooks == nil {
			return out
		}
		for group, of := range *c.Config.Hooks {
			for stage, entries := range of {
				if len(entries) > 0 {
					out[group+"."+stage] = entries
				}
			}
		}
		return out
	}
	a, b := stages(old), stages(next)
	for _, stage := range both(a, b) {
		d.stage("hook", collection+" "+stage, a[stage], b[stage])
	}
}

// stage compares the scripts of one stage.
func (d *differ) stage(kind, object string, old, next []schema.Script) {
	files := func(scripts []schema.Script) string {
		var names []string
		for _, s := range scripts {
			names = append(names, s.File)
		}
		return strings.Join(names, ", ")
	}
	switch {
	case len(old) == 0 && len(next) > 0:
		d.add(kind, object, api.PlanCreate, api.RiskSafe, "runs "+files(next)+"; what it does is not judged")
	case len(next) == 0 && len(old) > 0:
		d.add(kind, object, api.PlanDelete, api.RiskBreaking, files(old)+" does not run any more")
	case !reflect.DeepEqual(old, next):
		d.add(kind, object, api.PlanUpdate, api.RiskSafe, "runs "+files(next)+", before "+files(old)+", or for another time; what it does is not judged")
	}
}

// scripts compares what is in the files of scripts.
func (d *differ) scripts() {
	hashes := func(p *project.Project) map[string]string {
		sums, out := map[string]string{}, map[string]string{}
		for _, f := range p.Files {
			sums[f.Name] = f.SHA256
		}
		for s := range p.Scripts() {
			for _, name := range s.Program.Files() {
				if sum, ok := sums[name]; ok {
					out[name] = sum
				}
			}
		}
		return out
	}
	a, b := hashes(d.old), hashes(d.next)
	for _, name := range both(a, b) {
		switch {
		case a[name] == "":
			d.add("script", name, api.PlanCreate, api.RiskSafe, "is new; what it does is not judged")
		case b[name] == "":
			d.add("script", name, api.PlanDelete, api.RiskSafe, "nothing runs it any more")
		case a[name] != b[name]:
			d.add("script", name, api.PlanUpdate, api.RiskSafe, "has changed; what it does is not judged")
		}
	}
}

func (d *differ) actions() {
	for _, name := range both(d.old.Actions, d.next.Actions) {
		old, next := d.old.Actions[name], d.next.Actions[name]
		switch {
		case old == nil:
			d.add("action", name, api.PlanCreate, api.RiskSafe, "is new")
			d.fresh = true
			d.permissions(name, &schema.Permissions{}, next.Config.Permissions, "of action")
			d.fresh = false
			old = &project.Action{}
		case next == nil:
			d.add("action", name, api.PlanDelete, api.RiskBreaking, "can't be called any more")
			next = &project.Action{}
		default:
			d.action(old, next)
		}
		for _, m := range []access.Method{access.Get, access.Post} {
			path := strings.ToUpper(m.String()) + " " + d.path("_/actions/"+name)
			switch was, is := old.Methods[m] != nil, next.Methods[m] != nil; {
			case is && !was:
				d.route(path, api.PlanCreate)
			case was && !is:
				d.route(path, api.PlanDelete)
			}
		}
	}
}

func (d *differ) action(old, next *project.Action) {
	name := next.Name
	for _, member := range without(members(old.Config, next.Config), "meta", "permissions", "hooks", "audit") {
		d.add("action", name, api.PlanUpdate, memberRisk("action", member), member+" changes")
	}
	for _, member := range members(old.Config.Meta, next.Config.Meta) {
		risk := api.RiskSafe
		if member == "methods" { // what it takes, and how it answers
			risk = api.RiskBreaking
		}
		d.add("action", name, api.PlanUpdate, risk, "meta."+member+" changes")
	}
	d.audit("action", name, old.Config.Audit, next.Config.Audit)
	d.permissions(name, old.Config.Permissions, next.Config.Permissions, "of action")
	stages := func(a *project.Action) map[string][]schema.Script {
		if a.Config.Hooks == nil {
			return nil
		}
		return *a.Config.Hooks
	}
	a, b := stages(old), stages(next)
	for _, stage := range both(a, b) {
		d.stage("hook", "action "+name+" "+stage, a[stage], b[stage])
	}
}

func (d *differ) jobs() {
	byName := func(p *project.Project) map[string]*project.Job {
		out := map[string]*project.Job{}
		for _, j := range p.Jobs {
			out[j.Name] = j
		}
		return out
	}
	a, b := byName(d.old), byName(d.next)
	for _, name := range both(a, b) {
		switch old, next := a[name], b[name]; {
		case old == nil:
			d.add("job", name, api.PlanCreate, api.RiskSafe, schedule(next)).job = next
		case next == nil:
			d.add("job", name, api.PlanDelete, api.RiskBreaking, "does not run any more")
		case !reflect.DeepEqual(old.Config, next.Config):
			detail := strings.Join(members(old.Config, next.Config), ", ") + " changes"
			if old.Config.Cron != next.Config.Cron {
				detail += "; " + schedule(next) + ", before " + schedule(old)
			}
			d.add("job", name, api.PlanUpdate, api.RiskSafe, detail).job = next
		}
	}
}

func schedule(j *project.Job) string {
	if j.Config.Cron == "" {
		return "without a schedule"
	}
	return "schedule " + strconv.Quote(string(j.Config.Cron))
}

func (d *differ) assets() {
	byName := func(p *project.Project) map[string]project.Asset {
		out := map[string]project.Asset{}
		for _, a := range p.Assets {
			out[a.Name] = a
		}
		return out
	}
	a, b := byName(d.old), byName(d.next)
	for _, name := range both(a, b) {
		old, was := a[name]
		next, is := b[name]
		switch {
		case !was:
			risk := api.RiskBreaking
			if d.old.Namespace == "" {
				risk = api.RiskSafe
			}
			d.add("asset", name, api.PlanCreate, risk, "wider: everybody may read the files in "+next.Path)
			d.route(d.path("_/assets/"+name), api.PlanCreate)
		case !is:
			d.add("asset", name, api.PlanDelete, api.RiskBreaking, "the files in "+old.Path+" are not served any more")
			d.route(d.path("_/assets/"+name), api.PlanDelete)
		case old != next:
			d.add("asset", name, api.PlanUpdate, api.RiskBreaking, "wider: everybody may read the files in "+next.Path+", in place of those in "+old.Path)
		}
	}
}
