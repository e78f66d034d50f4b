package cli_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/term"

	"github.com/svcctl/svc/cli/command"
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
func converse(screen io.ReadWriter, typed []string) (out []byte, err error) {
	chunk := make([]byte, 4096)
	for {
		n, err := screen.Read(chunk)
		out = append(out, chunk[:n]...)
		if err != nil { // the program has let go of it
			return out, nil
		}
		if text := string(out); len(typed) > 0 && (strings.HasSuffix(text, ": ") || strings.HasSuffix(text, "] ")) {
			if _, err := io.WriteString(screen, typed[0]); err != nil {
				return out, err
			}
			typed = typed[1:]
		}
	}
}

// Whoever interrupts the question for a password has a terminal that shows what they type, and so has whoever comes to it behind a hangup.
func TestInterruptedPassword(t *testing.T) {
	t.Parallel()
	for name, interrupt := range map[string]func(screen io.Writer, svcctl *os.Process) error{
		"Ctrl-C": func(screen io.Writer, _ *os.Process) error {
			_, err := io.WriteString(screen, "\x03")
			return err
		},
		"SIGTERM": func(_ io.Writer, svcctl *os.Process) error { return svcctl.Signal(syscall.SIGTERM) },
		"SIGHUP":  func(_ io.Writer, svcctl *os.Process) error { return svcctl.Signal(syscall.SIGHUP) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testInterruptedPassword(t, interrupt)
		})
	}
}

func testInterruptedPassword(t *testing.T, interrupt func(screen io.Writer, svcctl *os.Process) error) {
	t.Helper()
	path, err := exec.LookPath("svcctl")
	if err != nil {
		t.Fatal(err)
	}
	screen, inside, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	before, err := term.GetState(int(inside.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, "login", "ann")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "SVCCTL_SERVER=http://127.0.0.1:1", raceOptions + "=" + os.Getenv(raceOptions)}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inside, inside, inside
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	out, chunk := "", make([]byte, 4096)
	for !strings.HasSuffix(out, ": ") {
		n, err := screen.Read(chunk)
		if out += string(chunk[:n]); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
	}
	if err := interrupt(screen, cmd.Process); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != command.ExitInterrupted {
		t.Errorf("%v, %s", err, out)
	}
	if after, err := term.GetState(int(inside.Fd())); err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("the terminal is another one: %v", err)
	}
	if err := errors.Join(screen.Close(), inside.Close()); err != nil {
		t.Error(err)
	}
}

// A terminal that goes away ends svcctl, and leaves no part of a file behind; where its signal is ignored, as nohup has it, svcctl goes on.
func TestHangup(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("svcctl")
	if err != nil {
		t.Fatal(err)
	}
	const text = "the beginning, and the end"
	for _, nohup := range []bool{false, true} {
		t.Run("nohup "+strconv.FormatBool(nohup), func(t *testing.T) {
			t.Parallel()
			begun, goOn := make(chan struct{}), make(chan struct{})
			address := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", strconv.Itoa(len(text)))
				_, _ = io.WriteString(w, text[:9]) // svcctl may have gone
				_ = http.NewResponseController(w).Flush()
				close(begun)
				select {
				case <-goOn:
				case <-r.Context().Done():
				}
				_, _ = io.WriteString(w, text[9:])
			})
			dir := t.TempDir()
			args := []string{path, "asset", "get", "blog", "texts", "a.txt", "-f", filepath.Join(dir, "a.txt")}
			if nohup {
				args = append([]string{"sh", "-c", `trap "" HUP; exec "$@"`, "sh"}, args...)
			}
			cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "SVCCTL_SERVER=" + address, raceOptions + "=" + os.Getenv(raceOptions)}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			defer late.Stop()
			<-begun
			for files := 0; files == 0; time.Sleep(time.Millisecond) { // of which it has begun one
				entries, err := os.ReadDir(dir)
				if err != nil {
					t.Fatal(err)
				}
				files = len(entries)
			}
			if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			if nohup {
				close(goOn)
			}
			err := cmd.Wait()
			entries, readErr := os.ReadDir(dir)
			if readErr != nil {
				t.Fatal(readErr)
			}
			wantCode, wantFiles := command.ExitInterrupted, 0
			if nohup {
				wantCode, wantFiles = 0, 1
			}
			if code := cmd.ProcessState.ExitCode(); code != wantCode || len(entries) != wantFiles {
				t.Errorf("exit code %d, %v; there are %v", code, err, entries)
			}
		})
	}
}
