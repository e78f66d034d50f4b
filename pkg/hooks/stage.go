package hooks

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/script"
)

// maxDepth is how deep hooks may lead to hooks: a hook that writes, whose write has a hook, and so on.
const maxDepth = 5

type depthKey struct{}

// depthOf is how many hooks led to here.
func depthOf(ctx context.Context) int {
	n, _ := ctx.Value(depthKey{}).(int)
	return n
}

// Members are the members of ctx that a stage has beside those of every stage, with their values.
type Members map[string]any

// Outcome is what the scripts of a stage gave back.
type Outcome struct {
	Problems []errs.FieldError // of a validate stage
	changed  []string
}

// Changed says whether a member was replaced; its new value is in Members.
func (o *Outcome) Changed(member string) bool { return slices.Contains(o.changed, member) }

// stageOf finds a stage in the table.
func stageOf(name string) schema.HookStage {
	group, short, _ := strings.Cut(name, ".")
	for _, g := range schema.HookGroups() {
		if g.Name != group {
			continue
		}
		for _, s := range g.Stages {
			if s.Name == short {
				return s
			}
		}
	}
	return schema.HookStage{}
}

// Run runs the scripts of a stage ("post.create") one after the other, each on what the one before made of the members.
// Of a handle stage, those behind the first that returns something do not run. members are replaced in place. host is
// what modules ask.
func (r *Runner) Run(ctx context.Context, op *Operation, name string, members Members, host func(file string) script.RunHost) (Outcome, error) {
	var out Outcome
	stage := stageOf(name)
	for _, s := range op.Collection.Hooks[name] {
		result, err := r.runHook(ctx, op, name, s, stage, members, host)
		if err != nil {
			return out, err
		}
		if strings.HasSuffix(name, ".validate") {
			problems, err := Problems(result.Value)
			if err != nil {
				return out, r.fail(ctx, op, name, &script.Failure{Reason: script.Exception, Script: s.Program.Name(), Message: err.Error()})
			}
			out.Problems = append(out.Problems, problems...)
			continue
		}
		if out.take(stage, result, members) {
			op.changers = append(op.changers, changer{name, s.Program.Name()})
			if stage.Name == "handle" {
				break
			}
			if err := r.checkObjects(ctx, op, name, members, result); err != nil { // before the next script trips over it
				return out, err
			}
		}
	}
	return out, nil
}

// checkObjects refuses what a script has put in the place of data or doc, if that is no object.
func (r *Runner) checkObjects(ctx context.Context, op *Operation, stage string, members Members, result script.Result) error {
	for _, name := range []string{"data", "doc"} {
		switch members[name].(type) {
		case nil:
			if _, there := members[name]; !there {
				continue
			}
		case bson.D, bson.Raw:
			continue
		}
		message := "ctx." + name + " must stay an object"
		if result.Returned {
			message = "what it returned takes the place of ctx." + name + ", and is no object; return nothing to keep what is there"
		}
		return r.Bad(ctx, op, stage, message)
	}
	return nil
}

// take puts what a script gave back into the members, and says whether that is something.
func (o *Outcome) take(stage schema.HookStage, result script.Result, members Members) bool {
	some := false
	set := func(name string, v any) {
		if !o.Changed(name) {
			o.changed = append(o.changed, name)
		}
		members[name], some = v, true
	}
	for _, name := range stage.Out {
		if v, changed := result.Get(name); changed {
			set(name, v)
		}
	}
	if result.Returned && len(stage.Out) > 0 {
		set(returnedMember(stage, members), result.Value)
	}
	return some
}

// returnedMember is the member that a returned value replaces: the first one that may be replaced and is there, or the
// first.
func returnedMember(stage schema.HookStage, members Members) string {
	for _, name := range stage.Out {
		if _, ok := members[name]; ok {
			return name
		}
	}
	return stage.Out[0]
}

// runHook runs one script of a stage.
func (r *Runner) runHook(
	ctx context.Context, op *Operation, name string, s *project.Script, stage schema.HookStage, members Members, host func(file string) script.RunHost,
) (script.Result, error) {
	if depthOf(ctx) >= maxDepth {
		return script.Result{}, r.fail(ctx, op, name, &script.Failure{
			Reason: script.Depth, Script: s.Program.Name(), Message: "hooks led to hooks more than 5 deep: the chain is broken here",
		})
	}
	ctx = context.WithValue(ctx, depthKey{}, depthOf(ctx)+1)
	c := r.call(ctx, op, name, s, len(stage.In))
	for _, member := range stage.In {
		v, there := members[member]
		if !there {
			continue
		}
		c.Ctx = append(c.Ctx, script.Member{Name: member, Value: v, Out: slices.Contains(stage.Out, member)})
	}
	if host != nil {
		reach := host(s.Program.Name())
		defer reach.Close()
		c.Host = reach
	}
	result, err := r.execute(ctx, op, name, c)
	if state, changed := result.Get("state"); changed {
		op.state = state
	}
	return result, err
}

// execute runs a script and takes down how it went. stage is what logs and metrics call its place.
func (r *Runner) execute(ctx context.Context, op *Operation, stage string, c script.Call) (script.Result, error) {
	start := time.Now()
	result, err := r.opts.Engine.Run(ctx, c)
	r.metrics.ran(op, stage, time.Since(start), err)
	if r.opts.Recorder != nil {
		r.opts.Recorder.HookRan(op.Project.Namespace, op.Collection.Name, stage, c.Program.Name(), err)
	}
	if err != nil {
		return script.Result{}, r.fail(ctx, op, stage, err)
	}
	return result, nil
}

// call is a call of a script with the settings of its project. Its ctx has room for so many members that only this stage has.
func (r *Runner) call(ctx context.Context, op *Operation, stage string, s *project.Script, room int) script.Call {
	hook, common := op.Project.Hook, op.members()
	own := append(make([]script.Member, 0, 2+room), script.Member{Name: "stage", Value: stage}, script.Member{Name: "state", Value: op.state, Out: true})
	return script.Call{
		Project: op.Project.Namespace, Program: s.Program, Common: common, Ctx: own,
		Limits:  script.Limits{Timeout: s.Timeout, Memory: int64(hook.Memory)},
		Isolate: hook.Isolation == "process",
		Log:     Lines(ctx, r.log, s.Program.Name(), func() []slog.Attr { return where(op, stage) }),
		Env:     r.Env(op.Project),
	}
}

// Env gives the environment variables that scripts of a project may read.
func (r *Runner) Env(p *project.Project) map[string]string {
	if len(p.Hook.Env) == 0 || r.opts.Env == nil {
		return nil
	}
	env := make(map[string]string, len(p.Hook.Env))
	for _, name := range p.Hook.Env {
		if v, ok := r.opts.Env(name); ok {
			env[name] = v
		}
	}
	return env
}
