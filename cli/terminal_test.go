package cli_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
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
	var typed []string
	if args[1] != "-" {
		typed = slices.Collect(strings.Lines(ts.ReadFile(args[1])))
	}
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	out, err := converse(screen, typed)
	ts.Check(err)
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

// converse reads what a terminal gets to its end, and types a line whenever a question stands there: before, it would be shown.
func converse(screen *os.File, typed []string) (out []byte, err error) {
	chunk := make([]byte, 4096)
	for {
		n, err := screen.Read(chunk)
		out = append(out, chunk[:n]...)
		if err != nil { // the program has let go of it
			return out, nil
		}
		if text := string(out); len(typed) > 0 && (strings.HasSuffix(text, ": ") || strings.HasSuffix(text, "] ")) {
			question := text[strings.LastIndexByte(text, '\n')+1:]
			for end := time.Now().Add(10 * time.Second); strings.HasPrefix(question, "Password") || strings.HasPrefix(question, "Again"); {
				if !echoes(screen) || time.Now().After(end) {
					break
				}
			}
			if _, err := io.WriteString(screen, typed[0]); err != nil {
				return out, err
			}
			typed = typed[1:]
		}
	}
}

// echoes says whether a terminal shows what is typed. A question is there a moment before that ends, which is too short for people.
func echoes(screen *os.File) bool {
	cmd := exec.Command("stty", "-a") //nolint:noctx // it ends at once
	cmd.Stdin = screen
	out, err := cmd.Output()
	return err == nil && strings.Contains(string(out), " echo ")
}
