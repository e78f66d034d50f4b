package actions

import (
	"context"
	"encoding/hex"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/script"
)

// Options of a Service.
type Options struct {
	Engine hooks.Engine    // required
	Runs   *operation.Runs // required
	Audit  *audit.Logs     // required
	// Host gives what a script of an action reaches, on behalf of the caller. Of a run, what the script writes goes through
	// transactions that call run.Fence first; run is nil for a sync call. Required.
	Host func(c *Call, file string, run *operation.Live) script.RunHost
	Env  func(p *project.Project) map[string]string // the environment variables that scripts may read; required
	Now  func() time.Time                           // required
	Log  *slog.Logger                               // nil: nothing is logged
}

// Service does the actions of every project. It is safe for concurrent use.
type Service struct {
	opts Options
	log  *slog.Logger
	now  func() time.Time
}

// New makes a Service.
func New(o Options) *Service {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{opts: o, log: o.Log, now: func() time.Time { return o.Now().UTC().Truncate(time.Millisecond) }}
}

// Call says which action is called, by whom and how. Project and Action are of one generation.
type Call struct {
	Project   *project.Project
	Action    *project.Action
	Principal *access.Principal
	Method    access.Method  // Get or Post
	Request   *hooks.Request // required
	// Again, if set, finds out anew who is calling, and whether they still may. It is asked while a script runs, which may
	// be long after the request that began it.
	Again func(ctx context.Context) (*access.Principal, error)
}

// ErrNotFound says that a project has no such action.
var ErrNotFound = errs.New(errs.NotFound, "action_not_found", "action not found")

// Find gives an action of a project, or ErrNotFound.
func Find(p *project.Project, name string) (*project.Action, error) {
	if a := p.Actions[name]; a != nil {
		return a, nil
	}
	return nil, ErrNotFound
}

// May is nil if the caller may call the action by a method, else errs.ErrDenied. Whether it has that method is another
// question.
func (s *Service) May(c *Call, m access.Method) error {
	_, err := c.Action.Permissions.Decide(c.Principal, m, s.env(c))
	return err
}

// MayAny is nil if the caller may call the action by any method that it has.
func (s *Service) MayAny(c *Call) error {
	for _, m := range []access.Method{access.Get, access.Post} {
		if c.Action.Methods[m] != nil && s.May(c, m) == nil {
			return nil
		}
	}
	return errs.ErrDenied
}

func (s *Service) env(c *Call) access.Env {
	return access.Env{
		Now: s.now(), Namespace: c.Project.Namespace, Collection: access.ActionScope(c.Action.Name),
		AdminTokens: c.Project.AdminTokens, OrgID: c.Project.OrgID,
	}
}

// Callable lists the actions of a project that somebody may call, by name.
func (s *Service) Callable(p *project.Project, who *access.Principal) []*project.Action {
	var out []*project.Action
	for _, name := range slices.Sorted(maps.Keys(p.Actions)) {
		a := p.Actions[name]
		if s.MayAny(&Call{Project: p, Action: a, Principal: who}) == nil {
			out = append(out, a)
		}
	}
	return out
}

// operates says whether somebody has a right on a whole project, by their own or by an admin token of it.
func (s *Service) operates(p *project.Project, who *access.Principal, right string) bool {
	if who.Kind == access.KindToken {
		t, ok := p.AdminTokens.Match(who.TokenHash, s.now())
		return ok && t.Has(right)
	}
	return who.Has(right)
}

// actorOf is who calls, as runs know them.
func actorOf(who *access.Principal) operation.Actor {
	a := operation.Actor{Kind: string(who.Kind), ID: who.ID, Name: who.Name}
	if who.Kind == access.KindToken {
		a.ID = hex.EncodeToString(who.TokenHash[:16])
	}
	return a
}

// errNoMethod says that the action is not called by this method.
var errNoMethod = errs.New(errs.Method, "method_not_allowed", "this action does not take that method")
