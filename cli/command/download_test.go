package command_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/client"
)

// download gets a file that the service calls by a name.
func download(t *testing.T, st *command.State, to command.Destination, disposition string, answer http.HandlerFunc) error {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", disposition)
		answer(w, r)
	}))
	defer srv.Close()
	c, err := client.New(client.Options{Server: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	return st.Download(t.Context(), to, "own.txt", func(ctx context.Context) (*client.File, error) {
		return c.Asset(ctx, "blog", "static", "own.txt")
	})
}

func quiet() (*command.State, *bytes.Buffer) {
	var out bytes.Buffer
	return &command.State{In: strings.NewReader(""), Out: &out, Err: io.Discard, Now: time.Now, Env: func(string) (string, bool) { return "", false }}, &out
}

// A name that the service gives does not lead out of the folder, nor to what programs read by themselves.
func TestNamesOfDownloads(t *testing.T) {
	t.Parallel()
	for disposition, want := range map[string]string{
		`inline; filename="a b.txt"`:                        "a b.txt",
		`attachment; filename="_"; filename*=UTF-8''%C3%BC`: "ü",
		``:                                    "own.txt",
		`inline; filename="../up.txt"`:        "",
		`inline; filename="/tmp/up.txt"`:      "",
		`inline; filename="..\\up.txt"`:       "",
		`inline; filename=".bashrc"`:          "",
		`inline; filename="-rf"`:              "",
		`inline; filename="C:up.txt"`:         "",
		"inline; filename*=UTF-8''a%1b%5B31m": "",
		`inline; filename=".."`:               "",
	} {
		dir := t.TempDir()
		inside := filepath.Join(dir, "inside")
		if err := os.Mkdir(inside, 0o700); err != nil {
			t.Fatal(err)
		}
		st, _ := quiet()
		err := download(t, st, command.Destination{File: inside}, disposition, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") })
		if (err == nil) != (want != "") {
			t.Errorf("%s: %v", disposition, err)
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
		hidden, _ := filepath.Glob(filepath.Join(dir, "*", ".*"))
		outside, _ := filepath.Glob(filepath.Join(dir, "*.txt"))
		all := append(append(files, hidden...), outside...)
		if want == "" && len(all) > 0 || want != "" && (len(all) != 1 || filepath.Base(all[0]) != want) {
			t.Errorf("%s: %q was written", disposition, all)
		}
	}
}

// A terminal is given text, escaped, and nothing else.
func TestDownloadToATerminal(t *testing.T) {
	t.Parallel()
	for media, want := range map[string]string{"text/plain; charset=utf-8": `a\x1b[31m`, "image/svg+xml": `a\x1b[31m`, "image/png": ""} {
		st, out := quiet()
		st.OutTTY = true
		err := download(t, st, command.Destination{File: "-"}, "", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			_, _ = io.WriteString(w, "a\x1b[31m")
		})
		if (err == nil) != (want != "") || out.String() != want {
			t.Errorf("%s: %q, %v", media, out.String(), err)
		}
	}
}

// What stops coming is given up, and nothing of it stays.
func TestDownloadStalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st, _ := quiet()
	st.Flags.RequestTimeout = 50 * time.Millisecond
	err := download(t, st, command.Destination{File: filepath.Join(dir, "a")}, "", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "the beginning")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	if err == nil || !strings.Contains(err.Error(), "nothing moved within the request timeout") {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
