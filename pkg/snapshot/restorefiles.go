package snapshot

import (
	"context"
	"errors"
	"path"
	"slices"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/media"
)

// choose gives the hash of the file that a record gets of the snapshot, the one that is whole where there is one; "": none.
func (r *restore) choose(at Differing, is string) string {
	switch m := r.from.m; {
	case !r.o.Media || !m.Media:
	case m.hasMedia(at.SHA256): // that of another record, if its own was damaged
		return at.SHA256
	case m.hasMedia(is):
		return is
	}
	return ""
}

// wasDamaged says that the file that a record gets was not what the record says when the snapshot was taken. One that says nothing of it has it as it was.
func (r *restore) wasDamaged(at Differing, hash string) bool {
	return hash != at.SHA256 && hexSum.MatchString(at.SHA256)
}

// placeOf gives where the file of a record has its place.
func (p *part) placeOf(at Differing) (dir, key string) {
	if dir = p.config.Uploads.Dir; dir == "" {
		dir = p.stored()
	}
	return dir, media.Key(p.config.StoredField(at.Field), at.Name)
}

// foresee notes which file a record gets. What a dry run or a drill is told of it is what a restore would be.
func (r *restore) foresee(ctx context.Context, p *part, at Differing, is string) error {
	if !r.o.Media || !r.from.m.Media {
		if r.o.DryRun && r.s.o.Media != nil {
			return r.lacks(ctx, p, at)
		}
		return nil
	}
	hash := r.choose(at, is)
	if hash != "" {
		r.media[hash] = true
	}
	switch told := r.o.DryRun || r.trial; {
	case hash == "" && told:
		return r.lacks(ctx, p, at)
	case hash != "" && !r.wasDamaged(at, hash):
		return nil
	case !told: // while nobody has to wait for it
		_, err := r.help(ctx, at)
		return err
	}
	whole, err := r.isWhole(ctx, p, at)
	if err != nil {
		return err
	}
	if whole {
		r.kept[at.place()] = true
		return nil
	}
	return r.warnDamaged(ctx, at)
}

// isWhole says whether the file that is served is what a record of the snapshot says.
func (r *restore) isWhole(ctx context.Context, p *part, at Differing) (bool, error) {
	if r.files == nil {
		return false, nil
	}
	dir, key := p.placeOf(at)
	name, _, err := r.files.Locate(dir, at.Record, key)
	if err != nil {
		if errors.Is(err, errs.ErrNotFound) {
			err = nil
		}
		return false, err
	}
	var h hasher
	sum, _, err := h.file(ctx, r.files.Folder(), name)
	return sum == at.SHA256, err
}

// look opens the files of the project, if it has any, for who only looks at them.
func (r *restore) look() error {
	if r.s.o.Media == nil {
		return nil
	}
	all, err := r.s.o.Media.Namespaces()
	if err != nil || !slices.Contains(all, r.p.Namespace) {
		return err
	}
	r.files, err = r.s.o.Media.Store(r.p.Namespace)
	return err
}

func (r *restore) warnDamaged(ctx context.Context, at Differing) error {
	help, err := r.help(ctx, at)
	r.t.warn(at.words() + " was not what the record says when the snapshot was taken: it is damaged; " + help)
	return err
}

// lacks notes a file that is not brought, if there is none in its place.
func (r *restore) lacks(ctx context.Context, p *part, at Differing) error {
	if r.files != nil {
		dir, key := p.placeOf(at)
		if _, _, err := r.files.Locate(dir, at.Record, key); !errors.Is(err, errs.ErrNotFound) {
			return err
		}
	}
	r.result.Files.Missing++
	help := "the snapshot has no files: upload it"
	switch {
	case !r.o.Media:
		help = "no files are restored: restore with them, or upload it"
	case r.from.m.Media:
		var err error
		if help, err = r.help(ctx, at); err != nil {
			return err
		}
	}
	r.t.warn(at.words() + " is not there; " + help)
	return nil
}

// help says how a record gets a file that the snapshot does not have whole.
func (r *restore) help(ctx context.Context, at Differing) (string, error) {
	if !hexSum.MatchString(at.SHA256) {
		return uploadIt, nil
	}
	if r.beside == nil {
		var err error
		if r.beside, err = othersOf(r.from.root, path.Base(r.from.at)); err != nil {
			return "", err
		}
	}
	return r.beside.anew(ctx, at.SHA256)
}
