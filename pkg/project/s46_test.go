package project_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/project"
)

// TestS46ParseErrors: a file that is no config is not shown to whoever has it read as one.
func TestS46ParseErrors(t *testing.T) {
	t.Parallel()
	const secret = "hunter2secret"
	for name, content := range map[string]string{
		"environment":  "PASSWORD=" + secret + "\nTOKEN=" + secret + "\n",
		"users":        "root:x:0:0:" + secret + ":/root:/bin/sh\ndaemon:x:1:1:" + secret + "::/\n",
		"key":          "-----BEGIN PRIVATE KEY-----\n" + secret + "\n-----END PRIVATE KEY-----\n",
		"open bracket": "[" + secret,
		"open quote":   "\"" + secret,
		"tab":          "a: b\n\t" + secret + ": 1\n",
		"anchor":       "*" + secret,
		"tag":          "!!" + secret + " [",
		"indentation":  "a:\n  b: 1\n c: " + secret + "\n  d: [\n",
		"alias":        "a: &a [*" + secret + "]\n",
		"list":         "- " + secret + "\n- [" + secret + "\n",
		"words":        secret + "\n",
		"binary":       "\x00\x01" + secret,
		"no utf-8":     "a: \xff" + secret + "\n",
		"documents":    "---\n" + secret + "\n---\n" + secret + ": [\n",
	} {
		for _, ending := range []string{"yaml", "json"} {
			t.Run(name+" as "+ending, func(t *testing.T) {
				t.Parallel()
				dir := write(t, "-- project.yaml --\nnamespace: blog\ncollections: [c."+ending+"]\n-- c."+ending+" --\n"+content)
				p, problems := project.Load(dir, "project.yaml", nil)
				if p != nil || len(problems) == 0 {
					t.Fatalf("it loads: %v", problems)
				}
				if text := fmt.Sprint(problems); strings.Contains(text, secret) {
					t.Error(text)
				}
			})
		}
	}
}

// A pattern finds what is in the project's directory and is not hidden; what it finds that leads out is refused as any reference is.
func TestS46Patterns(t *testing.T) {
	t.Parallel()
	outside, dir := t.TempDir(), t.TempDir()
	collection := func(name string) string {
		return "name: " + name + "\npermissions: {public: {methods: {}}, user: {methods: {}}}\n"
	}
	put := func(root, name, text string) {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	put(outside, "secret.yaml", collection("secret"))
	put(dir, "project.yaml", "namespace: p\ncollections: [\"c/*.yaml\", \"*/*/d.yaml\"]\n")
	for name, file := range map[string]string{
		"a": "c/a.yaml", "hidden": "c/.hidden.yaml", "git": ".git/x/d.yaml", "data": "..data/x/d.yaml", "d": "more/x/d.yaml", "other": "more/x/other.yaml",
	} {
		put(dir, file, collection(name))
	}
	load := func() (names, problems []string) {
		p, found := project.Load(dir, "project.yaml", func(string) (string, bool) { return "", false })
		for _, problem := range found {
			problems = append(problems, problem.String())
		}
		if p != nil {
			names = slices.Sorted(maps.Keys(p.Collections))
		}
		return names, problems
	}
	if names, problems := load(); !slices.Equal(names, []string{"a", "d"}) || len(problems) > 0 {
		t.Errorf("%v, %s", names, problems)
	}
	if err := os.Symlink(filepath.Join(outside, "secret.yaml"), filepath.Join(dir, "c", "link.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, problems := load(); !slices.Equal(problems, []string{"project.yaml:2:15: collections[1]: \"c/link.yaml\" can't be read: it lies outside the project's directory"}) {
		t.Errorf("a link that leads out: %s", problems)
	}
}
