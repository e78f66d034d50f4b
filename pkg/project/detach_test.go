package project_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
		more    string
	}{
		"plain, foreign":                {"a shop", true, "", ""},
		"variable":                      {"${env:SECRET}", false, "", ""},
		"variable, foreign":             {"${env:SECRET}", true, "config_foreign", ""},
		"file":                          {"${file:x}", false, "", ""},
		"file, foreign":                 {"${file:x}", true, "config_foreign", ""},
		"file of the machine, foreign":  {"${file:/run/secrets/x}", true, "config_foreign", ""},
		"variables of scripts":          {"a shop", false, "", "hook: {env: [SECRET]}\n"},
		"variables of scripts, foreign": {"a shop", true, "config_foreign", "hook: {env: [SECRET]}\n"},
		"none of scripts, foreign":      {"a shop", true, "", "hook: {env: []}\n"},
	} {
		config := "namespace: shop\ncollections:\n  - {name: things, permissions: {public: {methods: {get: true}}, user: {methods: {}}}, fields: [{name: n, type: string, meta: {label: \"" + tt.value + "\"}}]}\n" + tt.more
		d, err := l.Detach(project.Bundle{Entry: "project.yaml", Files: map[string][]byte{"project.yaml": []byte(config)}}, "copy", dir, tt.foreign)
		code := ""
		if e := errs.From(err); e != nil {
			code = e.Code
		}
		if tt.code != "" && !strings.Contains(err.Error(), `"SECRET"`) && !strings.Contains(err.Error(), `x"`) {
			t.Errorf("%s: %v names nothing that it asks for", name, err)
		}
		if code != tt.code || (d == nil) != (tt.code != "") {
			t.Errorf("%s: %v, %v, want %q", name, d, err, tt.code)
		}
	}
}

// TestDetachAssets: a folder that can't be made beside the files of the config, or would make one public, is refused before anything is made.
func TestDetachAssets(t *testing.T) {
	t.Parallel()
	dir := write(t, "-- parts/key --\nk\n-- parts/other --\no\n")
	for at, want := range map[string]string{
		"public":                        "",
		"site/deep/er":                  "",
		"project.yaml":                  `"project.yaml" holds project.yaml, which the config is made of: every file of an asset is public, so give it a folder of its own`,
		"project.yaml/x":                `"project.yaml/x" lies in project.yaml, which is a file`,
		"parts":                         `"parts" holds parts/key, which the config is made of: every file of an asset is public, so give it a folder of its own`,
		"parts/key":                     `"parts/key" holds parts/key, which the config is made of: every file of an asset is public, so give it a folder of its own`,
		"parts/key/x":                   `"parts/key/x" lies in parts/key, which is a file`,
		"parts/other/x":                 `"parts/other/x" lies in parts/other, which is a file`,
		"parts/x":                       "",
		strings.Repeat("d", 255):        "",
		strings.Repeat("d", 256):        `"` + strings.Repeat("d", 256) + `" has a part that is longer than a name can be`,
		strings.Repeat("d/", 499) + "d": "",
		strings.Repeat("d/", 500) + "d": `"` + strings.Repeat("d/", 500) + `d" is longer than a path can be`,
	} {
		files := map[string][]byte{
			"project.yaml":     []byte("namespace: shop\nadmin: {tokens: [{value: secret-token-of-a-shop}]}\ncollections: [parts/items.yaml]\nassets: [{name: a, path: " + at + "}]\n"),
			"parts/items.yaml": []byte("name: items\nfields: [{name: n, type: string, meta: {label: \"${file:key}\"}}, {name: o, type: string, meta: {label: \"${file:other}\"}}]\npermissions: {public: {methods: {get: true}}, user: {methods: {}}}\n"),
		}
		d, err := (&project.Loader{}).Detach(project.Bundle{Entry: "project.yaml", Files: files}, "copy", dir, false)
		got := ""
		if config, ok := errors.AsType[*project.ConfigError](err); ok {
			got = config.Problems[0].Message
		} else if err != nil {
			got = err.Error()
		}
		if got != want || (d == nil) != (want != "") {
			t.Errorf("%.80s: %q, want %q", at, got, want)
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
