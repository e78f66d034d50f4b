package controllers_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
)

// founded makes a project of the config of ofConfig, up to where its records would be restored.
func (w *world) founded(namespace string) *project.Project {
	w.Helper()
	f := w.Founder("")
	d, err := f.Compile(w.Context(), namespace, &project.Project{}, ofConfig(nil), false)
	var p *project.Project
	if err == nil {
		p, err = f.Found(w.Context(), d)
	}
	if err != nil {
		w.Fatal(err)
	}
	return p
}

func (w *world) registered(namespace string) bool {
	w.Helper()
	_, err := w.models.Projects.ByNamespace(w.Context(), namespace)
	if err != nil && !errors.Is(err, errs.ErrNotFound) {
		w.Fatal(err)
	}
	return err == nil
}

func restoring(d *controllers.Deps) { d.Restores = notEnded{} }

// TestFoundingSecrets: what a config reads in the folder of its project is looked for there and nowhere else, and the new folder has a copy of it,
// but not of what only tokens were made of.
func TestFoundingSecrets(t *testing.T) {
	s, dir, from := newEmbedded(t), t.TempDir(), t.TempDir()
	w := newWorld(t, s, dir, restoring)
	secrets := map[string]string{"label.txt": "of the project", "keys/rule": "of a key", "token": "secret-token"}
	config := func(more string) project.Bundle {
		return project.Bundle{Entry: "project.yaml", Files: map[string][]byte{
			"project.yaml": []byte("namespace: shop\nadmin: {tokens: [{value: \"${file:token}\"}]}\ncollections: [./items/items.yaml]\n"),
			"items/items.yaml": []byte("name: items\nfields: [{name: a, type: string, meta: {label: \"${file:../label.txt}\", helperText: \"${file:../keys/rule}" + more + "\"}}]\n" +
				"permissions: {public: {methods: {get: true}}, user: {methods: {}}}\n"),
		}}
	}
	for name, text := range secrets {
		write(t, filepath.Join(from, name), text)
		write(t, filepath.Join(dir, name), "of the service")
	}
	write(t, filepath.Join(dir, "none"), "of the service")
	write(t, filepath.Join(from, ".founding"), "a secret by this name")
	f, of := w.Founder(""), &project.Project{Dir: from}
	for _, bad := range []string{"none", "../../none", "../../items/none"} { // found in a dry run
		if _, err := f.Compile(t.Context(), "copy", of, config("${file:../"+bad+"}"), false); codeOf(err) != "invalid_config" {
			t.Errorf("the secret %s: %v", bad, err)
		}
	}
	if _, err := f.Compile(t.Context(), "copy", of, config(""), true); codeOf(err) != "config_foreign" {
		t.Errorf("of an archive: %v", err)
	}
	mark, err := f.Compile(t.Context(), "copy", of, config("${file:../.founding}"), false)
	if err == nil {
		var p *project.Project
		p, err = f.Found(t.Context(), mark)
		if err := f.Abandon(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if codeOf(err) != "config_attached" {
		t.Errorf("a file of ours: %v", err)
	}
	d, err := f.Compile(t.Context(), "copy", of, config(""), false)
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Found(t.Context(), d)
	if err == nil {
		err = f.Keep(t.Context(), p)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"items", "items/items.yaml", "keys", "keys/rule", "label.txt", "project.yaml"}
	if diff := cmp.Diff(want, filesIn(t, filepath.Join(dir, "copy"))); diff != "" {
		t.Error(diff)
	}
	served, err := w.Registry.Get("copy")
	if err != nil {
		t.Fatal(err)
	}
	if got := served.Redact("of the project, of a key, of the service"); got != "***, ***, of the service" {
		t.Errorf("secrets that are not those of the project: %s", got)
	}
}

// TestFoundingKeepFails: what Keep leaves, wherever it fails, is ended: nothing is in the way of who makes the project again, and nothing is marked.
func TestFoundingKeepFails(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		dir := t.TempDir()
		w := newWorld(t, s, dir, restoring)
		p := w.founded("copy")
		s.failOn("projects", errors.New("no store"))
		if err := w.Founder("").Keep(t.Context(), p); err == nil {
			t.Error("it is kept without a store")
		}
		s.failOn("projects", nil)
		if err := w.Founder("").Abandon(t.Context(), p); err != nil { // as of a snapshot that has no collections
			t.Fatal(err)
		}
		if left := filesIn(t, dir); len(left) > 0 || w.registered("copy") {
			t.Errorf("left: %v", left)
		}

		p = w.founded("copy")
		if _, err := w.models.Projects.Keep(t.Context(), p.ID); err != nil { // and then it is killed
			t.Fatal(err)
		}
		after := newWorld(t, s, dir, restoring)
		if _, err := after.Registry.Get("copy"); err != nil {
			t.Error(err)
		}
		if left := filesIn(t, dir); slices.Contains(left, "copy/.founding") || !slices.Contains(left, "copy/project.yaml") {
			t.Errorf("there is %v", left)
		}
	})
}

