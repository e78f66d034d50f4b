package trial

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/script"
	"github.com/svcctl/svc/pkg/trial/report"
)

// leastTime is what every script may take at least, whatever its limit: a test does not fail because the machine is slow.
const leastTime = 2 * time.Second

// observer sees every run of a script, and every decision of permissions, of one case.
type observer struct {
	engine hooks.Engine

	mu       sync.Mutex
	programs map[*script.Program]*script.Program // of the case alone: that a script ran away in another one is no matter here
	method   access.Method                       // of the request under way; 0: any counts
	step     []string                            // the hooks that ran in this step
	texts    []string                            // what scripts logged in this step
	let      map[ruleKey]bool                    // the rules that let somebody in, in this step: they are asked more than once
	logs     []report.ScriptLog
	failures []report.Script
	rules    map[ruleKey]int
	scripts  map[scriptKey]int
}

type ruleKey struct {
	of, set string
	method  access.Method
}

type scriptKey struct{ kind, of, place, file string }

func newObserver() *observer {
	return &observer{
		programs: map[*script.Program]*script.Program{},
		let:      map[ruleKey]bool{}, rules: map[ruleKey]int{}, scripts: map[scriptKey]int{},
	}
}

// begin forgets what was of the step before. Only decisions about method count, for a write asks what may be read, too.
func (o *observer) begin(method access.Method) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.method, o.step, o.texts, o.let = method, nil, nil, map[ruleKey]bool{}
}

// Run runs a script and takes down how it went.
func (o *observer) Run(ctx context.Context, c script.Call) (script.Result, error) {
	key := keyOf(c)
	o.mu.Lock()
	if o.programs[c.Program] == nil {
		o.programs[c.Program] = c.Program.Fresh()
	}
	c.Program = o.programs[c.Program]
	o.scripts[key]++
	if name := key.hook(); name != "" {
		o.step = append(o.step, name)
	}
	o.mu.Unlock()
	log := c.Log
	c.Log = func(l script.Line) {
		o.mu.Lock()
		o.logs = append(o.logs, report.ScriptLog{Level: l.Level, Script: c.Program.Name(), Text: l.Message})
		o.texts = append(o.texts, l.Message)
		o.mu.Unlock()
		if log != nil {
			log(l)
		}
	}
	if c.Limits.Timeout > 0 {
		c.Limits.Timeout = max(c.Limits.Timeout, leastTime)
	}
	result, err := o.engine.Run(ctx, c)
	if f, ok := errors.AsType[*script.Failure](err); ok {
		o.failed(report.Script{At: f.Place(), Message: string(f.Reason) + ": " + f.Message})
	}
	return result, err
}

// failed takes down a failure, each once.
func (o *observer) failed(f report.Script) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.failures, f) {
		o.failures = append(o.failures, f)
	}
}

// Enabled, Handle, WithAttrs and WithGroup make it the log of the case's service: of that it takes what is about scripts, for
// what one gives back can be wrong, too.
func (o *observer) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle takes a line of the log.
func (o *observer) Handle(_ context.Context, line slog.Record) error {
	about := map[string]string{}
	line.Attrs(func(a slog.Attr) bool {
		about[a.Key] = a.Value.String()
		return true
	})
	switch at, file := about["at"], about["script"]; {
	case at != "":
		o.failed(report.Script{At: at, Message: about["reason"] + ": " + about["error"]})
	case file != "" && about["field"] != "":
		o.failed(report.Script{At: file, Message: line.Message + ": " + strings.TrimSuffix(about["field"]+": "+about["problem"], ": ")})
	}
	return nil
}

// WithAttrs changes nothing: no line of ours comes by it.
func (o *observer) WithAttrs([]slog.Attr) slog.Handler { return o }

// WithGroup changes nothing.
func (o *observer) WithGroup(string) slog.Handler { return o }

// told gives what scripts have logged, and how they failed.
func (o *observer) told() ([]report.ScriptLog, []report.Script) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.logs), slices.Clone(o.failures)
}

// decided takes down the sets that let somebody in.
func (o *observer) decided(of string, m access.Method, x access.Explanation) {
	if x.Err != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.method != 0 && o.method != m {
		return
	}
	for _, s := range x.Steps {
		if k := (ruleKey{of, s.Rule, m}); s.Allows && !o.let[k] {
			o.let[k] = true
			o.rules[k]++
		}
	}
}

// keyOf finds out from a script's ctx what it is run for.
func keyOf(c script.Call) scriptKey {
	text := func(name string) string {
		for _, m := range slices.Concat(c.Common, c.Ctx) {
			if m.Name != name {
				continue
			}
			switch v := m.Value.(type) {
			case string:
				return v
			case bson.D:
				s, _ := member(v, "name").(string)
				return s
			}
		}
		return ""
	}
	k := scriptKey{kind: kindHook, of: text("collection"), place: text("stage"), file: c.Program.Name()}
	switch {
	case text("job") != "":
		k.kind, k.of, k.place = kindJob, text("job"), ""
	case text("action") != "":
		k.kind, k.of, k.place = kindAction, text("action"), strings.TrimPrefix(k.place, "action.")
	case k.place == kindFilter || k.place == kindEval || k.place == kindValidator || k.place == kindSearch:
		k.kind, k.place = k.place, ""
	}
	return k
}

// The kinds of scripts.
const (
	kindHook      = "hook"
	kindAction    = "action"
	kindJob       = "job"
	kindFilter    = "filter"
	kindEval      = "eval"
	kindValidator = "validator"
	kindSearch    = "search"
)

// hook is what expect.hooks calls a script; "" for rules, which run with every request.
func (k scriptKey) hook() string {
	switch k.kind {
	case kindHook:
		return k.of + "." + k.place
	case kindAction:
		return "actions." + k.of + "." + k.place
	case kindJob:
		return "jobs." + k.of
	}
	return ""
}
