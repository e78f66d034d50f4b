package cli_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/svcctl/svc/cli/command"
)

// What the tab key asks is kept for half a minute, for one credential, in files of the user alone.
func TestCompletionIsKept(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		answer(http.StatusOK, fmt.Sprintf(`{"items":[{"namespace":"%s%d"}]}`, r.Header.Get("X-Auth-Token"), n))(w, r)
	})
	home := t.TempDir()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	press := func(want string, env ...string) {
		t.Helper()
		p := start(t, address, env...)
		p.st.Home, p.st.Now = home, func() time.Time { return now }
		if code := p.run(t, "__complete", "project", "status", ""); code != command.ExitOK || !strings.HasPrefix(p.out.String(), want+"\n") {
			t.Errorf("exit code %d, got %q, want %q", code, p.out.String(), want)
		}
	}
	press("1")
	press("1")
	press("secret2", "SVCCTL_TOKEN=secret")
	press("secret2", "SVCCTL_TOKEN=secret")
	now = now.Add(29 * time.Second)
	press("1")
	now = now.Add(2 * time.Second)
	press("3")
	files, err := filepath.Glob(filepath.Join(home, ".cache", "svcctl", "completion", "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("got the files %v, %v, want one for each credential", files, err)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	p := start(t, address)
	p.st.Home, p.st.Now = home, func() time.Time { return now }
	if p.run(t, "project", "list", "-o", "name"); p.out.String() != "project/4\n" {
		t.Errorf("a command got what was kept for the tab key: %s", p.out.String())
	}
	if err := os.WriteFile(files[0], []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[1], nil, 0o600); err != nil {
		t.Fatal(err)
	}
	press("5")
}

// -o offers what a command takes.
func TestCompletionOfOutput(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ args, want string }{
		{"project list -o", "table wide json yaml name jsonpath= custom-columns= go-template="},
		{"project validate -o", "table wide json yaml name github sarif jsonpath= custom-columns= go-template="},
	} {
		p := start(t, "")
		p.run(t, append(append([]string{"__complete"}, strings.Fields(tc.args)...), "")...)
		got, _, _ := strings.Cut(p.out.String(), "\n:")
		if got = strings.Join(strings.Fields(got), " "); got != tc.want {
			t.Errorf("%s: got %s", tc.args, got)
		}
	}
}
