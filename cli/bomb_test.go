package cli_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"testing"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

// TestAnswersThatUnpack: a few bytes of gzip that stand for many are read as far as an answer may be long, by each command that reads one as it comes.
func TestAnswersThatUnpack(t *testing.T) {
	t.Parallel()
	bomb := gzipped(t, 8<<20)
	for line, terminal := range map[string]bool{
		"api GET /x -o json": false, "api GET /x": true, "action call blog greet": false, "project list": false, "doc list blog articles --all": false, "doc export blog articles": false,
	} {
		p := start(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", api.MediaJSON)
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb) // nobody may read all of it
		}))
		p.st.OutTTY, p.st.MaxAnswer = terminal, 1<<20
		if code := p.run(t, strings.Fields(line)...); code != command.ExitFailed || !strings.Contains(p.err.String(), "answered with more than 1 MiB: ask for less at once") {
			t.Errorf("%s: exit code %d, %d bytes, %s", line, code, p.out.Len(), p.err.String())
		}
	}
}

// gzipped is so many spaces in a JSON text, packed.
func gzipped(t *testing.T, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte("{" + strings.Repeat(" ", size) + "}")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
