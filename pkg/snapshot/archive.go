package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/folder"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot/archive"
)

// Unpacking is the phase in which an archive is unpacked.
const Unpacking Phase = "import"

const manifestFiles = 2 // the manifest and its sum

// ExtraFiles are those of a snapshot that are neither records, nor files of these, nor config.
const ExtraFiles = manifestFiles + 1

// ErrExists says that there is a snapshot of that id.
var ErrExists = errs.New(errs.Conflict, "snapshot_exists", "the project has a snapshot of this id already")

// Export writes a snapshot as an archive, which Import takes. A file that is not what was written ends it with an error, and so does a
// reader that is gone; nothing takes what has come by then for a whole archive.
func (s *Snapshots) Export(ctx context.Context, p *project.Project, id string, to io.Writer) error {
	o, err := s.open(p, id)
	if err != nil {
		return err
	}
	defer o.close()
	if _, err := o.manifest(); err != nil {
		return err
	}
	files := func(manifest []byte) ([]archive.File, error) {
		_, files, err := announced(manifest)
		return files, err
	}
	return ended(ctx, archive.Write(ctx, to, o.dir.Root(), files, archive.DefaultLimits(), nil))
}

// ArchiveSize is how many files an archive of a snapshot has, and how many bytes they have together.
func (m *Manifest) ArchiveSize() (files, bytes int64, err error) {
	text, err := m.encode()
	if err != nil {
		return 0, 0, err
	}
	return int64(len(m.Files)) + manifestFiles, m.Counts.Bytes + int64(len(text)+len(sumLine(text))), nil
}

// announced reads a manifest, and gives the files that it announces, beside it.
func announced(manifest []byte) (*Manifest, []archive.File, error) {
	m, err := parseManifest(manifest)
	if err != nil {
		return nil, nil, err
	}
	line := sumLine(manifest)
	files := make([]archive.File, 0, len(m.Files)+1)
	files = append(files, archive.File{Name: sumFile, Size: int64(len(line)), SHA256: sha256.Sum256(line)})
	for i := range m.Files {
		f := archive.File{Name: m.Files[i].Path, Size: m.Files[i].Size}
		if _, err := hex.Decode(f.SHA256[:], []byte(m.Files[i].SHA256)); err != nil {
			return nil, nil, foreign("a SHA-256 in its manifest is not one")
		}
		files = append(files, f)
	}
	return m, files, nil
}

// parseManifest reads a manifest from elsewhere: one that was not written by Manifest.encode is refused.
func parseManifest(text []byte) (*Manifest, error) {
	m, err := decodeExactly(text)
	if err != nil {
		return nil, foreign("its manifest is not what svcd writes: " + err.Error())
	}
	return m, nil
}

// foreign refuses an archive.
func foreign(problem string) error {
	return errs.New(errs.Invalid, "backup_invalid", "the backup is refused whole, for %s; use the backup as it came from svcd", problem)
}

// ImportOptions say what becomes of an archive.
type ImportOptions struct {
	Profile string // that the snapshot comes to be of; "": the one that it was taken by
	Limits  archive.Limits
	// Confirm is asked when everything has come and was checked, before the snapshot is there: an error of it is that of the import. It
	// may be nil.
	Confirm func() error
	// Known, if set, is called in the place of the error where the project has this very snapshot already, and its error is that of the
	// import. Nothing more is read then.
	Known  func(Info) error
	Report Report
}

// Import makes a snapshot of what Export wrote, with the id that it has, and checks all of it: what is no such archive is refused, whatever
// it may be, and then nothing is left of it. It is there when Import returns without an error. One of that id that is there already is
// ErrExists.
func (s *Snapshots) Import(ctx context.Context, p *project.Project, from io.Reader, o ImportOptions) (info Info, err error) {
	err = s.alone(ctx, p.Namespace, func(ctx context.Context) error {
		info, err = s.unpack(ctx, p, from, o, newTracker(o.Report))
		return err
	})
	if err == nil {
		s.changed(p)
	}
	return info, ended(ctx, err)
}

func (s *Snapshots) unpack(ctx context.Context, p *project.Project, from io.Reader, o ImportOptions, t *tracker) (info Info, err error) {
	t.begin(Unpacking, 0, 0)
	var m *Manifest
	in, err := archive.Open(ctx, &canceled{ctx, from}, func(manifest []byte) (files []archive.File, err error) {
		m, files, err = announced(manifest)
		return files, err
	}, o.Limits)
	if err != nil {
		return Info{}, err
	}
	for i := range m.Collections {
		if err := m.Collections[i].canBe(); err != nil { // who would restore it is far away by then
			return Info{}, foreign(err.Error())
		}
	}
	if o.Profile == "" {
		o.Profile = m.Profile
	}
	if err := CheckProfileName(o.Profile); err != nil {
		return Info{}, err
	}
	root, err := s.folder(p, true)
	if err != nil {
		return Info{}, err
	}
	defer root.Close() //nolint:errcheck // what was written by it is on disk
	if at, err := find(root, m.ID); !errors.Is(err, ErrNotFound) {
		if err != nil {
			return Info{}, unwritten(err, "look for a snapshot")
		}
		return known(root, at, in.Manifest(), o)
	}
	if err := takesIn(p, root, m.Profile, o.Profile); err != nil {
		return Info{}, err
	}
	if err := fits(root, in.Bytes()); err != nil {
		return Info{}, err
	}
	if err := m.addsUp(o.Limits.Bytes); err != nil {
		return Info{}, err
	}
	if err := root.Make(o.Profile); err != nil {
		return Info{}, unwritten(err, "make the folder of a profile")
	}
	if err := root.Sync("."); err != nil {
		return Info{}, unwritten(err, "make the folder of a profile")
	}
	partial, at := path.Join(o.Profile, partialMark+m.ID), path.Join(o.Profile, m.ID)
	_ = root.RemoveAll(partial) // a crash may have left one
	defer func() {
		if err != nil { // what isn't removed, Sweep does
			_ = root.RemoveAll(partial)
			_ = root.Remove(at + stateEnding)
		}
	}()
	state, err := s.extract(ctx, root, partial, in, m, t)
	if err != nil {
		return Info{}, unwritten(err, "unpack a backup")
	}
	if o.Confirm != nil {
		if err := o.Confirm(); err != nil {
			return Info{}, err
		}
	}
	if ctx.Err() != nil {
		return Info{}, ctx.Err()
	}
	if err := s.keepState(ctx, p, root, at, state); err != nil {
		return Info{}, err
	}
	if err := publish(root, partial, at); err != nil {
		return Info{}, unwritten(err, "unpack a backup")
	}
	m.Profile = o.Profile
	return Info{Manifest: *m, State: state}, nil
}

