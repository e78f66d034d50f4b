package snapshot

import (
	"context"
	"path"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/media"
)

// holdFiles keeps the files of the project where they are, and others from coming, until release.
func (r *restore) holdFiles(ctx context.Context) (release func(), err error) {
	nothing := func() {}
	if r.s.o.Media == nil {
		return nothing, nil
	}
	has, err := r.s.hasFiles(r.p)
	if err != nil || !has && len(r.media) == 0 {
		return nothing, err
	}
	files, err := r.s.o.Media.Store(r.p.Namespace)
	if err != nil {
		return nothing, err
	}
	hold, err := files.Hold(ctx)
	if err != nil {
		return nothing, err
	}
	resume, err := hold.Quiet(ctx)
	if err != nil {
		hold.Release(context.WithoutCancel(ctx))
		return nothing, err
	}
	r.files, r.hold, r.back = files, hold, hold.PutBack(r.short)
	return func() {
		resume()
		hold.Release(context.WithoutCancel(ctx))
	}, nil
}

// bring puts the files of the snapshot's records where these name them, or aside where others are.
func (r *restore) bring(ctx context.Context) error {
	if r.files == nil {
		return nil
	}
	r.t.begin(Media, int64(len(r.media)), 0)
	differing := r.from.m.differing()
	for _, p := range r.parts {
		r.t.at(p.name)
		from, err := openExport(ctx, r.from.dir, r.from.m, p.col)
		if err != nil {
			return err
		}
		err = each(from, func(doc []byte) error {
			var failed error
			eachFile(r.from.m, p.col, doc, differing, func(at Differing, is string) {
				if failed == nil {
					failed = r.bringOne(ctx, p, at, is)
				}
			})
			return failed
		})
		from.close()
		if err != nil {
			return err
		}
	}
	r.t.tell()
	return unbrought(r.back.Sync())
}

// bringOne brings one file.
func (r *restore) bringOne(ctx context.Context, p *part, at Differing, is string) error {
	hash := r.choose(at, is)
	if hash == "" {
		return r.lacks(ctx, p, at)
	}
	dir, key := p.placeOf(at)
	to := media.Back{Dir: dir, Record: at.Record, Key: key, Hash: hash}
	if r.wasDamaged(at, hash) {
		to.Hash = at.SHA256
		kept, err := r.back.Keep(ctx, to)
		if err != nil {
			return unbrought(err)
		}
		if kept {
			r.t.done(1, 0)
			r.result.Files.WereThere++
			return nil
		}
		if err := r.warnDamaged(ctx, at); err != nil {
			return err
		}
		to.Hash = hash
	}
	name := path.Join(mediaDir, hash)
	f := r.from.m.file(name)
	to.Size = f.Size
	how, _, err := r.back.Bring(ctx, to, r.from.dir, name)
	if errs.KindOf(err) == errs.Invalid { // a name that no upload gets
		return r.lacks(ctx, p, at)
	}
	if err != nil {
		return unbrought(err)
	}
	r.t.done(1, f.Size)
	switch how {
	case media.Linked:
		r.result.Files.Linked++
		r.t.count(Linked)
	case media.Copied:
		r.result.Files.Copied++
		r.t.count(Copied)
	default:
		r.result.Files.WereThere++
	}
	return nil
}

// unbrought is the error of a file that could not be brought, which is to where files of records are, and not to where snapshots are.
func unbrought(err error) error {
	err = unwritten(err, "put files back")
	if e := errs.From(err); e != nil && e.Kind == errs.Full {
		return errs.New(errs.Full, "uploads_full", "there is no space for the files of records on the server: nothing was changed; try again when there is").With(err)
	}
	return err
}
