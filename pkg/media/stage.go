package media

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/errs"
)

const copyBuffer = 64 << 10

// Staged is an upload that is whole and durable. It belongs to one goroutine.
type Staged struct {
	store *Store
	temp  string // path of its temporary file; "" when that is gone
	info  Info

	held   string // path of the file in place, from Put on
	folder string // of its record
	leave  func() // the barrier of uploads
}

// Info is what is known of the file. Its name can become another by Put.
func (st *Staged) Info() Info { return st.info }

// Stage reads an upload to its end, in little memory whatever its size, and keeps it in a temporary file. It stops as soon as
// the upload is too large, or its first bytes are of a type that is refused. Call Discard when it is no more needed.
func (s *Store) Stage(ctx context.Context, name string, r io.Reader, l Limits) (*Staged, error) {
	name, err := CleanName(name)
	if err != nil {
		return nil, err
	}
	upload := &upload{ctx: ctx, r: r, max: l.MaxBytes, of: l.Of}
	head := make([]byte, sniffed)
	n, err := io.ReadFull(upload, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	head = head[:n]
	kind, err := typeOf(name, head)
	if err == nil {
		err = l.allowed(kind)
	}
	if err != nil {
		return nil, err
	}
	st := &Staged{store: s, info: Info{Name: name, Type: kind}}
	file, err := s.create(st)
	if err != nil {
		return nil, unwritten(err, "make a temporary file")
	}
	err = st.fill(file, head, upload)
	if closing := file.Close(); err == nil && closing != nil {
		err = unwritten(closing, "close an upload")
	}
	if err != nil {
		st.Discard()
		return nil, err
	}
	return st, nil
}

// create makes the temporary file of an upload.
func (s *Store) create(st *Staged) (*os.File, error) {
	name := rand.Text()
	s.mu.Lock()
	s.temps[name] = true
	s.mu.Unlock()
	st.temp = tmpDir + "/" + name
	file, err := s.root.OpenFile(st.temp, os.O_CREATE|os.O_EXCL|os.O_RDWR, fileMode)
	if err != nil {
		st.dropTemp()
	}
	return file, err
}

// fill writes the upload and takes its measures.
func (st *Staged) fill(file *os.File, head []byte, upload *upload) error {
	sum := sha256.New()
	to := &disk{file: file, sum: sum}
	if _, err := to.Write(head); err != nil {
		return err
	}
	if _, err := io.CopyBuffer(to, upload, make([]byte, copyBuffer)); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return unwritten(err, "sync an upload")
	}
	st.info.Size, st.info.Hash, st.info.ModTime = upload.n, hex.EncodeToString(sum.Sum(nil)), st.store.opts.Now()
	var err error
	st.info.Width, st.info.Height, err = measure(upload.ctx, st.info.Type, file)
	return err
}

// dropTemp removes the temporary file, if there is one.
func (st *Staged) dropTemp() {
	if st.temp == "" {
		return
	}
	s := st.store
	if err := s.root.Remove(st.temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.opts.Logger.Warn("a temporary file of an upload stays until it is swept", "error", err)
	}
	s.mu.Lock()
	delete(s.temps, strings.TrimPrefix(st.temp, tmpDir+"/"))
	s.mu.Unlock()
	st.temp = ""
}

// upload reads what a client sends. Its errors are those that Stage gives.
type upload struct {
	ctx context.Context //nolint:containedctx // it is the reader of one call
	r   io.Reader
	n   int64
	max int64
	of  string // whose limit that is
}

func (u *upload) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := u.r.Read(p)
	u.n += int64(n)
	switch _, ours := errors.AsType[*errs.Error](err); {
	case u.max > 0 && u.n > u.max:
		return 0, errs.New(errs.TooLarge, "file_too_large", "the file is larger than %d bytes, which is the limit of %s: send a smaller one", u.max, cmp.Or(u.of, "this place"))
	case err == nil, err == io.EOF, ours:
		return n, err
	case u.ctx.Err() != nil:
		return n, u.ctx.Err()
	}
	return n, errs.New(errs.Invalid, "upload_incomplete", "the file did not arrive whole: send it again").With(err)
}

// disk writes to a file and tells the kinds of its errors.
type disk struct {
	file *os.File
	sum  hash.Hash
}

func (d *disk) Write(p []byte) (int, error) {
	_, _ = d.sum.Write(p) // a hash takes everything
	n, err := d.file.Write(p)
	if err != nil {
		err = unwritten(err, "write an upload")
	}
	return n, err
}

// hashOf reads a file to its end.
func hashOf(ctx context.Context, r io.Reader) (string, error) {
	sum := sha256.New()
	if _, err := io.CopyBuffer(sum, &upload{ctx: ctx, r: r}, make([]byte, copyBuffer)); err != nil {
		return "", fmt.Errorf("read a file again: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// older says that a file was put in place, or written last, before that time.
func older(info fs.FileInfo, before time.Time) bool { return info.ModTime().Before(before) }
