package media

import (
	"context"
	"io"
	"path"
	"time"

	"github.com/svcctl/svc/pkg/errs"
)

// File is a file that was opened to be read. Close it. Give its ReadSeekCloser to http.ServeContent: that lets the system
// send it.
type File struct {
	io.ReadSeekCloser

	Size    int64
	ModTime time.Time
}

// OpenFile opens a file of a record. Whatever is wrong with a path is answered as a file that is not there.
func (s *Store) OpenFile(_ context.Context, p Place, name string) (*File, error) {
	folder, err := p.folder()
	if err != nil || !plainName(name) {
		return nil, errs.ErrNotFound.With(err)
	}
	target := path.Join(folder, name)
	if err := s.checkPath(target); err != nil {
		return nil, errs.ErrNotFound.With(err)
	}
	file, err := s.root.Open(target)
	if err != nil {
		return nil, errs.ErrNotFound.With(err)
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		_ = file.Close() // it was not read
		return nil, errs.ErrNotFound.With(err)
	}
	return &File{ReadSeekCloser: file, Size: info.Size(), ModTime: info.ModTime()}, nil
}
