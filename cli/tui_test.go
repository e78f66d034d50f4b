//go:build unix

package cli_test

import (
	"errors"
	"image/color"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/vt"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/tui/frame/frametest"
)

// startTUI runs svcctl with arguments in a terminal of its own. end waits for its end, and gives its exit code.
func startTUI(t *testing.T, background color.Color, env []string, args ...string) (term *frametest.Terminal, cmd *exec.Cmd, end func() int) {
	t.Helper()
	path, err := exec.LookPath("svcctl")
	if err != nil {
		t.Fatal(err)
	}
	term = frametest.NewTerminal(t, 100, 30, background)
	cmd = exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TERM=xterm-256color", raceOptions + "=" + os.Getenv(raceOptions), "SVCCTL_ADMIN_TOKEN=" + adminToken,
	}, env...)
	term.Start(cmd)
	return term, cmd, func() int {
		t.Helper()
		err := cmd.Wait()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return exit.ExitCode()
		}
		if err != nil {
			t.Fatal(err)
		}
		return 0
	}
}

// serveBlog serves the sample project, with its articles, until the test ends. dir has it below projects.
func serveBlog(t *testing.T) (dir, service string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "projects", "blog"), os.DirFS(filepath.Join("..", "projects", "blog"))); err != nil {
		t.Fatal(err)
	}
	service, err := serveProjects(dir, "", t.Cleanup, t.Log)
	if err != nil {
		t.Fatal(err)
	}
	do := func(args ...string) {
		t.Helper()
		p := start(t, service, "SVCCTL_ADMIN_TOKEN="+adminToken)
		if code := p.run(t, args...); code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, p.err.String())
		}
	}
	do("project", "register", "blog")
	do("project", "status", "blog", "--wait", "--timeout", "60s")
	for _, file := range []string{"00-medialib", "01-authors", "02-articles"} {
		_, collection, _ := strings.Cut(file, "-")
		do("doc", "import", "blog", collection, "-f", filepath.Join(dir, "projects", "blog", "content", file+".ndjson"))
	}
	return dir, service
}

// TestTUI works with the sample project in a terminal, as a user would.
func TestTUI(t *testing.T) {
	t.Parallel()
	_, service := serveBlog(t)

	t.Run("searches", func(t *testing.T) {
		t.Parallel()
		term, _, end := startTUI(t, color.Black, []string{"SVCCTL_SERVER=" + service}, "tui")
		term.Shows(service, "v0.0.0-test", "admin token", "ready", "Projects", "▸ blog", "True", "Ready", "1/1")
		term.Press("\r")
		term.Shows("Projects › blog", "Phase Ready", "▸ Ready", "SearchReady", "True", "Events, the latest first", "generation 1 is served")
		term.Press("7")
		term.Shows("Projects › blog › Search", "▸ articles/main", "text", "ready", "240", "Embedding groups", "texts", "live")
		term.Press("r")
		term.Shows("Make the index of articles/main anew?")
		term.Press("y")
		term.Shows("Making articles/main anew", "succeeded", "100%", "240 of 240", "esc closes")
		term.Press("\x1b")
		term.Shows("w watch the run")
		term.Press("f")
		term.Shows("Query articles/main", "enter search")
		term.Press("garden gate\r")
		term.Shows("> garden gate", "1 to 20 of 87 that are found", "▸   1", "garden gate", "title: garden, share")
		term.Press("\r")
		term.Shows("How the score came to be: mode text", "What was found", "garden gate", "Record", `"title": `)
		term.PressAway("\x1a") // there is no shell to go back to, so it goes on
		term.Press("\x1b")
		term.Shows("▸   1")
		term.Resize(40, 20)
		term.Shows("› Query articles/main", "1 to 20 of 87", "? help  q quit")
		term.Press(":projects\r")
		term.Shows("Projects", "▸ blog", "True")
		term.Press("q")
		if code := end(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		term.Until("it leaves nothing behind", func(screen *vt.Emulator) bool {
			return strings.TrimSpace(screen.String()) == "" && !screen.IsAltScreen() && !screen.CursorHidden()
		})
	})
	t.Run("on a light background", func(t *testing.T) {
		t.Parallel()
		term, cmd, end := startTUI(t, color.White, []string{"SVCCTL_SERVER=" + service}, "tui", "blog")
		term.Shows("Projects › blog", "▸ Ready")
		term.Until("the path has the color for light backgrounds", func(screen *vt.Emulator) bool {
			cell := screen.CellAt(0, 1)
			if cell == nil || cell.Style.Fg == nil {
				return false
			}
			_, _, blue, _ := cell.Style.Fg.RGBA()
			return blue>>8 == 0xaf // of color 25
		})
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if code := end(); code != command.ExitInterrupted {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("nobody answers", func(t *testing.T) {
		t.Parallel()
		term, _, end := startTUI(t, color.Black, []string{"SVCCTL_SERVER=http://127.0.0.1:1", "NO_COLOR=1"}, "tui")
		term.Shows("no answer", "error, trying again in", "hint: is the service running there?")
		term.Press("\x03")
		if code := end(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}

const snapshotProject = `
namespace: blog
collections:
  - name: articles
    permissions: {public: {methods: {}}, user: {methods: {}}}
    fields: [{name: title, type: string}]
snapshots:
  - {name: daily, description: everything, collectionDedup: true}
`

// TestTUISnapshots takes, checks and restores a snapshot in a terminal.
func TestTUISnapshots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "projects", "blog"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "projects", "blog", "project.yaml"), []byte(snapshotProject), 0o600); err != nil {
		t.Fatal(err)
	}
	service, err := serveProjects(dir, "", t.Cleanup, t.Log)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"project register blog", "project status blog --wait --timeout 60s", `doc create blog articles -d {"title":"One"}`} {
		p := start(t, service, "SVCCTL_ADMIN_TOKEN="+adminToken)
		if code := p.run(t, strings.Fields(line)...); code != 0 {
			t.Fatalf("%s: exit code %d: %s", line, code, p.err.String())
		}
	}
	term, _, end := startTUI(t, color.Black, []string{"SVCCTL_SERVER=" + service}, "tui", "blog")
	term.Shows("Projects › blog", "▸ Ready")
	term.Press("6")
	term.Shows("Projects › blog › Snapshots", "none yet: s takes a snapshot")
	term.Press("s")
	term.Shows("By which profile?", "▸ daily", "everything")
	term.Press("\r")
	term.Shows("▸", "snapshot", "daily", "succeeded", "Snapshot by daily", "collections", "100%", "1 record", "media", "esc closes")
	term.Press("\x1b") // closes the run
	term.Shows("unverified", "w watch the run")
	term.Press("Gv")
	term.Shows("All its files are read.")
	term.Press("y")
	term.Shows("verified", "Check of", "verify", "100%", "esc closes")
	term.Press("GR")
	term.Shows("Type blog to restore.")
	term.Press("blog\r")
	term.Shows("restore", "succeeded", "before-restore", "Restore of", "load", "100%", "swap", "esc closes")
	term.Press("q")
	if code := end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
