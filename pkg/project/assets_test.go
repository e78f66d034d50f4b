package project_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/project"
)

// TestAssets: a folder that is not there is refused, and one that would make public what is not meant to be.
func TestAssets(t *testing.T) {
	t.Parallel()
	const files = `
-- public/logo.svg --
<svg/>
-- site/hooks/h.js --
module.exports = () => {}
-- site/lib/lib.js --
module.exports = 1
-- site/conf/a.yaml --
{name: a, permissions: {public: {methods: {}}, user: {methods: {}}}, hooks: {post: {bind: [{type: javascript, file: ../hooks/h.js}]}}}
-- site/keys/token --
secret-token
-- backup/daily/x --
x
-- .well-known/x --
x
-- shared/static.yaml --
{name: rel, path: ../public}
-- file --
x
`
	for list, want := range map[string]string{
		`[{name: a, path: public}]`:                          "",
		`[{name: a, path: public}, {name: b, path: public}]`: "",
		`[{name: a, path: ./public/}]`:                       "",
		`[shared/static.yaml]`:                               "",
		`[{name: a, path: link}]`:                            "",
		`[{name: a, path: none}]`:                            `assets[0].path: "none" is not there: make the folder, inside the project's directory`,
		`[{name: a, path: file}]`:                            `assets[0].path: "file" is no folder`,
		`[{name: a, path: ..}]`:                              `assets[0].path: ".." is no folder inside the project's directory`,
		`[{name: a, path: public/../../x}]`:                  `assets[0].path: "public/../../x" is no folder inside the project's directory`,
		`[{name: a, path: .}]`:                               `assets[0].path: "." is no folder inside the project's directory`,
		`[{name: a, path: /etc}]`:                            `assets[0].path: must be a relative path with forward slashes`,
		`[{name: a, path: out}]`:                             `assets[0].path: "out" lies outside the project's directory`,
		`[{name: a, path: .well-known}]`:                     `assets[0].path: ".well-known" is hidden by the dot that its name begins with, and hidden files are not served`,
		`[{name: a, path: site}]`:                            `assets[0].path: "site" holds site/keys/token, which the config is made of: every file of an asset is public, so give it a folder of its own`,
		`[{name: a, path: site/hooks}]`:                      `assets[0].path: "site/hooks" holds site/hooks/h.js, which the config is made of: every file of an asset is public, so give it a folder of its own`,
		`[{name: a, path: site/conf}]`:                       `assets[0].path: "site/conf" holds site/conf/a.yaml, which the config is made of: every file of an asset is public, so give it a folder of its own`,
		`[{name: a, path: hooks}]`:                           `assets[0].path: "hooks" holds site/hooks/h.js, which the config is made of: every file of an asset is public, so give it a folder of its own`,
		`[{name: a, path: site/keys}]`:                       `assets[0].path: "site/keys" holds site/keys/token, which the config is made of: every file of an asset is public, so give it a folder of its own`,
		`[{name: a, path: backup}]`:                          `assets[0].path: "backup" overlaps with snapshotPath, "backup/daily": every file of an asset is public, so give it a folder of its own`,
		`[{name: a, path: backup/daily/x}]`:                  `assets[0].path: "backup/daily/x" overlaps with snapshotPath, "backup/daily": every file of an asset is public, so give it a folder of its own`,
	} {
		dir := write(t, "-- project.yaml --\nnamespace: blog\nsnapshotPath: backup/daily\nadmin: {tokens: [{name: deploy, value: \"${file:site/keys/token}\"}]}\ncollections: [site/conf/a.yaml]\nassets: "+list+files)
		for name, target := range map[string]string{"link": "public", "out": "..", "hooks": "site/hooks"} {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Skip("no symbolic links here:", err)
			}
		}
		p, problems := project.Load(dir, "project.yaml", env)
		var got []string
		for _, problem := range problems {
			got = append(got, problem.Path+": "+problem.Message)
		}
		if strings.Join(got, "\n") != want || (p == nil) != (want != "") {
			t.Errorf("%s: %q, want %q", list, got, want)
		}
	}
}

// TestAssetsOfABundle: what was served is served again, also if the folder is gone meanwhile; and a project finds its assets.
func TestAssetsOfABundle(t *testing.T) {
	t.Parallel()
	dir := write(t, "-- project.yaml --\nnamespace: blog\nassets: [shared/static.yaml]\n-- shared/static.yaml --\n{name: static, path: ../public}\n-- public/a --\na\n")
	p, problems := project.Load(dir, "project.yaml", env)
	if p == nil {
		t.Fatal(problems)
	}
	if err := os.RemoveAll(filepath.Join(dir, "public")); err != nil {
		t.Fatal(err)
	}
	again, problems := p.Bundle.Load(dir, env)
	if again == nil {
		t.Fatal(problems)
	}
	for name, want := range map[string]project.Asset{"static": {Name: "static", Path: "public"}, "Static": {}, "": {}} {
		if got, ok := again.Asset(name); got != want || ok != (want.Name != "") {
			t.Errorf("%q: %+v", name, got)
		}
	}
	if d := cmp.Diff(p.Revision, again.Revision); d != "" {
		t.Error(d)
	}
}
