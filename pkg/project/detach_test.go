package project_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
)

// TestDetachForeign: a config of which nobody knows who has written it is told nothing of this service.
func TestDetachForeign(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), []byte("told"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := &project.Loader{Env: func(name string) (string, bool) { return "told", name == "SECRET" }}
	for name, tt := range map[string]struct {
		value   string
		foreign bool
		code    string
	}{
		"plain, foreign":               {"a shop", true, ""},
		"variable":                     {"${env:SECRET}", false, ""},
		"variable, foreign":            {"${env:SECRET}", true, "config_foreign"},
		"file":                         {"${file:x}", false, ""},
		"file, foreign":                {"${file:x}", true, "config_foreign"},
		"file of the machine, foreign": {"${file:/run/secrets/x}", true, "config_foreign"},
	} {
		config := "namespace: shop\ncollections:\n  - {name: things, permissions: {public: {methods: {get: true}}, user: {methods: {}}}, fields: [{name: n, type: string, meta: {label: \"" + tt.value + "\"}}]}\n"
		d, err := l.Detach(project.Bundle{Entry: "project.yaml", Files: map[string][]byte{"project.yaml": []byte(config)}}, "copy", dir, tt.foreign)
		code := ""
		if e := errs.From(err); e != nil {
			code = e.Code
		}
		if code != tt.code || (d == nil) != (tt.code != "") {
			t.Errorf("%s: %v, %v, want %q", name, d, err, tt.code)
		}
	}
}

// TestDetachFiles: what the loader reads of a bundle comes along, and nothing else; what is no config is not changed.
func TestDetachFiles(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{}
	for name, text := range map[string]string{
		"project.yaml":             "namespace: shop\nadmin: {tokens: [{value: secret-token}]}\ncollections: [./items/*.yaml]\n",
		"items/items.yaml":         "name: items\nfields: []\npermissions: {public: {methods: {get: true}}, user: {methods: {}}, \"team:eds\": {methods: {put: true}}}\nhooks: {post: {create: {type: javascript, file: ../hook.js}}}\n",
		"hook.js":                  "import data from './data.json'; import help from './lib/help.js'; export default () => help(data);\n",
		"lib/help.js":              "export default (x) => x;\n",
		"data.json":                `{"token:abc": 1}`,
		"lib/spare.js":             "export default 1;\n",
		"README.md":                "# a shop\n",
		"spare.yaml":               "permissions: {\"token:abc\": {}}\n",
		"broken.json":              "{",
		"search/items.golden.yaml": "collection: items\n",
		".ssh/authorized_keys":     "ssh-rsa\n",
		".git/hooks/post-checkout": "#!/bin/sh\n",
	} {
		files[name] = []byte(text)
	}
	d, err := (&project.Loader{}).Detach(project.Bundle{Entry: "project.yaml", Files: files}, "copy", "", true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"data.json", "hook.js", "items/items.yaml", "lib/help.js", "project.yaml"}, slices.Sorted(maps.Keys(d.Bundle.Files))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{".git/hooks/post-checkout", ".ssh/authorized_keys", "README.md", "broken.json", "lib/spare.js", "search/items.golden.yaml", "spare.yaml"}, d.Unread); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(string(files["data.json"]), string(d.Bundle.Files["data.json"])); diff != "" {
		t.Error(diff)
	}
	if d.Tokens != 1 || len(d.Secrets) > 0 {
		t.Errorf("%d tokens, secrets %v", d.Tokens, d.Secrets)
	}
}

// TestNamed: whom a config gives rights by name is known, wherever it does.
func TestNamed(t *testing.T) {
	t.Parallel()
	const sets = "public: {methods: {}}, user: {methods: {}}"
	p, problems := project.Bundle{Entry: "project.yaml", Files: map[string][]byte{"project.yaml": []byte(`
namespace: shop
snapshots:
  - {name: daily, permissions: [ann, eds, project.snapshot]}
  - {name: weekly, permissions: [ann]}
collections:
  - {name: a, fields: [], permissions: {` + sets + `, "team:eds": {methods: {put: true}}, "token:abcdef": {methods: {}}}}
  - {name: b, fields: [], permissions: {` + sets + `, "team:eds": {methods: {get: true}}, "team:all": {methods: {get: true}}}}
actions:
  - {name: publish, permissions: {` + sets + `, "team:press": {methods: {post: true}}}, hooks: {handle: {type: javascript, file: ./a.js}}}
`), "a.js": []byte("export default () => 1;\n")}}.Load("", nil)
	if problems.Err() {
		t.Fatal(problems)
	}
	want := []project.Named{
		{Kind: project.NamedScope, Name: "project.snapshot", Where: []string{"snapshots daily"}},
		{Kind: project.NamedTeam, Name: "all", Where: []string{"collection b"}},
		{Kind: project.NamedTeam, Name: "eds", Where: []string{"collection a", "collection b"}},
		{Kind: project.NamedTeam, Name: "press", Where: []string{"action publish"}},
		{Kind: project.NamedHolder, Name: "ann", Where: []string{"snapshots daily", "snapshots weekly"}},
		{Kind: project.NamedHolder, Name: "eds", Where: []string{"snapshots daily"}},
	}
	if diff := cmp.Diff(want, p.Named()); diff != "" {
		t.Error(diff)
	}
}
