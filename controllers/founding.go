package controllers

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/folder"
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
//  3. its name: what is in it then is marked as ours by the file foundingMark, so that no folder of anybody else is ever removed
//  4. the records, which package snapshot sees to
//  5. the mark is removed, and the registration is like any other: served
type founder struct {
	Deps

	loader *project.Loader
	org    string // of the project
	serve  func(ctx context.Context, id string) error
}

const (
	foundingDir  = ".founding-"
	foundingMark = ".founding"
)

// Founder makes projects of an org ("": of none) for restores.
func (c *Control) Founder(org string) snapshot.Founder {
	return &founder{Deps: c.Deps, loader: c.projects.loader, org: org, serve: func(ctx context.Context, id string) error {
		return settled(c.Manager.ReconcileNow(ctx, projectController, id))
	}}
}

// Compile implements snapshot.Founder.
func (f *founder) Compile(_ context.Context, namespace string, config project.Bundle, foreign bool) (*project.Project, int, error) {
	return f.loader.Detach(config, namespace, f.ProjectsDir, foreign)
}

// Found implements snapshot.Founder.
func (f *founder) Found(ctx context.Context, p *project.Project) (*project.Project, error) {
	root, err := folder.OpenExisting(f.ProjectsDir, nil)
	if err != nil {
		return nil, unwritable(err)
	}
	defer root.Close() //nolint:errcheck // what is written is synced
	if err := isFree(root, p.Namespace); err != nil {
		return nil, err
	}
	configFile := path.Join(p.Namespace, p.Bundle.Entry)
	reg, err := f.Projects.Found(ctx, p.Namespace, configFile, f.org)
	if err != nil {
		return nil, err
	}
	p.ID, p.OrgID = reg.ID.Hex(), reg.OrgID
	if err := f.write(root, p); err != nil {
		return p, unwritable(err)
	}
	made, err := Check(f.loader, f.ProjectsDir, configFile)
	if err != nil {
		return p, err
	}
	made.ID, made.OrgID = p.ID, p.OrgID
	return made, f.name(ctx, made, nil, true)
}

// isFree refuses a folder that somebody else has made.
func isFree(root *folder.Folder, namespace string) error {
	_, err := root.Stat(namespace)
	switch {
	case err == nil:
		return errs.New(errs.Conflict, "folder_exists",
			"there is a folder %s in the service's projects directory: register what is in it and restore into that, remove it, or choose another namespace", namespace)
	case !errors.Is(err, fs.ErrNotExist):
		return unwritable(err)
	}
	return nil
}

// unwritable says what to do where the service can't make a folder.
func unwritable(err error) error {
	if _, ours := errors.AsType[*errs.Error](err); ours || err == nil {
		return err
	}
	return errs.New(errs.Unavailable, "no_projects_dir",
		"the service can't write to its projects directory, where a project that is new has its config: let svcd write there (setting projects.dir), "+
			"or put the config there yourself, register it, and restore into that project").With(err)
}

// write makes the folder of a project. Nothing shows before all is on the disk.
func (f *founder) write(root *folder.Folder, p *project.Project) error {
	temp := foundingDir + p.ID
	if err := root.Make(temp); err != nil {
		return err
	}
	made := map[string]bool{}
	makeAll := func(dir string) error { // and those above it
		for end := 1; end <= len(dir); end++ {
			if end < len(dir) && dir[end] != '/' || made[dir[:end]] {
				continue
			}
			if err := root.Make(path.Join(temp, dir[:end])); err != nil {
				return err
			}
			made[dir[:end]] = true
		}
		return nil
	}
	files := map[string][]byte{foundingMark: []byte(p.ID + "\n")}
	for name, data := range p.Bundle.Files {
		if name == foundingMark || !fs.ValidPath(name) {
			return errs.New(errs.Limit, "config_attached", "no config has a file %.80q", name)
		}
		files[name] = data
	}
	for name, data := range files {
		if dir := path.Dir(name); dir != "." {
			if err := makeAll(dir); err != nil {
				return err
			}
		}
		if err := root.Write(path.Join(temp, name), data); err != nil {
			return err
		}
	}
	for _, a := range p.Assets { // whose files are in no snapshot
		if err := makeAll(a.Path); err != nil {
			return err
		}
	}
	for dir := range made {
		if err := root.Sync(path.Join(temp, path.Dir(dir))); err != nil {
			return err
		}
	}
	if err := root.Rename(temp, p.Namespace); err != nil {
		return err
	}
	return root.Sync(".")
}

// ours says that a folder was made for a registration that is founding.
func ours(root *folder.Folder, name, id string) bool {
	mark, err := root.Read(path.Join(name, foundingMark), 100)
	return err == nil && string(mark) == id+"\n"
}

// Founding implements snapshot.Founder.
func (f *founder) Founding(ctx context.Context, p *project.Project) (bool, error) {
	reg, err := f.Projects.ByID(ctx, p.ID)
	if errors.Is(err, errs.ErrNotFound) {
		return false, nil
	}
	return reg.Founding, err
}

// Keep implements snapshot.Founder.
func (f *founder) Keep(ctx context.Context, p *project.Project) error {
	root, err := folder.OpenExisting(f.ProjectsDir, nil)
	if err != nil {
		return unwritable(err)
	}
	defer root.Close()                 //nolint:errcheck // what is removed is synced
	if ours(root, p.Namespace, p.ID) { // else it is on a disk of another instance, or was removed before a crash
		if err := errors.Join(root.Remove(path.Join(p.Namespace, foundingMark)), root.Sync(p.Namespace)); err != nil {
			return unwritable(err)
		}
	}
	if _, err := f.Projects.Keep(ctx, p.ID); err != nil {
		return err
	}
	if f.serve == nil {
		return nil
	}
	return f.serve(ctx, p.ID)
}

// Abandon implements snapshot.Founder. The registration goes last: as long as it is there, it is known that something may be left.
func (f *founder) Abandon(ctx context.Context, p *project.Project) error {
	if founding, err := f.Founding(ctx, p); err != nil || !founding {
		return err
	}
	root, err := folder.OpenExisting(f.ProjectsDir, nil)
	if err != nil {
		return unwritable(err)
	}
	defer root.Close()                 //nolint:errcheck // what is removed is synced
	if ours(root, p.Namespace, p.ID) { // the mark goes last, too: by another name it goes in any case
		if err := root.Rename(p.Namespace, foundingDir+p.ID); err != nil {
			return unwritable(err)
		}
	}
	if _, err := root.Stat(foundingDir + p.ID); !errors.Is(err, fs.ErrNotExist) { // a folder that can't be written is not asked to remove nothing
		if err := errors.Join(root.RemoveAll(foundingDir+p.ID), root.Sync(".")); err != nil {
			return unwritable(err)
		}
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
