//go:build unix

package cli_test

import (
	"image/color"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/vt"

	"github.com/svcctl/svc/pkg/client"
)

const recordsProject = `
namespace: blog
audit: {enabled: true}
collections:
  - name: articles
    permissions: {public: {methods: {}}, user: {methods: {get: true, post: true, put: true, delete: true}}}
    fields: [{name: title, type: string, validator: {required: true, min: 3}}, {name: views, type: number}]
jobs:
  - {type: javascript, file: jobs/count.js}
`

const countJob = `export default function (ctx) { ctx.log.info("counted the articles") }`

// TestTUIRecords works with records, jobs, the audit log, events and tokens in a terminal, with a real editor.
func TestTUIRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	project := filepath.Join(dir, "projects", "blog")
	for name, text := range map[string]string{"project.yaml": recordsProject, "jobs/count.js": countJob} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(project, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(project, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	service, err := serveProjects(dir, "", t.Cleanup, t.Log)
	if err != nil {
		t.Fatal(err)
	}
	do := func(line ...string) {
		t.Helper()
		p := start(t, service, "SVCCTL_ADMIN_TOKEN="+adminToken)
		if code := p.run(t, line...); code != 0 {
			t.Fatalf("%s: exit code %d: %s", line, code, p.err.String())
		}
	}
	do("project", "register", "blog")
	do("project", "status", "blog", "--wait", "--timeout", "60s")
	for _, title := range []string{"One", "Two", "Three"} {
		do("doc", "create", "blog", "articles", "-d", `{"title": "`+title+`"}`)
	}
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte("a-long-password"), 0o600); err != nil {
		t.Fatal(err)
	}
	do("user", "create", "ann", "--admin", "--password-file", password)
	c, err := client.New(client.Options{Server: service})
	if err != nil {
		t.Fatal(err)
	}
	login, err := c.Login(t.Context(), "ann", "a-long-password")
	if err != nil {
		t.Fatal(err)
	}
	editor := filepath.Join(dir, "editor")
	// What it is given is too short first, then right; of a new record it fills in the title. Interrupts that are typed meanwhile are not for svcctl.
	script := "#!/bin/sh\nkill -INT $PPID; sleep 0.1; kill -INT $PPID; sleep 0.1\nif grep -q 'is.*at least\\|too short\\|Not saved' \"$1\"; then sed -i 's/^title: O$/title: Edited/' \"$1\"\n" +
		"elif grep -q 'A new record' \"$1\"; then sed -i 's/^title: .*/title: Created/' \"$1\"\nelse sed -i 's/^title: One/title: O/' \"$1\"; fi\n"
	if err := os.WriteFile(editor, []byte(script), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	term, _, end := startTUI(t, color.Black, []string{"SVCCTL_SERVER=" + service, "SVCCTL_TOKEN=" + login.Token, "SVCCTL_ADMIN_TOKEN=", "SVCCTL_EDITOR=" + editor, "TMPDIR=" + t.TempDir()}, "tui", "blog")
	term.Shows("ann", "Projects › blog", "▸ Ready")
	term.Press("3")
	term.Shows("Projects › blog › Collections", "▸ articles", "3", "get (bulk)")
	term.Press("\r")
	term.Shows("all records", "3 of 3", "live", "▸ One", "Two", "Three", `"title": "One"`)
	term.PressAway("e") // and again, with what was wrong
	term.Shows("▸ Edited", "Two", "Three", "saved")
	term.PressAway("c")
	term.Shows("4 of 4", "Created", "created")
	do("doc", "create", "blog", "articles", "-d", `{"title": "Of somebody else"}`)
	term.Shows("5 of 5", "Of somebody else") // it is told of
	term.Press(`/{"title": "Two"}` + "\r")
	term.Shows(`filter {"title": "Two"}`, "1 of 1", "▸ Two")
	term.Press("\x1b")
	term.Shows("all records", "5 of 5", "▸ Edited")
	term.Press("  \x04")
	term.Shows("Delete 2 records of blog/articles", "Edited", "Two", "Type articles to delete.")
	term.Press("articles\r")
	term.Shows("3 of 3", "▸ Three", "2 records deleted")
	term.Press("5")
	term.Shows("Jobs", "▸ count", "by hand", "never")
	term.Press("x")
	term.Shows("Run count of blog now?")
	term.Press("y")
	term.Shows("▸ count", "succeeded")
	term.Press("\r")
	term.Shows("Jobs › count", "succeeded", "manual", "ann", "Log of", "counted the articles")
	term.Press("9")
	term.Shows("the log of the records of blog", "delete  articles/", "ann")
	term.Press("\t")
	term.Shows("the log of the service itself", "login")
	term.Press("0")
	term.Shows("events of blog", "Serving")
	term.Press("8")
	term.Shows("Personal access tokens", "none: c makes one", "Users", "▸ ann")
	term.Press("c")
	term.Shows("Make a token", "SCOPE", "project.read")
	term.Press("ci\t30d\tproject.re")
	term.Shows("▸ project.read")
	term.Press(" \r")
	term.Shows("The token ci is made.", "svc_pat_", "It ends:", "It may: project.read")
	value := ""
	term.Until("the value is shown", func(screen *vt.Emulator) bool {
		for line := range strings.Lines(screen.String()) {
			if text := strings.TrimSpace(line); strings.HasPrefix(text, "svc_pat_") {
				value = text
			}
		}
		return value != ""
	})
	if c, err = client.New(client.Options{Server: service, Token: value}); err != nil {
		t.Fatal(err)
	}
	if me, err := c.Me(t.Context()); err != nil || me.Username != "ann" || me.Kind != "pat" {
		t.Errorf("the token is of %+v, %v", me, err)
	}
	term.Press("\x1b")
	term.Until("the value is gone", func(screen *vt.Emulator) bool {
		return strings.Contains(screen.String(), "Personal access tokens") && !strings.Contains(screen.String(), "svc_pat_")
	})
	term.Press("g\x04")
	term.Shows("Revoke the token ci", "Type ci to revoke.")
	term.Press("ci\r")
	term.Shows("none: c makes one", "the token ci is revoked")
	if _, err := c.Me(t.Context()); err == nil {
		t.Error("the token still does")
	}
	term.Press("q")
	if code := end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
