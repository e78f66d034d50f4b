package controllers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/system"
)

// Control is what the doors ask of the control plane. It writes the registry of the store and lets the reconcilers
// do the rest. It is safe for concurrent use.
type Control struct {
	Deps

	projects *projectReconciler
	indexes  *indexReconciler
	planning chan struct{} // has a place for each plan that is being made
	drifting chan struct{} // the same for what tells of drift: who may only look keeps nobody from planning
}

// Register checks a config, records the registration and returns when its project is served. An invalid config is a
// *project.ConfigError, and nothing is recorded.
func (c *Control) Register(ctx context.Context, body bson.D) (system.Project, error) {
	reg, err := c.Projects.Create(ctx, body, c.resolve)
	if err != nil {
		return reg, err
	}
	// No reload: it would try indexes again that were refused a moment ago, when the registration had already been seen.
	return reg, settled(c.Manager.ReconcileNow(ctx, projectController, reg.ID.Hex()))
}

// Update changes a registration and returns when that shows.
func (c *Control) Update(ctx context.Context, id string, body bson.D) (system.Project, error) {
	was, err := c.Projects.ByID(ctx, id)
	if err != nil {
		return was, err
	}
	reg, err := c.Projects.Update(ctx, id, body, c.resolve)
	if err != nil {
		return reg, err
	}
	moved := slices.ContainsFunc(body, func(e bson.E) bool { return e.Key == "configFile" })
	if !reg.Suspended && (moved || was.Suspended) {
		return reg, settled(c.reload(ctx, id, true))
	}
	return reg, settled(c.Manager.ReconcileNow(ctx, projectController, id)) // no reload: it would end a rollback
}

// Unregister ends a registration and returns when its project is no longer served. The data stays.
func (c *Control) Unregister(ctx context.Context, id string) error {
	reg, err := c.Projects.Delete(ctx, id)
	if err != nil {
		return err
	}
	return settled(c.reload(ctx, reg.ID.Hex(), true))
}

// settled is the outcome of a change of a registration that has been stored, of the error of what shows it. That its config
// is refused, whatever the reason, is told by the project's conditions: the registration itself stands.
func settled(err error) error {
	if _, refused := errors.AsType[*refusedError](err); refused {
		return nil
	}
	return err
}

// Reload serves what the project's files say now. With wait it returns when that is done, or with the error that the
// config has. Indexes that were refused are tried again behind it. A project that is suspended is errs.Conflict.
func (c *Control) Reload(ctx context.Context, id string, wait bool) error {
	if err := c.notSuspended(ctx, id); err != nil {
		return err
	}
	return c.reload(ctx, id, wait)
}

func (c *Control) reload(ctx context.Context, id string, wait bool) error {
	c.projects.request(id, system.ActorOf(ctx))
	c.indexes.request(id, 0)
	if !wait {
		return errors.Join(c.Manager.Trigger(projectController, id), c.Manager.Trigger(indexController, id))
	}
	if err := c.Manager.ReconcileNow(ctx, projectController, id); err != nil {
		return err
	}
	return c.Manager.Trigger(indexController, id)
}

// RollBack serves an earlier generation of a project again, on every instance, until its files change or are reloaded, and
// returns when this instance does, with the number that it has now. One that does not compile any more is a *project.ConfigError.
func (c *Control) RollBack(ctx context.Context, id string, generation int64) (int64, error) {
	number, err := c.projects.rollBack(ctx, id, generation)
	if err != nil {
		return 0, err
	}
	return number, settled(c.Manager.ReconcileNow(ctx, projectController, id)) // refused are the files, in whose place it is served
}

// behindPatience is how old a generation may be that other instances serve and this one does not serve yet.
const behindPatience = 2 * time.Second

// Behind gives the namespaces of projects, sorted, that other instances have served from a newer generation for a while: because the files here
// are others, or because this instance has not been told. It asks the store, not what came by events.
func (c *Control) Behind(ctx context.Context) ([]string, error) {
	served := map[string]*project.Project{}
	for _, p := range c.Registry.List() {
		served[p.ID] = p
	}
	if len(served) == 0 {
		return nil, nil
	}
	latest, err := c.Generations.Latest(ctx, slices.Collect(maps.Keys(served)))
	var behind []string
	for id, g := range latest {
		if g.Number > served[id].Generation && c.Now().Sub(g.Since) > behindPatience {
			behind = append(behind, served[id].Namespace)
		}
	}
	slices.Sort(behind)
	return behind, err
}

// ServeRegistered loads every registered project once and returns when all are served or refused, so that the first
// request already finds them.
func (c *Control) ServeRegistered(ctx context.Context) error {
	if err := c.sweepFoundings(ctx); err != nil {
		c.Logger.WarnContext(ctx, "what restores have left in the projects directory is not all removed; the next start tries again", "error", err)
	}
	ids, err := c.registered(ctx)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	places := make(chan struct{}, projectWorkers)
	for _, id := range ids {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			if _, err := c.projects.Reconcile(ctx, id); err != nil {
				c.Logger.WarnContext(ctx, "project not served", "project_id", id, "error", err)
			}
		})
	}
	all.Wait()
	return ctx.Err()
}

// Check loads a config file as a registration would, without serving it.
func Check(loader *project.Loader, projectsDir, configFile string) (*project.Project, error) {
	dir, entry, err := project.Locate(projectsDir, configFile)
	if err != nil {
		return nil, err
	}
	p, problems := loader.Load(dir, entry)
	if problems.Err() {
		return nil, &project.ConfigError{Problems: problems}
	}
	return p, nil
}

// Replaced has a project's indexes and searches looked at now, because its records have been replaced.
func (c *Control) Replaced(id string) error {
	return errors.Join(c.Manager.Trigger(indexController, id), c.Manager.Trigger(searchController, id))
}

// RestoreEnded tells of a restore that was left, by an instance that is gone or by a failure, and has been ended.
func (c *Control) RestoreEnded(ctx context.Context, e snapshot.Ended) { c.events.tellRestore(ctx, e) }

// SnapshotsChanged has a project's snapshots looked at now, because what is to be said of them may be something else.
func (c *Control) SnapshotsChanged(id string) {
	if id != "" { // else it is being made, and not served
		c.snapshotsChanged(id)
	}
}

// ScheduleJobs has a project's jobs looked at now, because one of them was resumed.
func (c *Control) ScheduleJobs(id string) error { return c.Manager.Trigger(jobController, id) }

func (c *Control) resolve(ctx context.Context, configFile string) (string, error) {
	p, err := Check(c.projects.loader, c.ProjectsDir, configFile)
	if err != nil {
		return "", err
	}
	if err := c.adopt(ctx, p.Dir); err != nil {
		c.Logger.WarnContext(ctx, "a folder that is registered is marked still as one that a restore has made", "folder", p.Dir, "error", err)
	}
	return p.Namespace, nil
}

// Indexes tells how each index of a collection stands: declared ones, and those made by other hands.
func (c *Control) Indexes(ctx context.Context, p *project.Project, collection string) ([]api.IndexDescription, error) {
	coll, ok := p.Collections[collection]
	if !ok {
		return nil, errs.ErrCollectionNotFound
	}
	return c.indexes.describe(ctx, p, coll)
}

// Stats tells how large a collection is, and each index of it.
func (c *Control) Stats(ctx context.Context, p *project.Project, collection string) (api.CollectionStats, error) {
	return c.indexes.stats(ctx, p, collection)
}