// keepState notes how a new snapshot was checked.
func (s *Snapshots) keepState(ctx context.Context, p *project.Project, root *folder.Folder, at string, state State) error {
	unlock, err := s.lockStates(ctx, p)
	if err != nil {
		return err
	}
	defer unlock()
	return writeState(root, at, state)
}

// known is what becomes of an archive whose snapshot is there.
func known(root *folder.Folder, at string, manifest []byte, o ImportOptions) (Info, error) {
	dir, err := root.Sub(at)
	if err != nil {
		return Info{}, unwritten(err, "open a snapshot")
	}
	defer dir.Close() //nolint:errcheck // it was only read
	there, unread := dir.Read(manifestFile, maxManifest)
	info, err := infoOf(root, path.Dir(at), path.Base(at))
	if err != nil {
		return Info{}, err
	}
	if unread != nil || !bytes.Equal(there, manifest) || o.Known == nil {
		return Info{}, exists(path.Base(at), info.Damaged())
	}
	return info, o.Known(info)
}

// exists is ErrExists that names the snapshot. One that is damaged is no good in the place of what has come.
func exists(id string, damaged bool) error {
	help := "if it is the one of this archive, use it as it is; else delete it, and send the archive again"
	if damaged {
		help = "it is damaged: delete it, and send the archive again"
	}
	return errs.New(ErrExists.Kind, ErrExists.Code, "the project has the snapshot %s already: %s", id, help)
}

// fits says whether there is space for so many bytes.
func fits(root *folder.Folder, bytes int64) error {
	free, err := root.Free()
	if err != nil {
		return unwritten(err, "look at the space for snapshots")
	}
	if free >= 0 && bytes > free {
		return errs.New(errs.Full, "snapshots_full", "the backup has %d bytes unpacked, and the disk that snapshots are on has room for %d: nothing was changed; make room on it first, such as by deleting snapshots", bytes, free)
	}
	return nil
}

// extract unpacks an archive into a folder that is to be made, and checks what has come.
func (s *Snapshots) extract(ctx context.Context, root *folder.Folder, partial string, in *archive.Reader, m *Manifest, t *tracker) (State, error) {
	if err := root.Make(partial); err != nil {
		return State{}, err
	}
	dir, err := root.Sub(partial)
	if err != nil {
		return State{}, err
	}
	defer dir.Close() //nolint:errcheck // what was written by it is on disk
	t.begin(Unpacking, int64(len(in.Files())), in.Bytes())
	files, bytes := 0, int64(0)
	err = in.Extract(ctx, dir.Root(), func(now archive.Progress) {
		t.now.Written += int64(now.Files - files)
		t.done(int64(now.Files-files), now.Bytes-bytes)
		files, bytes = now.Files, now.Bytes
	})
	if err != nil {
		return State{}, err
	}
	t.tell()
	v, err := verifyForeign(ctx, dir, m.ID, t)
	if err != nil {
		return State{}, err
	}
	if v.Problems > 0 {
		return State{}, foreign(v.Found[0].Path + ": " + v.Found[0].Text)
	}
	v.At = millisecond(s.o.Now())
	t.tell()
	st := State{ImportedAt: v.At}
	st.note(v)
	return st, nil
}

// Look gives what is known of a snapshot as List does: of one that can't be read, why.
func (s *Snapshots) Look(_ context.Context, p *project.Project, id string) (Info, error) {
	o, err := s.open(p, id)
	if err != nil {
		return Info{}, err
	}
	defer o.close()
	return infoOf(o.root, path.Dir(o.at), id)
}

// Where gives the profile whose folder a snapshot is in.
func (s *Snapshots) Where(_ context.Context, p *project.Project, id string) (profile string, err error) {
	if !snapshotID.MatchString(id) {
		return "", ErrNotFound
	}
	root, err := s.folder(p, false)
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrNotFound
	}
	if err != nil {
		return "", unwritten(err, "open the folder of snapshots")
	}
	defer root.Close() //nolint:errcheck // it was only read
	at, err := find(root, id)
	if err != nil {
		return "", unwritten(err, "look for a snapshot")
	}
	return path.Dir(at), nil
}
