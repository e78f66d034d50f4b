package snapshot

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/folder"
	"github.com/svcctl/svc/pkg/project"
)

// others are the snapshots of a project beside one that something is wrong with: they may have the same file, or a better one.
type others struct {
	root   *folder.Folder
	at     []string // their paths, the newest first
	hasher hasher
	known  map[string]string // by hash: the snapshot that has it whole, or ""
}

func othersOf(root *folder.Folder, id string) (*others, error) {
	o := &others{root: root}
	err := eachSnapshot(root, func(profile, other string) error {
		if other != id {
			o.at = append(o.at, path.Join(profile, other))
		}
		return nil
	})
	slices.SortFunc(o.at, func(a, b string) int { return strings.Compare(path.Base(b), path.Base(a)) })
	return o, err
}

// whole names the newest that has a file of records whole; "": none has. It is not looked into what is known to be damaged.
func (o *others) whole(ctx context.Context, hash string, damaged ...fs.FileInfo) (id string, err error) {
	for _, at := range o.at {
		name := path.Join(at, mediaDir, hash)
		info, err := o.root.Stat(name)
		if err != nil || !info.Mode().IsRegular() || isAny(damaged, info) {
			continue
		}
		sum, _, err := o.hasher.file(ctx, o.root, name)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err == nil && sum == hash {
			return path.Base(at), nil
		}
		damaged = append(damaged, info)
	}
	return "", nil
}

// anew says how a file that is lost comes back. Of a hash it is looked for once, and of no more than so many.
func (o *others) anew(ctx context.Context, hash string, damaged ...fs.FileInfo) (string, error) {
	good, known := o.known[hash]
	if !known {
		if len(o.known) >= maxWarnings { // of more it is not told
			return uploadIt, nil
		}
		var err error
		if good, err = o.whole(ctx, hash, damaged...); err != nil {
			return "", err
		}
		if o.known == nil {
			o.known = map[string]string{}
		}
		o.known[hash] = good
	}
	return uploadAnew(good, hash), nil
}

// isAny says that a file is the same as one of several.
func isAny(list []fs.FileInfo, info fs.FileInfo) bool {
	return slices.ContainsFunc(list, func(other fs.FileInfo) bool { return os.SameFile(other, info) })
}

// spread notes of each other snapshot which of the files it has, too, that were found damaged: a link is no second copy. why says where that was.
func (s *Snapshots) spread(ctx context.Context, p *project.Project, o *others, damaged map[string][]fs.FileInfo, why string) error {
	if len(damaged) == 0 {
		return nil
	}
	for _, at := range o.at {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var found []Finding
		for name, is := range damaged {
			if info, err := o.root.Stat(path.Join(at, name)); err == nil && isAny(is, info) {
				found = append(found, Finding{Path: name, Text: why})
			}
		}
		if len(found) == 0 {
			continue
		}
		slices.SortFunc(found, func(a, b Finding) int { return strings.Compare(a.Path, b.Path) })
		if now := readState(o.root, at); now.Damaged || !now.spoil(time.Time{}, found) { // what can't be read says that itself
			continue
		}
		err := s.change(ctx, p, path.Base(at), func(state *State) { state.spoil(millisecond(s.o.Now()), found) })
		if err != nil && !errors.Is(err, ErrNotFound) { // it was deleted meanwhile
			return err
		}
	}
	return nil
}

// sameAs says of a file of a snapshot why it counts as damaged.
func sameAs(id string) string {
	return "it is the same file as in " + id + ", where it was found damaged"
}

// spoil takes in what was found to be damaged elsewhere, and says whether that is anything new.
func (s *State) spoil(at time.Time, found []Finding) (changed bool) {
	damage := Verification{At: at}
	if s.Damage != nil {
		damage = *s.Damage
		damage.Found = slices.Clone(damage.Found)
	}
	for _, f := range found {
		if damage.names(f.Path) || len(damage.Found) == maxWarnings || damage.Problems > int64(len(damage.Found)) { // of what is not named nobody could tell whether it is counted
			continue
		}
		damage.Problems++
		damage.Found, changed = append(damage.Found, f), true
	}
	if changed {
		s.WholeAt, s.Damage = time.Time{}, &damage
	}
	return changed
}
