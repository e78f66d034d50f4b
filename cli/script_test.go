package cli_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/term"

	"github.com/svcctl/svc/cli"
	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/auth"
	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/store/mongotest"
	"github.com/svcctl/svc/pkg/trial"
	"github.com/svcctl/svc/pkg/trial/report"
)

// released is the variable with a directory that has svcctl as it is released, of version test. scripts/test.sh sets it, and says why. Scripts on
// MongoDB, and TestTUI, run what has the race detector all the same.
const released = "SVCCTL_RELEASED"

// svcctl is the program, as testscript runs it, unless there is one as it is released.
func svcctl() {
	ctx, stop := cli.Signals()
	tty := func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
	width := func(f *os.File) int {
		columns, _, _ := term.GetSize(int(f.Fd())) // 0 when it is no terminal
		return columns
	}
	code := cli.Run(ctx, &command.State{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, InTTY: tty(os.Stdin), OutTTY: tty(os.Stdout), ErrTTY: tty(os.Stderr),
		OutWidth: width(os.Stdout), ErrWidth: width(os.Stderr), Env: os.LookupEnv, Home: os.Getenv("HOME"), Now: time.Now, Version: "test",
		ReadSecret: func(ask func()) (string, error) { return command.ReadSecret(ctx, os.Stdin, ask) },
	}, os.Args[1:])
	stop()
	os.Exit(code)
}

func TestMain(m *testing.M) {
	endAtOnce()
	testscript.Main(m, map[string]func(){"svcctl": svcctl, "svcd": svcd})
}

// endAtOnce has the programs that a test starts end when they are done, as they do without the race detector, which
// holds each for a second: there are some two thousand. A race that one has had is reported all the same, and fails it.
func endAtOnce() {
	if err := os.Setenv(raceOptions, "atexit_sleep_ms=0 "+os.Getenv(raceOptions)); err != nil {
		panic(err)
	}
}

// raceOptions is the variable with the options of the race detector.
const raceOptions = "GORACE"

// svcd is the part of svcd that svcctl runs: svcd project-test DIR. cmd/svcd has a test of the whole.
func svcd() {
	flags := flag.NewFlagSet("svcd", flag.ExitOnError)
	pattern := flags.String("run", "", "")
	if len(os.Args) < 3 || flags.Parse(os.Args[3:]) != nil {
		os.Exit(2)
	}
	dir, entry, err := trial.Locate(os.Args[2])
	o := trial.Options{Dir: dir, Entry: entry, Emit: func(e report.Event) error { return json.NewEncoder(os.Stdout).Encode(e) }}
	if *pattern != "" && err == nil {
		o.Run, err = regexp.Compile(*pattern)
	}
	if err == nil {
		err = trial.Run(context.Background(), o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "svcd:", err)
		os.Exit(2)
	}
}

const adminToken = "script-admin-token"

// TestScripts runs each script as a user would work, against a service of its own that serves the projects in the
// script's projects directory: all of them on the embedded store, and those on MongoDB that are about what a store holds; with SOAK set all there, too.
// What svcctl knows of a store it has by the API, of which pkg/app tests that it is the same on both.
func TestScripts(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		runScripts(t, scriptFiles(t), func(env *testscript.Env) (string, error) {
			if dir := os.Getenv(released); dir != "" {
				env.Setenv("PATH", dir+string(filepath.ListSeparator)+env.Getenv("PATH"))
			}
			return "", nil
		})
	})
	t.Run("mongodb", func(t *testing.T) {
		t.Parallel()
		mongotest.URI(t) // says loudly when there is none
		names := []string{"audit", "doc", "index", "job", "org", "plan", "search", "snapshot", "stream", "transfer"}
		if os.Getenv("SOAK") != "" {
			names = nil
		}
		runScripts(t, scriptFiles(t, names...), func(env *testscript.Env) (string, error) {
			server, err := mongotest.Start(context.Background()) // of its own: users and projects are the whole server's
			if err != nil {
				return "", err
			}
			env.Defer(func() {
				if err := server.Stop(); err != nil {
					env.T().Log("the database:", err)
				}
			})
			return server.URI, nil
		})
	})
}

// scriptFiles are the scripts of some names, or all.
func scriptFiles(t *testing.T, names ...string) (files []string) {
	t.Helper()
	const dir = "testdata/script/"
	if len(names) > 0 {
		for _, name := range names {
			files = append(files, dir+name+".txtar")
		}
		return files
	}
	files, err := filepath.Glob(dir + "*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no scripts, %v", err)
	}
	return files
}

