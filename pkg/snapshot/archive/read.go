package archive

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/errs"
)

// Reader reads an archive whose manifest was read. It belongs to one goroutine.
type Reader struct {
	frames   *frameReader
	manifest []byte
	files    []File
	total    int64
}

// Open reads the head of an archive: its manifest, and nothing of the files behind it. What is no backup, and what the
// manifest may not announce, is refused: Invalid, or TooLarge over a limit.
func Open(ctx context.Context, from io.Reader, parse ParseManifest, l Limits) (*Reader, error) {
	frames, err := newFrameReader(from)
	if err != nil {
		return nil, err
	}
	r := &Reader{frames: frames}
	if r.manifest, err = r.readManifest(ctx, l); err != nil {
		return nil, err
	}
	if r.files, err = parse(r.manifest); err != nil {
		return nil, err
	}
	if r.total, err = announced(r.files, l, reading); err != nil {
		return nil, err
	}
	return r, nil
}

// Manifest is the manifest as it stands in the archive.
func (r *Reader) Manifest() []byte { return r.manifest }

// Files are those that the manifest announces, which Extract holds it to.
func (r *Reader) Files() []File { return r.files }

// Bytes is the sum of their sizes.
func (r *Reader) Bytes() int64 { return r.total }

func (r *Reader) readManifest(ctx context.Context, l Limits) ([]byte, error) {
	block := make([]byte, blockSize)
	n, err := io.ReadFull(r.frames, block)
	if n > 0 && !isHeader(block) && !strings.HasPrefix(ManifestName, string(block[:min(n, len(ManifestName))])) { // some other text that was compressed
		return nil, noArchive()
	}
	if err != nil {
		return nil, unread(err)
	}
	size, ok := sizeIn(block)
	switch name, problem := foreign(block); {
	case ok && size > l.ManifestBytes && name == ManifestName:
		return nil, reading.tooLarge("has a manifest of %d bytes, and the limit is %d", size, l.ManifestBytes)
	case ok && bytes.Equal(block, header(ManifestName, size)):
	case problem != "":
		return nil, reading.refuse(name, problem)
	default:
		return nil, refused("does not begin with a manifest.json")
	}
	var manifest bytes.Buffer // grows as it comes: its size is only what it says
	m, f := meter{}, File{Name: ManifestName, Size: size}
	if err := m.copyFile(ctx, &manifest, r.frames, &f, make([]byte, copyBuffer)); err != nil {
		return nil, unread(err)
	}
	return manifest.Bytes(), r.zeros(padding(size), ManifestName)
}

// read fills p, in which a stream may not end.
func (r *Reader) read(p []byte) error {
	_, err := io.ReadFull(r.frames, p)
	return unread(err)
}

// zeros reads what fills the last block of a file.
func (r *Reader) zeros(n int64, name string) error {
	fill := make([]byte, n)
	if err := r.read(fill); err != nil {
		return err
	}
	if bytes.ContainsFunc(fill, func(c rune) bool { return c != 0 }) {
		return reading.refuse(name, "has bytes behind its end")
	}
	return nil
}

// header reads what stands before the content of the file of that index.
func (r *Reader) header(index int) error {
	want := header(r.files[index].Name, r.files[index].Size)
	got := make([]byte, blockSize)
	for ; len(want) > 0; want = want[blockSize:] {
		if err := r.read(got); err != nil {
			return err
		}
		if !bytes.Equal(got, want[:blockSize]) {
			return r.unexpected(index, got)
		}
	}
	return nil
}

// unexpected says what is there in place of the file of that index; of the end, when there is no more.
func (r *Reader) unexpected(index int, block []byte) error {
	if index < len(r.files) && !bytes.ContainsFunc(block, func(c rune) bool { return c != 0 }) {
		return reading.refuse(r.files[index].Name, "is announced, and missing")
	}
	name, problem := foreign(block)
	size, _ := sizeIn(block)
	at := slices.IndexFunc(r.files, func(f File) bool { return f.Name == name })
	switch {
	case problem != "":
	case name == ManifestName || at >= 0 && at < index:
		problem = "is there twice"
	case at < 0:
		problem = "is not in the manifest"
	case at > index:
		problem = "is not in its place"
	case size != r.files[at].Size:
		problem = "has another size than the manifest says"
	default:
		problem = "has a header that svcd does not write"
	}
	return reading.refuse(name, problem)
}

// end reads what is behind the last file.
func (r *Reader) end() error {
	block := make([]byte, blockSize)
	for range 2 {
		if err := r.read(block); err != nil {
			return err
		}
		if bytes.ContainsFunc(block, func(c rune) bool { return c != 0 }) {
			return r.unexpected(len(r.files), block)
		}
	}
	return r.nothing()
}

// nothing sees that the stream is over.
func (r *Reader) nothing() error {
	_, err := r.frames.Read(make([]byte, 1))
	_, ours := errors.AsType[*errs.Error](err)
	switch {
	case err == io.EOF: //nolint:errorlint // as a reader gives it
		return nil
	case err == nil, ours, errors.Is(err, io.ErrUnexpectedEOF):
		return refused("has data behind its end").With(err)
	}
	return err
}
