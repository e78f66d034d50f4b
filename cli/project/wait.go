package project

import (
	"context"
	"errors"
	"time"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// defaultTimeout is how long reload and status --wait wait.
const defaultTimeout = 2 * time.Minute

// The time between two looks at a project's status grows from the first of these to the second.
const (
	minPoll = 100 * time.Millisecond
	maxPoll = time.Second
)

// settleLooks is how many looks find a failure of before behind a reload that changed no files: the service tries again
// what failed, and says nothing until it knows better.
const settleLooks = 6

// waitReady looks at a project's status until it is Ready. It is an error when a condition fails, on more looks than
// patience, or when ctx ends first. It gives the status it saw last, or nil.
func waitReady(ctx context.Context, c *client.Client, p *api.Project, patience int) (*api.ProjectStatus, error) {
	var last *api.ProjectStatus
	for pause := minPoll; ; pause = min(2*pause, maxPoll) {
		status, err := c.ProjectStatus(ctx, p.ID)
		if err != nil {
			return last, late(err, p, last)
		}
		last = status
		ready := status.Condition("Ready")
		switch {
		case ready.Status == "True":
			return last, nil
		case !failing(status.Phase, ready):
		case patience > 0:
			patience--
		default:
			return last, &command.Error{
				Exit: command.ExitFailed, Code: "not_ready", Message: p.Namespace + " is not ready: " + reason(status.Phase, ready),
				Hint: notReadyHint(p.Namespace, ready),
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return last, late(ctx.Err(), p, last)
		case <-timer.C:
		}
	}
}

// notReadyHint says what to do about a project that waits for somebody.
func notReadyHint(namespace string, ready api.Condition) string {
	if ready.Reason == "UniqueViolation" {
		return "give these records values of their own (svcctl doc edit) and say svcctl index sync " + namespace +
			", or take unique out of the config; svcctl project rollback " + namespace + " goes back"
	}
	return "svcctl project status " + namespace + " -o yaml shows everything"
}

// failing says that a project which is not Ready needs somebody's help: neither is it on its way, nor does the service
// try again by itself soon.
func failing(phase api.Phase, ready api.Condition) bool {
	if phase == api.PhaseDisabled {
		return true
	}
	switch ready.Reason {
	case "Pending", "Progressing", "StoreError":
		return false
	}
	return ready.Status == "False"
}

func reason(phase api.Phase, ready api.Condition) string {
	if phase == api.PhaseDisabled {
		return "it is disabled (svcctl project enable)"
	}
	return ready.Message
}

// late says for a wait that has taken too long what it waited for.
func late(err error, p *api.Project, last *api.ProjectStatus) error {
	if !errors.Is(err, context.DeadlineExceeded) || last == nil {
		return err
	}
	return &command.Error{
		Exit: command.ExitTimeout, Code: "timeout", Hint: "allow more with --timeout",
		Message: p.Namespace + " is not ready yet: " + reason(last.Phase, last.Condition("Ready")),
	}
}

// warnConditions tells what is not well in the served generation, without what is still being judged.
func warnConditions(st *command.State, result *api.ReloadResult) {
	for _, c := range result.Conditions {
		bad := "False"
		switch c.Type {
		case "Ready": // the sum of the others
			continue
		case "OutOfDate":
			bad = "True"
		}
		if c.Status == bad && c.ObservedGeneration == result.Generation {
			st.Warnf("%s is %s: %s", c.Type, c.Status, c.Message)
		}
	}
}