// TestFoundingSweep: what was ended where the directory of projects is another one is removed by the next start, and nothing else.
func TestFoundingSweep(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		dir := t.TempDir()
		w := newWorld(t, s, dir, restoring)
		ended := func(p *project.Project) { // by an instance that does not see the folder
			if err := w.models.Projects.Abandon(t.Context(), p.ID); err != nil {
				t.Fatal(err)
			}
		}
		gone, aside, others, kept, goes := w.founded("gone"), w.founded("aside"), w.founded("others"), w.founded("kept"), w.founded("goes")
		for _, p := range []*project.Project{gone, aside, others, kept} {
			ended(p)
		}
		for from, to := range map[string]string{"aside": ".founding-" + aside.ID} {
			if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
				t.Fatal(err)
			}
		}
		// kept was kept first, and has records; others was, too, but has another registration, of a folder elsewhere.
		for _, namespace := range []string{"kept", "others"} {
			db := s.Database(project.DatabaseName(namespace))
			if err := db.Collection("items").CreateIndex(t.Context(), store.Index{Name: "n", Keys: []store.IndexKey{{Path: "n"}}}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := db.DropCollection(context.WithoutCancel(t.Context()), "items"); err != nil {
					t.Error(err)
				}
			})
		}
		if _, err := w.models.Projects.Found(t.Context(), "others", "others/project.yaml", ""); err != nil {
			t.Fatal(err)
		}
		mark, err := os.ReadFile(filepath.Join(dir, "gone", ".founding"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "mine", ".founding"), string(mark)) // a copy that somebody has made
		write(t, filepath.Join(dir, "theirs", ".founding"), "?")
		write(t, filepath.Join(dir, ".founding-mine", "a"), "a")

		newWorld(t, s, dir, restoring)
		var left []string
		for _, name := range filesIn(t, dir) {
			if !strings.Contains(name, "/") {
				left = append(left, name)
			}
		}
		if diff := cmp.Diff([]string{".founding-mine", "goes", "kept", "mine", "theirs"}, left); diff != "" {
			t.Error(diff)
		}
		if err := w.Founder("").Abandon(t.Context(), goes); err != nil || slices.Contains(filesIn(t, dir), "goes") {
			t.Errorf("what goes on can't be ended any more: %v", err)
		}
	})
}

// TestFoundingAdopted: a folder that is still marked as made for a registration that is gone stays for who has registered it since.
func TestFoundingAdopted(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		dir := t.TempDir()
		w := newWorld(t, s, dir, restoring)
		p := w.founded("copy")
		if _, err := w.models.Projects.Keep(t.Context(), p.ID); err != nil { // and the mark can't be taken off
			t.Fatal(err)
		}
		if err := w.Unregister(t.Context(), p.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Register(t.Context(), bson.D{{Key: "configFile", Value: "copy/project.yaml"}}); err != nil {
			t.Fatal(err)
		}
		after := newWorld(t, s, dir, restoring)
		if _, err := after.Registry.Get("copy"); err != nil || !slices.Contains(filesIn(t, dir), "copy/project.yaml") {
			t.Errorf("%v, there is %v", err, filesIn(t, dir))
		}
	})
}

