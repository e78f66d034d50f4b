package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/svcctl/svc/pkg/errs"
)

// Write writes the backup of a snapshot: the manifest that is in src, and the files that it announces. It takes some
// megabytes of memory beside the manifest, whatever their sizes. progress may be nil; it is called within Write, often.
//
// A file that is not as the manifest says (Conflict), and what no reader would take, is an error. What was written is then
// cut off, and no reader takes it; so is it when ctx ends.
func Write(ctx context.Context, w io.Writer, src *os.Root, parse ParseManifest, l Limits, progress func(Progress)) error {
	manifest, err := readManifest(src, l)
	if err != nil {
		return err
	}
	files, err := parse(manifest)
	if err != nil {
		return err
	}
	total, err := announced(files, l, writing)
	if err != nil {
		return err
	}
	frames, err := newFrameWriter(w)
	if err != nil {
		return err
	}
	a := &writer{
		frames: frames, src: src, buffer: make([]byte, copyBuffer),
		meter: meter{Progress: Progress{FilesTotal: len(files), BytesTotal: total}, tell: progress},
	}
	if err := a.put(header(ManifestName, int64(len(manifest))), manifest, zeros(padding(int64(len(manifest))))); err != nil {
		return err
	}
	for i := range files {
		if err := a.file(ctx, &files[i]); err != nil {
			return err
		}
	}
	if err := a.put(zeros(2 * blockSize)); err != nil {
		return err
	}
	return sent(frames.finish())
}

func readManifest(src *os.Root, l Limits) ([]byte, error) {
	f, err := src.Open(ManifestName)
	if err != nil {
		return nil, errs.Wrap(err, "open the manifest of a snapshot")
	}
	defer f.Close() //nolint:errcheck // it was read
	var manifest bytes.Buffer
	n, err := manifest.ReadFrom(io.LimitReader(f, l.ManifestBytes+1))
	switch {
	case err != nil:
		return nil, errs.Wrap(err, "read the manifest of a snapshot")
	case n > l.ManifestBytes:
		return nil, writing.tooLarge("has a manifest of more than %d bytes, which is the limit", l.ManifestBytes)
	}
	return manifest.Bytes(), nil
}

type writer struct {
	frames *frameWriter
	src    *os.Root
	buffer []byte
	meter  meter
}

// file writes one file, and holds it against what is known of it.
func (a *writer) file(ctx context.Context, f *File) error {
	info, err := a.src.Lstat(f.Name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return damaged(f, "is missing")
	case err != nil:
		return errs.Wrap(err, "look at a file of a snapshot")
	case !info.Mode().IsRegular():
		return damaged(f, "is not a regular file")
	case info.Size() != f.Size:
		return damaged(f, fmt.Sprintf("has %d bytes, and its manifest says %d", info.Size(), f.Size))
	}
	file, err := a.src.Open(f.Name)
	if err != nil {
		return errs.Wrap(err, "open a file of a snapshot")
	}
	defer file.Close() //nolint:errcheck // it was read
	if err := a.put(header(f.Name, f.Size)); err != nil {
		return err
	}
	sum := sha256.New()
	err = a.meter.copyFile(ctx, io.MultiWriter(sum, toFrames{a.frames}), fromDisk{file}, f, a.buffer)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return damaged(f, "became shorter")
	case err != nil:
		return err
	case !bytes.Equal(sum.Sum(nil), f.SHA256[:]):
		return damaged(f, "has another SHA-256 than its manifest says")
	}
	return a.put(zeros(padding(f.Size)))
}

func (a *writer) put(parts ...[]byte) error {
	for _, part := range parts {
		if _, err := a.frames.Write(part); err != nil {
			return sent(err)
		}
	}
	return nil
}

func zeros(n int64) []byte { return make([]byte, n) }

func damaged(f *File, problem string) error {
	return errs.New(errs.Conflict, "snapshot_damaged", "the file %s of the snapshot %s: it is damaged; take the archive of another snapshot", quote(f.Name), problem)
}

// sent tells what failed, when it is the one that the backup goes to.
func sent(err error) error {
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return nil
}

type toFrames struct{ frames *frameWriter }

func (t toFrames) Write(p []byte) (int, error) {
	n, err := t.frames.Write(p)
	return n, sent(err)
}

type fromDisk struct{ file *os.File }

func (d fromDisk) Read(p []byte) (int, error) {
	n, err := d.file.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = errs.Wrap(err, "read a file of a snapshot")
	}
	return n, err
}
