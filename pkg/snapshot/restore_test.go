package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/gate"
	"github.com/svcctl/svc/pkg/store/teststore"
)

var replaceAll = snapshot.RestoreOptions{Media: true}

func (w *world) restore(info snapshot.Info, o snapshot.RestoreOptions) snapshot.RestoreResult {
	w.Helper()
	w.clock.Pass(time.Second)
	result, err := w.snaps.Restore(w.Context(), w.p, info.ID, w.p, o, nil)
	if err != nil {
		w.Fatalf("restore %s: %v", info.ID, err)
	}
	return result
}

func objectID(n int) bson.RawValue {
	id := idOf(n)
	return bson.RawValue{Type: bson.TypeObjectID, Value: id[:]}
}

func (w *world) write(collection string, ops ...store.Op) {
	w.Helper()
	if err := store.WriteAll(w.Context(), w.records(collection), ops...); err != nil {
		w.Fatal(err)
	}
}

// change makes the project another one: records that are new, changed and gone, a file with other content in its place, another index, and
// no legacy.
func (w *world) change() {
	w.Helper()
	for n := range 10 {
		w.write("items", store.Op{Kind: store.Delete, ID: objectID(n)})
	}
	for n := 10; n < 20; n++ {
		w.write("items", store.Op{Kind: store.Update, ID: objectID(n), Update: mql.MustCompileUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "sku", Value: fmt.Sprint("other ", n)}}}})})
	}
	w.insert("items", bson.D{{Key: "_id", Value: idOf(5000)}, {Key: "sku", Value: "new"}})
	if err := w.records("items").CreateIndex(w.Context(), store.Index{Name: "svc_n", Keys: []store.IndexKey{{Path: "n"}}}); err != nil {
		w.Fatal(err)
	}
	w.write("posts", store.Op{Kind: store.Delete, ID: objectID(1)}, store.Op{Kind: store.Delete, ID: objectID(2)})
	replace(w, filepath.Join(w.media, w.p.Namespace, "posts", idOf(0).Hex(), "cover", "cover 0.txt"), "another cover of 0")
	w.write("posts", store.Op{Kind: store.Update, ID: objectID(0), Update: mql.MustCompileUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "cover.hash", Value: hashOf("another cover of 0")}}}})})
	if err := os.RemoveAll(filepath.Join(w.media, w.p.Namespace, "posts", idOf(2).Hex())); err != nil {
		w.Fatal(err)
	}
	if err := w.db.DropCollection(w.Context(), "legacy"); err != nil {
		w.Fatal(err)
	}
}

// filesOf are those that records of posts name, by path.
func (w *world) filesOf() map[string]string {
	w.Helper()
	out := map[string]string{}
	err := w.records("posts").Find(w.Context(), store.Query{}, func(doc bson.Raw) error {
		id := doc.Lookup("_id").ObjectID()
		named := map[string]bool{}
		w.p.Collections["posts"].FileAddresses(w.p.Namespace, id).Keys(doc, named)
		for key := range named {
			at := filepath.Join("posts", id.Hex(), key)
			text, err := os.ReadFile(filepath.Join(w.media, w.p.Namespace, at))
			if err != nil {
				return err
			}
			out[at] = string(text)
		}
		return nil
	})
	if err != nil {
		w.Error(err)
	}
	return out
}

// state is everything that a project has.
type state struct {
	Records map[string][]string
	Files   map[string]string
}

func (w *world) state() state { return state{w.dump(w.p), w.filesOf()} }

// exports are the files of a snapshot that are the same for the same records.
func (w *world) exports(info snapshot.Info) map[string]string {
	out := contents(w, w.path(info))
	maps.DeleteFunc(out, func(name, _ string) bool { return strings.HasPrefix(name, "manifest.json") })
	return out
}

// TestRestoreTells: of each collection, however small, it is told that all of it was loaded.
func TestRestoreTells(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fill()
	info := w.create("both")
	w.change()
	var told []snapshot.Progress
	if _, err := w.snaps.Restore(t.Context(), w.p, info.ID, w.p, replaceAll, func(p snapshot.Progress) { told = append(told, p) }); err != nil {
		t.Fatal(err)
	}
	var loaded []int64
	for i, now := range told[1:] {
		if before := told[i]; before.Phase == snapshot.Loading && now.Phase != snapshot.Loading {
			if loaded = append(loaded, before.Done); before.Done != before.Total || before.BytesDone != before.BytesTotal {
				t.Errorf("loading ends with %+v", before)
			}
		}
	}
	equal(t, "loaded", []int64{307, 1, 40}, loaded)
}

