//go:build unix

package cli_test

import (
	"flag"
	"image/color"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/charmbracelet/x/vt"

	"github.com/svcctl/svc/cli/tui/frame/frametest"
)

var pictures = flag.String("pictures", "", "write the pictures of the documentation into this folder")

// scene is a picture of the documentation: what is typed into a terminal of a size, and what is seen then.
type scene struct {
	name, title   string
	width, height int
	run           func(t *testing.T, term *frametest.Terminal)
}

// The prompt of the shell in the pictures, green.
const prompt = "\x1b[32m$\x1b[0m "

var scenes = []scene{
	{"svcctl", "svcctl", 130, 34, func(_ *testing.T, term *frametest.Terminal) {
		for _, step := range []struct{ types, shows string }{
			{"svcctl doc list blog articles --sort=-publishedAt --limit 4 --select title,section,author", "AUTHOR"},
			{"sed -i.orig 's/position, title/positon, title/' projects/blog/pages.yaml   # break a file", ""},
			{"svcctl apply projects/blog", "positon"},
			{"mv projects/blog/pages.yaml.orig projects/blog/pages.yaml", ""},
			{"svcctl backup create blog", "unverified"},
		} {
			term.Press(step.types + "\r")
			term.Shows(step.types, step.shows, "\n$")
		}
	}},
	{"tui-project", "svcctl tui", 112, 30, func(_ *testing.T, term *frametest.Terminal) {
		term.Press("exec svcctl tui blog\r")
		term.Shows("Projects › blog", "Ready", "SearchReady", "Events, the latest first")
	}},
	{"tui-documents", "svcctl tui", 112, 30, func(_ *testing.T, term *frametest.Terminal) {
		term.Press("exec svcctl tui blog\r")
		term.Shows("Projects › blog", "Events, the latest first")
		term.Press("3")
		term.Shows("Projects › blog › Collections", "articles")
		term.Press("\r")
		term.Shows("Collections › articles", "240", "live", "Record")
	}},
	{"tui-snapshots", "svcctl tui", 112, 30, func(_ *testing.T, term *frametest.Terminal) {
		term.Press("exec svcctl tui blog\r")
		term.Shows("Projects › blog", "Events, the latest first")
		term.Press("6")
		term.Shows("Projects › blog › Snapshots")
		term.Press("s")
		term.Shows("By which profile?", "▸ backup") // the list of runs has one, too
		term.Press("\r")
		term.Shows("succeeded", "100%")
	}},
	{"tui-query", "svcctl tui", 112, 30, func(_ *testing.T, term *frametest.Terminal) {
		term.Press("exec svcctl tui blog\r")
		term.Shows("Projects › blog", "Events, the latest first")
		term.Press("7")
		term.Shows("Projects › blog › Search", "▸ articles/main", "ready")
		term.Press("f")
		term.Shows("Query articles/main")
		term.Press("garden gate\r")
		term.Shows("> garden gate", "that are found", "▸   1")
	}},
}

// TestPictures plays the scenes of the pictures in README and docs, which make pictures writes.
func TestPictures(t *testing.T) {
	t.Parallel()
	dir, service := serveBlog(t)
	for _, s := range scenes { // one after the other, as some change what the next ones see
		t.Run(s.name, func(t *testing.T) {
			term := frametest.NewTerminal(t, s.width, s.height, color.Black)
			cmd := exec.CommandContext(t.Context(), "sh")
			cmd.Dir = dir
			cmd.Env = []string{
				"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TERM=xterm-256color", "PS1=" + prompt, raceOptions + "=" + os.Getenv(raceOptions),
				"SVCCTL_ADMIN_TOKEN=" + adminToken, "SVCCTL_SERVER=" + service,
			}
			term.Start(cmd)
			term.Shows("$")
			s.run(t, term)
			if *pictures == "" {
				return
			}
			var svg string
			term.Until("a picture", func(screen *vt.Emulator) bool {
				svg = frametest.SVG(screen, s.title)
				return true
			})
			if err := os.WriteFile(filepath.Join(*pictures, s.name+".svg"), []byte(svg), 0o644); err != nil { //nolint:gosec // a picture is for everybody
				t.Error(err)
			}
		})
	}
}
