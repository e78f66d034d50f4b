package outside_test

import "io/fs"

// writable is a file system whose files may be written to in a copy: modules are kept read-only.
type writable struct{ fs.FS }

func (w writable) Open(name string) (fs.File, error) {
	f, err := w.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return writableFile{f}, nil
}

// ReadDir keeps fs.WalkDir from seeing files through Open.
func (w writable) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(w.FS, name) }

type writableFile struct{ fs.File }

func (f writableFile) Stat() (fs.FileInfo, error) {
	info, err := f.File.Stat()
	return writableInfo{info}, err
}

type writableInfo struct{ fs.FileInfo }

func (i writableInfo) Mode() fs.FileMode { return i.FileInfo.Mode() | 0o200 }