// TestRestore: what a snapshot has comes back to the bit, and what was there before is in another snapshot.
func TestRestore(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		w.fill()
		before := w.state()
		info := w.create("both")
		w.change()
		after := w.state()

		result := w.restore(info, replaceAll)
		if diff := cmp.Diff(before, w.state()); diff != "" {
			t.Fatalf("what was restored is another: %s", diff)
		}
		if diff := cmp.Diff(w.exports(info), w.exports(w.create("both"))); diff != "" {
			t.Errorf("its export is another: %s", diff)
		}
		want := snapshot.RestoreResult{
			Safety: result.Safety,
			Collections: []snapshot.Restored{
				{Name: "empty", Unchanged: true},
				{Name: "items", Records: 307, Restored: 307},
				{Name: "legacy", Records: 1, Restored: 1},
				{Name: "posts", Records: 40, Restored: 40},
			},
			Drift: []snapshot.Drift{
				{Collection: "items", Kind: snapshot.DriftIndexes, Text: "the snapshot and the collection have other indexes: svc_n"},
				{Collection: "legacy", Kind: snapshot.DriftUndeclared, Text: "the config does not have the collection: it is in the store, and nobody can reach it"},
			},
			Files: snapshot.RestoredFiles{Linked: 2, WereThere: 34},
		}
		if diff := cmp.Diff(want, result, cmpopts.IgnoreFields(snapshot.Restored{}, "Bytes")); diff != "" {
			t.Error(diff)
		}
		safety, err := w.snaps.Show(t.Context(), w.p, result.Safety)
		if err != nil {
			t.Fatal(err)
		}
		w.verify(safety)
		if safety.Profile != snapshot.SafetyProfile {
			t.Errorf("its profile is %q", safety.Profile)
		}
		w.restore(safety, replaceAll)
		delete(before.Records, "legacy")
		got := w.state()
		delete(got.Records, "legacy") // what was not there before is not in the snapshot of that
		if diff := cmp.Diff(after, got); diff != "" {
			t.Errorf("what was there before is another: %s", diff)
		}
	})
}

// TestRestoreAcross: a snapshot of one store is restored into another one and back, and its export is the same to the bit.
func TestRestoreAcross(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		namespace := newNamespace()
		here := newWorldIn(t, teststore.Memory(t), config, namespace)
		there := newWorldIn(t, s, config, namespace)
		here.fill()
		first := here.create("both")
		second := here.moved(first, there)
		there.restore(second, replaceAll)
		if diff := cmp.Diff(here.dump(here.p), there.dump(there.p)); diff != "" {
			t.Error(diff)
		}
		exported := there.create("both")
		if diff := cmp.Diff(here.exports(first), there.exports(exported)); diff != "" {
			t.Errorf("its export is another: %s", diff)
		}
		here.change()
		here.restore(there.moved(exported, here), replaceAll)
		if diff := cmp.Diff(here.exports(first), here.exports(here.create("both"))); diff != "" {
			t.Errorf("its export is another, back again: %s", diff)
		}
	})
}

// moved copies a snapshot to another world.
func (w *world) moved(info snapshot.Info, to *world) snapshot.Info {
	w.Helper()
	if err := os.RemoveAll(to.path(info)); err != nil {
		w.Fatal(err)
	}
	if err := os.CopyFS(to.path(info), os.DirFS(w.path(info))); err != nil {
		w.Fatal(err)
	}
	return info
}

// TestRestoreDB: a snapshot that has records as BSON alone, and no files, is restored, too. Files that are not there are counted.
func TestRestoreDB(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fill()
	info := w.create("db")
	before := w.dump(w.p)
	w.change()
	would := w.restore(info, snapshot.RestoreOptions{Media: true, DryRun: true})
	result := w.restore(info, replaceAll)
	if diff := cmp.Diff(before, w.dump(w.p)); diff != "" {
		t.Error(diff)
	}
	equal(t, "warnings of a dry run", result.Warnings, would.Warnings)
	if diff := cmp.Diff(snapshot.RestoredFiles{Missing: 1}, result.Files); diff != "" {
		t.Error(diff)
	}
	if want := "the file cover/cover 2.txt of posts/" + idOf(2).Hex() + " is not there; the snapshot has no files: upload it"; !slices.Contains(result.Warnings, want) {
		t.Errorf("warnings: %v", result.Warnings)
	}
}

