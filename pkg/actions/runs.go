package actions

import (
	"context"
	"slices"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
)

var errNoResult = errs.New(errs.NotFound, "no_result", "the run has no result")

// MayRuns is nil if the caller may ask for runs of the action at all: who may call it sees their own, and who reads the
// project sees all.
func (s *Service) MayRuns(c *Call) error {
	if s.operates(c.Project, c.Principal, access.ProjectRead) {
		return nil
	}
	return s.MayAny(c)
}

// Runs lists runs of the call's action, newest first: the caller's own, or all for who reads the project. Who calls
// without a credential has none that could be told from those of others.
func (s *Service) Runs(ctx context.Context, c *Call, q operation.Query) (*operation.Page, error) {
	q.Kind, q.Name, q.NoInput = operation.Action, c.Action.Name, true
	if !s.operates(c.Project, c.Principal, access.ProjectRead) {
		if q.By = actorOf(c.Principal).ID; q.By == "" {
			return &operation.Page{Items: []*operation.Run{}, Limit: q.Limit, Offset: q.Offset}, nil
		}
	}
	return s.opts.Runs.List(ctx, project.DatabaseName(c.Project.Namespace), q)
}

// Run gives one run of the call's action. One of somebody else is not there, but for who reads the project.
func (s *Service) Run(ctx context.Context, c *Call, id string) (*operation.Run, error) {
	run, err := s.run(ctx, c, id, access.ProjectRead)
	if err == nil && !s.SeesLog(c) {
		run.Events = slices.DeleteFunc(run.Events, isLog)
	}
	return run, err
}

// SeesLog says whether the caller sees what scripts log, and where they failed: who reads the project does. It is not for
// who may only call the action, even of their own runs.
func (s *Service) SeesLog(c *Call) bool {
	return s.operates(c.Project, c.Principal, access.ProjectRead)
}

func isLog(e operation.Event) bool { return e.Kind == operation.EventLog }

func (s *Service) run(ctx context.Context, c *Call, id, right string) (*operation.Run, error) {
	run, err := s.opts.Runs.Get(ctx, project.DatabaseName(c.Project.Namespace), ref(c, id))
	if err != nil {
		return nil, err
	}
	if !s.operates(c.Project, c.Principal, right) && !s.owns(c, run) {
		return nil, operation.ErrNotFound
	}
	return run, nil
}

// owns says whether a run is the caller's own, and the action one that they may still call.
func (s *Service) owns(c *Call, run *operation.Run) bool {
	return isOf(run, c.Principal) && s.MayAny(c) == nil
}

// isOf says whether somebody started a run. Without a credential it is whoever knows its id, which can't be guessed.
func isOf(run *operation.Run, who *access.Principal) bool {
	by := actorOf(who)
	if who.Kind == access.KindUser || who.Kind == access.KindPAT { // one's own, whichever way
		return who.IsUser(run.By.ID)
	}
	return run.By.Kind == by.Kind && run.By.ID == by.ID
}

// MayCancel is nil if the caller may cancel a run: one's own with the right to POST, or any for who may reload the
// project. The right to GET is enough where the action has no POST: who may only read the action ends nothing else.
func (s *Service) MayCancel(ctx context.Context, c *Call, id string) error {
	if _, err := s.run(ctx, c, id, access.ProjectReload); err != nil || s.operates(c.Project, c.Principal, access.ProjectReload) {
		return err
	}
	need := access.Post
	if c.Action.Methods[need] == nil {
		need = access.Get
	}
	return s.May(c, need)
}

// Cancel asks a run to end, if the caller may.
func (s *Service) Cancel(ctx context.Context, c *Call, id string) error {
	if err := s.MayCancel(ctx, c, id); err != nil {
		return err
	}
	return s.opts.Runs.Cancel(ctx, project.DatabaseName(c.Project.Namespace), ref(c, id))
}

// Follow tells of the events of a run behind one that the caller may see, as operation.Runs.Follow does. Who may is asked of
// Run before.
func (s *Service) Follow(ctx context.Context, c *Call, id string, after int64, fn func(operation.Event) error) error {
	if !s.SeesLog(c) {
		all := fn
		fn = func(e operation.Event) error {
			if isLog(e) {
				return nil
			}
			return all(e)
		}
	}
	return s.opts.Runs.Follow(ctx, project.DatabaseName(c.Project.Namespace), ref(c, id), after, fn)
}

func ref(c *Call, id string) operation.Ref {
	return operation.Ref{Kind: operation.Action, Name: c.Action.Name, ID: id}
}
