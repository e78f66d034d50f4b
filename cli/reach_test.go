package cli_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHintsReachTheSameService: a command that is shown has the flags that decide which service this one was about, and no secret.
func TestHintsReachTheSameService(t *testing.T) {
	t.Parallel()
	s := &snapshotService{run: snapshotRun("snapshot", "running", nil)}
	address := serve(t, s.ServeHTTP)
	refused := serve(t, answer(http.StatusForbidden, `{"status":403,"code":"permission_denied","detail":"permission denied"}`))
	dir := t.TempDir()
	file, token := filepath.Join(dir, "my contexts.yaml"), filepath.Join(dir, "token")
	for path, text := range map[string]string{
		file:  "current-context: none\nservers:\n  - {name: other, server: '" + address + "'}\n  - {name: none, server: 'http://127.0.0.1:1'}\ncontexts:\n  - {name: other, server: other}\n  - {name: none, server: none}\n",
		token: "secret-of-file\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const create, attach = "snapshot create blog daily --no-wait", "snapshot attach blog " + runID
	for _, tc := range []struct {
		name string
		args []string // before the command
		line string
		env  []string
		want string // that stderr has
	}{
		{"none", nil, create, []string{"SVCCTL_SERVER=" + address}, "svcctl " + attach},
		{"the environment's", nil, create, []string{"SVCCTL_CONTEXT=other", "SVCCTL_CONFIG=" + file, "SVCCTL_SERVER="}, "svcctl " + attach},
		{"context and file", []string{"--context", "other", "--config", file}, create, []string{"SVCCTL_SERVER="}, "svcctl --config '" + file + "' --context other " + attach},
		{"server", []string{"-s", address, "--insecure-skip-tls-verify"}, create, nil, "svcctl --server " + address + " --insecure-skip-tls-verify=true " + attach},
		{"credential of a file", []string{"-s", address, "--token-file", token}, create, nil, "svcctl --server " + address + " --token-file " + token + " " + attach},
		{"secret", []string{"-s", address, "--admin-token", "secret-of-flag"}, create, nil, "svcctl --server " + address + " --admin-token TOKEN " + attach},
		{"secret in the address", []string{"-s", "http://secret-of-user:secret-of-password@127.0.0.1:1/?key=secret-of-query#secret-of-end"}, "snapshot list blog", nil, "the server's address has a user"},
		{"secret in the address, of a hint", []string{"-s", "http://secret-of-user:secret-of-password@127.0.0.1:1/x?key=secret-of-query#secret-of-end"}, "tui", nil, "the server's address has a user"},
		{"what is no address", []string{"-s", "secret-of-user:secret-of-password@127.0.0.1:1"}, "tui", nil, "the server's address has a user"},
		{"error", []string{"-s", address}, "snapshot attach blog " + runID + " --timeout 1ms", nil, "hint: svcctl --server " + address + " " + attach + " comes back to it"},
		{"error, for programs", []string{"-s", address}, "snapshot attach blog " + runID + " --timeout 1ms -o json", nil, `"hint":"svcctl --server ` + address + " " + attach},
		{"login gets a credential", []string{"-s", refused, "--token", "secret-of-flag"}, "snapshot list blog", nil, "run svcctl --server " + refused + " login"},
		{"contexts are in a file", []string{"--config", file, "--context", "lost"}, "snapshot list blog", nil, "svcctl --config '" + file + "' config get-contexts"},
		{"about svcctl itself", []string{"--context", "other", "--config", file}, "tui", []string{"SVCCTL_SERVER="}, "svcctl --config '" + file + "' --context other project list"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			stalled := &snapshotService{run: s.run, hold: true}
			for i, arg := range tc.args {
				if arg == address && strings.HasPrefix(tc.name, "error") { // whose run goes on
					tc.args[i] = serve(t, stalled.ServeHTTP)
					tc.want = strings.ReplaceAll(tc.want, address, tc.args[i])
				}
			}
			p := start(t, address, tc.env...)
			p.run(t, append(append([]string{}, tc.args...), strings.Fields(tc.line)...)...)
			if got := p.err.String(); !strings.Contains(got, tc.want) || strings.Contains(got, "secret-of") {
				t.Errorf("it says %s\nwant %s", got, tc.want)
			}
		})
	}
}
