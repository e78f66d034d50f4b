package project_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
	if c, ok := p.Bundle.Collections(); !ok || c["notes"] == nil || len(c) != 1 { // whatever the tokens are
		t.Errorf("its collections are %v, %v", c, ok)
	}
	if _, ok := (project.Bundle{Entry: "project.yaml", Files: map[string][]byte{"project.yaml": []byte("namespace: [")}}).Collections(); ok {
		t.Error("what can't be read has collections")
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

// Who may send a config to be planned learns nothing of its secrets by where else they are put: a default that a pattern of the
// sender's has to fit would tell them letter by letter.
func TestS46UploadedConfigsAskNothingAboutSecrets(t *testing.T) {
	t.Parallel()
	const secret = "hunter2secret"
	env := func(name string) (string, bool) { return secret, name == "TOKEN" || name == "LABEL" }
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pin"), []byte("hunter2pin"), 0o600); err != nil {
		t.Fatal(err)
	}
	const admin = "namespace: b\nmeta: {agent: {a: '${env:LABEL}'}}\nadmin: {tokens: [{name: ci, value: '${env:TOKEN}'}, {name: pin, value: &t '${file:pin}'}]}\n"
	load := func(text string) project.Bundle {
		return project.Bundle{Entry: "project.yaml", Files: map[string][]byte{"project.yaml": []byte(text)}}
	}
	served, problems := load(admin).Load(dir, env)
	if problems.Err() {
		t.Fatal(problems)
	}
	field := func(pattern, value string) string {
		return admin + "collections:\n- name: c\n  permissions: {public: {methods: {}}, user: {methods: {}}}\n" +
			"  fields: [{name: f, type: string, validator: {pattern: '" + pattern + "'}, meta: {defaultValue: " + value + "}}]\n"
	}
	tell := func(text string) string {
		p, problems := (&project.Loader{Env: env}).LoadUploaded(load(text), dir, served)
		revision := ""
		if p == nil {
			revision = "none"
		}
		return revision + " " + fmt.Sprint(problems)
	}
	for name, value := range map[string]string{
		"a variable": "'${env:TOKEN}'", "a file": "'${file:pin}'", "an alias": "*t", "another free member": "'${env:LABEL}'",
		"a part": "'h${env:TOKEN}'",
	} {
		right, wrong := tell(field("^h?hunter2", value)), tell(field("^h?hunter3", value))
		if right != strings.ReplaceAll(wrong, "hunter3", "hunter2") {
			t.Errorf("%s is judged by what it stands for: %q, %q", name, right, wrong)
		}
	}
	p, problems := (&project.Loader{Env: env}).LoadUploaded(load(admin), dir, served)
	if problems.Err() || p.Revision != served.Revision {
		t.Errorf("the config that is served is another one when it is sent: %v", problems)
	}
	moved := strings.Replace(admin, "meta: {agent: {a: '${env:LABEL}'}}", "meta: {agent: {b: '${env:LABEL}'}}", 1)
	if p, problems := (&project.Loader{Env: env}).LoadUploaded(load(moved), dir, served); problems.Err() || p.Redact(secret) != "***" {
		t.Errorf("what stays where it was is not known any more: %v", problems)
	}
}
