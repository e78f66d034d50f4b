package controllers_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
)

// notEnded has what founds projects go on, as far as the reconciler knows.
type notEnded struct{}

func (notEnded) Recover(context.Context, *project.Project) error { return nil }

func (notEnded) EndFounding(context.Context, *project.Project, snapshot.Founder) error {
	return snapshot.ErrBusy
}

func ofConfig(more map[string]string) project.Bundle {
	b := project.Bundle{Entry: "project.yaml", Files: map[string][]byte{"project.yaml": []byte(
		"namespace: shop\nassets: [{name: site, path: public/site}]\ncollections: [./items/items.yaml]\n",
	), "items/items.yaml": []byte("name: items\nfields: []\npermissions: {public: {methods: {get: true}}, user: {methods: {}}}\n"), "README.md": []byte("no part of it")}}
	for name, text := range more {
		b.Files[name] = []byte(text)
	}
	return b
}

// filesIn lists what a directory holds.
func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		if name != dir {
			names = append(names, strings.TrimPrefix(name, dir+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestFounder: a project that is made for a restore is served to nobody, and changed by nobody, before it is kept; abandoned, nothing is left.
func TestFounder(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		dir := t.TempDir()
		w := newWorld(t, s, dir, restoring)
		f, ctx := w.Founder(""), t.Context()
		p := w.founded("copy")
		want := []string{"copy", "copy/.founding", "copy/items", "copy/items/items.yaml", "copy/project.yaml", "copy/public", "copy/public/site"}
		if diff := cmp.Diff(want, filesIn(t, dir)); diff != "" {
			t.Error(diff)
		}
		reg, err := w.models.Projects.ByNamespace(ctx, "copy")
		if err != nil || reg.Enabled || !reg.Founding {
			t.Errorf("%+v, %v", reg, err)
		}
		for what, err := range map[string]error{
			"a change": func() error { _, err := w.Update(ctx, p.ID, bson.D{{Key: "enabled", Value: true}}); return err }(),
			"an end":   w.Unregister(ctx, p.ID),
		} {
			if e := errs.From(err); e == nil || e.Code != "project_founding" {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := w.Registry.Get("copy"); err == nil {
			t.Error("it is served")
		}
		if _, err := f.Compile(ctx, "copy", &project.Project{}, ofConfig(nil), false); codeOf(err) != "folder_exists" {
			t.Errorf("a second one: %v", err)
		}
		for range 2 {
			if err := f.Abandon(ctx, p); err != nil {
				t.Fatal(err)
			}
		}
		if left := filesIn(t, dir); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
		if _, err := w.models.Projects.ByNamespace(ctx, "copy"); errs.KindOf(err) != errs.NotFound {
			t.Errorf("it is registered: %v", err)
		}

		p = w.founded("copy")
		for range 2 { // as after a crash
			if err := f.Keep(ctx, p); err != nil {
				t.Fatal(err)
			}
		}
		if served, err := w.Registry.Get("copy"); err != nil || served.ID != p.ID {
			t.Errorf("%+v, %v", served, err)
		}
		if diff := cmp.Diff(append([]string{"copy"}, want[2:]...), filesIn(t, dir)); diff != "" {
			t.Error(diff)
		}
		if err := f.Abandon(ctx, p); err != nil { // which is for what was not kept
			t.Fatal(err)
		}
		if _, err := w.models.Projects.ByNamespace(ctx, "copy"); err != nil || len(filesIn(t, dir)) == 0 {
			t.Errorf("a project that was kept is gone: %v", err)
		}
	})
}

// TestFounderRefuses what can't be made, and leaves nothing that Abandon does not take away.
func TestFounderRefuses(t *testing.T) {
	s := newEmbedded(t)
	dir := t.TempDir()
	w := newWorld(t, s, dir, restoring)
	for what, tt := range map[string]struct {
		namespace string
		config    project.Bundle
		code      string
	}{
		"no namespace":          {"../copy", ofConfig(nil), "bad_namespace"},
		"not a config":          {"copy", ofConfig(map[string]string{"project.yaml": "namespace: shop\ncollections: 1\n"}), "invalid_config"},
		"a variable of another": {"copy", ofConfig(map[string]string{"items/items.yaml": "name: ${env:NONE}\nfields: []\n"}), "invalid_config"},
		"a file of ours":        {"copy", ofConfig(map[string]string{"project.yaml": "namespace: shop\ncollections: [./.founding]\n", ".founding": "x"}), "invalid_config"},
		"tokens elsewhere":      {"copy", ofConfig(map[string]string{"project.yaml": "namespace: shop\nadmin: ./admin.yaml\ncollections: []\n", "admin.yaml": "tokens: [{value: secret-token}]\n"}), "config_attached"},
	} {
		f := w.Founder("")
		d, err := f.Compile(t.Context(), tt.namespace, &project.Project{}, tt.config, false)
		if err == nil {
			var p *project.Project
			p, err = f.Found(t.Context(), d)
			if p != nil {
				if err := f.Abandon(t.Context(), p); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
		if codeOf(err) != tt.code {
			t.Errorf("%s: %v, want %s", what, err, tt.code)
		}
	}
	if left := filesIn(t, dir); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	d, err := w.Founder("").Compile(t.Context(), "copy", &project.Project{}, ofConfig(nil), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Founder("").Found(t.Context(), d); codeOf(err) != "no_projects_dir" {
		t.Errorf("without a folder: %v", err)
	}
	if _, err := w.Founder("").Compile(t.Context(), "copy", &project.Project{}, ofConfig(nil), false); codeOf(err) != "no_projects_dir" {
		t.Errorf("a dry run without a folder: %v", err)
	}
}

// codeOf is that of an error, "" for none.
func codeOf(err error) string {
	if e := errs.From(err); e != nil {
		return e.Code
	}
	return ""
}