// runScripts runs scripts on the store whose URI storeURI gives.
func runScripts(t *testing.T, files []string, storeURI func(env *testscript.Env) (string, error)) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Files:               files,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			if err := os.WriteFile(filepath.Join(env.WorkDir, "admin.token"), []byte(adminToken+"\n"), 0o600); err != nil {
				return err
			}
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv(raceOptions, os.Getenv(raceOptions)) // a script has no variables but these
			env.Setenv("NO_SERVER", "http://127.0.0.1:1")   // nothing listens on port 1
			uri, err := storeURI(env)
			if err != nil {
				return err
			}
			server, err := startService(env, uri)
			if err != nil {
				return err
			}
			env.Setenv("SVCCTL_SERVER", server)
			u, err := url.Parse(server)
			env.Setenv("SERVER_HOST", u.Host)
			return err
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":      exits,
			"terminal":   terminal,
			"eventually": eventually,
			"capture":    capture,
			"repeat":     repeat,
			"untimed":    untimed,
		},
	})
}

// startService serves the script's projects until the script ends.
func startService(env *testscript.Env, storeURI string) (address string, err error) {
	return serveProjects(env.WorkDir, storeURI, env.Defer, env.T().Log)
}

// serveProjects serves the projects in a directory until what it defers is called.
func serveProjects(dir, storeURI string, later func(func()), log func(...any)) (address string, err error) {
	projects := filepath.Join(dir, "projects")
	if err := os.MkdirAll(projects, 0o755); err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancel(context.Background())
	a, err := app.New(ctx, app.Config{
		MCP:  app.MCP{Enabled: true},
		Host: "127.0.0.1", MaxBodySize: 32 << 20, AdminToken: adminToken, JWTTTL: time.Hour,
		DataDir: filepath.Join(dir, ".data"), ProjectsDir: projects, Watch: controllers.WatchOff, StoreURI: storeURI,
		ShutdownGrace: time.Second, Version: "v0.0.0-test", Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		Env: func(string) (string, bool) { return "", false }, Judge: trial.Judge{},
		Embedding: embedding.Config{
			Providers: []embedding.ProviderConfig{{Name: "demo", Type: "hash"}, {Name: "away", Type: "hash", BaseURL: "http://127.0.0.1:1", Dimensions: -1}},
			Groups:    []embedding.GroupConfig{{Name: "texts", Members: []string{"demo"}}, {Name: "lost", Members: []string{"demo", "away"}}},
		},
		OnFatal: func(err error) { log("the store:", err) }, PasswordCost: auth.Params{Memory: 64, Time: 1, Threads: 1},
	})
	if err != nil {
		cancel()
		return "", err
	}
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	later(func() {
		cancel()
		if err := <-done; err != nil {
			log("the service:", err)
		}
	})
	return "http://" + a.Addr(), nil
}

// exits runs a program and checks its exit code, as in: exits 3 svcctl version.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG…")
	}
	want := args[0]
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != want {
		ts.Fatalf("exit code %s, want %s", got, want)
	}
}

// eventually runs a program until so many lines of its stdout fit a pattern, for what is done soon: eventually 1 '^snapshot/' svcctl snapshot list.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: eventually COUNT PATTERN PROGRAM ARG…")
	}
	pattern := regexp.MustCompile("(?m)" + args[1])
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		ts.Check(ts.Exec(args[2], args[3:]...))
		n := len(pattern.FindAllString(ts.ReadFile("stdout"), -1))
		if strconv.Itoa(n) == args[0] {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%d lines fit %s, want %s", n, args[1], args[0])
		}
	}
}

// capture keeps the last stdout in a variable: capture NAME.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: capture NAME")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// repeat writes a line many times, with its number in place of {}: repeat N FILE LINE.
func repeat(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: repeat N FILE LINE")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(args[2], "{}", strconv.Itoa(i+1)) + "\n")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(b.String()), 0o644))
}

// untimed writes a file without the times in it, which differ from run to run: untimed FILE NEW.
func untimed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: untimed FILE NEW")
	}
	text := regexp.MustCompile(`\([0-9]+ms\)|\b[0-9]+\.[0-9]s\b`).ReplaceAllString(ts.ReadFile(args[0]), "(time)")
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o644))
}
