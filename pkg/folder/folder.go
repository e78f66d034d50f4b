package folder

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

const (
	dirMode  = 0o700
	fileMode = 0o600
)

// Fault is asked before each operation, by the name of that ("write", "link") and the path of its file. What it returns, the operation
// fails with, undone, or done by half where that can be. It is for tests.
type Fault func(op, name string) error

// Folder is a folder, whose files are named by paths with slashes inside of it. It is safe for concurrent use.
type Folder struct {
	root  *os.Root
	fault Fault
}

// Open opens a folder, which is made with what is above it if it is not there. fault may be nil.
func Open(dir string, fault Fault) (*Folder, error) {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, err
	}
	return OpenExisting(dir, fault)
}

// OpenExisting opens a folder that is there (fs.ErrNotExist).
func OpenExisting(dir string, fault Fault) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Folder{root, fault}, nil
}

// Of is the folder that root has open. Who has root closes it.
func Of(root *os.Root, fault Fault) *Folder { return &Folder{root, fault} }

// Root is what it reads and writes by. Nobody is asked about what is done with it (Fault).
func (f *Folder) Root() *os.Root { return f.root }

// Free is how many bytes can be written to the file system that the folder is on; -1 where that is not known.
func (f *Folder) Free() (int64, error) {
	if err := f.ask("statfs", "."); err != nil {
		return 0, err
	}
	dir, err := f.root.Open(".")
	if err != nil {
		return 0, err
	}
	free, err := freeAt(dir)
	return free, errors.Join(err, dir.Close())
}

// Writable says why files can't be made in the folder, such as for a file system that is mounted to be read, where that is known. There may be
// no space for them all the same.
func (f *Folder) Writable() error {
	if err := f.ask("access", "."); err != nil {
		return err
	}
	dir, err := f.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(writableAt(dir), dir.Close())
}

// Sub opens a folder inside of it.
func (f *Folder) Sub(name string) (*Folder, error) {
	if err := f.ask("open", name); err != nil {
		return nil, err
	}
	root, err := f.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &Folder{root, f.fault}, nil
}

// Close ends its use. Files that were opened can be used on.
func (f *Folder) Close() error { return f.root.Close() }

func (f *Folder) ask(op, name string) error {
	if f.fault == nil {
		return nil
	}
	if err := f.fault(op, name); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// Make makes a folder, if it is not there. It is durable with a Sync of the one that it is in.
func (f *Folder) Make(name string) error {
	if err := f.ask("mkdir", name); err != nil {
		return err
	}
	err := f.root.Mkdir(name, dirMode)
	if errors.Is(err, fs.ErrExist) {
		if info, failed := f.root.Lstat(name); failed == nil && info.IsDir() {
			return nil
		}
	}
	return err
}

// Create makes a file, which must not be there (fs.ErrExist).
func (f *Folder) Create(name string) (*File, error) {
	if err := f.ask("create", name); err != nil {
		return nil, err
	}
	file, err := f.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, fileMode)
	if err != nil {
		return nil, err
	}
	return &File{file, f, name}, nil
}

// Open opens a regular file to be read. Another kind of file is fs.ErrInvalid.
func (f *Folder) Open(name string) (*File, error) {
	if err := f.ask("open", name); err != nil {
		return nil, err
	}
	info, err := f.root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if err != nil {
		return nil, err
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, err
	}
	return &File{file, f, name}, nil
}

// Stat tells what a name is. A symbolic link is one, whatever it leads to.
func (f *Folder) Stat(name string) (fs.FileInfo, error) {
	if err := f.ask("stat", name); err != nil {
		return nil, err
	}
	return f.root.Lstat(name)
}

// Entries lists what is in a folder, by name.
func (f *Folder) Entries(name string) ([]fs.DirEntry, error) {
	if err := f.ask("readdir", name); err != nil {
		return nil, err
	}
	return fs.ReadDir(f.root.FS(), name)
}

// Read reads a file whole, which has at most that many bytes.
func (f *Folder) Read(name string, most int64) ([]byte, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, most)
	}
	data := make([]byte, info.Size())
	n, err := file.readFull(data)
	return data[:n], err
}

// Rename gives a file or folder another name, in place of the file that has it. It is durable with a Sync of the folders that these
// are in.
func (f *Folder) Rename(name, to string) error {
	if err := f.ask("rename", to); err != nil {
		return err
	}
	return f.root.Rename(name, to)
}

// Remove removes a file or an empty folder.
func (f *Folder) Remove(name string) error {
	if err := f.ask("remove", name); err != nil {
		return err
	}
	return f.root.Remove(name)
}

// RemoveAll removes a folder with everything in it. One that is not there is no error.
func (f *Folder) RemoveAll(name string) error {
	if err := f.ask("remove", name); err != nil {
		return err
	}
	return f.root.RemoveAll(name)
}

// Sync makes durable which files a folder has.
func (f *Folder) Sync(name string) error {
	if err := f.ask("sync", name); err != nil {
		return err
	}
	dir, err := f.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Write writes a file, in place of the one that is there, durably: whatever happens, either of them is there, whole.
func (f *Folder) Write(name string, data []byte) error {
	temp := path.Join(path.Dir(name), "."+rand.Text())
	file, err := f.Create(temp)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = f.Rename(temp, name)
	}
	if err != nil {
		_ = f.root.Remove(temp) // it has no name that anybody looks for
		return err
	}
	return f.Sync(path.Dir(name))
}

// SyncAll makes durable all that was written to the file system that the folder is on. Where the system can't (CanSyncAll), it is
// errors.ErrUnsupported.
func (f *Folder) SyncAll() error {
	if err := f.ask("sync", "."); err != nil {
		return err
	}
	dir, err := f.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(syncAll(dir), dir.Close())
}
