package snapshot

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"path"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/folder"
	"github.com/svcctl/svc/pkg/project"
)

// VerifyOptions say how a snapshot is checked.
type VerifyOptions struct {
	// Sample is the part of the files that is read, above 0 and at most 1; which ones is drawn. 0: all. What the manifest says is
	// checked against the names and sizes of all files in any case.
	Sample float64
	Report Report
}

// Verify checks a snapshot: that its manifest is what was written, that every file is there, nothing else, and to the bit what the
// manifest says; that exports can be read, are in order and as many as it says; and that the files are there which records name. How it
// ended is kept with the snapshot. The error is for checks that could not be made.
func (s *Snapshots) Verify(ctx context.Context, p *project.Project, id string, o VerifyOptions) (*Verification, error) {
	if o.Sample < 0 || o.Sample > 1 {
		return nil, errs.New(errs.Invalid, "bad_sample", "a sample is the part of the files that is read: send a number above 0 and at most 1, such as 0.1")
	}
	if o.Sample == 1 {
		o.Sample = 0 // which is how all is noted
	}
	v, err := s.verifyWith(ctx, p, id, o.Sample, newTracker(o.Report))
	return v, ended(ctx, err)
}

// verifyWith checks a snapshot, and keeps with it how that ended.
func (s *Snapshots) verifyWith(ctx context.Context, p *project.Project, id string, sample float64, t *tracker) (*Verification, error) {
	opened, err := s.open(p, id)
	if err != nil {
		return nil, err
	}
	defer opened.close()
	c, err := check(ctx, opened.dir, id, sample, t)
	if err != nil {
		return nil, err
	}
	v := c.v
	v.At = millisecond(s.o.Now())
	t.tell()
	if v.Problems == 0 {
		return v, s.change(ctx, p, id, func(state *State) { state.note(v) })
	}
	beside, err := othersOf(opened.root, id)
	if err == nil {
		err = s.trace(ctx, p, opened, beside, c)
	}
	if noted := s.change(ctx, p, id, func(state *State) { state.note(v) }); err == nil {
		err = noted
	}
	if err == nil {
		err = s.spread(ctx, p, beside, c.rotten, sameAs(id))
	}
	return v, unwritten(err, "tell of damage")
}

// checking is a check that is under way.
type checking struct {
	dir    *folder.Folder
	m      *Manifest
	v      *Verification
	t      *tracker
	hasher hasher

	foreign  bool // what is read was made elsewhere
	sumsOnly bool // the manifest is good for the sums of files only

	rotten map[string][]fs.FileInfo // files that are not what was written, whatever is wrong with the manifest

	collections map[string]*Collection // by their files
	differing   map[string]string      // what files of records are that are not what these say, by place
}

// verifyForeign checks all of what has come in from elsewhere: also that a store takes its records.
func verifyForeign(ctx context.Context, dir *folder.Folder, id string, t *tracker) (*Verification, error) {
	c := &checking{dir: dir, v: &Verification{}, t: t, rotten: map[string][]fs.FileInfo{}, foreign: true}
	return c.v, c.check(ctx, id)
}

// check checks what is in a folder.
func check(ctx context.Context, dir *folder.Folder, id string, sample float64, t *tracker) (*checking, error) {
	c := &checking{dir: dir, v: &Verification{Sample: sample}, t: t, rotten: map[string][]fs.FileInfo{}}
	return c, c.check(ctx, id)
}

func (c *checking) check(ctx context.Context, id string) error {
	dir, sample, t := c.dir, c.v.Sample, c.t
	m, err := readManifest(dir)
	if err == nil {
		if err = m.isOf(id); err != nil {
			m = nil
		}
	}
	if err != nil {
		name, text, _ := strings.Cut(strings.TrimPrefix(errs.From(err).Message, ErrDamaged.Message+": "), ": ")
		c.found(name, text)
		if c.sumsOnly = true; m == nil {
			return c.withoutManifest(ctx)
		}
	}
	c.m, c.collections, c.differing = m, m.byFile(), m.differing()
	if err := c.tree(ctx); err != nil {
		return err
	}
	var files []*File
	var bytes int64
	for i := range m.Files {
		if f := &m.Files[i]; sample == 0 || rand.Float64() < sample { //nolint:gosec // it draws files, no secret
			files = append(files, f)
			bytes += f.Size
		}
	}
	if len(files) == 0 && len(m.Files) > 0 {
		files = append(files, &m.Files[rand.IntN(len(m.Files))]) //nolint:gosec // likewise
	}
	t.begin(Verifying, int64(len(files)), bytes)
	for _, f := range files {
		if err := c.file(ctx, f); err != nil {
			return err
		}
		c.v.Files++
		c.v.Bytes += f.Size
		t.done(1, f.Size)
	}
	return ctx.Err()
}

// foundIn notes damage of a file that is there. sure says that it is none of the manifest.
func (c *checking) foundIn(name, text string, sure bool) {
	c.found(name, text)
	if info, err := c.dir.Stat(name); sure && err == nil && info.Mode().IsRegular() {
		c.rotten[name] = []fs.FileInfo{info}
	}
}

