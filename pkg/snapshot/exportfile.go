package snapshot

import (
	"bufio"
	"context"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/svcctl/svc/pkg/folder"
)

// exportFile is a file of records that is being written.
type exportFile struct {
	c        *creation
	name     string
	file     *folder.File
	stored   *summed       // what is in the file
	buffer   *bufio.Writer // in front of it
	compress *zstd.Encoder // nil: it is not compressed
	plain    *summed       // what was written
}

func (c *creation) newExport(name string, compressed bool) (*exportFile, error) {
	file, err := c.dir.Create(name)
	if err != nil {
		return nil, err
	}
	e := &exportFile{c: c, name: name, file: file, stored: newSummed(file)}
	e.buffer = bufio.NewWriterSize(e.stored, readSize)
	e.plain = e.stored
	if compressed {
		if e.compress, err = c.compressor(e.buffer); err != nil {
			e.close()
			return nil, err
		}
		e.plain = newSummed(e.compress)
	}
	return e, nil
}

// compressor compresses the same to the same, in little memory. A creation has one, which begins anew with each file: most are small, and to
// make its tables takes more than to compress those. The one of the file before is closed.
func (c *creation) compressor(to io.Writer) (*zstd.Encoder, error) {
	if c.zip != nil {
		c.zip.Reset(to)
		return c.zip, nil
	}
	zip, err := zstd.NewWriter(to, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	if err == nil {
		c.zip = zip
	}
	return zip, err
}

func (e *exportFile) write(p []byte) error {
	var err error
	if e.compress != nil {
		_, err = e.plain.Write(p)
	} else {
		_, err = e.buffer.Write(p)
	}
	return err
}

// finish ends the file, and gives the hash of what was written to it.
func (e *exportFile) finish(ctx context.Context, documents int64) (string, error) {
	var err error
	if e.compress != nil {
		err = e.compress.Close()
		e.compress = nil
	}
	if err == nil {
		err = e.buffer.Flush()
	}
	if closing := e.file.Close(); err == nil {
		err = closing
	}
	e.file = nil
	if err != nil {
		return "", err
	}
	f := File{Path: e.name, Size: e.stored.n, SHA256: e.stored.hex(), Count: documents, How: Written}
	if err := e.c.instead(ctx, f); err != nil {
		return "", err
	}
	return e.plain.hex(), nil
}

// close gives up a file that is not finished.
func (e *exportFile) close() {
	if e == nil {
		return
	}
	if e.compress != nil {
		_ = e.compress.Close() // what it writes yet is of no use
	}
	if e.file != nil {
		_ = e.file.Close() // it goes with the folder
	}
}

// instead puts a link to an equal file of the snapshot before in the place of one that was written, if there is one.
func (c *creation) instead(ctx context.Context, f File) error {
	if !c.profile.Dedup || c.before == nil || c.before.manifest.file(f.Path) == nil {
		c.add(f)
		return nil
	}
	aside := f.Path + ".new"
	if err := c.dir.Rename(f.Path, aside); err != nil {
		return err
	}
	linked, err := c.dedup(ctx, f)
	if err != nil {
		return err
	}
	if linked {
		return c.dir.Remove(aside)
	}
	c.add(f)
	return c.dir.Rename(aside, f.Path)
}
