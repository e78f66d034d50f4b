package docs_test

import (
	"context"
	"encoding/json"
	"flag"
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
	"github.com/svcctl/svc/pkg/auth"
	"github.com/svcctl/svc/pkg/trial"
	"github.com/svcctl/svc/pkg/trial/report"
)

// TestMain puts svcctl in the path of what the tests run.
func TestMain(m *testing.M) {
	// The race detector holds a program for a second before it ends.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")); err != nil {
		panic(err)
	}
	programs := map[string]func(){"svcd": projectTest, "svcctl": func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		code := cli.Run(ctx, &command.State{
			In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv, Home: os.Getenv("HOME"), Now: time.Now, Version: "test",
		}, os.Args[1:])
		stop()
		os.Exit(code)
	}}
	if dir := os.Getenv("SVCCTL_RELEASED"); dir != "" { // scripts/test.sh has it there without the race detector
		delete(programs, "svcctl")
		if err := os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH")); err != nil {
			panic(err)
		}
	}
	testscript.Main(m, programs)
}

// projectTest is the part of svcd that svcctl project test runs.
func projectTest() {
	flags := flag.NewFlagSet("svcd", flag.ExitOnError)
	pattern := flags.String("run", "", "")
	if len(os.Args) < 3 || flags.Parse(os.Args[3:]) != nil {
		os.Exit(2)
	}
	dir, entry, err := trial.Locate(os.Args[2])
	if err == nil {
		err = trial.Run(context.Background(), trial.Options{
			Dir: dir, Entry: entry, Run: regexp.MustCompile(*pattern), Emit: func(e report.Event) error { return json.NewEncoder(os.Stdout).Encode(e) },
		})
	}
	if err != nil {
		panic(err)
	}
}

// desk is where a reader sits: a directory like that of the repository, and a service as make run has it.
type desk struct {
	t        *testing.T
	dir, url string
}

// newDesk serves the projects below a new directory, with the admin token where make run has it.
func newDesk(t *testing.T) desk {
	t.Helper()
	return newDeskWatching(t, controllers.WatchOff)
}

// newDeskWatching is newDesk with a service that watches the files.
func newDeskWatching(t *testing.T, mode controllers.WatchMode) desk {
	t.Helper()
	return newDeskWith(t, mode, func(*app.Config) {})
}

// newDeskWith is newDeskWatching with settings of its own.
func newDeskWith(t *testing.T, mode controllers.WatchMode, change func(*app.Config)) desk {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	const token = "0123456789abcdef-docs"
	dir := t.TempDir()
	data, projects := filepath.Join(dir, "data"), filepath.Join(dir, "projects")
	writeFiles(t, dir, map[string]string{"data/admin.token": token + "\n"})
	if err := os.MkdirAll(projects, 0o700); err != nil {
		t.Fatal(err)
	}
	config := app.Config{
		MCP:  app.MCP{Enabled: true},
		Host: "127.0.0.1", MaxBodySize: 1 << 20, AdminToken: token, JWTTTL: time.Hour,
		DataDir: data, ProjectsDir: projects, Watch: mode,
		Fronts:        map[string]string{"blog.localhost": "blog", "shop.localhost": "shop"},
		ShutdownGrace: time.Second, Version: "test", Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		Env: func(string) (string, bool) { return "", false }, Judge: trial.Judge{}, OnFatal: func(err error) { t.Error(err) },
		PasswordCost: auth.Params{Memory: 64, Time: 1, Threads: 1},
	}
	change(&config)
	a, err := app.New(t.Context(), config)
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
	return desk{t: t, dir: dir, url: "http://" + a.Addr()}
}

// register has a project below projects served.
func (d desk) register(name string) {
	d.t.Helper()
	d.run("svcctl project register " + name + " && svcctl project status " + name + " --wait --timeout 30s")
}

// sample has a sample project served, with the content of some collections.
func (d desk) sample(name string, collections ...string) {
	d.t.Helper()
	if err := os.CopyFS(filepath.Join(d.dir, "projects", name), os.DirFS(filepath.Join("..", "projects", name))); err != nil {
		d.t.Fatal(err)
	}
	d.register(name)
	for _, c := range collections {
		d.run("for file in projects/" + name + "/content/*-" + c + ".ndjson; do svcctl doc import " + name + " " + c + ` -f "$file"; done`)
	}
}

// run runs lines one after the other. Every one of them has to succeed, and no answer may be a refusal. svcctl talks to the
// service as its administrator where the lines don't say another.
func (d desk) run(lines string) (printed string) {
	d.t.Helper()
	sh := exec.CommandContext(d.t.Context(), "sh", "-c", "set -eux\n"+strings.ReplaceAll(lines, "http://127.0.0.1:8080", d.url))
	sh.Dir = d.dir
	sh.Env = append(os.Environ(), "HOME="+d.dir, "SVCCTL_CONFIG="+filepath.Join(d.dir, "none.yaml"),
		"SVCCTL_SERVER="+d.url, "SVCCTL_ADMIN_TOKEN_FILE="+filepath.Join(d.dir, "data", "admin.token"))
	out, err := sh.CombinedOutput()
	if err != nil {
		d.t.Fatalf("%v\n%s", err, out)
	}
	for _, refused := range []string{`"title":"Forbidden"`, `"title":"Bad Request"`, `"title":"Not Found"`} {
		if strings.Contains(string(out), refused) {
			d.t.Errorf("a request is refused:\n%s", out)
		}
	}
	return string(out)
}

// prints fails unless what lines printed has all of these.
func (d desk) prints(printed string, wants ...string) {
	d.t.Helper()
	for _, want := range wants {
		if !strings.Contains(printed, want) {
			d.t.Errorf("%q is not in what the lines print:\n%s", want, printed)
		}
	}
}

// blocks gives the blocks of a language in a document.
func blocks(t *testing.T, doc, language string) []string {
	t.Helper()
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, block := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?\n)```\n").FindAllStringSubmatch(string(text), -1) {
		out = append(out, block[1])
	}
	if len(out) == 0 {
		t.Fatalf("%s has no block of %s", doc, language)
	}
	return out
}

// writeFiles writes files below a directory, by their path in it.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
