//go:build unix

package cli_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tmux is a terminal multiplexer with one pane, in which a shell runs: what people have their terminals in.
type tmux struct {
	t      *testing.T
	socket string
}

// startTmux starts one. Without the program, the test is skipped.
func startTmux(t *testing.T, width, height int, env ...string) tmux {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	dir, err := os.MkdirTemp("", "tmux") // the path of a socket may not be long
	if err != nil {
		t.Fatal(err)
	}
	x, rc := tmux{t, filepath.Join(dir, "s")}, filepath.Join(dir, "rc")
	if err := os.WriteFile(rc, []byte("PS1='shell>'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", x.socket, "kill-server").Run() // it may have ended
		_ = os.RemoveAll(dir)
	})
	cmd := exec.CommandContext(t.Context(), "tmux", "-u", "-S", x.socket, "-f", "/dev/null", "new-session", "-d", "-s", "svc", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), "sh -i")
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TERM=xterm-256color", "LC_ALL=C.UTF-8", "ENV=" + rc, raceOptions + "=" + os.Getenv(raceOptions)}, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v: %s", err, out)
	}
	x.shows("shell>")
	return x
}

func (x tmux) run(args ...string) string {
	x.t.Helper()
	out, err := exec.CommandContext(x.t.Context(), "tmux", append([]string{"-S", x.socket}, args...)...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

// types types text; keys presses keys by the names that tmux has for them.
func (x tmux) types(text string) { x.t.Helper(); x.run("send-keys", "-t", "svc", "-l", "--", text) }
func (x tmux) keys(names ...string) {
	x.t.Helper()
	x.run(append([]string{"send-keys", "-t", "svc"}, names...)...)
}

func (x tmux) resize(width, height int) {
	x.t.Helper()
	x.run("resize-window", "-t", "svc", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height))
}

// until waits until something holds of what the pane shows.
func (x tmux) until(what string, holds func(screen string) bool) {
	x.t.Helper()
	screen := ""
	for late := time.Now().Add(time.Minute); time.Now().Before(late); time.Sleep(20 * time.Millisecond) {
		if screen = x.run("capture-pane", "-p", "-t", "svc"); holds(screen) {
			return
		}
	}
	x.t.Fatalf("it never comes to this: %s\n%s", what, screen)
}

// shows waits until all of these are shown, each behind the one before.
func (x tmux) shows(wants ...string) {
	x.t.Helper()
	x.until(strings.Join(wants, ", "), func(rest string) bool {
		for _, want := range wants {
			var here bool
			if _, rest, here = strings.Cut(rest, want); !here {
				return false
			}
		}
		return true
	})
}

// TestTUIInTmux is a day's work with the terminal UI in tmux: all screens in terminals of three sizes, a snapshot, a record that is edited, a restore that
// takes that back, a suspension, and the end.
func TestTUIInTmux(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	dir, service := serveBlog(t)
	if err := os.CopyFS(filepath.Join(dir, "projects", "shop"), os.DirFS(filepath.Join("..", "projects", "shop"))); err != nil {
		t.Fatal(err)
	}
	p := start(t, service, "SVCCTL_ADMIN_TOKEN="+adminToken)
	if code := p.run(t, "apply", filepath.Join(dir, "projects", "shop"), "--timeout", "60s"); code != 0 {
		t.Fatalf("exit code %d: %s", code, p.err.String())
	}
	editor := filepath.Join(dir, "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nsed -i 's/^title: .*/title: Edited in tmux/' \"$1\"\n"), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	x := startTmux(t, 80, 24, "SVCCTL_SERVER="+service, "SVCCTL_ADMIN_TOKEN="+adminToken, "SVCCTL_EDITOR="+editor)
	x.types("svcctl tui")
	x.keys("Enter")
	x.shows("admin token  ready", "Projects", "▸ blog", "True", "shop", "? help  q quit")

	for _, size := range [][2]int{{80, 24}, {160, 50}, {40, 12}} {
		x.resize(size[0], size[1])
		for _, screen := range []struct {
			key   string
			wants []string
		}{
			{"1", []string{"\nProjects", "▸ blog", "shop"}},
			{"2", []string{"blog\n", "Phase Ready", "▸ Ready", "True"}},
			{"3", []string{"Collections\n", "▸ articles", "authors"}},
			{"4", []string{"articles\n", "240", "▸ "}},
			{"5", []string{"Jobs\n"}},
			{"6", []string{"Snapshots\n", "Runs, the latest first"}},
			{"7", []string{"Search\n", "▸ articles/main"}},
			{"8", []string{"Tokens and users\n", "Users"}},
			{"9", []string{"Audit\n"}},
			{"0", []string{"Events\n", "Serving"}},
		} {
			x.types(screen.key)
			x.shows(append(screen.wants, "? help  q quit")...)
			if screen.key == "8" { // which is of no project: what follows is of one
				x.keys("Escape")
				x.shows("▸ blog")
			}
		}
		x.types("1")
		x.shows("\nProjects", "▸ blog")
	}

	x.resize(80, 24)
	x.types("v")
	x.shows("Validate blog\n", "The files of blog are valid", "a reload would change nothing")
	x.types("D")
	x.shows("Diff blog\n", "Nothing: the files are what is served.")
	x.types("2")
	x.shows("Projects › blog\n", "Conditions")
	x.keys("Tab")
	x.shows("Tree\n", "▸ project/blog", "collection/articles", "index/", "ready")
	x.keys("Tab")
	x.shows("Projects › blog\n", "Conditions")

	x.resize(160, 50)
	x.types("6")
	x.shows("Projects › blog › Snapshots\n", "none yet: s takes a snapshot")
	x.types("s")
	x.shows("By which profile?", "▸ backup")
	x.keys("Enter")
	x.shows("▸", "backup", "Backup", "collections", "media") // as it goes on
	x.shows("▸", "backup", "succeeded", "collections", "100%", "manifest", "100%", "esc closes")
	x.keys("Escape")
	x.shows("w watch the run")
	x.types("4") // of which collection?
	x.shows("error: which collection?", "hint: 3 shows those that there are")
	x.keys("Escape") // takes the error away alone
	x.until("the error goes", func(screen string) bool {
		return strings.Contains(screen, "Projects › blog › Snapshots\n") && !strings.Contains(screen, "error")
	})

	x.types(":documents articles")
	x.keys("Enter")
	title := ""
	x.until("there are records", func(screen string) bool {
		_, rest, _ := strings.Cut(screen, "live\n")
		_, rest, _ = strings.Cut(rest, "▸ ")
		title, _, _ = strings.Cut(rest, "  ")
		return title != ""
	})
	x.types("e")
	x.shows("▸ Edited in tmux", "saved")
	x.types("6")
	x.shows("Projects › blog › Snapshots\n", "▸", "unverified")
	x.types("R")
	x.shows("into blog:", "records of", "Type blog to restore.")
	x.types("shop")
	x.keys("Enter")
	x.shows("type blog to restore, esc goes back")
	x.keys("BSpace", "BSpace", "BSpace", "BSpace")
	x.types("blog")
	x.keys("Enter")
	x.shows("▸", "restore", "succeeded", "before-restore", "Restore of", "load", "100%", "swap", "esc closes")
	x.types(":documents articles")
	x.keys("Enter")
	x.shows("Collections › articles\n", "240", "live", "▸ "+title)

	x.keys("C-z")
	x.shows("svcctl tui", "\nshell>")
	x.types("echo a shell again")
	x.keys("Enter")
	x.shows("\na shell again")
	x.resize(80, 24)
	x.types("fg")
	x.keys("Enter")
	x.shows("Collections › articles", "? help  q quit")
	x.types("q")
	x.shows("shell>fg\nsvcctl tui\nshell>") // the screen of before is there again, and a new line
	x.types("echo left with $?")
	x.keys("Enter")
	x.shows("\na shell again", "\nleft with 0")
}

// TestSuspendedPassword: a shell that gets the terminal by Ctrl-Z at a question for a password has it show what is typed. Behind fg it shows nothing again.
func TestSuspendedPassword(t *testing.T) {
	t.Parallel()
	address := serve(t, answer(http.StatusUnauthorized, `{"status":401,"code":"login_failed","detail":"login failed"}`))
	x := startTmux(t, 80, 24, "SVCCTL_SERVER="+address)
	x.types("svcctl login ann")
	x.keys("Enter")
	const question = "Password for ann"
	x.shows(question)
	x.types("hidden-1")
	x.keys("C-z")
	x.until("the shell has the terminal again", func(screen string) bool { return strings.Count(screen, "shell>") == 2 })
	x.types("stty echo") // which other shells than this one do by themselves
	x.keys("Enter")
	x.until("it did that", func(screen string) bool { return strings.Count(screen, "shell>") == 3 })
	x.types("fg")
	x.keys("Enter")
	x.until("it asks again", func(screen string) bool { return strings.Count(screen, question) == 2 })
	x.types("hidden-2")
	x.keys("Enter")
	x.until("the login is refused", func(screen string) bool { return strings.Contains(screen, "login failed") })
	if screen := x.run("capture-pane", "-p", "-t", "svc"); strings.Contains(screen, "hidden") {
		t.Errorf("a password is shown: %s", screen)
	}
}
