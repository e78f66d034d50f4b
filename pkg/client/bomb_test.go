package client_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// TestAnswersThatUnpack: what a few bytes of gzip stand for is read as far as the bound of each way of reading.
func TestAnswersThatUnpack(t *testing.T) {
	t.Parallel()
	const size, most = 4 << 20, 1 << 20
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	if _, err := io.WriteString(w, "{"+strings.Repeat(" ", size)+`"detail":"read to its end"}`); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	const long = "answered with more than 1 MiB: ask for less at once"
	for name, tt := range map[string]struct {
		media  string
		status int
		read   func(ctx context.Context, c *client.Client) error
		want   string // in the error
	}{
		"an answer": {api.MediaJSON, 200, func(ctx context.Context, c *client.Client) error { _, err := c.Version(ctx); return err }, long},
		"a list": {api.MediaJSON, 200, func(ctx context.Context, c *client.Client) error {
			for _, err := range c.Records(ctx, "blog", "articles", client.Query{}) {
				return err
			}
			return nil
		}, long},
		"an answer to an archive": {api.MediaJSON, 200, func(ctx context.Context, c *client.Client) error {
			_, err := c.ImportSnapshot(ctx, "blog", "", strings.NewReader("x"), 1)
			return err
		}, long},
		"an answer to an agent": {api.MediaJSON, 200, func(ctx context.Context, c *client.Client) error { _, err := c.SendMCP(ctx, []byte("{}")); return err }, long},
		"an answer as it is": {api.MediaJSON, 200, func(ctx context.Context, c *client.Client) error {
			resp, err := c.Do(ctx, client.Request{Method: http.MethodGet, Path: "/x"})
			if err != nil {
				return err
			}
			defer resp.Body.Close() //nolint:errcheck // it is only read
			_, err = c.ReadAnswer(ctx, resp)
			return err
		}, long},
		"a refusal": {api.MediaProblem, 400, func(ctx context.Context, c *client.Client) error { _, err := c.Version(ctx); return err }, "400"},
		"events of a run": {api.MediaEvents, 200, func(ctx context.Context, c *client.Client) error {
			return c.FollowSnapshotRun(ctx, "blog", "1", 0, func(api.RunEvent) error { return nil })
		}, "token too long"},
		"events of a project": {api.MediaEvents, 200, func(ctx context.Context, c *client.Client) error {
			return c.FollowProjectEvents(ctx, "1", 0, func(api.ProjectEvent) error { return nil })
		}, "token too long"},
		"a file, which is not unpacked": {"text/plain", 200, func(ctx context.Context, c *client.Client) error {
			f, err := c.Asset(ctx, "blog", "static", "a.txt")
			if err != nil {
				return err
			}
			defer f.Close() //nolint:errcheck // it is only read
			if n, err := io.Copy(io.Discard, f); err != nil || n != int64(bomb.Len()) {
				t.Errorf("%d bytes of a file of %d: %v", n, bomb.Len(), err)
			}
			return errors.New("as it came")
		}, "as it came"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, client.Options{MaxAnswer: most}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tt.media)
				w.Header().Set("Content-Encoding", "gzip")
				w.WriteHeader(tt.status)
				_, _ = w.Write(bomb.Bytes()) // nobody may read all of it
			})
			if err := tt.read(t.Context(), c); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
