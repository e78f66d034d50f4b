package actions

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/script"
)

// Do calls an action: body is what came with it, nil for nothing. A sync one gives its answer. Of the others the query and
// the data are checked, the stage validate too, and the rest goes on as the run that it gives.
func (s *Service) Do(ctx context.Context, c *Call, body bson.D) (*Answer, *operation.Run, error) {
	m := c.Action.Methods[c.Method]
	if m == nil {
		return nil, nil, errNoMethod
	}
	in, err := inputOf(c.Action, m, c.Request.Query, body, c.Project.LooseQuery, s.now())
	if err != nil {
		return nil, nil, err
	}
	x := s.execution(c, m, in)
	if err := x.validate(ctx); err != nil {
		return nil, nil, err
	}
	kept, err := x.kept()
	if err != nil {
		return nil, nil, err
	}
	id := ""
	if m.Long() {
		id = strings.ToLower(rand.Text()) // whoever started it without a name knows nothing else of it: it can't be guessed
	}
	if err := s.audited(ctx, c, id, kept); err != nil {
		return nil, nil, err
	}
	if !m.Long() {
		answer, _, err := x.perform(ctx, nil)
		return answer, nil, err
	}
	run, err := s.opts.Runs.Start(ctx, operation.Spec{
		Database: project.DatabaseName(c.Project.Namespace), Kind: operation.Action, Name: c.Action.Name, ID: id,
		Trigger: operation.Call, By: actorOf(c.Principal), Input: kept, Cancellable: m.Cancellable,
	}, func(ctx context.Context, live *operation.Live) (operation.Outcome, error) {
		_, outcome, err := x.perform(ctx, live)
		return outcome, err
	})
	return nil, run, err
}

// audited writes the entry of a call, before anything is done: what can't be logged doesn't happen.
func (s *Service) audited(ctx context.Context, c *Call, run string, kept bson.Raw) error {
	log := c.Action.Audit
	if log == nil || len(log.Methods) == 0 || c.Method != log.Methods[0] {
		return nil
	}
	e := audit.Entry{
		Kind: audit.Actions, Op: audit.OpCall, Namespace: c.Project.Namespace,
		Collection: access.ActionScope(c.Action.Name), RecordID: run,
	}
	if log.Retention > 0 {
		e.Expires = s.now().Add(log.Retention)
	}
	var err error
	if e.After, err = audit.State(kept, nil); err != nil {
		return err
	}
	return s.opts.Audit.Of(project.DatabaseName(c.Project.Namespace)).Append(ctx, e)
}

// execution is one call on its way. It is for one goroutine at a time.
type execution struct {
	s    *Service
	call *Call
	m    *project.ActionMethod
	in   input

	common []script.Member
	state  any
	run    any // {id} of a run, nil else
	live   *operation.Live
}

func (s *Service) execution(c *Call, m *project.ActionMethod, in input) *execution {
	x := &execution{s: s, call: c, m: m, in: in, state: bson.D{}}
	data := any(nil)
	if in.data != nil {
		data = in.data
	}
	x.common = []script.Member{
		{Name: "method", Value: strings.ToUpper(c.Method.String())},
		{Name: "query", Value: in.query},
		{Name: "headers", Value: hooks.HeadersOf(c.Request)},
		{Name: "user", Value: hooks.UserOf(c.Principal)},
		{Name: "project", Value: hooks.ProjectOf(c.Project)},
		{Name: "action", Value: c.Action.Name},
		{Name: "lang", Value: hooks.LangOf(c.Request)},
		{Name: "now", Value: s.now()},
		{Name: "data", Value: data},
	}
	return x
}

// kept is the input without what is secret.
func (x *execution) kept() (bson.Raw, error) {
	raw, err := document.Marshal(x.in.kept())
	if err != nil {
		return nil, err
	}
	return audit.State(raw, x.m.Secret)
}

// validate runs the stage validate.
func (x *execution) validate(ctx context.Context) error {
	var problems []errs.FieldError
	for _, sc := range x.call.Action.Validate {
		result, err := x.script(ctx, "validate", sc, nil)
		if err != nil {
			return err
		}
		found, err := hooks.Problems(result.Value)
		if err != nil {
			return x.failed(ctx, "validate", &script.Failure{Reason: script.Exception, Script: sc.Program.Name(), Message: err.Error()})
		}
		problems = append(problems, found...)
	}
	if len(problems) > 0 {
		return errs.Validation(problems)
	}
	return nil
}

