package snapshot

import (
	"context"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/svcctl/svc/pkg/errs"
)

// check reads what is about to be restored, before anything is changed.
func (r *restore) check(ctx context.Context) error {
	m := r.from.m
	var documents int64
	for _, p := range r.parts {
		documents += p.col.Documents
	}
	r.t.begin(Verifying, documents, 0)
	r.media, r.kept = map[string]bool{}, map[string]bool{}
	differing := m.differing()
	for _, p := range r.parts {
		r.t.at(p.name)
		from, err := openExport(ctx, r.from.dir, m, p.col)
		if err != nil {
			return err
		}
		err = each(from, func(doc []byte) error {
			r.t.done(1, int64(len(doc)))
			var failed error
			eachFile(m, p.col, doc, differing, func(at Differing, is string) {
				if failed == nil {
					failed = r.foresee(ctx, p, at, is)
				}
			})
			return failed
		})
		from.close()
		if err != nil {
			return r.alsoWithout(err, "other collections can be restored")
		}
	}
	return r.checkMedia(ctx)
}

// checkMedia reads the files that are about to be brought; a dry run those that are known to be damaged.
func (r *restore) checkMedia(ctx context.Context) error {
	var bytes int64
	list := r.suspects()
	if len(list) == 0 { // what was read stays what is told
		r.t.tell()
		return nil
	}
	for _, hash := range list {
		bytes += r.from.m.file(mediaDir + "/" + hash).Size
	}
	r.t.begin(Verifying, int64(len(list)), bytes)
	var h hasher
	for _, hash := range list {
		name := mediaDir + "/" + hash
		sum, size, err := h.file(ctx, r.from.dir, name)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return r.lost(ctx, hash, cause(err))
		case sum != hash:
			return r.lost(ctx, hash, errSum.Error())
		}
		r.t.done(1, size)
	}
	r.t.tell()
	return nil
}

// suspects are the hashes of the files that are read.
func (r *restore) suspects() []string {
	all := slices.Sorted(maps.Keys(r.media))
	if !r.o.DryRun {
		return all
	}
	state := readState(r.from.root, r.from.at)
	if state.Damage == nil {
		return nil
	}
	if state.Damage.Problems > int64(len(state.Damage.Found)) { // others are not named
		return all
	}
	return slices.DeleteFunc(all, func(hash string) bool {
		return !slices.ContainsFunc(state.Damage.Found, func(f Finding) bool { return f.Path == mediaDir+"/"+hash })
	})
}

// lost refuses a snapshot of which a file of records is damaged, and says where it is whole, and what can be restored all the same.
func (r *restore) lost(ctx context.Context, hash, what string) error {
	name := mediaDir + "/" + hash
	if r.trial {
		return damaged("%s: %s", name, what)
	}
	beside, err := othersOf(r.from.root, path.Base(r.from.at))
	if err != nil {
		return err
	}
	info, err := r.from.dir.Stat(name)
	var known []fs.FileInfo
	if err == nil {
		known = append(known, info)
	}
	good, err := beside.whole(ctx, hash, known...)
	if err != nil {
		return err
	}
	help := "no other snapshot has it whole"
	if good != "" {
		help = good + " has it whole"
	}
	return r.alsoWithout(damaged("%s: %s; %s", name, what, help), "collections that do not name it can be restored, and all without files (--no-media)")
}

// alsoWithout adds to a refusal for damage how the rest can be restored.
func (r *restore) alsoWithout(err error, rest string) error {
	if e := errs.From(err); err != nil && e.Code == ErrDamaged.Code && !r.trial {
		return errs.New(e.Kind, e.Code, "%s; %s", e.Message, rest).With(err)
	}
	return err
}
