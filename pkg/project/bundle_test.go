package project_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/svcctl/svc/pkg/project"
)

func TestBundleCompilesToTheSameProject(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("project.yaml", "namespace: b\ncollections: [notes.yaml]\nadmin: {tokens: ['${file:token}', '${env:T}']}\n")
	write("notes.yaml", "name: notes\npermissions: {public: {methods: {get: true}}, user: {methods: {}}}\n")
	write("token", "from a file\n")
	env := func(name string) (string, bool) { return "from " + name, name == "T" }
	p, problems := project.Load(dir, "project.yaml", env)
	if problems.Err() {
		t.Fatal(problems)
	}
	if got := len(p.Bundle.Files); got != 2 || p.Bundle.Size() == 0 {
		t.Errorf("the bundle has %d files, want the two of the config", got)
	}
	write("notes.yaml", "name: [") // the files are broken, the bundle is not
	again, problems := p.Bundle.Load(dir, env)
	if problems.Err() {
		t.Fatal(problems)
	}
	if again.Revision != p.Revision || again.Collections["notes"] == nil {
		t.Errorf("revision %s, want %s", again.Revision, p.Revision)
	}
	if _, problems := p.Bundle.Load(filepath.Join(dir, "gone"), env); !problems.Err() {
		t.Error("a secret that is gone is no problem")
	}
}

func TestConfigsCannotReadTheServicesOwnSecretFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"project.yaml": "namespace: b\nmeta: {label: '${file:token}'}\n", "own": "secret",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(dir, "own"), filepath.Join(dir, "token")); err != nil { // under another name, too
		t.Fatal(err)
	}
	env := func(string) (string, bool) { return "", false }
	if _, problems := project.Load(dir, "project.yaml", env); problems.Err() {
		t.Fatal(problems)
	}
	p, problems := project.Load(dir, "project.yaml", env, filepath.Join(dir, "own"))
	if !problems.Err() {
		t.Errorf("the file was read: %v", p.Config.Meta.Label)
	}
}

// What was substituted is taken out of texts whole, also where it is part of something else that was, or stands in quotes.
func TestRedact(t *testing.T) {
	t.Parallel()
	env := map[string]string{"A": "hunter", "B": "hunter2secret", "C": "with \"quotes\"\nand lines"}
	p, problems := project.Bundle{Entry: "project.yaml", Files: map[string][]byte{
		"project.yaml": []byte("namespace: b\nmeta: {agent: {a: '${env:A}', b: '${env:B}', c: '${env:C}'}}\n"),
	}}.Load(t.TempDir(), func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if problems.Err() {
		t.Fatal(problems)
	}
	for _, value := range env {
		for _, text := range []string{value, strconv.Quote(value)} {
			if got := p.Redact("is " + text); got != "is ***" && got != `is "***"` {
				t.Errorf("%q is shown as %q", text, got)
			}
		}
	}
}
