package folder

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// copied is how many bytes are copied between two looks at the context.
const copied = 8 << 20

// Link gives a file of one folder another name in another one, which must not be taken (fs.ErrExist). A symbolic link is not
// followed: it would be linked itself, so see to it that the file is none.
func Link(from *Folder, name string, to *Folder, as string) (err error) {
	if err := to.ask("link", as); err != nil {
		return err
	}
	source, err := from.root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer source.Close() //nolint:errcheck // nothing was written by it
	target, err := to.root.Open(path.Dir(as))
	if err != nil {
		return err
	}
	defer target.Close() //nolint:errcheck // nothing was written by it
	if err := linkAt(source, path.Base(name), target, path.Base(as)); err != nil {
		return &os.LinkError{Op: "link", Old: name, New: as, Err: err}
	}
	return nil
}

// IsUnlinkable says that there can be no link, though there could be a copy: to another file system, of one that has none, of a file
// with too many, or of somebody else's.
func IsUnlinkable(err error) bool {
	for _, no := range []error{syscall.EXDEV, syscall.EMLINK, syscall.EPERM, syscall.ENOTSUP, syscall.ENOSYS, errors.ErrUnsupported} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// Bring links a file of one folder into another one, or copies it where it can't be linked. The name must not be taken (fs.ErrExist).
// What was copied is on disk; the name is durable with a Sync of its folder.
func Bring(ctx context.Context, from *Folder, name string, to *Folder, as string) (linked bool, err error) {
	err = Link(from, name, to, as)
	if err == nil || !IsUnlinkable(err) {
		return err == nil, err
	}
	return false, Copy(ctx, from, name, to, as)
}

// Copy copies a file of one folder into another one. The name must not be taken (fs.ErrExist).
func Copy(ctx context.Context, from *Folder, name string, to *Folder, as string) error {
	source, err := from.Open(name)
	if err != nil {
		return err
	}
	defer source.Close() //nolint:errcheck // it was only read
	target, err := to.Create(as)
	if err != nil {
		return err
	}
	err = fill(ctx, target, source)
	if err == nil {
		err = target.Sync()
	}
	if closing := target.Close(); err == nil {
		err = closing
	}
	if err != nil {
		_ = to.root.Remove(as) // it is not whole
	}
	return err
}

// fill has the system copy from file to file, which may take no time where blocks can be shared.
func fill(ctx context.Context, to, from *File) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := errors.Join(to.folder.ask("write", to.name), from.folder.ask("read", from.name)); err != nil {
			return err
		}
		n, err := io.CopyN(to.file, from.file, copied)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return fs.ErrInvalid
		}
	}
}
