package snapshot_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// fileDiffs gives what is told of the files of posts.
func fileDiffs(d snapshot.Diff) (count int64, out []string) {
	for _, c := range d.Collections {
		for _, f := range c.FileDiffs {
			out = append(out, string(f.Kind)+" "+c.Name+"/"+f.Record+"/"+f.Field+"/"+f.Name)
		}
		count += c.Files
	}
	return count, out
}

// TestLostFiles: a file that a record names and that is lost, or is another one, is told by a comparison and by a dry run, and comes back by a restore, which says of the
// snapshot that it takes before that this can't have it, and has no warning of its own.
func TestLostFiles(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		for n := range 6 {
			w.post(n, "cover "+itoa(n))
		}
		if err := os.Remove(w.cover(5)); err != nil { // which the snapshot does not have, either
			t.Fatal(err)
		}
		info := w.create("daily")
		compare := func(o snapshot.CompareOptions) snapshot.Diff {
			t.Helper()
			d, err := w.snaps.Compare(t.Context(), w.p, info.ID, o)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		told := func(what string, d snapshot.Diff, count int64, want ...string) {
			t.Helper()
			n, got := fileDiffs(d)
			if n != count {
				t.Errorf("%s: %d files, want %d", what, n, count)
			}
			equal(t, what, want, got)
		}
		told("before", compare(snapshot.CompareOptions{Limit: 10}), 0)

		for _, n := range []int{0, 1, 4} {
			if err := os.Remove(w.cover(n)); err != nil {
				t.Fatal(err)
			}
		}
		replace(t, w.cover(2), "another one")
		w.write("posts", // records that differ are told of by themselves; a file that one names still, too
			store.Op{Kind: store.Update, ID: objectID(1), Update: mql.MustCompileUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "title", Value: "changed"}}}})},
			store.Op{Kind: store.Delete, ID: objectID(4)})
		at := func(n int) string { return "posts/" + idOf(n).Hex() + "/cover/" + itoa(n) + ".txt" }
		now := compare(snapshot.CompareOptions{Limit: 10})
		told("since then", now, 3, "removed "+at(0), "removed "+at(1), "changed "+at(2))
		for _, c := range now.Collections {
			if c.Name == "posts" && (c.Same != 4 || c.Changed != 1 || c.Removed != 1) {
				t.Errorf("%+v", c)
			}
		}
		told("the first", compare(snapshot.CompareOptions{Limit: 1}), 3, "removed "+at(0))
		told("counted only", compare(snapshot.CompareOptions{}), 3)
		told("of another collection", compare(snapshot.CompareOptions{Limit: 10, Collections: []string{"items"}}), 0)
		later := w.create("daily")
		told("between two snapshots", compare(snapshot.CompareOptions{With: later.ID, Limit: 10}), 3, "removed "+at(0), "removed "+at(1), "changed "+at(2))
		told("of one without files", compare(snapshot.CompareOptions{With: w.create("db").ID, Limit: 10}), 0)

		before := state{w.dump(w.p), contents(t, w.media)}
		would := []string{"added " + at(0), "added " + at(1), "changed " + at(2)}
		for _, mode := range []snapshot.RestoreMode{snapshot.Replace, snapshot.Merge} {
			o := snapshot.RestoreOptions{Media: true, Mode: mode, DryRun: true, Limit: 10}
			told("a dry run", *w.restore(info, o).Diff, 3, would...)
			o.Media = false
			told("a dry run without files", *w.restore(info, o).Diff, 0)
		}
		equal(t, "a dry run changes nothing", before, state{w.dump(w.p), contents(t, w.media)})

		done := w.restore(info, replaceAll)
		if done.Files.Linked != 4 || done.Files.Missing != 1 {
			t.Errorf("%+v", done.Files)
		}
		gone := "the file cover/5.txt of posts/" + idOf(5).Hex() + " is not there; upload it anew (its address may change); no snapshot has it whole"
		equal(t, "warnings of the restore", []string{gone}, done.Warnings) // of what the snapshot does not have: no restore brings it
		equal(t, "warnings of the snapshot before", []string{
			"the file cover/0.txt of posts/" + idOf(0).Hex() + " is not there; upload it anew (its address may change); " + info.ID + " has it whole, as media/" + hashOf("cover 0"),
			"the file cover/1.txt of posts/" + idOf(1).Hex() + " is not there; upload it anew (its address may change); " + info.ID + " has it whole, as media/" + hashOf("cover 1"),
			gone,
			"the file cover/2.txt of posts/" + idOf(2).Hex() + " is not what the record says: it is damaged; upload it anew (its address may change); " + info.ID + " has it whole, as media/" + hashOf("cover 2"),
		}, done.SafetyWarnings)
		safety, err := w.snaps.Show(t.Context(), w.p, done.Safety)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "warnings in the snapshot before", done.SafetyWarnings, safety.Warnings)
		told("then", compare(snapshot.CompareOptions{Limit: 10}), 0)
		// What that one does not have stays where it is, and so does what it has damaged.
		told("a dry run of the snapshot before", *w.restore(safety, snapshot.RestoreOptions{Media: true, DryRun: true, Limit: 10}).Diff, 0)
	})
}

