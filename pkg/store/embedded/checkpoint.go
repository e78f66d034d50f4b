package embedded

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/svcctl/svc/pkg/errs"
)

// Checkpoint makes a copy of the store in the directory dir, which must not exist (errs.Conflict), beside reads and
// writes. It holds every write that was acknowledged before, and may hold later ones, all of one moment. Files are
// linked rather than copied where dir is on the same file system, so it takes milliseconds and little space. Either all
// of it is there, durably, or no dir. The copy is a store as any: open it, or keep it as a backup.
func (s *Store) Checkpoint(ctx context.Context, dir string) error {
	done, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	if s.opts.ReadOnly {
		return errReadOnly
	}
	if err := s.disk.check(); err != nil {
		return err
	}
	if s.opts.FS == vfs.Default {
		if dir, err = filepath.Abs(dir); err != nil {
			return checkpointError(dir, err)
		}
	}
	s.checkpoints.Lock()
	defer s.checkpoints.Unlock()
	switch _, err := s.opts.FS.Stat(dir); {
	case err == nil:
		return errCheckpointExists(dir)
	case !errors.Is(err, fs.ErrNotExist):
		return checkpointError(dir, err)
	}
	if err := s.checkpoint(dir); err != nil {
		return checkpointError(dir, err)
	}
	return nil
}

// checkpoint makes the copy under another name first. One that a crash has left behind is removed.
func (s *Store) checkpoint(dir string) error {
	fs := s.opts.FS
	partial := dir + ".partial"
	if err := fs.RemoveAll(partial); err != nil {
		return err
	}
	err := guarded("checkpoint", func() error { return s.db.Checkpoint(partial, pebble.WithFlushedWAL()) })
	if err == nil {
		err = cutLog(partial, fs)
	}
	if err == nil {
		err = fs.Rename(partial, dir)
	}
	if err != nil {
		return errors.Join(err, fs.RemoveAll(partial))
	}
	return syncDir(fs.PathDir(dir), fs)
}

func syncDir(dir string, fs vfs.FS) error {
	f, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func errCheckpointExists(dir string) error {
	return errs.New(errs.Conflict, "checkpoint_exists", "%s exists: name a directory that does not", dir)
}

func checkpointError(dir string, err error) error {
	return errs.New(errs.Unavailable, "checkpoint", "the copy of the store in %s can't be made", dir).With(err)
}