// TestRestoreWithoutFiles: records come back, and files stay as they are, whatever the records say.
func TestRestoreWithoutFiles(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		w.fill()
		before := w.dump(w.p)
		info := w.create("daily")
		w.change()
		disk := contents(t, filepath.Join(w.media, w.p.Namespace))
		would := w.restore(info, snapshot.RestoreOptions{DryRun: true})
		result := w.restore(info, snapshot.RestoreOptions{})
		equal(t, "warnings of a dry run", result.Warnings, would.Warnings)
		if diff := cmp.Diff(before, w.dump(w.p)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(disk, contents(t, filepath.Join(w.media, w.p.Namespace))); diff != "" {
			t.Error(diff)
		}
		want := []string{"the file cover/cover 2.txt of posts/" + idOf(2).Hex() + " is not there; no files are restored: restore with them, or upload it"}
		if diff := cmp.Diff(want, result.Warnings); diff != "" || result.Files != (snapshot.RestoredFiles{Missing: 1}) {
			t.Errorf("%+v, %s", result.Files, diff)
		}
		if text := disk["posts/"+idOf(0).Hex()+"/cover/cover 0.txt"]; text != "another cover of 0" {
			t.Errorf("the file that this is about is %q", text)
		}
	})
}

// TestRestoreRenamed: what was renamed stays in its places in the store, in which files are, too.
func TestRestoreRenamed(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		w.fill()
		text := strings.Replace(config, "- name: posts\n", "- name: articles\n    renamedFrom: posts\n", 1)
		text = strings.NewReplacer("{name: title,", "{name: headline, renamedFrom: title,", "{name: cover,", "{name: picture, renamedFrom: cover,", "collections: [posts]", "collections: [articles]", "{name: posts, mode", "{name: articles, mode").Replace(text)
		renamed := load(t, text, w.p.Namespace)
		if _, err := (project.Names{}).Resolve(renamed, w.p, func(string, string) (bool, error) { return true, nil }); err != nil {
			t.Fatal(err)
		}
		was := w.p
		w.p = renamed
		info := w.create("both")
		if got := lines(t, filepath.Join(w.path(info), "collections/articles.jsonl.zst"))[2]; !strings.Contains(got, `"headline":"post 2"`) || !strings.Contains(got, "/articles/"+idOf(2).Hex()+"/picture/cover%202.txt") {
			t.Fatalf("it has %s", got)
		}
		w.p = was
		w.change()
		w.p = renamed
		w.restore(info, replaceAll)
		if diff := cmp.Diff(w.exports(info), w.exports(w.create("both"))); diff != "" {
			t.Errorf("its export is another: %s", diff)
		}
		name := filepath.Join(w.media, w.p.Namespace, "posts", idOf(2).Hex(), "cover", "cover 2.txt")
		if text, err := os.ReadFile(name); err != nil || string(text) != "cover of 2" {
			t.Errorf("a file is %q, %v", text, err)
		}
		doc, err := w.db.Collection("posts").Get(t.Context(), objectID(2))
		if title, ok := doc.Lookup("title").StringValueOK(); err != nil || !ok || title != "post 2" {
			t.Errorf("a record is stored as %v, %v", doc, err)
		}
	})
}

// TestRestoreMerge: records of the snapshot are put over those that there are, and others stay.
func TestRestoreMerge(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		w.fill()
		info := w.create("daily")
		before := w.state()
		w.change()
		result := w.restore(info, snapshot.RestoreOptions{Mode: snapshot.Merge, Media: true, Collections: []string{"items", "posts"}})
		got := w.state()
		added := got.Records["items"]
		got.Records["items"] = slices.DeleteFunc(slices.Clone(added), func(doc string) bool { return strings.Contains(doc, "\x00new\x00") || strings.Contains(doc, "svc_n") })
		if len(added) != len(got.Records["items"])+2 {
			t.Error("what the snapshot does not have is gone")
		}
		delete(before.Records, "legacy")
		if diff := cmp.Diff(before, got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]snapshot.Restored{{Name: "items", Records: 308, Restored: 307}, {Name: "posts", Records: 40, Restored: 40}}, result.Collections, cmpopts.IgnoreFields(snapshot.Restored{}, "Bytes")); diff != "" {
			t.Error(diff)
		}
	})
}

