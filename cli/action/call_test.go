package action_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/cli"
	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

// An action that has nothing but GET is called by GET, without a flag that says so.
func TestCallByGet(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.Header().Set("Content-Type", api.MediaProblem)
			w.WriteHeader(http.StatusMethodNotAllowed)
			_, _ = w.Write([]byte(`{"status": 405, "code": "method_not_allowed", "detail": "this action does not take that method"}`))
			return
		}
		w.Header().Set("Content-Type", api.MediaJSON)
		_, _ = w.Write([]byte(`{"q": "` + r.URL.Query().Get("q") + `"}`))
	}))
	t.Cleanup(server.Close)
	for line, want := range map[string]string{
		"call shop search --query q=boots":       `"q": "boots"`,
		"call shop search --get --query q=boots": `"q": "boots"`,
		"call shop search -d {}":                 "search takes no data: it is called by GET, with --query name=value",
	} {
		var out bytes.Buffer
		st := &command.State{
			In: strings.NewReader(""), Out: &out, Err: &out, Now: time.Now, Home: t.TempDir(), Version: "test",
			Env: func(string) (string, bool) { return "", false },
		}
		code := cli.Run(t.Context(), st, append([]string{"action"}, append(strings.Fields(line), "--server", server.URL)...))
		if !strings.Contains(out.String(), want) {
			t.Errorf("svcctl action %s (exit code %d): %q is not in\n%s", line, code, want, out.String())
		}
	}
}