// perform runs the stages handle and return, and makes the answer. live is the run, or nil.
func (x *execution) perform(ctx context.Context, live *operation.Live) (*Answer, operation.Outcome, error) {
	if live != nil {
		x.live, x.run = live, bson.D{{Key: "id", Value: live.Run().ID}}
	}
	var result any
	response := any(newResponse())
	returned := false
	for _, stage := range []struct {
		name    string
		scripts []*project.Script
	}{{"handle", x.call.Action.Handle}, {"return", x.call.Action.Return}} {
		for _, sc := range stage.scripts {
			more := []script.Member{{Name: "run", Value: x.run}, {Name: "response", Value: response, Out: true}}
			if stage.name == "return" || returned {
				more = append(more, script.Member{Name: "result", Value: result, Out: true})
			}
			out, err := x.script(ctx, stage.name, sc, more)
			if err != nil {
				return nil, operation.Outcome{}, err
			}
			if v, changed := out.Get("response"); changed {
				response = v
			}
			if v, changed := out.Get("result"); changed {
				result, returned = v, true
			}
			if out.Returned {
				result, returned = out.Value, true
			}
		}
	}
	answer, problem := newAnswer(result, returned, response)
	if problem != "" {
		scripts := x.call.Action.Handle
		return nil, operation.Outcome{}, x.failed(ctx, "handle", &script.Failure{Reason: script.Exception, Script: scripts[len(scripts)-1].Program.Name(), Message: problem})
	}
	if live == nil {
		return answer, operation.Outcome{}, nil
	}
	outcome := operation.Outcome{Result: bson.D{{Key: "value", Value: result}, {Key: "returned", Value: returned}, {Key: "response", Value: response}}}
	if out := outputOf(x.m.Mapping, result); len(out) > 0 {
		outcome.Output = out
	}
	return answer, outcome, nil
}

// script runs one script of a stage.
func (x *execution) script(ctx context.Context, stage string, sc *project.Script, more []script.Member) (script.Result, error) {
	hook, p := x.call.Project.Hook, x.call.Project
	host := x.s.opts.Host(x.call, sc.Program.Name(), x.live)
	defer host.Close()
	members := append([]script.Member{{Name: "stage", Value: "action." + stage}, {Name: "state", Value: x.state, Out: true}}, x.common...)
	c := script.Call{
		Project: p.Namespace, Program: sc.Program, Ctx: append(members, more...),
		Limits:  script.Limits{Timeout: sc.Timeout, Memory: int64(hook.Memory)},
		Isolate: hook.Isolation == "process" || x.live != nil && hook.Isolation != "none", Long: x.live != nil,
		Env:  x.s.opts.Env(p),
		Host: host,
		Log:  hooks.Lines(ctx, x.s.log, sc.Program.Name(), func() []slog.Attr { return x.where(stage) }),

		Progress: func(any) {}, // a sync call has nobody to tell
	}
	if x.live != nil {
		c.Progress = func(v any) { x.live.Progress(progressOf(x.m.Mapping, v)) }
		toLog := c.Log
		c.Log = func(l script.Line) {
			toLog(l)
			x.live.Log(l.SlogLevel(), l.Message)
		}
	}
	result, err := x.s.opts.Engine.Run(ctx, c)
	if err != nil {
		return result, x.failed(ctx, stage, err)
	}
	if v, changed := result.Get("state"); changed {
		x.state = v
	}
	return result, nil
}

func (x *execution) failed(ctx context.Context, stage string, err error) error {
	if f, ok := errors.AsType[*script.Failure](err); ok && f.Reason != script.Canceled && x.live != nil {
		x.live.Log(slog.LevelError, f.Error())
	}
	return hooks.Fail(ctx, x.s.log, err, x.where(stage))
}

// where names the call in the log.
func (x *execution) where(stage string) []slog.Attr {
	out := []slog.Attr{
		slog.String("namespace", x.call.Project.Namespace), slog.String("action", x.call.Action.Name), slog.String("stage", stage),
		slog.String("request_id", x.call.Request.ID),
	}
	if x.live != nil {
		out = append(out, slog.String("run", x.live.Run().ID))
	}
	return out
}

// newResponse is ctx.response before the script touches it.
func newResponse() bson.D {
	return bson.D{{Key: "status", Value: int32(http.StatusOK)}, {Key: "type", Value: nil}, {Key: "headers", Value: bson.D{}}}
}
