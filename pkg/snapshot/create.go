package snapshot

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/folder"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/project"
)

// Create takes a snapshot. It is there when Create returns without an error, and not at all otherwise, unless the very last step fails:
// then it is whole, and may be gone after a power cut.
func (s *Snapshots) Create(ctx context.Context, p *project.Project, profile Profile, report Report) (info Info, err error) {
	err = s.alone(ctx, p.Namespace, func(ctx context.Context) error {
		info, err = s.create(ctx, p, profile, newTracker(report), nil)
		return err
	})
	if err == nil {
		s.changed(p)
	}
	return info, err
}

// creation is a snapshot that is being made.
type creation struct {
	s        *Snapshots
	p        *project.Project
	profile  Profile
	root     *folder.Folder // of the project's snapshots
	dir      *folder.Folder // that it is made in
	tracker  *tracker
	manifest Manifest
	before   *previous
	hasher   hasher
	hold     *media.Hold // of the caller, who has one; nil: it is begun
	pace     pace
	zip      *zstd.Encoder // of its files, one after the other; nil until the first

	damaged map[string][]fs.FileInfo // files of records that are, by the path that they have in other snapshots that have them
}

// create makes a snapshot for somebody who is alone, and may hold the project's files.
func (s *Snapshots) create(ctx context.Context, p *project.Project, profile Profile, t *tracker, hold *media.Hold) (info Info, err error) {
	if !isProfileDir(profile.Name) {
		return Info{}, errs.New(errs.Invalid, "bad_profile", "%q can't be the name of a snapshot profile", profile.Name)
	}
	root, err := s.folder(p, true)
	if err != nil {
		return Info{}, err
	}
	defer root.Close() //nolint:errcheck // what was written by it is on disk
	if err := root.Make(profile.Name); err != nil {
		return Info{}, unwritten(err, "make the folder of a profile")
	}
	if err := root.Sync("."); err != nil {
		return Info{}, unwritten(err, "make the folder of a profile")
	}
	short := strings.ToLower(rand.Text()[:6])
	partial := path.Join(profile.Name, partialMark+short)
	defer func() {
		if err != nil {
			_ = root.RemoveAll(partial) // else Sweep does it
		}
	}()
	c := &creation{root: root, s: s, p: p, profile: profile, tracker: t, hold: hold, pace: s.newPace(p)}
	if err := c.fill(ctx, root, partial, short); err != nil {
		return Info{}, ended(ctx, unwritten(err, "make a snapshot"))
	}
	if ctx.Err() != nil {
		return Info{}, ended(ctx, ctx.Err())
	}
	if err := publish(root, partial, path.Join(profile.Name, c.manifest.ID)); err != nil {
		return Info{}, unwritten(err, "make a snapshot")
	}
	t.done(1, 0)
	t.tell()
	c.spread(context.WithoutCancel(ctx))
	return Info{Manifest: c.manifest}, nil
}

// spread has all snapshots that have files which are damaged be known to be: others, and this one, since a check of the one before may have looked for others when this one was
// not there yet.
func (c *creation) spread(ctx context.Context) {
	err := c.catchUp(ctx)
	if len(c.damaged) > 0 {
		beside, failed := othersOf(c.root, c.manifest.ID)
		if failed == nil {
			failed = c.s.spread(ctx, c.p, beside, c.damaged, "it is the file that was found damaged when "+c.manifest.ID+" was taken")
		}
		err = errors.Join(err, failed)
	}
	if err != nil { // a check of them finds it
		c.s.o.Logger.WarnContext(ctx, "snapshots that have files which are damaged are not marked", "namespace", c.p.Namespace, "error", err)
	}
}

// catchUp notes what was found damaged in the snapshot before since that was looked at.
func (c *creation) catchUp(ctx context.Context) error {
	if c.before == nil {
		return nil
	}
	damaged := map[string][]fs.FileInfo{}
	for _, name := range c.before.since(c.root) {
		if info, err := c.root.Stat(path.Join(c.before.at, name)); err == nil {
			damaged[name] = []fs.FileInfo{info}
		}
	}
	this := &others{root: c.root, at: []string{path.Join(c.profile.Name, c.manifest.ID)}}
	return c.s.spread(ctx, c.p, this, damaged, sameAs(path.Base(c.before.at)))
}

// publish gives a snapshot that is on disk its name.
func publish(root *folder.Folder, partial, at string) error {
	if err := root.Rename(partial, at); err != nil {
		return err
	}
	return root.Sync(path.Dir(at))
}

