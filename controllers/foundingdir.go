package controllers

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/folder"
	"github.com/svcctl/svc/pkg/project"
)

const (
	foundingDir  = ".founding-" // and the id of the registration: a folder that is being made, or removed
	foundingMark = ".founding"  // in a folder that was made for a registration: its id, and the name of the folder, so that a copy is none
)

// openProjects opens the directory of projects to make folders in it.
func (d Deps) openProjects() (*folder.Folder, error) {
	root, err := folder.OpenExisting(d.ProjectsDir, d.FoundingFault)
	return root, unwritable(err)
}

// isFree refuses a folder that somebody else has made.
func isFree(root *folder.Folder, namespace string) error {
	_, err := root.Stat(namespace)
	switch {
	case err == nil:
		return errFolderExists(namespace)
	case !errors.Is(err, fs.ErrNotExist):
		return unwritable(err)
	}
	return nil
}

func errFolderExists(namespace string) error {
	return errs.New(errs.Conflict, "folder_exists",
		"there is a folder %s in the service's projects directory: register what is in it and restore into that, remove it, or choose another namespace", namespace)
}

// unwritable says what to do where the service can't make a folder.
func unwritable(err error) error {
	if _, ours := errors.AsType[*errs.Error](err); ours || err == nil {
		return err
	}
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, full) {
			return errs.New(errs.Full, "projects_full",
				"there is no space in the service's projects directory, where a project that is new has its config: nothing was made; try again when there is").With(err)
		}
	}
	return errs.New(errs.Unavailable, "no_projects_dir",
		"the service can't write to its projects directory, where a project that is new has its config: let svcd write there (setting projects.dir), "+
			"or put the config there yourself, register it, and restore into that project").With(err)
}

// writeFounding makes the folder of a project: its config, the files that this reads secrets from, and empty folders of assets. Nothing shows
// before all is on the disk, and nothing of anybody else is replaced.
func writeFounding(root *folder.Folder, d *project.Detached) error {
	temp := foundingDir + d.ID
	files := map[string][]byte{foundingMark: []byte(d.ID + " " + d.Namespace + "\n")}
	for _, some := range []map[string][]byte{d.Secrets, d.Bundle.Files} {
		for name, data := range some {
			if name == foundingMark || !fs.ValidPath(name) {
				return errs.New(errs.Limit, "config_attached", "no config has a file %.80q", name)
			}
			files[name] = data
		}
	}
	if err := fillFolder(root, temp, files, d.Assets); err != nil {
		return unwritable(err)
	}
	err := root.RenameNew(temp, d.Namespace)
	if errors.Is(err, fs.ErrExist) {
		return errFolderExists(d.Namespace)
	}
	if err == nil {
		err = root.Sync(".")
	}
	return unwritable(err)
}

// fillFolder makes a folder of files, and of empty folders for assets, whose files are in no snapshot.
func fillFolder(root *folder.Folder, at string, files map[string][]byte, assets []project.Asset) error {
	if err := root.Make(at); err != nil {
		return err
	}
	made := map[string]bool{}
	makeAll := func(dir string) error { // and those above it
		for end := 1; end <= len(dir); end++ {
			if end < len(dir) && dir[end] != '/' || made[dir[:end]] {
				continue
			}
			if err := root.Make(path.Join(at, dir[:end])); err != nil {
				return err
			}
			made[dir[:end]] = true
		}
		return nil
	}
	for name, data := range files {
		if dir := path.Dir(name); dir != "." {
			if err := makeAll(dir); err != nil {
				return err
			}
		}
		if err := root.Write(path.Join(at, name), data); err != nil {
			return err
		}
	}
	for _, a := range assets {
		if err := makeAll(a.Path); err != nil {
			return err
		}
	}
	for dir := range made {
		if err := root.Sync(path.Join(at, path.Dir(dir))); err != nil {
			return err
		}
	}
	return nil
}

// markOf gives the id of the registration that a folder was made for, "" for one that somebody else has made.
func markOf(root *folder.Folder, name string) string {
	mark, err := root.Read(path.Join(name, foundingMark), 200)
	id, ours := strings.CutSuffix(string(mark), " "+name+"\n")
	if err != nil || !ours {
		return ""
	}
	return id
}

