package snapshot

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/svcctl/svc/pkg/folder"
	"github.com/svcctl/svc/pkg/project"
)

// Beginnings of what is not whole yet, and of what is about to be removed.
const (
	partialMark = ".partial-"
	trashMark   = ".trash-"
)

// Delete removes a snapshot. One that is pinned stays (ErrPinned), and so does one that this process reads (ErrInUse). From the moment in
// which it begins, the snapshot is gone, also if the process dies: Sweep removes the rest.
func (s *Snapshots) Delete(ctx context.Context, p *project.Project, id string) error {
	return s.alone(ctx, p.Namespace, func(ctx context.Context) error {
		o, err := s.open(p, id)
		if err != nil {
			return err
		}
		root, at := o.root, o.at
		o.end() // what is left is who else reads it
		defer func() {
			o.end = func() {}
			o.close()
		}()
		if ctx.Err() != nil {
			return ended(ctx, ctx.Err())
		}
		if err := s.removeOne(ctx, p, root, at, func(State) error { return nil }); err != nil {
			return unwritten(err, "delete a snapshot")
		}
		s.changed(p)
		return nil
	})
}

// removeOne removes a snapshot that nobody reads (ErrInUse) and that is not pinned (ErrPinned), if its state may be so. From its first step on it is gone.
func (s *Snapshots) removeOne(ctx context.Context, p *project.Project, root *folder.Folder, at string, may func(State) error) error {
	end, ok := s.seize(path.Join(p.Namespace, at))
	if !ok {
		return ErrInUse
	}
	defer end()
	unlock, err := s.lockStates(ctx, p)
	if err != nil {
		return err
	}
	defer unlock()
	state := readState(root, at)
	if state.Pinned {
		return ErrPinned
	}
	if err := may(state); err != nil {
		return err
	}
	return remove(root, at)
}

func remove(root *folder.Folder, at string) error {
	profile, id := path.Split(at)
	trash := profile + trashMark + id
	if err := root.Rename(at, trash); err != nil {
		return err
	}
	if err := root.Sync(path.Dir(at)); err != nil {
		return err
	}
	if err := root.RemoveAll(trash); err != nil {
		return err
	}
	err := root.Remove(at + stateEnding)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Sweep removes what crashes left of snapshots that were being made, deleted or restored, and of drills. Call it at the start, and later as you like.
func (s *Snapshots) Sweep(ctx context.Context, p *project.Project) error {
	if root, err := s.folder(p, false); errors.Is(err, fs.ErrNotExist) { // most projects: nobody has to be kept out
		return nil
	} else if err == nil {
		_ = root.Close() // nothing was done with it
	}
	err := s.aloneIn(ctx, p.Namespace, drillLease, func(ctx context.Context) error { return s.sweepDrills(ctx, p) })
	if err != nil && !errors.Is(err, ErrBusy) { // or one goes on
		return ended(ctx, err)
	}
	return s.alone(ctx, p.Namespace, func(ctx context.Context) error {
		if err := s.recover(ctx, p); err != nil {
			return ended(ctx, err)
		}
		root, err := s.folder(p, false)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return unwritten(err, "open the folder of snapshots")
		}
		defer root.Close() //nolint:errcheck // what was removed is gone, or the next sweep does it
		unlock, err := s.lockStates(ctx, p)
		if err != nil {
			return err
		}
		defer unlock()
		return unwritten(sweep(ctx, root), "clean up the folder of snapshots")
	})
}

func sweep(ctx context.Context, root *folder.Folder) error {
	profiles, err := profileDirs(root)
	if err != nil {
		return err
	}
	for _, profile := range profiles {
		list, err := root.Entries(profile)
		if err != nil {
			return err
		}
		for _, x := range list {
			if ctx.Err() != nil {
				return ended(ctx, ctx.Err())
			}
			name := path.Join(profile, x.Name())
			if left, err := isLeft(root, name); err != nil || !left {
				if err != nil {
					return err
				}
				continue
			}
			if err := root.RemoveAll(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// isLeft says that nobody needs something in the folder of a profile: what was not whole, what was being removed, a state that was being
// written, and the state of a snapshot that is gone.
func isLeft(root *folder.Folder, name string) (bool, error) {
	base := path.Base(name)
	if strings.HasPrefix(base, ".") {
		return true, nil
	}
	id, isState := strings.CutSuffix(name, stateEnding)
	if !isState || !snapshotID.MatchString(path.Base(id)) {
		return false, nil
	}
	_, err := root.Stat(id)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return false, err
}