// fill makes everything that is in a snapshot, and has it be on disk.
func (c *creation) fill(ctx context.Context, root *folder.Folder, partial, short string) error {
	if err := root.Make(partial); err != nil {
		return err
	}
	dir, err := root.Sub(partial)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // what was written by it is on disk
	c.dir = dir
	if c.before, err = lastOf(root, c.profile.Name); err != nil {
		return err
	}
	if c.before != nil {
		defer c.before.dir.Close() //nolint:errcheck // it was only read
	}
	c.manifest = Manifest{
		Format: format, Profile: c.profile.Name, Namespace: c.p.Namespace, Revision: c.p.Revision, Generation: c.p.Generation,
		Entry: c.p.Bundle.Entry, Store: c.s.o.Store.Name(), Tool: c.s.o.Version, Mode: c.profile.Mode, Media: c.profile.Media,
		Only: c.profile.Only, Without: c.profile.Without, Collections: []Collection{}, Files: []File{},
	}
	if err := c.records(ctx); err != nil {
		return err
	}
	c.manifest.ID = c.manifest.ConsistentAt.Format(timeOfID) + "-" + short
	c.tracker.begin(Manifesting, 1, 0)
	if err := c.config(ctx); err != nil {
		return err
	}
	return c.finish(ctx)
}

// config writes the files of the config.
func (c *creation) config(ctx context.Context) error {
	made := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(c.p.Bundle.Files)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !fs.ValidPath(name) || name == "." {
			return errs.Wrap(errors.New("a file of the config has the name "+name), "make a snapshot")
		}
		at := path.Join(configDir, name)
		if err := c.makeAll(path.Dir(at), made); err != nil {
			return err
		}
		if err := c.write(ctx, at, c.p.Bundle.Files[name], 0); err != nil {
			return err
		}
	}
	return nil
}

// makeAll makes a folder and those above it.
func (c *creation) makeAll(name string, made map[string]bool) error {
	for end := range len(name) + 1 {
		if end < len(name) && name[end] != '/' || made[name[:end]] {
			continue
		}
		if err := c.dir.Make(name[:end]); err != nil {
			return err
		}
		made[name[:end]] = true
	}
	return nil
}

// write writes a small file, or links it to the one of the snapshot before. It is not on disk before finish.
func (c *creation) write(ctx context.Context, name string, data []byte, count int64) error {
	f := File{Path: name, Size: int64(len(data)), SHA256: sumOf(data), Count: count, How: Written}
	if linked, err := c.dedup(ctx, f); linked || err != nil {
		return err
	}
	file, err := c.dir.Create(name)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if closing := file.Close(); err == nil {
		err = closing
	}
	c.add(f)
	return err
}

// add notes a file that is in the snapshot.
func (c *creation) add(f File) {
	c.manifest.Files = append(c.manifest.Files, f)
	c.manifest.Counts.add(&f)
	c.tracker.count(f.How)
}

// atOnce is how many files are synced at the same time, so that one step of the disk does for many of them.
const atOnce = 16

// finish has everything be on disk, and then writes the manifest.
func (c *creation) finish(ctx context.Context) error {
	m := &c.manifest
	slices.SortFunc(m.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	m.Counts.Warnings, m.Warnings = c.tracker.warned, c.tracker.warnings
	m.Root = m.root()
	if err := c.syncAll(ctx); err != nil {
		return err
	}
	text, err := m.encode()
	if err != nil {
		return err
	}
	if err := c.dir.Write(manifestFile, text); err != nil {
		return err
	}
	return c.dir.Write(sumFile, sumLine(text))
}

// syncAll syncs the files that were written, then all folders: those that they are in.
func (c *creation) syncAll(ctx context.Context) error {
	folders := map[string]bool{".": true}
	files, ctx := errgroup.WithContext(ctx)
	files.SetLimit(atOnce)
	for _, f := range c.manifest.Files {
		for dir := path.Dir(f.Path); !folders[dir]; dir = path.Dir(dir) {
			folders[dir] = true
		}
		if f.How == Written {
			files.Go(func() error { return c.sync(ctx, f.Path) })
		}
	}
	if err := files.Wait(); err != nil {
		return err
	}
	dirs, ctx := errgroup.WithContext(context.WithoutCancel(ctx))
	dirs.SetLimit(atOnce)
	for name := range folders {
		dirs.Go(func() error { return c.sync(ctx, name) })
	}
	return dirs.Wait()
}

func (c *creation) sync(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.dir.Sync(name)
}

// millisecond is how exact times are in manifests.
func millisecond(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