func removeMark(root *folder.Folder, name string) error {
	return unwritable(errors.Join(root.Remove(path.Join(name, foundingMark)), root.Sync(name)))
}

// removeFounding removes the folder that was made for a registration, which may have been there never, by half, or on another disk.
func removeFounding(root *folder.Folder, name, id string) error {
	if markOf(root, name) == id { // the mark goes last, too: by another name it goes in any case
		if err := root.Rename(name, foundingDir+id); err != nil {
			return unwritable(err)
		}
	}
	if _, err := root.Stat(foundingDir + id); errors.Is(err, fs.ErrNotExist) { // where nothing can be written nothing is asked to be removed
		return nil
	}
	return unwritable(errors.Join(root.RemoveAll(foundingDir+id), root.Sync(".")))
}

// sweepFoundings ends what restores have left in the directory of projects that were making a project: of one that is kept the mark is taken
// off, and of one that is gone the folder is removed. That is for a crash behind the last write of Keep, and for instances that have directories
// of their own: another one has ended the restore then, and could not reach this one. What goes on, or is still to be ended, is left alone.
func (c *Control) sweepFoundings(ctx context.Context) error {
	root, err := c.openProjects()
	if err != nil {
		return nil //nolint:nilerr // where there is no such directory, nothing is left in it, and the start tells of it
	}
	defer root.Close() //nolint:errcheck // what is removed is synced
	entries, err := root.Entries(".")
	if err != nil {
		return err
	}
	var all []error
	for _, e := range entries {
		id, aside := strings.CutPrefix(e.Name(), foundingDir)
		if !aside && e.IsDir() {
			id = markOf(root, e.Name())
		}
		if _, err := bson.ObjectIDFromHex(id); err == nil {
			all = append(all, c.sweepFounding(ctx, root, e.Name(), id))
		}
	}
	return errors.Join(all...)
}

func (c *Control) sweepFounding(ctx context.Context, root *folder.Folder, name, id string) error {
	reg, err := c.Projects.ByID(ctx, id)
	gone := errors.Is(err, errs.ErrNotFound)
	switch aside := strings.HasPrefix(name, foundingDir); {
	case err != nil && !gone:
		return err
	case !gone && reg.Founding: // it goes on, or the reconciler ends it
		return nil
	case !gone && !aside:
		return removeMark(root, name)
	case gone && !aside:
		if kept, err := c.wasKept(ctx, name); err != nil || kept {
			return err
		}
	}
	c.Logger.InfoContext(ctx, "removes what is left of a project that a restore was making", "folder", name)
	return removeFounding(root, name, id)
}

// adopt takes the mark off the folder of a config that somebody registers, if the restore that has made it is ended: from then on it is theirs, and no start removes it.
func (c *Control) adopt(ctx context.Context, dir string) error {
	at, err := filepath.Abs(c.ProjectsDir)
	if err == nil {
		at, err = filepath.EvalSymlinks(at) // as project.Locate has done with dir
	}
	var name string
	if err == nil {
		name, err = filepath.Rel(at, dir)
	}
	if err != nil {
		return err
	}
	name, _, _ = strings.Cut(filepath.ToSlash(name), "/")
	root, err := c.openProjects()
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // what is removed is synced
	id := markOf(root, name)
	if id == "" {
		return nil
	}
	reg, err := c.Projects.ByID(ctx, id)
	if err == nil && reg.Founding || err != nil && !errors.Is(err, errs.ErrNotFound) {
		return err
	}
	return removeMark(root, name)
}

// wasKept says that the project of a folder, whose registration is gone, may have been kept before: then somebody may need its config. Nothing
// was ever restored of one that was abandoned, and what another registration has there now is of that one.
func (c *Control) wasKept(ctx context.Context, namespace string) (bool, error) {
	_, err := c.Projects.ByNamespace(ctx, namespace)
	if !errors.Is(err, errs.ErrNotFound) {
		return false, err
	}
	there, err := c.Store.Database(project.DatabaseName(namespace)).CollectionNames(ctx)
	return len(there) > 0, err
}