// TestFilesOfChangedRecords: a file whose record is deleted, or names another one, while it is compared is not lost. One whose record is changed otherwise is.
func TestFilesOfChangedRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	for n := range 4 {
		w.post(n, "cover "+itoa(n))
	}
	info := w.create("daily")
	changed := false
	d, err := w.snaps.Compare(t.Context(), w.p, info.ID, snapshot.CompareOptions{Limit: 10, Report: func(p snapshot.Progress) {
		if p.Phase != snapshot.Comparing || changed {
			return
		}
		changed = true // all are read from a view that was opened before
		set := func(name string, v any) *mql.Update {
			return mql.MustCompileUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: name, Value: v}}}})
		}
		w.write("posts",
			store.Op{Kind: store.Delete, ID: objectID(0)},
			store.Op{Kind: store.Update, ID: objectID(1), Update: set("cover", w.upload("posts", idOf(1), "cover", "new.txt", "new"))},
			store.Op{Kind: store.Update, ID: objectID(2), Update: set("title", "changed")})
		for n := range 3 {
			if err := os.Remove(w.cover(n)); err != nil {
				t.Error(err)
			}
		}
	}})
	if err != nil || !changed {
		t.Fatal(changed, err)
	}
	n, got := fileDiffs(d)
	if n != 1 {
		t.Errorf("%d files", n)
	}
	equal(t, "lost", []string{"removed posts/" + idOf(2).Hex() + "/cover/2.txt"}, got)
	for _, c := range d.Collections {
		if c.Name == "posts" && c.Same != 4 {
			t.Errorf("it was not compared as it was: %+v", c)
		}
	}
}

// TestLostFilesOnly: a restore that has all there is to bring has no warning, whatever was missing before.
func TestLostFilesOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.post(0, "cover")
	info := w.create("daily")
	if err := os.RemoveAll(filepath.Join(w.media, w.p.Namespace, "posts")); err != nil {
		t.Fatal(err)
	}
	var told []string
	done, err := w.snaps.Restore(t.Context(), w.p, info.ID, w.p, replaceAll, func(p snapshot.Progress) {
		if p.Warning != "" {
			told = append(told, p.Warning)
		}
	})
	if err != nil || len(told)+len(done.Warnings) > 0 || len(done.SafetyWarnings) != 1 {
		t.Errorf("told %q, warnings %q, of the snapshot before %q, %v", told, done.Warnings, done.SafetyWarnings, err)
	}
}

// TestLostFilesElsewhere tells of files of another project and of a collection with another name and folder.
func TestLostFilesElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.post(0, "cover")
	info := w.create("daily")
	other := load(t, strings.Replace(config, "- name: posts\n", "- name: posts\n    uploadPath: elsewhere\n", 1), newNamespace())
	t.Cleanup(func() { _ = w.store.DropDatabase(t.Context(), "svc_"+other.Namespace) })
	for _, dry := range []bool{false, true} {
		o := snapshot.RestoreOptions{Media: true, DryRun: dry, Limit: 10}
		done, err := w.snaps.Restore(t.Context(), w.p, info.ID, other, o, nil)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(w.media, other.Namespace, "elsewhere", idOf(0).Hex(), "cover/0.txt")
		if dry {
			_, got := fileDiffs(*done.Diff)
			equal(t, "a dry run", []string{"added posts/" + idOf(0).Hex() + "/cover/0.txt"}, got)
			continue
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestComparePart: of a snapshot of some collections, the others are no difference; one that it was to have, and that has come since, is.
func TestComparePart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.post(0, "cover")
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	w.write("items", store.Op{Kind: store.Insert, Doc: doc})
	whole := w.create("daily")
	done := w.restore(whole, snapshot.RestoreOptions{Collections: []string{"posts"}, Media: true})
	kinds := func(o snapshot.CompareOptions) map[string]snapshot.Kind {
		t.Helper()
		diff, err := w.snaps.Compare(t.Context(), w.p, done.Safety, o)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]snapshot.Kind{}
		for _, c := range diff.Collections {
			out[c.Name] = c.Kind
			if c.Added+c.Removed+c.Changed > 0 {
				t.Errorf("%+v", c)
			}
		}
		return out
	}
	for _, o := range []snapshot.CompareOptions{{}, {With: whole.ID}} {
		if got := kinds(o); got["posts"] != "" || got["items"] != snapshot.Uncovered {
			t.Errorf("%+v: %v", o, got)
		}
	}
	if _, err := w.snaps.Compare(t.Context(), w.p, done.Safety, snapshot.CompareOptions{Collections: []string{"items"}}); errs.KindOf(err) != errs.NotFound {
		t.Errorf("compared with what it was not taken of: %v", err)
	}
}
