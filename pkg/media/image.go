package media

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/imagefilter"
)

// Image gives what a filter makes of a file, which has that hash. Its ModTime is the file's. still says that the file which was opened is the
// one that has it: what is made is kept under the hash.
func (s *Store) Image(ctx context.Context, p Place, name, hash string, f *imagefilter.Filter, still func() error) (*File, Info, error) {
	folder, err := p.folder()
	if err != nil || !plainName(name) {
		return nil, Info{}, errs.ErrNotFound.With(err)
	}
	modified, err := s.modified(path.Join(folder, name), hash)
	if err != nil {
		return nil, Info{}, errs.ErrNotFound.With(err)
	}
	key := ImageHash(hash, f)
	file, made, err := s.opts.Images.Get(ctx, key, func(ctx context.Context, reserve func(int64) error) (imagefilter.Result, error) {
		src, err := s.OpenFile(ctx, p, name)
		if err != nil {
			return imagefilter.Result{}, err
		}
		defer func() { _ = src.Close() }() // it was only read
		if err := still(); err != nil {
			return imagefilter.Result{}, err
		}
		info, err := imagefilter.Inspect(ctx, src, imagefilter.Limits{})
		if err == nil {
			err = reserve(f.Memory(info))
		}
		if err != nil {
			return imagefilter.Result{}, err
		}
		return f.Apply(ctx, src, imagefilter.Limits{})
	})
	if err != nil {
		return nil, Info{}, err
	}
	file.ModTime = modified
	info := Info{Name: name, Type: made.Type, Hash: key, Size: file.Size, Width: made.Width, Height: made.Height, ModTime: file.ModTime, Warning: made.Warning}
	return file, info, nil
}

// maxModified bounds the files whose times are kept.
const maxModified = 10_000

// modified says when a file was put in place. It is kept, for that is most of the work of giving a picture that is there: it
// is one for a path and a content, and that the file is there has been said by the record which names it.
func (s *Store) modified(target, hash string) (time.Time, error) {
	key := [2]string{target, hash}
	s.mu.Lock()
	at, known := s.times[key]
	s.mu.Unlock()
	if known {
		return at, nil
	}
	if err := s.checkPath(target); err != nil {
		return at, err
	}
	info, err := s.root.Stat(target)
	if err != nil {
		return at, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.times) >= maxModified {
		clear(s.times)
	}
	s.times[key] = info.ModTime()
	return info.ModTime(), nil
}

// measure gives the size of a picture as it is to be looked at, when filters can read it. One whose header is damaged is
// refused, but for a TIFF, of which there are more kinds than filters read. One that is too large for filters can be stored.
func measure(ctx context.Context, mediaType string, r io.ReadSeeker) (width, height int, err error) {
	if !strings.HasPrefix(mediaType, "image/") {
		return 0, 0, nil
	}
	info, err := imagefilter.Inspect(ctx, r, imagefilter.Limits{})
	switch {
	case err == nil:
		return info.Width, info.Height, nil
	case errors.Is(err, imagefilter.ErrDamaged) && mediaType == "image/tiff", errs.KindOf(err) == errs.MediaType, errs.KindOf(err) == errs.Limit:
		return 0, 0, nil
	}
	return 0, 0, err
}
