package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/status"
)

// readyTime is how long the store may take to say that it is there.
const readyTime = 1500 * time.Millisecond

// mostNamed is how many projects a check names.
const mostNamed = 20

// ready tells how the parts of this instance are, in the order in which they need each other. Whoever may not know what projects there are is only told
// how many.
func (a *App) ready(ctx context.Context, names bool) []api.HealthCheck {
	service := api.HealthCheck{Name: "service", Status: api.CheckOK}
	if a.stopping.Load() {
		service.Status, service.Message = api.CheckFailed, "the service is stopping"
	}
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	st := api.HealthCheck{Name: "store", Status: api.CheckOK}
	var behind []string
	err := a.store.Ping(ctx)
	if _, alone := a.cfg.embeddedDir(); err == nil && !alone {
		behind, err = a.control.Behind(ctx)
	}
	switch {
	case err == nil:
	case errs.From(err).Kind == errs.Full:
		st.Status, st.Message = api.CheckFailed, "the disk of the store is full or nearly so: writes are refused, reads go on; make room on it"
	default:
		st.Status, st.Message = api.CheckFailed, "the store can't be reached: see that it runs, and what the log of svcd says; nothing has to be restarted here"
	}
	return []api.HealthCheck{service, st, a.projectsReady(behind, names)}
}

// projectsReady tells of projects that are behind, for which an instance should get no requests, and of those that are not ready, which concerns all instances.
func (a *App) projectsReady(behind []string, names bool) api.HealthCheck {
	check := api.HealthCheck{Name: "projects", Status: api.CheckOK}
	if len(behind) > 0 {
		check.Status = api.CheckFailed
		check.Message = fmt.Sprintf("%d of the projects are behind%s: other instances serve a newer generation; "+
			"their condition OutOfDate says why (svcctl project status)", len(behind), named(behind, names))
		return check
	}
	unready := []string{}
	told := map[string]bool{}
	for _, p := range a.registry.List() {
		if state, ok := a.board.Get(p.ID); ok {
			c, _ := state.Condition(status.Ready)
			if told[p.ID] = true; c.Status != status.True {
				unready = append(unready, p.Namespace+" ("+c.Reason+")")
			}
		}
	}
	for _, id := range a.board.Keys() {
		if told[id] {
			continue
		}
		state, _ := a.board.Get(id)                                                   // the zero state of one that has gone meanwhile has no reason, and is told once
		if c, _ := state.Condition(status.Ready); c.Reason != status.ReasonDisabled { // which was asked for
			unready = append(unready, "registration "+id+" (not served)")
		}
	}
	if len(unready) > 0 {
		check.Status = api.CheckDegraded
		check.Message = fmt.Sprintf("not all registered projects are ready%s: svcctl status shows which, svcctl project status NAMESPACE why", named(unready, names))
	}
	return check
}

// named lists projects in brackets, for those who may know them.
func named(projects []string, may bool) string {
	if !may {
		return ""
	}
	if len(projects) > mostNamed {
		projects = append(projects[:mostNamed:mostNamed], "…")
	}
	return " [" + strings.Join(projects, ", ") + "]"
}
