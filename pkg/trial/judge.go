package trial

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"

	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/script"
	"github.com/svcctl/svc/pkg/search/quality"
	"github.com/svcctl/svc/pkg/trial/report"
)

// Judge measures searches within the service, for plans (plan.Judge): as Run does, but that no script of the project runs, for it may
// be the config of somebody who may not have the service run any. Hooks are left out; where scripts say who may read what,
// golden queries can't be asked.
type Judge struct{}

// errScripted is for rules that can't be known without running a script.
var errScripted = errors.New("scripts say who may read what, and a plan runs none; svcctl project test asks them")

// Judge measures the search of golden queries that were compiled against a project, with the records that they give.
func (Judge) Judge(ctx context.Context, p *project.Project, g *project.Golden) (r quality.Report, err error) {
	if len(g.Of.Filters)+len(g.Of.Evals) > 0 {
		return r, errScripted
	}
	j := goldenJob(g.LoadedGolden)
	b := &bench{job: j, ctx: alone{ctx}, given: givenOf(j), out: &report.Case{}}
	b.clock, b.project = &clock{t: b.given.Clock}, bare(p)
	b.project.OrgID = b.given.Org
	if g, bad := project.CompileGolden(b.project, g.LoadedGolden); !bad.Err() {
		r, err = b.judged(g)
	} else {
		err = errors.New(bad[0].Message)
	}
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	return r, err
}

// alone is a context that ends when another one does, and has nothing else of it: the request that a plan is made for is none of the
// sandbox's.
type alone struct{ context.Context } //nolint:containedctx // it is one

// Value gives nothing.
func (alone) Value(any) any { return nil }

func (b *bench) judged(g *project.Golden) (r quality.Report, err error) {
	b.box, err = app.NewSandbox(b.ctx, app.SandboxOptions{
		Project: b.project, Now: b.clock.now, Env: lookup(b.given.Env), Answers: noAnswers{}, Logger: slog.New(slog.DiscardHandler),
		Observe: func(hooks.Engine) hooks.Engine { return noScripts{} },
	})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, b.box.Close(b.ctx)) }()
	if b.insertAll() {
		r, _ = b.measure(g, principal(g.As))
	}
	if len(b.out.Failures) > 0 {
		f := b.out.Failures[0]
		return r, fmt.Errorf("%s:%d:%d: %s", f.File, f.Line, f.Column, strings.TrimSpace(f.Path+" "+f.Message))
	}
	return r, nil
}

// bare is a project of a sandbox, without what scripts do when records are read and written.
func bare(p *project.Project) *project.Project {
	out := *p
	out.ID, out.Generation, out.Suspended, out.FieldNames = sandboxID, 1, false, nil
	out.Collections = maps.Clone(p.Collections)
	for name, c := range out.Collections {
		own := *c
		own.Hooks, own.Validators, own.Audit = nil, nil, nil
		own.Stored, own.Before, own.FieldNames = "", nil, nil // the store is new
		out.Collections[name] = &own
	}
	return &out
}

// noScripts runs nothing.
type noScripts struct{}

var errNoScripts = errs.New(errs.Unavailable, "not_in_plans", "a plan runs no script")

func (noScripts) Run(context.Context, script.Call) (script.Result, error) {
	return script.Result{}, errNoScripts
}

// noAnswers answers no outbound request.
type noAnswers struct{}

func (noAnswers) RoundTrip(*http.Request) (*http.Response, error) { return nil, errNoScripts }
