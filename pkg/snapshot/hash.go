package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"

	"github.com/svcctl/svc/pkg/folder"
)

const readSize = 256 << 10

// hasher reads files to their end. It belongs to one goroutine.
type hasher struct{ buffer []byte }

func (h *hasher) file(ctx context.Context, dir *folder.Folder, name string) (sum string, size int64, err error) {
	file, err := dir.Open(name)
	if err != nil {
		return "", 0, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	if h.buffer == nil {
		h.buffer = make([]byte, readSize)
	}
	all := sha256.New()
	size, err = io.CopyBuffer(onlyWriter{all}, &canceled{ctx, file}, h.buffer)
	return hex.EncodeToString(all.Sum(nil)), size, err
}

// canceled is a reader whose reading ends with a context.
type canceled struct {
	ctx context.Context //nolint:containedctx // it is the reader of one call
	r   io.Reader
}

func (c *canceled) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// onlyWriter hides what else a writer can, so that a buffer is used.
type onlyWriter struct{ io.Writer }

// summed counts and hashes what is written through it.
type summed struct {
	to  io.Writer
	sum hash.Hash
	n   int64
}

func newSummed(to io.Writer) *summed { return &summed{to: to, sum: sha256.New()} }

func (s *summed) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	_, _ = s.sum.Write(p[:n]) // a hash takes everything
	s.n += int64(n)
	return n, err
}

func (s *summed) hex() string { return hex.EncodeToString(s.sum.Sum(nil)) }
