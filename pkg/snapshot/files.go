package snapshot

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/folder"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/project"
)

// fileTaker takes the files that records name into a snapshot, where they have their hash for a name: each content is there once.
// It keeps all files where they are until release.
type fileTaker struct {
	c     *creation
	root  []byte // by which addresses of the project's files begin
	store *media.Store
	hold  *media.Hold // nil: nothing is to be taken, or all is
	taken []takenFile

	absent []Differing // files that are not there, of which it is not told yet; each has the hash that it has by its record
	beside *others     // nil: not asked for yet
}

// takenFile is a file in the folder media.
type takenFile struct {
	hash  [32]byte // that it has for a name
	size  int64
	how   How
	known bool // the hash has been computed, or is that of the same file in the snapshot before
	by    Differing
}

// holdFiles begins to keep files where they are, if the snapshot is to have any.
func (c *creation) holdFiles(ctx context.Context) (*fileTaker, error) {
	t := &fileTaker{c: c, root: []byte(project.FilesRoot(c.p.Namespace))}
	if !c.profile.Media {
		return t, nil
	}
	if err := c.dir.Make(mediaDir); err != nil {
		return nil, err
	}
	if c.s.o.Media == nil {
		return t, nil
	}
	has, err := c.s.hasFiles(c.p)
	if err != nil || !has {
		return t, err
	}
	if t.store, err = c.s.o.Media.Store(c.p.Namespace); err != nil {
		return nil, err
	}
	if c.hold == nil {
		t.hold, err = t.store.Hold(ctx)
	}
	return t, err
}

// hasFiles says whether records of a project have files, or may get some at any moment. A look makes no folder for them.
func (s *Snapshots) hasFiles(p *project.Project) (bool, error) {
	for _, c := range p.Collections {
		if len(c.Uploads.Fields) > 0 {
			return true, nil
		}
	}
	all, err := s.o.Media.Namespaces()
	if err != nil {
		return false, errs.Wrap(err, "look for files of records")
	}
	return slices.Contains(all, p.Namespace), nil
}

// release lets files be removed again. A second call does nothing.
func (t *fileTaker) release(ctx context.Context) {
	t.hold.Release(context.WithoutCancel(ctx))
	t.hold = nil
}

// take gives a record as the snapshot has it, with the addresses that its files have by the names of the config, and takes these files.
func (t *fileTaker) take(ctx context.Context, src source, doc bson.Raw) (bson.Raw, error) {
	doc, id, addresses := t.readdress(src, doc)
	if addresses == nil || !t.c.profile.Media {
		return doc, nil
	}
	var failed error
	addresses.Each(doc, func(key string, file bson.Raw) {
		if failed == nil {
			failed = t.file(ctx, src, id, key, file, *addresses)
		}
	})
	return doc, failed
}

// again is take of a record whose files have been taken.
func (t *fileTaker) again(_ context.Context, src source, doc bson.Raw) (bson.Raw, error) {
	doc, _, _ = t.readdress(src, doc)
	return doc, nil
}

// readdress gives a record with the addresses of the snapshot. addresses is nil if it can have none.
func (t *fileTaker) readdress(src source, doc bson.Raw) (_ bson.Raw, id bson.ObjectID, addresses *project.FileAddresses) {
	if !bytes.Contains(doc, t.root) {
		return doc, id, nil
	}
	v, _ := document.Field(doc, "_id")
	id, ok := v.ObjectIDOK()
	if !ok {
		return doc, id, nil // it is no record of ours
	}
	all := src.config.FileAddresses(t.c.p.Namespace, id)
	return withAddresses(doc, all.Current), id, &all
}

// file takes one file.
func (t *fileTaker) file(ctx context.Context, src source, id bson.ObjectID, key string, file bson.Raw, addresses project.FileAddresses) error {
	address, _ := file.Lookup(project.FileSrc).StringValueOK()
	field, name, _ := addresses.Cut(address)
	hash, _ := file.Lookup("hash").StringValueOK()
	by := Differing{Collection: src.name, Record: id.Hex(), Field: field, Name: name, SHA256: hash}
	if t.store == nil {
		return t.missing(by)
	}
	dir := src.config.Uploads.Dir
	if dir == "" {
		dir = src.config.StoredName()
	}
	from, info, err := t.store.Locate(dir, by.Record, key)
	if errors.Is(err, errs.ErrNotFound) {
		return t.missing(by)
	}
	if err != nil {
		return err
	}
	one := takenFile{size: info.Size(), by: by}
	if !hexSum.MatchString(hash) { // other hands have written the record
		if hash, _, err = t.c.hasher.file(ctx, t.store.Folder(), from); err != nil {
			return err
		}
		one.known = true
		t.differs(one.by, hash)
	}
	if _, err := hex.Decode(one.hash[:], []byte(hash)); err != nil {
		return err
	}
	return t.bring(ctx, one, from, info)
}

