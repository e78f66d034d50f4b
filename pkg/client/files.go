package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/api"
)

// File is a file on its way from the service. Reading goes on where a connection breaks off, as long as the file is still
// the same one. Close it.
type File struct {
	Name string // what it is called; "": the service didn't say
	Type string // its media type
	ETag string
	Size int64 // -1: the service didn't say

	Snapshot string // of an archive: the id of the snapshot that it is
	Run      string // of an archive that was made for the call: the id of the run that made it; else ""

	ctx     context.Context //nolint:containedctx // of the reading, which goes on behind the call
	client  *Client
	call    call
	body    io.ReadCloser
	at      int64 // what was read
	failed  int   // attempts in a row that brought nothing
	stopped error
}

// errChanged says that the rest of a file is not to be had.
var errChanged = errors.New("the file has changed while it was read: read it again")

// ListAssets describes the assets of a project.
func (c *Client) ListAssets(ctx context.Context, namespace string) (*api.List[api.Asset], error) {
	return list[api.Asset](ctx, c, api.AssetsPath(namespace), Query{})
}

// Asset opens a file of an asset. ctx is for the reading, too.
func (c *Client) Asset(ctx context.Context, namespace, asset, file string) (*File, error) {
	return c.open(ctx, api.AssetPath(namespace, asset, file), nil)
}

// RecordFile opens a file of a record, or what an image filter of the collection makes of it; "" is none. field is the path of
// the field, without positions in lists. ctx is for the reading, too.
func (c *Client) RecordFile(ctx context.Context, namespace, collection, id, field, name, filter string) (*File, error) {
	query := url.Values{}
	if filter != "" {
		query.Set(api.ParamFilter, filter)
	}
	return c.open(ctx, api.FilePath(namespace, collection, id, field, name), query)
}

// open asks for a file.
func (c *Client) open(ctx context.Context, path string, query url.Values) (*File, error) {
	if strings.Contains(path, "//") || strings.HasSuffix(path, "/") {
		return nil, fmt.Errorf("GET %s: an id or a name is empty", path)
	}
	f := &File{client: c, ctx: ctx, call: call{method: http.MethodGet, path: path, query: query}}
	resp, err := f.ask(http.Header{}) //nolint:bodyclose // Close closes it
	if err != nil {
		return nil, err
	}
	f.body, f.Size = resp.Body, resp.ContentLength
	if _, params, err := mime.ParseMediaType(resp.Header.Get("Content-Disposition")); err == nil {
		f.Name = params["filename"]
	}
	f.Type, f.ETag = resp.Header.Get("Content-Type"), resp.Header.Get(api.HeaderETag)
	f.Snapshot, f.Run = resp.Header.Get(api.HeaderSnapshot), resp.Header.Get(api.HeaderRun)
	return f, nil
}

// ask sends the request, again where that may help.
func (f *File) ask(header http.Header) (*http.Response, error) {
	header.Set("Accept", "*/*")
	header.Set("Accept-Encoding", "identity") // a part of a compressed file is none of the file
	for attempt := 1; ; attempt++ {
		resp, err := f.client.Do(f.ctx, Request{Method: f.call.method, Path: f.call.path, Query: f.call.query, Header: header})
		if err == nil || attempt == maxAttempts || f.ctx.Err() != nil {
			return resp, err
		}
		wait, again := f.client.retry(f.call, attempt, err)
		if !again {
			return nil, err
		}
		if err := f.wait(wait); err != nil {
			return nil, err
		}
	}
}

func (f *File) wait(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-f.ctx.Done():
		return fmt.Errorf("%s: %w", f.client.root, context.Cause(f.ctx))
	case <-timer.C:
		return nil
	}
}

// Read reads on, over a new connection where the last one broke.
func (f *File) Read(p []byte) (int, error) {
	for {
		if f.stopped != nil {
			return 0, f.stopped
		}
		n, err := f.body.Read(p)
		f.at += int64(n)
		if err != nil {
			f.stopped = f.goOn(err)
		}
		if n > 0 {
			f.failed = 0
			return n, nil
		}
		if len(p) == 0 {
			return 0, f.stopped
		}
	}
}

// goOn makes reading possible again after an error, or says how it ends.
func (f *File) goOn(err error) error {
	switch {
	case f.Size < 0, f.ctx.Err() != nil, f.at >= f.Size && errors.Is(err, io.EOF):
		return err
	case f.ETag == "" || f.failed >= maxAttempts:
		return f.client.unreachable(f.ctx, fmt.Errorf("the connection broke off at byte %d of %d: %w", f.at, f.Size, err))
	}
	f.failed++
	_ = f.body.Close() // it is broken
	if err := f.wait(f.client.backoff(f.failed + 1)); err != nil {
		return err
	}
	resp, err := f.ask(http.Header{"Range": {"bytes=" + strconv.FormatInt(f.at, 10) + "-"}, "If-Range": {f.ETag}}) //nolint:bodyclose // Close closes it
	if err != nil {
		return err
	}
	f.body = resp.Body
	rest := fmt.Sprintf("bytes %d-%d/%d", f.at, f.Size-1, f.Size)
	if resp.StatusCode != http.StatusPartialContent || resp.Header.Get("Content-Range") != rest {
		return errChanged
	}
	return nil
}

// Close ends the reading.
func (f *File) Close() error { return f.body.Close() }
