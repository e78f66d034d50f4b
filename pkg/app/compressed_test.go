package app_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// S54: the service unpacks nothing that a client sends. A body that is compressed is refused, however much it would become,
// and a compressed file is stored and served as it came.
func TestS54Compressed(t *testing.T) {
	packed := func(w io.WriteCloser, b *bytes.Buffer, parts ...string) string {
		for _, p := range parts {
			if _, err := io.WriteString(w, p); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	gzipped := func(parts ...string) string {
		var b bytes.Buffer
		w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed) // a bomb it is all the same
		if err != nil {
			t.Fatal(err)
		}
		return packed(w, &b, parts...)
	}
	var deflate bytes.Buffer
	large := strings.Repeat(" ", 50<<20)
	bombs := map[string]string{
		"gzip":          gzipped(`{"title":"a"`, large, "}"),
		"x-gzip":        gzipped(`{"title":"a"}`),
		"deflate":       packed(zlib.NewWriter(&deflate), &deflate, `{"title":"a"}`),
		"br":            `{"title":"a"}`,
		"zstd":          `{"title":"a"}`,
		"identity,gzip": gzipped(gzipped(`{"title":"a"}`)),
	}
	files := map[string]string{"a.gz": gzipped(large), "b.svgz": gzipped("<svg xmlns='http://www.w3.org/2000/svg'>", large, "</svg>")}
	onMedia(t, func(t *testing.T, s mediaService) {
		const open = "/api/v1/_/media/open"
		for coding, body := range bombs {
			for _, door := range []struct{ method, path, kind string }{
				{"POST", library, "application/json"},
				{"PUT", library + "?filter[title]=a", "application/json"},
				{"POST", library, "multipart/form-data; boundary=b"},
				{"PATCH", library + "/" + unknownID, "application/json-patch+json"},
				{"PATCH", library + "/" + unknownID, "application/merge-patch+json"},
				{"POST", "/api/v1/login", "application/json"},
			} {
				got := s.do(door.method, door.path, writer, text(body), header("Content-Type", door.kind), header("Content-Encoding", coding))
				if got.status != http.StatusUnsupportedMediaType || !strings.Contains(got.body, "without Content-Encoding") {
					t.Errorf("%s %s (%s) as %s: %s", door.method, door.path, door.kind, coding, got)
				}
			}
		}
		s.do("POST", library, writer, text(bombs["gzip"])).want(t, http.StatusBadRequest)
		if got := s.do("POST", library, writer, text(`{"title":"a"}`), header("Content-Encoding", "Identity")); got.status != http.StatusCreated {
			t.Errorf("identity: %s", got)
		}
		s.disk("bodies")

		for name, src := range files {
			sent := "data:;base64," + base64.StdEncoding.EncodeToString([]byte(src))
			res := s.do("POST", open, text(fmt.Sprintf(`{"file":{"src":%q,"path":%q}}`, sent, name)))
			res.want(t, http.StatusCreated)
			if res.at("file.size") != strconv.Itoa(len(src)) || res.at("file.type") != `"application/gzip"` {
				t.Errorf("%s: %s", name, res.body)
			}
			got := s.do("GET", strings.Trim(res.at("file.src"), `"`), header("Accept-Encoding", "gzip"))
			if got.body != src || got.header.Get("Content-Encoding") != "" || !strings.HasPrefix(got.header.Get("Content-Disposition"), "attachment") {
				t.Errorf("%s is served as %d bytes, %v", name, len(got.body), got.header)
			}
		}
	})
}