// missing notes a file that a record names and that is not there.
func (t *fileTaker) missing(by Differing) error {
	t.c.manifest.Counts.Missing++
	if len(t.absent) < maxWarnings { // of more it is not told
		t.absent = append(t.absent, by)
		return nil
	}
	t.c.tracker.warn(by.words() + " is not there")
	return nil
}

// tellMissing tells of the files that were missing, and what helps. The view of the store does not last for that.
func (t *fileTaker) tellMissing(ctx context.Context) error {
	for _, by := range t.absent {
		help := uploadIt
		if hexSum.MatchString(by.SHA256) {
			beside, err := t.others()
			if err == nil {
				help, err = beside.anew(ctx, by.SHA256)
			}
			if err != nil {
				return err
			}
		}
		t.c.tracker.warn(by.words() + " is not there; " + help)
	}
	t.absent = nil
	return nil
}

// others are the snapshots that there are already.
func (t *fileTaker) others() (*others, error) {
	if t.beside == nil {
		var err error
		if t.beside, err = othersOf(t.c.root, ""); err != nil {
			return nil, err
		}
	}
	return t.beside, nil
}

func (t *fileTaker) differs(by Differing, hash string) {
	by.SHA256 = hash
	t.c.manifest.Differing = append(t.c.manifest.Differing, by)
}

// bring links a file into the snapshot. Where it can't be linked, that of the snapshot before may be, else it is copied.
func (t *fileTaker) bring(ctx context.Context, one takenFile, from string, info fs.FileInfo) error {
	to := one.path()
	var before fs.FileInfo
	if t.c.before != nil {
		if is, err := t.c.before.dir.Stat(to); err == nil && is.Mode().IsRegular() && is.Size() == one.size {
			before = is
		}
	}
	one.how = Linked
	err := folder.Link(t.store.Folder(), from, t.c.dir, to)
	switch {
	case err == nil:
		one.known = one.known || before != nil && os.SameFile(before, info) && t.c.before.vouches(to, info)
	case errors.Is(err, fs.ErrExist): // another record has a file of this content
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return t.missing(one.by)
	case !folder.IsUnlinkable(err):
		return err
	default:
		one.how = Copied
		if before != nil && folder.Link(t.c.before.dir, to, t.c.dir, to) == nil {
			one.how = Deduplicated
		} else if err := folder.Copy(ctx, t.store.Folder(), from, t.c.dir, to); err != nil {
			return err
		}
	}
	t.taken = append(t.taken, one)
	return nil
}

func (f *takenFile) path() string { return path.Join(mediaDir, hex.EncodeToString(f.hash[:])) }

// hash reads the files that are new in the snapshot, so that each has the hash that it has for a name.
func (t *fileTaker) hash(ctx context.Context) error {
	if err := t.tellMissing(ctx); err != nil {
		return err
	}
	var bytes int64
	for i := range t.taken {
		bytes += t.taken[i].size
	}
	t.c.tracker.begin(Media, int64(len(t.taken)), bytes)
	var mend *mending
	for i := range t.taken {
		one := &t.taken[i]
		right := one.known
		if !right {
			sum, _, err := t.c.hasher.file(ctx, t.c.dir, one.path())
			if err != nil {
				return err
			}
			if right = sum == hex.EncodeToString(one.hash[:]); !right {
				if mend == nil {
					if mend, err = t.newMending(); err != nil {
						return err
					}
				}
				if err := mend.wrong(ctx, one, sum); err != nil {
					return err
				}
			}
		}
		if right {
			t.add(one)
		}
		t.c.tracker.done(1, one.size)
	}
	t.c.tracker.tell()
	if mend == nil {
		return nil
	}
	t.c.damaged = mend.same
	if err := mend.rest(ctx); err != nil {
		return err
	}
	return t.tellMissing(ctx)
}

// add counts a file that is in the snapshot.
func (t *fileTaker) add(one *takenFile) {
	name := one.path()
	counts := &t.c.manifest.Counts
	counts.MediaFiles++
	counts.MediaBytes += one.size
	t.c.add(File{Path: name, Size: one.size, SHA256: path.Base(name), How: one.how})
}
