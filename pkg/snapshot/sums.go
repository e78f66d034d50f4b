package snapshot

import (
	"fmt"
	"path"

	"github.com/svcctl/svc/pkg/errs"
)

// addsUp refuses the manifest of an archive that sums up otherwise what it lists, or is of another moment than its id says: lists, retention and metrics go by these. What
// its records take uncompressed is held to the limit, too: how well files are compressed inside of an archive, its own ratio does not say.
func (m *Manifest) addsUp(limit int64) error {
	if err := m.bounded(); err != nil {
		return err
	}
	is := m.listed()
	is.Missing, is.Warnings = m.Counts.Missing, m.Counts.Warnings // no list has all of them
	if m.Counts != is || is.Missing < 0 || is.Warnings < int64(len(m.Warnings)) {
		return foreign("its manifest is not what svcd writes: its counts are not those of what it lists")
	}
	if at := m.ConsistentAt.UTC().Format(timeOfID); at != m.ID[:len(timeOfID)] {
		return foreign("its manifest is not what svcd writes: its id is of another time than its records, " + at)
	}
	left := limit
	for i := range m.Collections {
		if left -= m.Collections[i].Bytes; left < 0 {
			return errs.New(errs.TooLarge, "backup_too_large", "the backup has records of more than %d bytes, uncompressed, which is the limit: raise the limit, or leave out collections", limit)
		}
	}
	return nil
}

// A manifest may have so much that each list of snapshots reads, and most of it tells: 100 of these are a page.
const (
	maxCollections = 10_000
	maxText        = 4 << 20 // bytes of its texts, beside those of collections and files
)

// bounded refuses the manifest of an archive that says more than ours do: all of it would be in memory at each list.
func (m *Manifest) bounded() error {
	text := len(m.Revision) + len(m.Entry) + len(m.Namespace) + len(m.Position) + len(m.Store) + len(m.Tool)
	for _, list := range [][]string{m.Only, m.Without, m.Warnings} {
		for _, one := range list {
			text += len(one)
		}
	}
	switch {
	case len(m.Collections) > maxCollections:
		return foreign(fmt.Sprintf("it has %d collections, and an archive may have %d", len(m.Collections), maxCollections))
	case len(m.Warnings) > maxWarnings, len(m.Only)+len(m.Without) > maxCollections, text > maxText:
		return foreign("its manifest is not what svcd writes: it has more warnings, names or text than that")
	}
	return nil
}

// listed are the counts of what is listed. Sums that are too large for that are of no snapshot, and differ.
func (m *Manifest) listed() Counts {
	var out Counts
	for i := range m.Collections {
		out.Documents += m.Collections[i].Documents
	}
	for i := range m.Files {
		f := &m.Files[i]
		out.add(f)
		if path.Dir(f.Path) == mediaDir {
			out.MediaFiles++
			out.MediaBytes += f.Size
		}
	}
	return out
}

// add counts a file that is in the snapshot.
func (c *Counts) add(f *File) {
	c.Bytes += f.Size
	switch f.How {
	case Written:
		c.Written++
		c.NewBytes += f.Size
	case Linked:
		c.Linked++
	case Copied:
		c.Copied++
		c.NewBytes += f.Size
	case Deduplicated:
		c.Deduplicated++
	}
}
