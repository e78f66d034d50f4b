package folder

import (
	"errors"
	"io/fs"
	"os"
	"path"
)

// RenameNew gives a folder a name beside it that nothing has: fs.ErrExist, if only an empty folder has it. It is durable with a Sync of the
// folder that both are in. Where the file system can't do that in one step, such as NFS, an empty folder that is made meanwhile is replaced.
func (f *Folder) RenameNew(name, to string) error {
	if path.Dir(name) != path.Dir(to) {
		return &os.LinkError{Op: "rename", Old: name, New: to, Err: fs.ErrInvalid}
	}
	dir, err := f.root.Open(path.Dir(to))
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // nothing was written by it
	err = f.ask("rename", to)
	if err == nil {
		err = renameNewAt(dir, path.Base(name), path.Base(to))
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return f.renameBehind(name, to)
	case err != nil:
		return &os.LinkError{Op: "rename", Old: name, New: to, Err: err}
	}
	return nil
}

// renameBehind is RenameNew in two steps.
func (f *Folder) renameBehind(name, to string) error {
	if _, err := f.root.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: name, New: to, Err: fs.ErrExist}
	}
	return f.root.Rename(name, to)
}
