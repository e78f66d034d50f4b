package snapshot

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/svcctl/svc/pkg/folder"
)

// previous is the last snapshot of the profile, to whose files can be linked.
type previous struct {
	at       string // its path
	dir      *folder.Folder
	manifest *Manifest
	state    State
	made     time.Time // by the clock of the disk
}

// vouches says that a file which it has, too, need not be read: nobody has written to it since, and nothing is known of damage.
func (p *previous) vouches(name string, info fs.FileInfo) bool {
	damage := p.state.Damage
	switch {
	case p.state.Damaged, !p.manifest.hasMedia(path.Base(name)), info.ModTime().After(p.made):
		return false
	case damage == nil:
		return true
	}
	return len(damage.Found) < maxWarnings && !damage.names(name) // else nobody knows what else there is
}

// since gives the files that have been found damaged since it was looked at.
func (p *previous) since(root *folder.Folder) (found []string) {
	now := readState(root, p.at).Damage
	if now == nil {
		return nil
	}
	for _, f := range now.Found {
		if p.state.Damage == nil || !p.state.Damage.names(f.Path) {
			found = append(found, f.Path)
		}
	}
	return found
}

// lastOf gives the newest snapshot of a profile that is whole, nil if there is none.
func lastOf(root *folder.Folder, profile string) (*previous, error) {
	list, err := root.Entries(profile)
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(list) {
		if !e.IsDir() || !snapshotID.MatchString(e.Name()) {
			continue
		}
		dir, err := root.Sub(path.Join(profile, e.Name()))
		if err != nil {
			return nil, err
		}
		if m, err := readManifest(dir); err == nil {
			return previousOf(root, dir, m, path.Join(profile, e.Name()))
		}
		_ = dir.Close() // it is damaged: nothing is linked to it
	}
	return nil, nil //nolint:nilnil // it is the first
}

func previousOf(root, dir *folder.Folder, m *Manifest, at string) (*previous, error) {
	made, err := dir.Stat(manifestFile)
	if err != nil {
		_ = dir.Close() // it was only read
		return nil, err
	}
	return &previous{at: at, dir: dir, manifest: m, state: readState(root, at), made: made.ModTime()}, nil
}

// dedup links a file to an equal one of the snapshot before, if the profile says so and there is one. What it links it has read:
// damage does not come along.
func (c *creation) dedup(ctx context.Context, f File) (bool, error) {
	if !c.profile.Dedup || c.before == nil {
		return false, nil
	}
	was := c.before.manifest.file(f.Path)
	if was == nil || was.Size != f.Size || was.SHA256 != f.SHA256 {
		return false, nil
	}
	if sum, size, err := c.hasher.file(ctx, c.before.dir, f.Path); err != nil || sum != f.SHA256 || size != f.Size {
		return false, ctx.Err()
	}
	if err := folder.Link(c.before.dir, f.Path, c.dir, f.Path); err != nil {
		return false, nil //nolint:nilerr // then it is written
	}
	f.How = Deduplicated
	c.add(f)
	return true, nil
}
