package media

import (
	"context"
	"io/fs"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/folder"
)

// maxDeferred is how many records are remembered of which files are to be removed. More are swept.
const maxDeferred = 10_000

// removalTime bounds the removals behind a hold. What is not done by then is swept.
const removalTime = time.Minute

// Hold keeps every file where it is that records name, or have named since it began, so that a copy of all records at one moment can be
// given the files of that moment. What is to be removed meanwhile is removed at the end of the hold, or swept. Uploads go on.
type Hold struct {
	s    *Store
	open func()
}

// Hold begins a hold. Another one of the folder, of any process, is waited for, and so are removals that are under way.
func (s *Store) Hold(ctx context.Context) (*Hold, error) {
	open, err := s.removals.close(ctx)
	if err != nil {
		return nil, err
	}
	return &Hold{s, open}, nil
}

// Release ends the hold, and removes what was to be removed, for as long as ctx and a minute let it. A second call does nothing.
func (h *Hold) Release(ctx context.Context) {
	if h == nil || h.open == nil {
		return
	}
	s := h.s
	h.open()
	h.open = nil
	s.mu.Lock()
	deferred := s.deferred
	s.deferred = map[[2]string]Live{}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, removalTime)
	defer cancel()
	for at, live := range deferred {
		if ctx.Err() != nil {
			return
		}
		_ = s.RemoveRecord(ctx, at[0], at[1], live) // it is swept
	}
}

// later remembers that files of a record are to be removed when the hold of this process ends.
func (s *Store) later(dir, record string, live Live) {
	if !s.removals.closedHere() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.deferred) < maxDeferred {
		s.deferred[[2]string{dir, record}] = live
	}
}

// errReplaced is for uploads while files are replaced.
var errReplaced = &errs.Error{
	Kind: errs.Unavailable, Code: "restoring", RetryAfter: time.Second,
	Message: "the files are being replaced by those of a snapshot: try again in a moment",
}

// Quiet waits until no file waits for its record to be written, and refuses others that want to be put in place, until resume.
func (h *Hold) Quiet(ctx context.Context) (resume func(), err error) { return h.s.uploads.close(ctx) }

// Locate gives the path, in Folder, of a file of a record by its Key, and what it is. What is not there, or is no file, or can't be
// the name of one, is errs.ErrNotFound.
func (s *Store) Locate(dir, record, key string) (name string, info fs.FileInfo, err error) {
	at, err := recordFolder(dir, record)
	if err != nil {
		return "", nil, errs.ErrNotFound.With(err)
	}
	name, ok := fileOf(at, key)
	if !ok {
		return "", nil, errs.ErrNotFound
	}
	if err := s.checkPath(name); err != nil {
		return "", nil, errs.ErrNotFound.With(err)
	}
	if info, err = s.root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return "", nil, errs.ErrNotFound.With(err)
	}
	return name, info, nil
}

// Folder gives the folder, to read files from that were located. Nothing may be changed by it.
func (s *Store) Folder() *folder.Folder { return s.folder }