// TestRestoreMergeViolates: records that do not go together are refused, and everything stays.
func TestRestoreMergeViolates(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		w.fill()
		info := w.create("daily")
		w.write("items", store.Op{Kind: store.Delete, ID: objectID(3)})
		w.insert("items", bson.D{{Key: "_id", Value: idOf(6000)}, {Key: "sku", Value: "sku 3"}, {Key: "n", Value: 3}})
		before := w.state()
		_, err := w.snaps.Restore(t.Context(), w.p, info.ID, w.p, snapshot.RestoreOptions{Mode: snapshot.Merge}, nil)
		if e := errs.From(err); e == nil || e.Code != "restore_violates" || !strings.Contains(e.Message, idOf(6000).Hex()) {
			t.Errorf("%v", err)
		}
		if diff := cmp.Diff(before, w.state()); diff != "" {
			t.Error(diff)
		}
		w.restore(info, replaceAll)
	})
}

// TestRestoreInto: a snapshot is brought into another project, whose files have addresses of their own.
func TestRestoreInto(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		w.fill()
		info := w.create("daily")
		other := load(t, config, newNamespace())
		t.Cleanup(func() {
			if err := s.DropDatabase(context.Background(), project.DatabaseName(other.Namespace)); err != nil {
				t.Error(err)
			}
		})
		before := w.state()
		result, err := w.snaps.Restore(t.Context(), w.p, info.ID, other, replaceAll, nil)
		if err != nil {
			t.Fatal(err)
		}
		if result.Safety != "" || result.Files.Linked != 36 {
			t.Errorf("%+v", result)
		}
		if diff := cmp.Diff(before, w.state()); diff != "" {
			t.Error(diff)
		}
		got := w.dump(other)
		for name, docs := range got {
			for i, doc := range docs {
				if strings.Contains(doc, w.p.Namespace) {
					t.Fatalf("%s has an address of the other project: %q", name, doc)
				}
				docs[i] = strings.ReplaceAll(doc, other.Namespace, w.p.Namespace)
			}
		}
		if diff := cmp.Diff(before.Records, got); diff != "" {
			t.Error(diff)
		}
		w.p = other
		if diff := cmp.Diff(before.Files, w.filesOf()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestRestoreDry: what would change is told of each record, and nothing does.
func TestRestoreDry(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		w.fill()
		info := w.create("daily")
		same, err := w.snaps.Compare(t.Context(), w.p, info.ID, snapshot.CompareOptions{Limit: 5})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range same.Collections {
			if c.Kind != "" || c.Added+c.Removed+c.Changed > 0 || len(c.Records) > 0 {
				t.Errorf("%+v", c)
			}
		}
		w.change()
		before := w.state()
		since, err := w.snaps.Compare(t.Context(), w.p, info.ID, snapshot.CompareOptions{Limit: 12})
		if err != nil {
			t.Fatal(err)
		}
		posts := []snapshot.RecordDiff{
			{ID: idOf(0).Hex(), Kind: snapshot.Changed, Paths: []string{"cover.hash"}}, {ID: idOf(1).Hex(), Kind: snapshot.Removed}, {ID: idOf(2).Hex(), Kind: snapshot.Removed},
		}
		var items []snapshot.RecordDiff
		for n := range 10 {
			items = append(items, snapshot.RecordDiff{ID: idOf(n).Hex(), Kind: snapshot.Removed})
		}
		for n := 10; n < 12; n++ {
			items = append(items, snapshot.RecordDiff{ID: idOf(n).Hex(), Kind: snapshot.Changed, Paths: []string{"sku"}})
		}
		want := snapshot.Diff{Collections: []snapshot.CollectionDiff{
			{Name: "empty"},
			{Name: "items", Added: 1, Removed: 10, Changed: 10, Same: 287, Records: items},
			{Name: "legacy", Kind: snapshot.Removed, Removed: 1, Records: []snapshot.RecordDiff{{ID: `"a"`, Kind: snapshot.Removed}}},
			{Name: "posts", Removed: 2, Changed: 1, Same: 37, Records: posts},
		}}
		if diff := cmp.Diff(want, since); diff != "" {
			t.Errorf("since then: %s", diff)
		}
		later := w.create("daily")
		between, err := w.snaps.Compare(t.Context(), w.p, info.ID, snapshot.CompareOptions{With: later.ID, Limit: 12})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, between); diff != "" {
			t.Errorf("between two snapshots: %s", diff)
		}
		var would []snapshot.RecordDiff // from what is there to what would be
		for n := range 10 {
			would = append(would, snapshot.RecordDiff{ID: idOf(n).Hex(), Kind: snapshot.Added})
		}
		for n := 10; n < 20; n++ {
			would = append(would, snapshot.RecordDiff{ID: idOf(n).Hex(), Kind: snapshot.Changed, Paths: []string{"sku"}})
		}
		for _, tt := range []struct {
			mode  snapshot.RestoreMode
			limit int
			want  snapshot.CollectionDiff
		}{
			{snapshot.Replace, 0, snapshot.CollectionDiff{Name: "items", Added: 10, Removed: 1, Changed: 10, Same: 287}},
			{snapshot.Replace, 100, snapshot.CollectionDiff{
				Name: "items", Added: 10, Removed: 1, Changed: 10, Same: 287,
				Records: append(slices.Clone(would), snapshot.RecordDiff{ID: idOf(5000).Hex(), Kind: snapshot.Removed}),
			}},
			{snapshot.Merge, 100, snapshot.CollectionDiff{Name: "items", Added: 10, Changed: 10, Same: 288, Records: would}},
			{snapshot.Merge, 11, snapshot.CollectionDiff{Name: "items", Added: 10, Changed: 10, Same: 288, Records: would[:11]}},
		} {
			mode, want := tt.mode, tt.want
			result := w.restore(info, snapshot.RestoreOptions{Mode: mode, DryRun: true, Collections: []string{"items"}, Limit: tt.limit})
			if diff := cmp.Diff(&snapshot.Diff{Collections: []snapshot.CollectionDiff{want}}, result.Diff); diff != "" {
				t.Errorf("%s: %s", mode, diff)
			}
			if records := result.Collections[0].Records; result.Safety != "" || records != want.Added+want.Changed+want.Same {
				t.Errorf("%s: %+v", mode, result)
			}
		}
		if diff := cmp.Diff(before, w.state()); diff != "" {
			t.Error(diff)
		}
		if _, err := w.snaps.Compare(t.Context(), w.p, info.ID, snapshot.CompareOptions{Collections: []string{"none"}}); errs.KindOf(err) != errs.NotFound {
			t.Errorf("a collection that neither has: %v", err)
		}
	})
}

