package hooks

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/script"
)

// Engine runs programs. *script.Engine does.
type Engine interface {
	Run(ctx context.Context, c script.Call) (script.Result, error)
}

// Recorder is told of each hook that ran, for the coverage of a project's own tests.
type Recorder interface {
	HookRan(namespace, collection, stage, script string, err error)
}

// Options of a Runner.
type Options struct {
	Engine     Engine                                    // required
	Host       func(p *project.Project) script.Host      // what modules other than db ask; nil: they are not there
	Env        func(name string) (value string, ok bool) // environment variables that configs may let scripts read
	Log        *slog.Logger                              // nil: nothing is logged
	Registerer prometheus.Registerer                     // nil: nothing is measured
	Recorder   Recorder                                  // nil: nobody is told
}

// Runner runs scripts of collections. It is safe for concurrent use.
type Runner struct {
	opts    Options
	log     *slog.Logger
	metrics *metrics

	mu   sync.Mutex
	told map[string]bool // what is told once
}

// New makes a Runner and registers its metrics.
func New(o Options) (*Runner, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	return &Runner{opts: o, log: o.Log, metrics: m, told: map[string]bool{}}, nil
}

// maxTold bounds what is told once: names can come from data.
const maxTold = 1000

// once says whether something is to be told now.
func (r *Runner) once(what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told[what] || len(r.told) >= maxTold {
		return false
	}
	r.told[what] = true
	return true
}

// Undeclared notes in the log, once, that a stage gave a field that does not go out, because the collection does not
// declare it.
func (r *Runner) Undeclared(ctx context.Context, op *Operation, stage, field string) {
	var files []string
	for _, s := range op.Collection.Hooks[stage] {
		files = append(files, s.Program.Name())
	}
	names := strings.Join(files, ", ")
	if !r.once(strings.Join([]string{op.Project.Namespace, op.Collection.Name, stage, names, field}, "\x00")) {
		return
	}
	r.log.LogAttrs(ctx, slog.LevelWarn, "a hook gives a field that stays inside: the collection has strictFields and does not declare it", append(where(op, stage),
		slog.String("script", names), slog.String("field", field))...)
}

// Refused notes in the log, once, that a rule of the collection refuses a value that a stage gave. The caller is told of it
// as if it were theirs.
func (r *Runner) Refused(ctx context.Context, op *Operation, stage string, p errs.FieldError) {
	file := op.lastOf(stage)
	if !r.once(strings.Join([]string{op.Project.Namespace, op.Collection.Name, stage, file, p.Path, p.Rule}, "\x00")) {
		return
	}
	r.log.LogAttrs(ctx, slog.LevelWarn, "a rule refuses what a hook gives: the caller is told, as if they had sent it", append(where(op, stage),
		slog.String("script", file), slog.String("field", p.Path), slog.String("rule", p.Rule), slog.String("problem", p.Message))...)
}

// Modules gives what scripts of a project may ask beside the database; nil is nothing.
func (r *Runner) Modules(p *project.Project) script.Host {
	if r.opts.Host == nil {
		return nil
	}
	return r.opts.Host(p)
}

// Request is what scripts see of the request that an operation is for.
type Request struct {
	ID      string // of the request, for the log
	Query   url.Values
	Headers http.Header
	Lang    string
}

// Operation is what all runs of one operation have in common. It is for one goroutine.
type Operation struct {
	Project    *project.Project
	Collection *project.Collection
	Principal  *access.Principal
	Method     string   // GET, POST, PUT or DELETE
	Request    *Request // nil: none
	Now        time.Time

	state    any
	common   []script.Member
	changers []changer
}

// changer is a script that changed something in a stage.
type changer struct{ stage, script string }

// members gives what every stage has, made once: runs that were left behind may look at it still.
func (op *Operation) members() []script.Member {
	if op.common == nil {
		req := op.Request
		if req == nil {
			req = &Request{}
		}
		op.state = bson.D{}
		op.common = []script.Member{
			{Name: "method", Value: op.Method},
			{Name: "query", Make: func() any { return flat(req.Query, false) }}, // few scripts look at these
			{Name: "headers", Make: func() any { return HeadersOf(req) }},
			{Name: "user", Make: func() any { return UserOf(op.Principal) }},
			{Name: "project", Make: func() any { return ProjectOf(op.Project) }},
			{Name: "collection", Value: op.Collection.Name},
			{Name: "lang", Value: LangOf(req)},
			{Name: "now", Value: op.Now},
		}
	}
	return op.common
}

func (op *Operation) requestID() string {
	if op.Request == nil {
		return ""
	}
	return op.Request.ID
}

// LangOf is the language of a request as scripts see it: null is none.
func LangOf(r *Request) any { return orNull(r.Lang) }

// ProjectOf is a project as scripts see it.
func ProjectOf(p *project.Project) bson.D {
	return bson.D{{Key: "namespace", Value: p.Namespace}, {Key: "generation", Value: p.Generation}}
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// UserOf is a caller as scripts see them: nil is nobody.
func UserOf(p *access.Principal) any {
	if p == nil || p.Kind == access.KindAnonymous {
		return nil
	}
	return bson.D{
		{Key: "kind", Value: string(p.Kind)},
		{Key: "id", Value: orNull(p.ID)},
		{Key: "name", Value: p.Name},
		{Key: "isAdmin", Value: p.Full() || p.IsAdmin},
		{Key: "orgIds", Value: list(p.OrgIDs)},
		{Key: "teamIds", Value: list(p.TeamIDs)},
		{Key: "teams", Value: list(p.Teams)},
	}
}

func list(in []string) bson.A {
	out := make(bson.A, len(in))
	for i, s := range in {
		out[i] = s
	}
	return out
}

// secretNames carry credentials, as headers and as parameters.
var secretNames = map[string]bool{ //nolint:gochecknoglobals // never written
	"authorization": true, "cookie": true, "token": true, "x-auth-token": true, "x-admin-token": true, "proxy-authorization": true,
}

// HeadersOf are the headers of a request as scripts see them: in lower case, without credentials.
func HeadersOf(r *Request) bson.D { return flat(r.Headers, true) }

// flat gives names with their first value, without credentials.
func flat(m map[string][]string, lowerCase bool) bson.D {
	out := make(bson.D, 0, len(m))
	for name, values := range m {
		lower := strings.ToLower(name)
		if secretNames[lower] || len(values) == 0 {
			continue
		}
		if lowerCase {
			name = lower
		}
		out = append(out, bson.E{Key: name, Value: values[0]})
	}
	return out
}
