package cli_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
)

// terminal runs a program in a terminal of 100 columns, checks its exit code, and writes what the terminal got to the file screen: terminal CODE INPUT
// PROGRAM ARG…, where INPUT is a file with what is typed, or - for nothing.
func terminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: terminal CODE INPUT PROGRAM ARG…")
	}
	path, err := exec.LookPath(args[2])
	ts.Check(err)
	cmd := exec.Command(path, args[3:]...) //nolint:noctx // it is killed when it takes too long, see below
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "WORK", "SVCCTL_SERVER", "SVCCTL_ADMIN_TOKEN_FILE", "NO_COLOR", "SVCCTL_COLOR", raceOptions} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	term := ts.Getenv("TERM")
	if term == "" {
		term = "xterm-256color"
	}
	cmd.Env = append(cmd.Env, "TERM="+term)
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: 100})
	ts.Check(err)
	if args[1] != "-" {
		_, err = io.WriteString(screen, ts.ReadFile(args[1]))
		ts.Check(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	out, _ := io.ReadAll(screen) // which ends with an error when the program has let go of it
	err = cmd.Wait()
	late.Stop()
	ts.Check(errors.Join(screen.Close(), os.WriteFile(ts.MkAbs("screen"), []byte(strings.ReplaceAll(string(out), "\r\n", "\n")), 0o600)))
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	ts.Logf("[screen]\n%q", out)
	if want := args[0]; strconv.Itoa(got) != want {
		ts.Fatalf("exit code %d, want %s", got, want)
	}
}