// TestRestoreDamaged: a snapshot that is damaged is refused before anything is changed, and the file is named; one with damage elsewhere is
// good for what is whole.
func TestRestoreDamaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fill()
	info := w.create("daily")
	w.change()
	before := w.state()
	for name := range w.exports(info) {
		text, err := os.ReadFile(filepath.Join(w.path(info), name))
		if err != nil {
			t.Fatal(err)
		}
		if len(text) == 0 || strings.HasPrefix(name, "config/") {
			continue
		}
		changed := slices.Clone(text)
		changed[len(text)/2] ^= 1
		replace(t, filepath.Join(w.path(info), name), string(changed))
		_, err = w.snaps.Restore(t.Context(), w.p, info.ID, w.p, replaceAll, nil)
		if !errors.Is(err, snapshot.ErrDamaged) || !strings.Contains(errs.From(err).Message, name) {
			t.Errorf("%s: %v", name, err)
		}
		if strings.HasPrefix(name, "media/") {
			w.restoreOnly(info, "items")
			w.change0()
		}
		replace(t, filepath.Join(w.path(info), name), string(text))
	}
	got := w.state()
	delete(got.Records, "items")
	delete(before.Records, "items")
	if diff := cmp.Diff(before, got); diff != "" {
		t.Error(diff)
	}
}

func (w *world) restoreOnly(info snapshot.Info, collections ...string) {
	w.Helper()
	w.restore(info, snapshot.RestoreOptions{Media: true, Collections: collections})
}

func (w *world) change0() {
	w.write("items", store.Op{Kind: store.Delete, ID: objectID(0)})
}

