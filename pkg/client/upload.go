package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/svcctl/svc/pkg/api"
)

// Attachment is a file that is sent along with a record.
type Attachment struct {
	Field string                        // path of the file field, with positions in lists of objects
	Name  string                        // of the file
	Size  int64                         // in bytes; -1: not known, which the service finds out as it reads
	Open  func() (io.ReadCloser, error) // begins to read it
}

// CreateWithFiles is CreateRecord of a record with files, which are read as they are sent: in little memory, whatever they
// measure, and once, so that nothing is sent again by itself. sent, which may be nil, is told by one goroutine at a time how
// many bytes of files have gone out.
func (c *Client) CreateWithFiles(
	ctx context.Context, namespace, collection string, record api.Record, files []Attachment, sent func(int64), o ...WriteOptions,
) (api.Record, error) {
	return c.upload(ctx, lastOf(o).call(call{method: http.MethodPost, path: api.RecordsPath(namespace, collection), in: record}), files, sent)
}

// UpdateWithFiles is UpdateRecord with files, as CreateWithFiles has them.
func (c *Client) UpdateWithFiles(
	ctx context.Context, namespace, collection, id string, change api.Record, files []Attachment, sent func(int64), o WriteOptions,
) (api.Record, error) {
	return c.upload(ctx, o.call(call{method: http.MethodPut, path: api.RecordPath(namespace, collection, id), in: change}), files, sent)
}

// TryCreateWithFiles is a dry run of CreateWithFiles. The files are sent, and tried with the record.
func (c *Client) TryCreateWithFiles(
	ctx context.Context, namespace, collection string, record api.Record, files []Attachment, sent func(int64), o WriteOptions,
) error {
	o.dryRun = true
	_, err := c.CreateWithFiles(ctx, namespace, collection, record, files, sent, o)
	return err
}

// TryUpdateWithFiles is a dry run of UpdateWithFiles. The files are sent, and tried with the change.
func (c *Client) TryUpdateWithFiles(
	ctx context.Context, namespace, collection, id string, change api.Record, files []Attachment, sent func(int64), o WriteOptions,
) error {
	o.dryRun = true
	_, err := c.UpdateWithFiles(ctx, namespace, collection, id, change, files, sent, o)
	return err
}

// upload sends a form: the record in r.in, and files.
func (c *Client) upload(ctx context.Context, r call, files []Attachment, sent func(int64)) (api.Record, error) {
	if strings.Contains(r.path, "//") || strings.HasSuffix(r.path, "/") {
		return nil, fmt.Errorf("%s %s: an id or a name is empty", r.method, r.path)
	}
	data, err := json.Marshal(r.in)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	f := &form{data: data, files: files, sent: sent}
	in, out := io.Pipe()
	w := multipart.NewWriter(out)
	if key := r.header.Get(api.HeaderIdempotencyKey); key != "" { // the same request has to be the same to the byte
		sum := sha256.Sum256([]byte(key))
		if err := w.SetBoundary(hex.EncodeToString(sum[:])); err != nil {
			return nil, err
		}
	}
	size := f.size(w.Boundary())
	written := make(chan error, 1)
	go func() {
		err := f.write(w)
		out.CloseWithError(err)
		written <- err
	}()
	header := r.header.Clone()
	header.Set("Content-Type", w.FormDataContentType())
	header.Set("Expect", "100-continue") // what is too large is refused before it is sent
	resp, err := c.Do(ctx, Request{Method: r.method, Path: r.path, Query: r.query, Header: header, Body: sized{in, size}})
	_ = in.Close() // ends the writing, where the service did not read to the end
	werr := <-written
	switch {
	case err != nil && f.failed != nil: // a file can't be read: that is what broke the request off
		return nil, f.failed
	case err != nil:
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end below
	if werr != nil && f.failed != nil {
		return nil, f.failed
	}
	body, err := c.ReadAnswer(ctx, resp)
	if err != nil {
		return nil, err
	}
	if !json.Valid(body) {
		return nil, c.notOurs(resp, errors.New("no JSON"))
	}
	return body, nil
}

// sized is a body of a known length, -1 for one that is not.
type sized struct {
	io.Reader
	size int64
}

// form writes a record and files.
type form struct {
	data   []byte
	files  []Attachment
	sent   func(int64)
	failed error // of reading a file
}

// size is how many bytes the form has, or -1.
func (f *form) size(boundary string) int64 {
	var n counter
	w := multipart.NewWriter(&n)
	if w.SetBoundary(boundary) != nil {
		return -1
	}
	total := int64(0)
	for _, file := range f.files {
		if file.Size < 0 {
			return -1
		}
		total += file.Size
	}
	empty := form{data: f.data}
	for _, file := range f.files {
		file.Size, file.Open = -1, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("")), nil }
		empty.files = append(empty.files, file)
	}
	if empty.write(w) != nil {
		return -1
	}
	return total + int64(n)
}

// counter counts what is written.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func (f *form) write(w *multipart.Writer) error {
	part, err := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {mime.FormatMediaType("form-data", map[string]string{"name": api.PartData})}, "Content-Type": {api.MediaJSON},
	})
	if err != nil {
		return err
	}
	if _, err := part.Write(f.data); err != nil {
		return err
	}
	done := int64(0)
	for _, file := range f.files {
		part, err := w.CreateFormFile(file.Field, file.Name)
		if err != nil {
			return err
		}
		n, err := f.writeFile(part, file, done)
		if err != nil {
			return err
		}
		done += n
	}
	return w.Close()
}

// writeFile copies a file. Behind done bytes of those before it.
func (f *form) writeFile(part io.Writer, file Attachment, done int64) (int64, error) {
	in, err := file.Open()
	if err != nil {
		f.failed = err
		return 0, err
	}
	defer in.Close() //nolint:errcheck // it is only read
	n, buf := int64(0), make([]byte, 64<<10)
	for {
		got, err := in.Read(buf)
		if got > 0 {
			if file.Size >= 0 && n+int64(got) > file.Size {
				f.failed = fmt.Errorf("%s has grown while it was sent: send it again", file.Name)
				return n, f.failed
			}
			if _, err := part.Write(buf[:got]); err != nil {
				return n, err
			}
			if n += int64(got); f.sent != nil {
				f.sent(done + n)
			}
		}
		switch {
		case errors.Is(err, io.EOF) && file.Size >= 0 && n < file.Size:
			f.failed = fmt.Errorf("%s has shrunk while it was sent: send it again", file.Name)
			return n, f.failed
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil:
			f.failed = fmt.Errorf("read %s: %w", file.Name, err)
			return n, f.failed
		}
	}
}
