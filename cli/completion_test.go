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
	"github.com/svcctl/svc/pkg/api"
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

// TestCompletionInNamespace: where a namespace is set, a name of it is offered, and a namespace where no name begins as what is typed.
func TestCompletionInNamespace(t *testing.T) {
	t.Parallel()
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/project"):
			answer(http.StatusOK, `{"items":[{"namespace":"blog"},{"namespace":"shop"}]}`)(w, r)
		case strings.HasSuffix(r.URL.Path, "/snapshots"):
			answer(http.StatusOK, `{"items":[{"id":"`+snapshotID+`","profile":"daily","consistentAt":"2026-03-01T11:00:00Z"}]}`)(w, r)
		default:
			answer(http.StatusOK, `{"items":[{"name":"articles"},{"name":"of `+strings.Split(strings.TrimPrefix(r.URL.Path, api.Prefix), "/")[2]+`"}]}`)(w, r)
		}
	})
	for _, tc := range []struct{ args, prefix, want string }{
		{"collection describe", "", "blog shop"},
		{"collection describe blog", "", "articles of blog"},
		{"collection describe blog articles", "", ""},
		{"collection describe -n blog", "", "articles of blog"},
		{"collection describe -n blog", "sh", "shop"},
		{"collection describe -n blog shop", "", "articles of shop"},
		{"collection describe -n blog shop", "zz", ""},
		{"snapshot show", "", "blog shop"},
		{"snapshot show -n blog", "2026", snapshotID},
		{"snapshot show -n blog", "sh", "shop"},
		{"snapshot show -n blog shop", "2026", snapshotID},
		{"snapshot show -n blog " + snapshotID, "", ""},
		{"snapshot diff -n blog " + snapshotID, "2026", snapshotID},
	} {
		p := start(t, address)
		p.run(t, append(append([]string{"__complete"}, strings.Fields(tc.args)...), tc.prefix)...)
		all, _, _ := strings.Cut("\n"+p.out.String(), "\n:")
		var got []string
		for line := range strings.Lines(all) {
			if name, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); name != "" && strings.HasPrefix(name, tc.prefix) { // as the shell has it
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s %s: got %q, want %q", tc.args, tc.prefix, got, tc.want)
		}
	}
}
