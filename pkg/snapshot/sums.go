package snapshot

import (
	"path"

	"github.com/svcctl/svc/pkg/errs"
)

// addsUp refuses the manifest of an archive that sums up otherwise what it lists, or is of another moment than its id says: lists, retention and metrics go by these. What
// its records take uncompressed is held to the limit, too: how well files are compressed inside of an archive, its own ratio does not say.
func (m *Manifest) addsUp(limit int64) error {
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