// TestRestoreRefused: what can't be restored is refused, and the answer says why.
func TestRestoreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fill()
	info := w.create("daily")
	renamed := load(t, strings.Replace(config, "- name: items", "- name: things\n    renamedFrom: items", 1), w.p.Namespace)
	if _, err := (project.Names{}).Resolve(renamed, w.p, func(string, string) (bool, error) { return true, nil }); err != nil {
		t.Fatal(err)
	}
	renamed.Dir = w.p.Dir
	for name, tt := range map[string]struct {
		p    *project.Project
		o    snapshot.RestoreOptions
		code string
	}{
		"a mode":               {w.p, snapshot.RestoreOptions{Mode: "mix"}, "bad_mode"},
		"a collection":         {w.p, snapshot.RestoreOptions{Collections: []string{"none"}}, "collection_not_found"},
		"a renamed collection": {renamed, snapshot.RestoreOptions{}, "collection_renamed"},
	} {
		if _, err := w.snaps.Restore(t.Context(), tt.p, info.ID, tt.p, tt.o, nil); errs.From(err) == nil || errs.From(err).Code != tt.code {
			t.Errorf("%s: %v, want %s", name, err, tt.code)
		}
	}
	if _, err := w.snaps.Restore(t.Context(), renamed, info.ID, renamed, snapshot.RestoreOptions{Collections: []string{"posts"}}, nil); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	before := w.state()
	_, err := w.snaps.Restore(ctx, w.p, info.ID, w.p, replaceAll, func(now snapshot.Progress) {
		if now.Phase == snapshot.Swapping {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("canceled at the last moment: %v", err)
	}
	if diff := cmp.Diff(before, w.state()); diff != "" {
		t.Error(diff)
	}
}

// S53: a snapshot that came from elsewhere, and says that it has what the service keeps in a project's database, is refused.
func TestS53RestoreNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"svc.leases", "svc.names", "system.users", "a$b", ".hidden"} {
		w := newWorld(t, teststore.Memory(t))
		w.fillWith(2, 3)
		info := w.create("daily")
		at := filepath.Join(w.path(info), "manifest.json")
		text, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(text), `"name": "items"`, `"name": "`+name+`"`, 1)
		if changed == string(text) {
			t.Fatal("the manifest is otherwise")
		}
		replace(t, at, changed)
		replace(t, at+".sha256", hashOf(changed)+"  manifest.json\n")
		before := w.state()
		for _, o := range []snapshot.RestoreOptions{replaceAll, {Mode: snapshot.Merge}, {Collections: []string{name}}, {DryRun: true}} {
			if _, err := w.snaps.Restore(t.Context(), w.p, info.ID, w.p, o, nil); !errors.Is(err, snapshot.ErrDamaged) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if diff := cmp.Diff(before, w.state()); diff != "" {
			t.Error(diff)
		}
	}
}

// TestRestoreWhileWritten: a write during a restore is refused, or is in the safety snapshot; a read sees the old records or the new ones.
func TestRestoreWhileWritten(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		w.useGate()
		w.fill()
		info := w.create("daily")
		ctx, stop := context.WithCancel(t.Context())
		acked, done := map[int]bool{}, make(chan error, 1)
		wrote := make(chan struct{}, 100_000)
		go func() {
			for n := 7000; ; n++ {
				if ctx.Err() != nil {
					done <- nil
					return
				}
				doc, err := bson.Marshal(bson.D{{Key: "_id", Value: idOf(n)}, {Key: "sku", Value: fmt.Sprint("written ", n)}})
				if err == nil {
					err = store.WriteAll(context.WithoutCancel(ctx), w.records("items"), store.Op{Kind: store.Insert, Doc: doc})
				}
				switch {
				case err == nil:
					acked[n] = true
					wrote <- struct{}{}
				case !errors.Is(err, gate.ErrShut):
					done <- err
					return
				}
			}
		}()
		var results []snapshot.RestoreResult
		for range 3 {
			<-wrote
			results = append(results, w.restore(info, replaceAll))
			<-wrote
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		found := map[int]bool{}
		note := func(text string) {
			for n := range acked {
				if strings.Contains(text, fmt.Sprintf("written %d", n)) {
					found[n] = true
				}
			}
		}
		for _, r := range results {
			safety, err := w.snaps.Show(t.Context(), w.p, r.Safety)
			if err != nil {
				t.Fatal(err)
			}
			note(strings.Join(lines(t, filepath.Join(w.path(safety), "collections/items.jsonl.zst")), "\n"))
		}
		note(strings.Join(w.dump(w.p)["items"], "\n"))
		if len(found) != len(acked) || len(acked) < 6 {
			t.Errorf("%d writes were acknowledged, and %d are somewhere", len(acked), len(found))
		}
	})
}

