package controllers

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/system"
)

// founder makes projects for restores: the folder <projects.dir>/<namespace>, and a registration that nobody is served before its records
// are there. It goes so that a crash at any moment leaves what the reconciler can end:
//
//  1. the registration, founding, which takes the namespace, and says from then on what there may be
//  2. the folder .founding-<id of the registration>, made whole, and synced
//  3. its name, which nothing has: what is in it then is marked as ours by the file foundingMark, so that no folder of anybody else is ever removed
//  4. the records, which package snapshot sees to
//  5. the registration is like any other, and served: with that one write it is decided
//  6. the mark is removed; a crash before leaves that to the next start (sweepFoundings)
type founder struct {
	Deps

	loader *project.Loader
	org    string // of the project
	serve  func(ctx context.Context, id string) error
}

// Founder makes projects of an org ("": of none) for restores.
func (c *Control) Founder(org string) snapshot.Founder {
	return &founder{Deps: c.Deps, loader: c.projects.loader, org: org, serve: func(ctx context.Context, id string) error {
		return settled(c.Manager.ReconcileNow(ctx, projectController, id))
	}}
}

// Compile implements snapshot.Founder.
func (f *founder) Compile(_ context.Context, namespace string, of *project.Project, config project.Bundle, foreign bool) (*project.Detached, error) {
	d, err := f.loader.Detach(config, namespace, of.Dir, foreign)
	if err != nil {
		return nil, err
	}
	root, err := f.openProjects()
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	if err := isFree(root, namespace); err != nil {
		return nil, err
	}
	if err := root.Writable(); err != nil {
		return nil, unwritable(err)
	}
	return d, nil
}

// Found implements snapshot.Founder.
func (f *founder) Found(ctx context.Context, d *project.Detached) (*project.Project, error) {
	root, err := f.openProjects()
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // what is written is synced
	if err := isFree(root, d.Namespace); err != nil {
		return nil, err
	}
	configFile := path.Join(d.Namespace, d.Bundle.Entry)
	reg, err := f.Projects.Found(ctx, d.Namespace, configFile, f.org)
	if err != nil {
		return nil, err
	}
	p := d.Project
	p.ID, p.OrgID = reg.ID.Hex(), reg.OrgID
	if err := writeFounding(root, d); err != nil {
		return p, err
	}
	made, err := Check(f.loader, f.ProjectsDir, configFile)
	if err != nil {
		return p, err
	}
	made.ID, made.OrgID = p.ID, p.OrgID
	return made, f.name(ctx, made, nil, true)
}

// Founding implements snapshot.Founder.
func (f *founder) Founding(ctx context.Context, p *project.Project) (bool, error) {
	reg, err := f.Projects.ByID(ctx, p.ID)
	if errors.Is(err, errs.ErrNotFound) {
		return false, nil
	}
	return reg.Founding, err
}

// Keep implements snapshot.Founder. The mark goes behind the registration: as long as that is founding, the folder is known as what Abandon
// has to remove.
func (f *founder) Keep(ctx context.Context, p *project.Project) error {
	if _, err := f.Projects.Keep(ctx, p.ID); err != nil {
		return err
	}
	if err := f.unmark(p); err != nil {
		f.Logger.WarnContext(ctx, "a project that a restore has made is marked as being made still; the next start sees to it", "namespace", p.Namespace, "error", err)
	}
	if f.serve == nil {
		return nil
	}
	return f.serve(ctx, p.ID)
}

// unmark takes the mark off the folder of a project, if it is on a disk of this instance.
func (f *founder) unmark(p *project.Project) error {
	root, err := f.openProjects()
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // what is removed is synced
	if markOf(root, p.Namespace) != p.ID {
		return nil
	}
	return removeMark(root, p.Namespace)
}

// Abandon implements snapshot.Founder. The registration goes last: as long as it is there, it is known that something may be left.
func (f *founder) Abandon(ctx context.Context, p *project.Project) error {
	if founding, err := f.Founding(ctx, p); err != nil || !founding {
		return err
	}
	root, err := f.openProjects()
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // what is removed is synced
	if err := removeFounding(root, p.Namespace, p.ID); err != nil {
		return err
	}
	if err := f.Store.Database(project.DatabaseName(p.Namespace)).DropCollection(ctx, namesCollection); err != nil {
		return err
	}
	return f.Projects.Abandon(ctx, p.ID)
}

// foundingPause is how long the reconciler waits for a restore that goes on.
const foundingPause = 5 * time.Second

// endFounding ends what a crash has left of a restore that was making a project. done says that the registration is like any other, or gone.
func (r *projectReconciler) endFounding(ctx context.Context, reg system.Project) (done bool, err error) {
	id := reg.ID.Hex()
	r.Board.Set(id, status.Condition{
		Type: status.ConfigValid, Status: status.Unknown, Reason: status.ReasonDisabled, Message: "a restore is making the project",
	})
	if r.Restores == nil {
		return false, nil
	}
	f := &founder{Deps: r.Deps, loader: r.loader}
	err = r.Restores.EndFounding(ctx, &project.Project{ID: id, Namespace: reg.Namespace, OrgID: reg.OrgID}, f)
	if errors.Is(err, snapshot.ErrBusy) {
		return false, nil
	}
	return err == nil, err
}
