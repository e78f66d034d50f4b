package hooks_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/script"
)

// Every member that a stage names is described, and what a stage may replace is there or made by it.
func TestStageTable(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, m := range schema.HookMembers() {
		known[m.Name] = true
	}
	for _, g := range append(schema.HookGroups(), schema.HookGroup{Name: "action", Stages: schema.ActionStages()}) {
		for _, s := range g.Stages {
			for _, name := range append(s.In, s.Out...) {
				if !known[name] {
					t.Errorf("%s.%s names %s, which nothing describes", g.Name, s.Name, name)
				}
			}
		}
	}
}

// failing is an engine that fails as it is told.
type failing struct{ err error }

func (f failing) Run(context.Context, script.Call) (script.Result, error) {
	return script.Result{}, f.err
}

func operation(t *testing.T, text string) *hooks.Operation {
	t.Helper()
	p, problems := script.Compile("hook.js", func(string) ([]byte, error) { return []byte(text), nil })
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return &hooks.Operation{
		Project: &project.Project{Namespace: "blog", Generation: 3, Hook: schema.DefaultHook()},
		Collection: &project.Collection{
			Name: "items", Hooks: map[string][]*project.Script{"post.bind": {{Program: p, Timeout: time.Second}}},
		},
		Method: "POST", Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Principal: &access.Principal{Kind: access.KindUser, ID: "1", Name: "ann", IsAdmin: true, Teams: []string{"editors"}},
		Request: &hooks.Request{
			ID: "r1", Query: url.Values{"a": {"1"}, "token": {"secret"}, "Token": {"secret"}},
			Headers: http.Header{"X-Color": {"red"}, "Authorization": {"Bearer secret"}, "Cookie": {"secret"}, "Token": {"secret"}, "X-Auth-Token": {"secret"}, "X-Admin-Token": {"secret"}},
		},
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	failure := func(reason script.Reason, cause error) error {
		return &script.Failure{Reason: reason, Script: "hooks/secret.js", Line: 3, Column: 4, Message: "secret", Cause: cause}
	}
	down := errs.New(errs.Unavailable, "store_down", "the store can't be reached")
	for name, tt := range map[string]struct {
		err    error
		kind   errs.Kind
		code   string
		status int
		again  time.Duration
	}{
		"thrown":                 {&script.Thrown{Status: 409, Message: "m"}, errs.Conflict, "script_error", 409, 0},
		"thrown oddly":           {&script.Thrown{Status: 418, Message: "m"}, errs.Invalid, "script_error", 418, 0},
		"thrown as ours":         {&script.Thrown{Status: 502, Message: "m"}, errs.Internal, "script_error", 502, 0},
		"exception":              {failure(script.Exception, nil), errs.Internal, "script_failed", 0, 0},
		"memory":                 {failure(script.Memory, nil), errs.Internal, "script_failed", 0, 0},
		"depth":                  {failure(script.Depth, nil), errs.Internal, "script_failed", 0, 0},
		"killed":                 {failure(script.Killed, nil), errs.Internal, "script_failed", 0, 0},
		"panic":                  {failure(script.Panic, nil), errs.Internal, "script_failed", 0, 0},
		"timeout":                {failure(script.Timeout, nil), errs.Timeout, "script_timeout", 0, 0},
		"busy":                   {failure(script.Busy, nil), errs.Unavailable, "script_busy", 0, time.Second},
		"suspended":              {failure(script.Suspended, nil), errs.Unavailable, "script_suspended", 0, 30 * time.Second},
		"canceled":               {failure(script.Canceled, nil), errs.Unavailable, "canceled", 0, 0},
		"the store is down":      {failure(script.Exception, down), errs.Unavailable, "store_down", 0, 0},
		"a host does not answer": {failure(script.Exception, errs.New(errs.Unavailable, "fetch_failed", "secret.example can't be reached")), errs.Unavailable, "fetch_failed", 0, 0},
		"a host is slow":         {failure(script.Exception, errs.New(errs.Timeout, "fetch_timeout", "secret.example did not answer in time")), errs.Timeout, "fetch_timeout", 0, 0},
		"what it wrote is bad":   {failure(script.Exception, errs.Validation(nil)), errs.Internal, "script_failed", 0, 0},
		"a hook behind it":       {failure(script.Exception, &errs.Error{Kind: errs.Conflict, Code: hooks.CodeThrown, Message: "m", Status: 409}), errs.Conflict, "script_error", 409, 0},
		"anything else":          {errors.New("secret"), errs.Internal, "internal", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := hooks.New(hooks.Options{Engine: failing{tt.err}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Run(t.Context(), operation(t, "module.exports = () => {}"), "post.bind", hooks.Members{"data": bson.D{}}, nil)
			e := errs.From(err)
			if e == nil || e.Kind != tt.kind || e.Code != tt.code || e.Status != tt.status || e.RetryAfter != tt.again || strings.Contains(e.Message, "secret") {
				t.Errorf("%+v", e)
			}
		})
	}
}

// A value that can't be the body is told of the script that gave it, and the next one never sees it.
func TestNoObjects(t *testing.T) {
	t.Parallel()
	engine := script.NewEngine(script.Options{})
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	for name, c := range map[string]struct{ first, want string }{
		"returned": {"module.exports = (ctx) => 42", "what it returned takes the place of ctx.data, and is no object; return nothing to keep what is there"},
		"null":     {"module.exports = (ctx) => null", "what it returned takes the place of ctx.data, and is no object; return nothing to keep what is there"},
		"set":      {"module.exports = (ctx) => { ctx.data = [1] }", "ctx.data must stay an object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			r, err := hooks.New(hooks.Options{Engine: engine, Log: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			op := operation(t, c.first)
			second, problems := script.Compile("second.js", func(string) ([]byte, error) {
				return []byte("module.exports = (ctx) => { ctx.data.x = 1; console.log('ran') }"), nil
			})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			op.Collection.Hooks["post.bind"] = append(op.Collection.Hooks["post.bind"], &project.Script{Program: second, Timeout: time.Second})
			_, err = r.Run(t.Context(), op, "post.bind", hooks.Members{"data": bson.D{}}, nil)
			if e := errs.From(err); e == nil || e.Code != "script_failed" {
				t.Errorf("got %v", err)
			}
			if text := log.String(); !strings.Contains(text, "at=hook.js") || !strings.Contains(text, c.want) || strings.Contains(text, "second.js") {
				t.Errorf("the log has %s", text)
			}
		})
	}
}

// What every stage has is there, and no credential is.
func TestContext(t *testing.T) {
	t.Parallel()
	engine := script.NewEngine(script.Options{})
	reg := prometheus.NewRegistry()
	r, err := hooks.New(hooks.Options{Engine: engine, Registerer: reg, Env: func(name string) (string, bool) { return "value of " + name, name != "NONE" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	op := operation(t, `module.exports = (ctx) => ({all: JSON.stringify({...ctx, state: ctx.state, error: undefined, log: undefined, data: undefined}), env: JSON.stringify(env), date: ctx.now instanceof Date})`)
	op.Project.Hook.Env = []string{"KEY", "NONE"}
	members := hooks.Members{"data": bson.D{}}
	out, err := r.Run(t.Context(), op, "post.bind", members, nil)
	if err != nil || !out.Changed("data") {
		t.Fatal(err)
	}
	got, ok := members["data"].(bson.D)
	if !ok {
		t.Fatalf("%v", members)
	}
	want := bson.D{
		{Key: "all", Value: `{"method":"POST","query":{"a":"1"},"headers":{"x-color":"red"},` +
			`"user":{"kind":"user","id":"1","name":"ann","isAdmin":true,"orgIds":[],"teamIds":[],"teams":["editors"]},` +
			`"project":{"namespace":"blog","generation":3},"collection":"items","lang":null,"now":"2026-01-02T03:04:05.000Z","stage":"post.bind","state":{}}`},
		{Key: "env", Value: `{"KEY":"value of KEY"}`},
		{Key: "date", Value: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	families, err := reg.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "svc_hook_duration_seconds" || families[0].GetMetric()[0].GetHistogram().GetSampleCount() != 1 {
		t.Errorf("%v %v", families, err)
	}
	if hooks.UserOf(access.Anonymous()) != nil {
		t.Error("nobody is somebody")
	}
}