// TestFoundingMeanwhile: a folder that somebody makes while ours is made stays, and is told.
func TestFoundingMeanwhile(t *testing.T) {
	for what, file := range map[string]string{"empty": "", "with a file": "notes.txt"} {
		s, dir := newEmbedded(t), t.TempDir()
		w := newWorld(t, s, dir, func(d *controllers.Deps) {
			restoring(d)
			d.FoundingFault = func(op, name string) error {
				if op == "rename" && name == "copy" {
					write(t, filepath.Join(dir, "copy", "notes.txt"), "mine")
					if file == "" {
						return os.Remove(filepath.Join(dir, "copy", "notes.txt"))
					}
				}
				return nil
			}
		})
		d, err := w.Founder("").Compile(t.Context(), "copy", &project.Project{}, ofConfig(nil), false)
		if err != nil {
			t.Fatal(err)
		}
		p, err := w.Founder("").Found(t.Context(), d)
		if e := errs.From(err); e == nil || e.Code != "folder_exists" || e.Kind != errs.Conflict {
			t.Errorf("%s: %v", what, err)
		}
		if err := w.Founder("").Abandon(t.Context(), p); err != nil {
			t.Error(err)
		}
		want := []string{"copy"}
		if file != "" {
			want = append(want, "copy/"+file)
		}
		if diff := cmp.Diff(want, filesIn(t, dir)); diff != "" || w.registered("copy") {
			t.Errorf("%s: %s", what, diff)
		}
	}
}

// TestFoundingReadOnly: where the directory of projects can't be written, nothing has to be removed from it, unless something is in there.
func TestFoundingReadOnly(t *testing.T) {
	s, dir := newEmbedded(t), t.TempDir()
	readOnly := false
	w := newWorld(t, s, dir, func(d *controllers.Deps) {
		restoring(d)
		d.FoundingFault = func(op, _ string) error { // as Linux does, also of what is not there
			if readOnly && !slices.Contains([]string{"stat", "open", "read", "readdir"}, op) {
				return syscall.EROFS
			}
			return nil
		}
	})
	f := w.Founder("")
	d, err := f.Compile(t.Context(), "copy", &project.Project{}, ofConfig(nil), false)
	if err != nil {
		t.Fatal(err)
	}
	readOnly = true
	if _, err := f.Compile(t.Context(), "copy", &project.Project{}, ofConfig(nil), false); codeOf(err) != "no_projects_dir" {
		t.Errorf("a dry run: %v", err)
	}
	p, err := f.Found(t.Context(), d)
	if codeOf(err) != "no_projects_dir" {
		t.Errorf("%v", err)
	}
	if err := f.Abandon(t.Context(), p); err != nil || w.registered("copy") {
		t.Errorf("of nothing that was made something is left: %v", err)
	}

	readOnly = false
	p = w.founded("copy")
	readOnly = true
	if err := f.Abandon(t.Context(), p); codeOf(err) != "no_projects_dir" || !w.registered("copy") {
		t.Errorf("a folder that can't be removed is forgotten: %v", err)
	}
	readOnly = false
	if err := f.Abandon(t.Context(), p); err != nil || w.registered("copy") || len(filesIn(t, dir)) > 0 {
		t.Errorf("%v, left: %v", err, filesIn(t, dir))
	}
}

// TestFoundingFullDisk: where the directory of projects has no space, that is what is said, at whichever operation it shows, and nothing stays.
func TestFoundingFullDisk(t *testing.T) {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		for _, fails := range []string{"mkdir", "create", "write", "sync", "rename"} {
			s, dir := newEmbedded(t), t.TempDir()
			broken, met := true, false
			w := newWorld(t, s, dir, func(d *controllers.Deps) {
				restoring(d)
				d.FoundingFault = func(op, name string) error {
					if !broken || op != fails {
						return nil
					}
					met = true
					return &fs.PathError{Op: op, Path: name, Err: full}
				}
			})
			d, err := w.Founder("").Compile(t.Context(), "copy", &project.Project{}, ofConfig(nil), false)
			if err != nil {
				t.Fatal(err)
			}
			p, err := w.Founder("").Found(t.Context(), d)
			if e := errs.From(err); met && (e == nil || e.Code != "projects_full" || e.Kind != errs.Full) || !met && err != nil {
				t.Errorf("%s, %v: %v", fails, full, err)
			}
			broken = false
			if err := w.Founder("").Abandon(t.Context(), p); err != nil || len(filesIn(t, dir)) > 0 || w.registered("copy") {
				t.Errorf("%s, %v: %v, left %v", fails, full, err, filesIn(t, dir))
			}
			if !met {
				t.Errorf("there is no operation %s", fails)
			}
		}
	}
}
