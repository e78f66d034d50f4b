package docs_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/svcctl/svc/cli"
	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/app"
)

// TestMain puts svcctl in the path of what the tests run.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"svcctl": func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		code := cli.Run(ctx, &command.State{
			In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv, Home: os.Getenv("HOME"), Now: time.Now, Version: "test",
		}, os.Args[1:])
		stop()
		os.Exit(code)
	}})
}

// TestTeamDoc runs the lines of team.md in one go, as a reader would. Every one of them has to succeed, and no answer may
// be a refusal.
func TestTeamDoc(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	doc, err := os.ReadFile("team.md")
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	lines.WriteString("set -eux\n")
	for _, block := range regexp.MustCompile("(?s)\n```sh\n(.*?\n)```\n").FindAllStringSubmatch(string(doc), -1) {
		lines.WriteString(block[1])
	}
	dir := t.TempDir()
	url := serveTeam(t, dir)
	script := strings.ReplaceAll(lines.String(), "http://127.0.0.1:8080", url)
	if strings.Count(script, url) == 0 {
		t.Fatal("the lines don't name the address of make run")
	}
	sh := exec.CommandContext(t.Context(), "sh", "-c", script)
	sh.Dir = dir
	sh.Env = append(os.Environ(), "HOME="+dir)
	out, err := sh.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"refused, as it should be", `"username":"ben"`, "Reaches", "Anvils"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in what the lines print:\n%s", want, out)
		}
	}
	if strings.Contains(string(out), `"title":"Forbidden"`) || strings.Contains(string(out), `"title":"Bad Request"`) {
		t.Errorf("a request is refused:\n%s", out)
	}
}

// serveTeam serves the projects below a directory, with the admin token where make run has it.
func serveTeam(t *testing.T, dir string) (url string) {
	t.Helper()
	const token = "0123456789abcdef-docs"
	for _, name := range []string{"data", "projects"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "admin.token"), []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := app.New(t.Context(), app.Config{
		Host: "127.0.0.1", MaxBodySize: 1 << 20, AdminToken: token, JWTTTL: time.Hour,
		DataDir: filepath.Join(dir, "data"), ProjectsDir: filepath.Join(dir, "projects"), Watch: controllers.WatchOff,
		ShutdownGrace: time.Second, Version: "test", Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		Env: func(string) (string, bool) { return "", false }, OnFatal: func(err error) { t.Error(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + a.Addr()
}