// TestRestoreOverNew: a collection that comes into being while a restore goes on is in the safety snapshot, too.
func TestRestoreOverNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fill()
	info := w.create("daily")
	if err := w.db.DropCollection(t.Context(), "items"); err != nil {
		t.Fatal(err)
	}
	result, err := w.snaps.Restore(t.Context(), w.p, info.ID, w.p, replaceAll, func(now snapshot.Progress) {
		if n, err := w.records("items").Count(t.Context(), nil, 0); now.Phase == snapshot.Loading && n == 0 && err == nil {
			w.insert("items", bson.D{{Key: "_id", Value: "new"}})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	safety, err := w.snaps.Show(t.Context(), w.p, result.Safety)
	if err != nil {
		t.Fatal(err)
	}
	if got := lines(t, filepath.Join(w.path(safety), "collections/items.jsonl.zst")); len(got) != 1 || got[0] != `{"_id":"new"}` {
		t.Errorf("it has %v", got)
	}
}

// TestDrill: what can be restored is told, and what can't; nothing is left.
func TestDrill(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		w.fill()
		info := w.create("daily")
		before := w.state()
		result, err := w.snaps.Drill(t.Context(), w.p, info.ID, nil)
		if err != nil || result.Problems != 0 || result.Records != 348 || result.Files != 29 {
			t.Errorf("%+v, %v", result, err)
		}
		replace(t, filepath.Join(w.path(info), "media", hashOf("cover of 4")), "something")
		result, err = w.snaps.Drill(t.Context(), w.p, info.ID, nil)
		if err != nil || result.Problems != 1 || result.Found[0].Path != "media/"+hashOf("cover of 4") || result.Records != 348 {
			t.Errorf("%+v, %v", result, err)
		}
		if diff := cmp.Diff(before, w.state()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestDrillFindsAll: of what is damaged every file is named, and the rest is restored all the same; the snapshot is known to be damaged then.
func TestDrillFindsAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fill()
	info := w.create("both")
	records := map[string]int64{}
	for _, c := range info.Collections {
		records[c.Name] = c.Documents
	}
	cover := "media/" + hashOf("cover of 4")
	for _, tt := range []struct {
		name    string
		spoilt  []string
		records int64
	}{
		{"files of records, and an export", []string{cover, "collections/posts.jsonl.zst", "db/posts.bson"}, info.Counts.Documents - records["posts"]},
		{"indexes, which all collections need", []string{cover, "indexes.json"}, 0},
		{"the manifest, too", []string{"manifest.json", cover, "collections/posts.jsonl.zst"}, 0},
		{"its sum, and what only the manifest tells of", []string{"manifest.json.sha256", "db/posts.bson", cover}, 0},
	} {
		kept := contents(t, w.path(info))
		for _, name := range tt.spoilt {
			text := []byte(kept[name])
			text[len(text)/2] ^= 4
			replace(t, filepath.Join(w.path(info), name), string(text))
		}
		result, err := w.snaps.Drill(t.Context(), w.p, info.ID, nil)
		if err != nil {
			t.Fatal(tt.name, err)
		}
		found := make([]string, 0, len(result.Found))
		for _, f := range result.Found {
			found = append(found, f.Path)
			if f.Text == "" || strings.Contains(f.Text, f.Path) {
				t.Errorf("%s: %+v", tt.name, f)
			}
		}
		slices.Sort(found)
		slices.Sort(tt.spoilt)
		if !slices.Equal(found, tt.spoilt) || result.Problems != int64(len(found)) || result.Records != tt.records {
			t.Errorf("%s: %d, %v; %d records, want %v; %d", tt.name, result.Problems, found, result.Records, tt.spoilt, tt.records)
		}
		now, err := w.snaps.Look(t.Context(), w.p, info.ID)
		if err != nil || !now.Damaged() {
			t.Errorf("%s: it counts as whole: %v", tt.name, err)
		}
		for _, name := range tt.spoilt {
			replace(t, filepath.Join(w.path(info), name), kept[name])
		}
	}
	if result, err := w.snaps.Drill(t.Context(), w.p, info.ID, nil); err != nil || result.Problems != 0 { // mended
		t.Errorf("%+v, %v", result, err)
	}
	if now, err := w.snaps.Look(t.Context(), w.p, info.ID); err != nil || now.Damaged() || !now.State.Whole() {
		t.Errorf("it counts as damaged, and is mended: %v", err)
	}
}