// found notes damage.
func (c *checking) found(name, text string) {
	if c.v.Problems++; len(c.v.Found) < maxWarnings {
		c.v.Found = append(c.v.Found, Finding{Path: name, Text: text})
	}
}

// tree compares the names and sizes of all files with the manifest.
func (c *checking) tree(ctx context.Context) error {
	there := map[string]bool{}
	var walk func(dir string) error
	walk = func(dir string) error {
		list, err := c.dir.Entries(dir)
		if err != nil {
			c.found(dir, cause(err))
			return ctx.Err()
		}
		for _, e := range list {
			name := path.Join(dir, e.Name())
			if e.IsDir() {
				if err := walk(name); err != nil {
					return err
				}
				continue
			}
			there[name] = true
			c.entry(name, e)
		}
		return ctx.Err()
	}
	if err := walk("."); err != nil {
		return err
	}
	for i := range c.m.Files {
		if f := &c.m.Files[i]; !there[f.Path] {
			c.found(f.Path, "it is not there")
		}
	}
	return nil
}

// entry checks one name that is in the folder.
func (c *checking) entry(name string, e fs.DirEntry) {
	if name == manifestFile || name == sumFile {
		return
	}
	f := c.m.file(name)
	info, err := e.Info()
	switch {
	case err != nil:
		c.found(name, cause(err))
	case f == nil:
		c.found(name, "it is none of the snapshot's files")
	case !info.Mode().IsRegular():
		c.found(name, "it is no regular file")
	case info.Size() != f.Size:
		c.foundIn(name, "it has "+strconv.FormatInt(info.Size(), 10)+" bytes, and should have "+strconv.FormatInt(f.Size, 10), !c.sumsOnly)
	}
}

// file reads one file. What is wrong with it is no error.
func (c *checking) file(ctx context.Context, f *File) error {
	info, err := c.dir.Stat(f.Path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != f.Size {
		return ctx.Err() // it was told of
	}
	dir, name := path.Split(f.Path)
	switch {
	case c.sumsOnly:
		err = c.plain(ctx, f)
	case dir == collectionsDir+"/":
		err = c.export(ctx, f, c.collections[strings.TrimSuffix(name, jsonEnding)], openJSON)
	case dir == dbDir+"/" && strings.HasSuffix(name, bsonEnding):
		err = c.export(ctx, f, c.collections[strings.TrimSuffix(name, bsonEnding)], openBSON)
	default:
		err = c.plain(ctx, f)
	}
	if err != nil && ctx.Err() == nil {
		c.foundIn(f.Path, problem(err), !c.sumsOnly)
	}
	return ctx.Err()
}

var errSum = errors.New("it is not what was written")

// maxIndexes bounds the file of indexes.
const maxIndexes = 64 << 20

// plain checks a file that is no export.
func (c *checking) plain(ctx context.Context, f *File) error {
	sum, _, err := c.hasher.file(ctx, c.dir, f.Path)
	if err != nil {
		return err
	}
	if sum != f.SHA256 {
		return errSum
	}
	switch {
	case f.Path == indexesFile:
		text, err := c.dir.Read(f.Path, maxIndexes)
		if err == nil {
			_, err = decodeIndexes(text)
		}
		return err
	case strings.HasSuffix(f.Path, metadataEnding) && strings.HasPrefix(f.Path, dbDir+"/"):
		text, err := c.dir.Read(f.Path, maxIndexes)
		if err == nil {
			_, err = document.ParseExtended(text)
		}
		return err
	}
	return nil
}

// export reads a file of records.
func (c *checking) export(
	ctx context.Context, f *File, col *Collection, open func(context.Context, *folder.Folder, string) (*fileRecords, error),
) error {
	r, err := open(ctx, c.dir, f.Path)
	if err != nil {
		return err
	}
	defer r.close()
	var bytes int64
	for err == nil {
		var doc bson.Raw
		if doc, err = r.next(); err == nil {
			bytes += int64(len(doc))
			if c.foreign {
				err = r.storable(doc)
			}
			if c.m.Media && (c.m.Mode != Both || r.zip != nil) {
				c.references(col, doc)
			}
		}
	}
	if !errors.Is(err, io.EOF) {
		if sum, _, failed := c.hasher.file(ctx, c.dir, f.Path); failed == nil && sum != f.SHA256 {
			return errSum
		}
		return err
	}
	return r.check(f, col, bytes)
}

// references notes which files a record names that are not in the snapshot.
func (c *checking) references(col *Collection, doc bson.Raw) {
	eachReference(c.m, col, doc, c.differing, func(at Differing) {
		if c.m.hasMedia(at.SHA256) {
			return
		}
		if c.v.Dangling++; len(c.v.Without) < maxWarnings {
			c.v.Without = append(c.v.Without, Finding{Path: at.place(), Text: "the file is not in the snapshot"})
		}
	})
}
