package media

import (
	"context"
	"crypto/sha256"
	"io"
	"os"
)

// Spool is a body that has to be read more than once, and is too large for the memory. It is a temporary file, which need not
// outlive a crash: what stays of one is swept.
type Spool struct {
	temp Staged
	file *os.File
	size int64
	sum  [sha256.Size]byte
}

// Spool reads a body to its end, in little memory whatever its size. Errors of the body are given as they are. Call Discard
// when it is no more needed.
func (s *Store) Spool(ctx context.Context, body io.Reader) (*Spool, error) {
	sp := &Spool{temp: Staged{store: s}}
	var err error
	if sp.file, err = s.create(&sp.temp); err != nil {
		return nil, unwritten(err, "make a temporary file")
	}
	sum := sha256.New()
	if sp.size, err = io.CopyBuffer(&disk{file: sp.file, sum: sum}, body, make([]byte, copyBuffer)); err == nil {
		err = ctx.Err()
	}
	if err != nil {
		sp.Discard()
		return nil, err
	}
	sp.sum = [sha256.Size]byte(sum.Sum(nil))
	return sp, nil
}

// Sum is the SHA-256 of the body.
func (sp *Spool) Sum() [sha256.Size]byte { return sp.sum }

// Reader reads the body from its begin.
func (sp *Spool) Reader() io.Reader { return io.NewSectionReader(sp.file, 0, sp.size) }

// Discard removes the file. What is nil has none.
func (sp *Spool) Discard() {
	if sp == nil {
		return
	}
	_ = sp.file.Close() // what is in it is of no more use
	sp.temp.dropTemp()
}
