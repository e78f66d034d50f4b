package snapshot_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

var anyID = regexp.MustCompile(`\b\d{8}T\d{6}Z-\w{6}\b`)

// warned restores a snapshot and gives the warnings.
func (w *world) warned(info snapshot.Info, namespace string, dry bool) (snapshot.RestoreResult, []string) {
	w.Helper()
	target := w.p
	if namespace != w.p.Namespace {
		target = load(w, config, namespace)
	}
	result, err := w.snaps.Restore(w.Context(), w.p, info.ID, target, snapshot.RestoreOptions{Media: true, DryRun: dry, Limit: 10}, nil)
	if err != nil {
		w.Fatal(err)
	}
	return result, result.Warnings
}

// TestRestoreOfDamaged: a file that was damaged when the snapshot was taken never comes over one that is whole, and comes with a warning where there is none. A dry run
// and a drill say the same.
func TestRestoreOfDamaged(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		w.post(0, "cover")
		w.post(1, "left")
		good := w.create("daily")
		replace(t, w.cover(0), "c0ver") // another file: the first snapshot keeps its own
		if err := os.Remove(w.cover(1)); err != nil {
			t.Fatal(err)
		}
		bad := w.create("daily")
		damaged := "the file cover/0.txt of posts/" + idOf(0).Hex() + " was not what the record says when the snapshot was taken: it is damaged; upload it anew (its address may change); " +
			good.ID + " has it whole, as media/" + hashOf("cover")
		missing := "the file cover/1.txt of posts/" + idOf(1).Hex() + " is not there; upload it anew (its address may change); " + good.ID + " has it whole, as media/" + hashOf("left")
		both := []string{damaged, missing}

		var drilled []string
		drill, err := w.snaps.Drill(t.Context(), w.p, bad.ID, func(p snapshot.Progress) {
			if p.Warning != "" {
				drilled = append(drilled, p.Warning)
			}
		})
		if err != nil || drill.Problems != 0 {
			t.Fatal(drill, err)
		}
		equal(t, "the drill", both, drilled)

		w.restore(good, replaceAll)
		for _, gone := range []bool{false, true} { // the record is there as it was, or not at all
			if gone {
				w.write("posts", store.Op{Kind: store.Delete, ID: objectID(0)})
			}
			would, warnings := w.warned(bad, w.p.Namespace, true)
			equal(t, "a dry run over what is whole", []string(nil), warnings)
			if n, files := fileDiffs(*would.Diff); n != 0 {
				t.Errorf("the dry run would change %v", files)
			}
			_, warnings = w.warned(bad, w.p.Namespace, false)
			equal(t, "a restore over what is whole", []string(nil), warnings)
			for n, want := range []string{"cover", "left"} {
				if text, err := os.ReadFile(w.cover(n)); err != nil || string(text) != want {
					t.Errorf("the file %d is %q, %v", n, text, err)
				}
			}
		}

		for _, n := range []int{0, 1} {
			if err := os.Remove(w.cover(n)); err != nil {
				t.Fatal(err)
			}
		}
		other := newNamespace()
		t.Cleanup(func() { _ = w.store.DropDatabase(t.Context(), "svc_"+other) })
		for _, namespace := range []string{w.p.Namespace, other} {
			for _, dry := range []bool{true, false} {
				result, warnings := w.warned(bad, namespace, dry)
				for i := range warnings { // safety snapshots have them whole, too
					warnings[i] = anyID.ReplaceAllString(warnings[i], good.ID)
				}
				equal(t, "where there is none", both, warnings)
				if !dry && (result.Files.Linked != 1 || result.Files.Missing != 1) {
					t.Errorf("%+v", result.Files)
				}
			}
			name := filepath.Join(w.media, namespace, "posts", idOf(0).Hex(), "cover/0.txt")
			if text, err := os.ReadFile(name); err != nil || string(text) != "c0ver" {
				t.Errorf("%s has %q, %v", namespace, text, err)
			}
		}
	})
}

// TestPruneKeepsComplete: a verified snapshot that lacks files does not have the one pruned that has them.
func TestPruneKeepsComplete(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(w *world){
		"missing": func(w *world) { _ = os.Remove(w.cover(0)) },
		"damaged": func(w *world) { replace(t, w.cover(0), "c0ver") },
		"missing, and the manifest does not say so": func(w *world) { _ = os.Remove(w.cover(0)) },
	} {
		w := newWorld(t, teststore.Memory(t))
		w.post(0, "cover")
		complete := w.create("daily")
		w.verify(complete)
		spoil(w)
		for range 2 {
			info := w.create("daily")
			if strings.HasSuffix(name, "say so") {
				w.uncount(info)
			}
			w.verify(info)
		}
		for _, d := range w.prune("daily", keepLast(1), snapshot.PruneOptions{}).Decisions {
			if d.ID == complete.ID {
				equal(t, name, []string{"newest verified that lacks no file"}, d.Reasons)
			}
		}
		if list, err := w.snaps.List(t.Context(), w.p); err != nil || len(list) != 2 || list[1].ID != complete.ID {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
}

// uncount has the manifest of a snapshot say that no file was missing, as one may that comes from elsewhere.
func (w *world) uncount(info snapshot.Info) {
	w.Helper()
	var m snapshot.Manifest
	dir := w.path(info)
	err := json.Unmarshal([]byte(contents(w, dir)["manifest.json"]), &m)
	if err == nil {
		var manifest, sum []byte
		m.Counts.Missing, m.Counts.Warnings, m.Warnings = 0, 0, nil
		manifest, sum, err = snapshot.Forged(&m)
		replace(w, filepath.Join(dir, "manifest.json"), string(manifest))
		replace(w, filepath.Join(dir, "manifest.json.sha256"), string(sum))
	}
	if err != nil {
		w.Fatal(err)
	}
}

// TestDryRunRefuses: a dry run refuses the damage that is known, as the restore does, and both say where the file is whole and what can be restored.
func TestDryRunRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.post(0, "cover")
	info := w.create("daily")
	name := filepath.Join(w.path(info), "media", hashOf("cover"))
	replace(t, name, "c0ver")
	other := w.create("daily")
	if len(w.check(info)) == 0 {
		t.Fatal("no damage was found")
	}
	var texts []string
	for _, o := range []snapshot.RestoreOptions{{Media: true, DryRun: true}, {Media: true}} {
		_, err := w.snaps.Restore(t.Context(), w.p, info.ID, w.p, o, nil)
		if err == nil {
			t.Fatal("it is not refused")
		}
		texts = append(texts, err.Error())
		o.Media = false
		if _, err := w.snaps.Restore(t.Context(), w.p, info.ID, w.p, o, nil); err != nil {
			t.Error(err)
		}
	}
	want := other.ID + " has it whole; collections that do not name it can be restored, and all without files (--no-media)"
	if texts[0] != texts[1] || !strings.Contains(texts[0], want) {
		t.Errorf("%q", texts)
	}
}
