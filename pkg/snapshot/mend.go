package snapshot

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"path"

	"github.com/svcctl/svc/pkg/folder"
)

// mending looks after files of records under whose hash a snapshot that is being made has got something else. Of several records that have the same content the file of one
// was taken, and that of another one may be whole; and where it was taken from the snapshot before, it is that one which is damaged. What is not as its record says is told of.
type mending struct {
	*fileTaker

	hashes map[string]bool          // of what is looked after
	told   map[string]bool          // places of records whose file is damaged, and in the snapshot as what it is
	same   map[string][]fs.FileInfo // files that are damaged, by the path that they have in other snapshots that have them
	gone   []Differing              // whose files have gone meanwhile
}

func (t *fileTaker) newMending() (*mending, error) {
	_, err := t.others()
	return &mending{fileTaker: t, hashes: map[string]bool{}, told: map[string]bool{}, same: map[string][]fs.FileInfo{}}, err
}

// wrong is for a file of which it turns out that it has another hash than it has for a name.
func (m *mending) wrong(ctx context.Context, one *takenFile, sum string) error {
	name := one.path()
	info, err := m.c.dir.Stat(name)
	if err != nil {
		return err
	}
	m.hashes[path.Base(name)] = true
	m.same[name] = append(m.same[name], info)
	if one.how == Deduplicated { // what is served may be whole
		return m.c.dir.Remove(name)
	}
	if err := m.damaged(ctx, one.by, path.Base(name), sum, info); err != nil {
		return err
	}
	if _, err := hex.Decode(one.hash[:], []byte(sum)); err != nil {
		return err
	}
	if _, err := m.c.dir.Stat(one.path()); !errors.Is(err, fs.ErrNotExist) { // another record has a file of this content
		if err != nil {
			return err
		}
		return m.c.dir.Remove(name)
	}
	if err := m.c.dir.Rename(name, one.path()); err != nil {
		return err
	}
	m.add(one)
	return nil
}

// damaged tells that a file is not what its record says, and what helps.
func (m *mending) damaged(ctx context.Context, by Differing, hash, sum string, info fs.FileInfo) error {
	help, err := m.beside.anew(ctx, hash, info)
	if err != nil {
		return err
	}
	m.c.tracker.warn(by.words() + " is not what the record says: it is damaged; " + help)
	m.differs(by, sum)
	m.told[by.place()] = true
	return nil
}

// rest looks at all other records that name such a file.
func (m *mending) rest(ctx context.Context) error {
	manifest := &m.c.manifest
	open := openJSON
	if manifest.Mode == DB {
		open = openBSON
	}
	for i := range manifest.Collections {
		col := &manifest.Collections[i]
		from, err := open(ctx, m.c.dir, manifest.exportOf(col))
		if err != nil {
			return err
		}
		err = each(from, func(doc []byte) error {
			var failed error
			eachReference(manifest, col, doc, nil, func(at Differing) {
				if failed == nil && m.hashes[at.SHA256] && !m.told[at.place()] {
					failed = m.one(ctx, at)
				}
			})
			return failed
		})
		from.close()
		if err != nil {
			return err
		}
	}
	for _, at := range m.gone {
		switch _, err := m.c.dir.Stat(path.Join(mediaDir, at.SHA256)); {
		case errors.Is(err, fs.ErrNotExist):
			if err := m.missing(at); err != nil {
				return err
			}
		case err != nil:
			return err
		}
	}
	return nil
}

// one takes the file of one record.
func (m *mending) one(ctx context.Context, at Differing) error {
	files, from, info, err := m.c.s.locate(m.c.p, &at)
	var sum string
	var size int64
	if err == nil && info != nil {
		sum, size, err = m.c.hasher.file(ctx, files.Folder(), from)
	}
	if err == nil && info == nil || errors.Is(err, fs.ErrNotExist) {
		m.gone = append(m.gone, at)
		return nil
	}
	if err != nil {
		return err
	}
	if sum != at.SHA256 {
		name := path.Join(mediaDir, at.SHA256)
		m.same[name] = append(m.same[name], info)
		if err := m.damaged(ctx, at, at.SHA256, sum, info); err != nil {
			return err
		}
	}
	to := path.Join(mediaDir, sum)
	if _, err := m.c.dir.Stat(to); !errors.Is(err, fs.ErrNotExist) { // it is in the snapshot
		return err
	}
	linked, err := folder.Bring(ctx, files.Folder(), from, m.c.dir, to)
	if errors.Is(err, fs.ErrNotExist) {
		m.gone = append(m.gone, at)
		return nil
	}
	if err != nil {
		return err
	}
	brought := &takenFile{size: size, how: Copied}
	if linked {
		brought.how = Linked
	}
	if _, err := hex.Decode(brought.hash[:], []byte(sum)); err != nil {
		return err
	}
	m.add(brought)
	return nil
}
