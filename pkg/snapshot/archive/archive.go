package archive

import (
	"context"
	"crypto/sha256"
	"io"
)

// ManifestName is the name of the first file of an archive.
const ManifestName = "manifest.json"

const copyBuffer = 64 << 10

// File is one file of an archive.
type File struct {
	Name   string // its path from the top, with slashes
	Size   int64  // in bytes
	SHA256 [sha256.Size]byte
}

// ParseManifest gives the files that a manifest announces, without itself, in the order of the archive. Its errors are those
// of its caller, so they are for the public.
type ParseManifest func(manifest []byte) ([]File, error)

// Limits bound an archive. Both sides have the same, and none of them is zero.
type Limits struct {
	Files         int   // how many, beside the manifest
	Bytes         int64 // of all files together, beside the manifest
	FileBytes     int64 // of one file
	ManifestBytes int64 // the manifest is held in memory
}

// DefaultLimits are far above what a project has: a million files, 4 TiB, 1 TiB a file, and a manifest of 256 MiB.
func DefaultLimits() Limits {
	return Limits{Files: 1_000_000, Bytes: 4 << 40, FileBytes: 1 << 40, ManifestBytes: 256 << 20}
}

// Progress says how far a Write or an Extract is.
type Progress struct {
	File              string // the one that is under way, or done
	Files, FilesTotal int    // without the manifest
	Bytes, BytesTotal int64  // of these, not compressed
}

// meter counts, and tells.
type meter struct {
	Progress
	tell func(Progress) // or nil
}

func (m *meter) add(file string, files int, bytes int64) {
	m.File, m.Files, m.Bytes = file, m.Files+files, m.Bytes+bytes
	if m.tell != nil {
		m.tell(m.Progress)
	}
}

// copyFile copies size bytes, looks at ctx and counts in between. Its error is io.EOF or io.ErrUnexpectedEOF when there are fewer.
func (m *meter) copyFile(ctx context.Context, to io.Writer, from io.Reader, f *File, buffer []byte) error {
	left := f.Size
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if left == 0 {
			m.add(f.Name, 1, 0)
			return nil
		}
		part := buffer[:min(left, int64(len(buffer)))]
		if _, err := io.ReadFull(from, part); err != nil {
			return err
		}
		if _, err := to.Write(part); err != nil {
			return err
		}
		left -= int64(len(part))
		m.add(f.Name, 0, int64(len(part)))
	}
}
