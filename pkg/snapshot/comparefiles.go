package snapshot

import (
	"bytes"
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/project"
)

// FileDiff is a file that a record on both sides names as the same, and that one of them does not have, or has with another size. What a file has in it is not read for
// that; of two snapshots it is known.
type FileDiff struct {
	Record string // hex of its ObjectID
	Field  string
	Name   string
	Kind   Kind // Added or Removed: one side alone has it
}

// sideFile is a file that a record of a side names.
type sideFile struct {
	Differing // SHA256 is that which it has by its record

	there bool
	size  int64
	sum   string // that it has; "": not known
	gone  bool   // its record is another one by now, and whoever changed that has removed the file
}

// files compares the files of a record that both sides have.
func (c *comparison) files(ctx context.Context, out *CollectionDiff, before, after side, was, is bson.Raw) error {
	if !before.hasFiles() || !after.hasFiles() {
		return nil
	}
	left, err := before.files(ctx, out.Name, was)
	if err != nil || len(left) == 0 {
		return err
	}
	right, err := after.files(ctx, out.Name, is)
	if err != nil {
		return err
	}
	for i := range left {
		for j := range right {
			if l, r := &left[i], &right[j]; l.Field == r.Field && l.Name == r.Name && l.SHA256 == r.SHA256 { // else the record itself differs
				c.file(out, l, r)
				break
			}
		}
	}
	return nil
}

func (c *comparison) file(out *CollectionDiff, was, is *sideFile) {
	one := FileDiff{Record: was.Record, Field: was.Field, Name: was.Name, Kind: Changed}
	switch {
	case was.gone || is.gone:
		return
	case was.there && !is.there:
		if c.restored { // what the snapshot does not have stays
			return
		}
		one.Kind = Removed
	case !was.there && is.there:
		one.Kind = Added
	case !is.there, was.size == is.size && (was.sum == "" || is.sum == "" || was.sum == is.sum):
		return
	}
	if out.Files++; len(out.FileDiffs) < c.limit {
		out.FileDiffs = append(out.FileDiffs, one)
	}
}

// named gives the files that a record names by the addresses of a project.
func named(namespace string, config *project.Collection, doc bson.Raw, fn func(key string, f *sideFile) error) (list []sideFile, err error) {
	if !bytes.Contains(doc, []byte(project.FilesRoot(namespace))) {
		return nil, nil
	}
	eachNamed(namespace, config, doc, func(key string, at Differing) {
		f := sideFile{Differing: at}
		if err == nil {
			err = fn(key, &f)
		}
		list = append(list, f)
	})
	return list, err
}

func (s *savedSide) hasFiles() bool { return s.m.Media }

func (s *savedSide) files(_ context.Context, name string, doc bson.Raw) ([]sideFile, error) {
	return s.filesOf(s.m.Namespace, name, doc)
}

// filesOf is files of a record whose addresses are those of a namespace.
func (s *savedSide) filesOf(namespace, name string, doc bson.Raw) ([]sideFile, error) {
	if s.differing == nil {
		s.differing = s.m.differing()
	}
	return named(namespace, &project.Collection{Name: name}, doc, func(_ string, f *sideFile) error {
		if f.sum = s.differing[f.place()]; f.sum == "" {
			f.sum = f.SHA256
		}
		if file := s.m.file(mediaDir + "/" + f.sum); file != nil {
			f.there, f.size = true, file.Size
		}
		return nil
	})
}

func (s *movedSide) hasFiles() bool { return s.r.o.Media && s.r.from.m.Media }

func (s *movedSide) files(_ context.Context, name string, doc bson.Raw) ([]sideFile, error) {
	list, err := s.r.from.filesOf(s.r.p.Namespace, name, doc)
	for i := range list {
		f := &list[i]
		if whole := s.r.from.m.file(mediaDir + "/" + f.SHA256); whole != nil { // see restore.choose
			f.there, f.size, f.sum = true, whole.Size, f.SHA256
		} else if s.r.kept[f.place()] {
			f.there = false
		}
	}
	return list, err
}

func (l *liveSide) hasFiles() bool { return l.library != nil }

func (l *liveSide) files(ctx context.Context, name string, doc bson.Raw) ([]sideFile, error) {
	src, ok := l.sources[name]
	if !ok {
		return nil, nil
	}
	return named(l.p.Namespace, src.config, doc, func(key string, f *sideFile) error {
		if l.stored == nil {
			var err error
			if l.stored, err = l.library.Store(l.p.Namespace); err != nil {
				return err
			}
		}
		dir := src.config.Uploads.Dir
		if dir == "" {
			dir = src.config.StoredName()
		}
		_, info, err := l.stored.Locate(dir, f.Record, key)
		if errors.Is(err, errs.ErrNotFound) {
			f.gone, err = l.changed(ctx, src, &f.Differing)
			return errors.Join(err, ctx.Err())
		}
		if err != nil {
			return err
		}
		f.there, f.size = true, info.Size()
		return ctx.Err()
	})
}

// changed says that a record does not name a file any more, as it did when the view was opened.
func (l *liveSide) changed(ctx context.Context, src source, at *Differing) (bool, error) {
	id, err := bson.ObjectIDFromHex(at.Record)
	if err != nil {
		return false, errs.Wrap(err, "read a record again")
	}
	value, err := document.MarshalValue(id)
	if err != nil {
		return false, errs.Wrap(err, "read a record again")
	}
	doc, err := l.now.Collection(src.config.StoredName()).Get(ctx, value)
	if errors.Is(err, errs.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	names := false
	doc = withAddresses(doc, src.config.FileAddresses(l.p.Namespace, id).Current)
	eachNamed(l.p.Namespace, src.config, doc, func(_ string, now Differing) { names = names || now == *at })
	return !names, nil
}

// liveFiles are those of a project, for who looks whether they are there.
type liveFiles struct {
	library *media.Library // nil: there are none
	stored  *media.Store   // nil: none was looked for yet
}
