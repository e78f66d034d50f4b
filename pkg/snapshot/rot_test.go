package snapshot_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// post has a record with a cover.
func (w *world) post(n int, content string) {
	w.Helper()
	id := idOf(n)
	w.insert("posts", bson.D{{Key: "_id", Value: id}, {Key: "cover", Value: w.upload("posts", id, "cover", fmt.Sprintf("%d.txt", n), content)}})
}

// cover is the file of such a record.
func (w *world) cover(n int) string {
	return filepath.Join(w.media, w.p.Namespace, "posts", idOf(n).Hex(), "cover", fmt.Sprintf("%d.txt", n))
}

// rot changes the content of a file in its place, and so of all that are links to it. As a disk does, it leaves no trace of when.
func (w *world) rot(name, content string) {
	w.Helper()
	info, err := os.Stat(name)
	if err == nil {
		err = os.WriteFile(name, []byte(content), 0o600)
	}
	if err == nil {
		err = os.Chtimes(name, info.ModTime(), info.ModTime())
	}
	if err != nil {
		w.Fatal(err)
	}
}

// check checks a snapshot, and gives what was found.
func (w *world) check(info snapshot.Info) []snapshot.Finding {
	w.Helper()
	v, err := w.snaps.Verify(w.Context(), w.p, info.ID, snapshot.VerifyOptions{})
	if err != nil {
		w.Fatal(err)
	}
	if v.Problems != int64(len(v.Found)) {
		w.Errorf("%d problems, and %v", v.Problems, v.Found)
	}
	return v.Found
}

// damage is what is known of a snapshot to be damaged.
func (w *world) damage(info snapshot.Info) []snapshot.Finding {
	w.Helper()
	now, err := w.snaps.Look(w.Context(), w.p, info.ID)
	if err != nil {
		w.Fatal(err)
	}
	if now.State.Damage == nil {
		return nil
	}
	if !now.State.WholeAt.IsZero() || now.State.Damage.Problems != int64(len(now.State.Damage.Found)) {
		w.Errorf("%+v", now.State)
	}
	return now.State.Damage.Found
}

// TestRottenUpload: a bit of a file that is served flips on the disk, and so in all snapshots that have a link to it. A check names the record, all of these snapshots are known to
// be damaged then, and one that is taken behind it says that the file was so already, and is whole as it is.
func TestRottenUpload(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		w.post(1, "good")
		w.post(2, "other")
		first, second, other := w.create("daily"), w.create("posts"), w.create("both")
		for _, info := range []snapshot.Info{first, second, other} {
			w.verify(info)
		}
		without := w.create("db")
		w.verify(without)
		w.rot(w.cover(1), "gOod")
		unread := w.create("daily") // nobody knows yet

		file := "media/" + hashOf("good")
		const helpless = "upload it anew (its address may change); no snapshot has it whole"
		owner := "the file cover/1.txt of posts/" + idOf(1).Hex()
		want := []snapshot.Finding{{Path: file, Text: "it is not what was written: " + owner + "; the file that is served is the same one: " + helpless}}
		equal(t, "found", want, w.check(second))
		for _, info := range []snapshot.Info{first, other, unread} {
			equal(t, "known of "+info.Profile, []snapshot.Finding{{Path: file, Text: "it is the same file as in " + second.ID + ", where it was found damaged"}}, w.damage(info))
		}
		if found := w.damage(without); len(found) > 0 {
			t.Errorf("known of one without files: %v", found)
		}
		equal(t, "found in another one", want, w.check(first))

		third := w.create("daily")
		equal(t, "warnings", []string{owner + " is not what the record says: it is damaged; " + helpless}, third.Warnings)
		equal(t, "differing", []snapshot.Differing{{Collection: "posts", Record: idOf(1).Hex(), Field: "cover", Name: "1.txt", SHA256: hashOf("gOod")}}, third.Differing)
		w.verify(third)
		w.verify(w.create("daily")) // and so are those behind it
		if done, err := w.snaps.Restore(t.Context(), w.p, third.ID, w.p, snapshot.RestoreOptions{Media: true}, nil); err != nil || done.Files.Missing > 0 {
			t.Errorf("%+v, %v", done.Files, err)
		}
	})
}

// TestOverwrittenUpload: somebody writes to a file that is served. The next snapshot sees it, and those that have the same file are known to be damaged.
func TestOverwrittenUpload(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.post(1, "good")
	w.post(2, "other")
	first := w.create("daily")
	w.verify(first)
	if err := os.WriteFile(w.cover(1), []byte("gOod"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(w.cover(1), time.Time{}, time.Now().Add(time.Hour)); err != nil { // a step of the disk's clock is not waited for
		t.Fatal(err)
	}
	second := w.create("daily")
	if len(second.Warnings) != 1 || len(second.Differing) != 1 {
		t.Errorf("%q %v", second.Warnings, second.Differing)
	}
	w.verify(second)
	equal(t, "known of the one before", []snapshot.Finding{
		{Path: "media/" + hashOf("good"), Text: "it is the file that was found damaged when " + second.ID + " was taken"},
	}, w.damage(first))
}

// TestRottenUploadWithCopy names the snapshot that has the file whole, since it has a copy of its own.
func TestRottenUploadWithCopy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.post(1, "good")
	w.faults = func(op, name string) error {
		if op == "link" && strings.HasPrefix(name, "media/") {
			return syscall.EXDEV
		}
		return nil
	}
	copied := w.create("daily")
	w.faults = nil
	linked := w.create("posts")
	w.verify(linked)
	w.rot(w.cover(1), "gOod")
	owner := "the file cover/1.txt of posts/" + idOf(1).Hex()
	file := "media/" + hashOf("good")
	helps := "upload it anew (its address may change); " + copied.ID + " has it whole, as " + file
	equal(t, "found", []snapshot.Finding{{Path: file, Text: "it is not what was written: " + owner + "; the file that is served is the same one: " + helps}}, w.check(linked))
	later := w.create("posts")
	equal(t, "warnings", []string{owner + " is not what the record says: it is damaged; " + helps}, later.Warnings)
	w.verify(copied)

	// Restoring that one brings the file back; what is damaged then is the snapshot alone.
	if _, err := w.snaps.Restore(t.Context(), w.p, copied.ID, w.p, snapshot.RestoreOptions{Media: true}, nil); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(w.cover(1)); err != nil || string(text) != "good" {
		t.Errorf("%q, %v", text, err)
	}
	equal(t, "found when what is served is whole", []snapshot.Finding{
		{Path: file, Text: "it is not what was written: " + owner + "; the file that is served is whole: take a new snapshot"},
	}, w.check(linked))
	if err := w.db.DropCollection(t.Context(), "posts"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(w.cover(1)); err != nil {
		t.Fatal(err)
	}
	equal(t, "found when nothing is served", []snapshot.Finding{{Path: file, Text: "it is not what was written: " + owner + "; " + copied.ID + " has it whole"}}, w.check(linked))
}

// TestRottenTwin: of records with the same content one has a file that is damaged. That of the other is in the snapshot all the same, whichever is first.
func TestRottenTwin(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"daily", "both"} {
		for rotten := range 3 {
			w := newWorld(t, teststore.Memory(t))
			for n := range 3 {
				w.post(n, "same")
			}
			w.rot(w.cover(rotten), "sAme")
			info := w.create(profile)
			if v := w.verify(info); v.Dangling > 0 {
				t.Errorf("%s, %d: without %v", profile, rotten, v.Without)
			}
			if rotten > 0 { // that file was not looked at: the snapshot has its content from another one
				continue
			}
			equal(t, "differing", []snapshot.Differing{{Collection: "posts", Record: idOf(0).Hex(), Field: "cover", Name: "0.txt", SHA256: hashOf("sAme")}}, info.Differing)
			if c := info.Counts; c.MediaFiles != 2 || c.MediaBytes != 8 || c.Linked != 2 || c.Missing != 0 || c.Warnings != 1 {
				t.Errorf("%+v", c)
			}
		}
	}
	w := newWorld(t, teststore.Memory(t)) // whose is damaged is told, and not whose is whole
	for n := range 8 {
		w.post(n, "same")
	}
	before := w.create("daily") // which has that of the first
	w.rot(w.cover(0), "sAme")
	equal(t, "found", []snapshot.Finding{{
		Path: "media/" + hashOf("same"),
		Text: "it is not what was written: the file cover/0.txt of posts/" + idOf(0).Hex() + "; the file that is served is the same one: upload it anew (its address may change); the file cover/1.txt of posts/" + idOf(1).Hex() + " has it whole",
	}}, w.check(before))
	w = newWorld(t, teststore.Memory(t)) // all are, in two ways
	for n := range 3 {
		w.post(n, "same")
		w.rot(w.cover(n), []string{"sAme", "saMe", "sAme"}[n])
	}
	info := w.create("daily")
	if v := w.verify(info); v.Dangling > 0 || len(info.Differing) != 3 || len(info.Warnings) != 3 || info.Counts.MediaFiles != 2 {
		t.Errorf("%+v %v %q %+v", v, info.Differing, info.Warnings, info.Counts)
	}
}

// TestRottenCopy: where files can't be linked, a copy of the snapshot before that is damaged is not taken for the file that is served.
func TestRottenCopy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.post(1, "good")
	w.post(2, "good")
	tried := map[string]bool{}
	w.faults = func(op, name string) error {
		if op != "link" || !strings.HasPrefix(name, "media/") || tried[name] {
			return nil
		}
		tried[name] = true // the second try of a name is a link to the snapshot before
		return syscall.EXDEV
	}
	first := w.create("daily")
	w.rot(filepath.Join(w.path(first), "media", hashOf("good")), "gOod")
	clear(tried)
	second := w.create("daily")
	w.faults = nil
	w.verify(second)
	if len(second.Warnings)+len(second.Differing) > 0 || second.Counts.MediaFiles != 1 {
		t.Errorf("%q %v %+v", second.Warnings, second.Differing, second.Counts)
	}
	if found := w.damage(first); len(found) != 1 || found[0].Path != "media/"+hashOf("good") {
		t.Errorf("known of the one before: %v", found)
	}
}

// TestRottenExport: an export that is a link to that of the snapshot before is damaged in both.
func TestRottenExport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fillWith(2, 2)
	first, second := w.create("daily"), w.create("daily")
	w.verify(first)
	name := "collections/items.jsonl.zst"
	text := contents(t, w.path(first))[name]
	w.rot(filepath.Join(w.path(first), name), text[:len(text)-1]+"\x00")
	if found := w.check(second); len(found) != 1 || found[0].Path != name {
		t.Fatalf("found %v", found)
	}
	equal(t, "known", []snapshot.Finding{{Path: name, Text: "it is the same file as in " + second.ID + ", where it was found damaged"}}, w.damage(first))
	before := w.changed
	w.check(second) // which says nothing new of the first
	if w.changed != before {
		t.Error("it is told again")
	}
	w.rot(filepath.Join(w.path(first), name), text)
	w.verify(second)
	if len(w.damage(first)) != 1 || len(w.damage(second)) != 0 {
		t.Error("a check of one has found the other whole")
	}
	w.verify(first)
	w.rot(filepath.Join(w.path(first), "manifest.json"), "{}") // a manifest that can't be read says nothing of files
	w.check(first)
	if found := w.damage(second); len(found) > 0 {
		t.Errorf("known of the second: %v", found)
	}
}

// TestRottenMeanwhile: a check of the snapshot before finds damage while one is taken that has links to its files, and is not there yet. That one is known to be damaged, too, so that
// the next one reads what it has.
func TestRottenMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.post(1, "good")
	w.post(2, "other")
	first := w.create("daily")
	w.verify(first)
	w.rot(w.cover(1), "gOod")
	checked := false
	w.faults = func(op, name string) error {
		if op == "rename" && strings.Contains(name, "manifest.json") && !checked { // what is linked is linked
			checked = true
			if found := w.check(first); len(found) != 1 {
				t.Errorf("found %v", found)
			}
		}
		return nil
	}
	second := w.create("daily")
	w.faults = nil
	if !checked || len(second.Warnings) > 0 {
		t.Fatalf("checked %v, warnings %q", checked, second.Warnings)
	}
	equal(t, "known", []snapshot.Finding{{Path: "media/" + hashOf("good"), Text: "it is the same file as in " + first.ID + ", where it was found damaged"}}, w.damage(second))
	if third := w.create("daily"); len(third.Warnings) != 1 || len(w.damage(third)) > 0 {
		t.Errorf("the next one: warnings %q, damage %v", third.Warnings, w.damage(third))
	}
}

// TestRottenMany: of very many files that are damaged not more is kept than is shown, and a second look adds nothing.
func TestRottenMany(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	for n := range 150 {
		w.post(n, fmt.Sprint("good ", n))
	}
	first, second := w.create("daily"), w.create("posts")
	for n := range 150 {
		w.rot(w.cover(n), fmt.Sprint("bad! ", n))
	}
	v, err := w.snaps.Verify(t.Context(), w.p, second.ID, snapshot.VerifyOptions{})
	if err != nil || v.Problems != 150 || len(v.Found) != 100 {
		t.Fatalf("%d problems, %d named, %v", v.Problems, len(v.Found), err)
	}
	for range 2 {
		if found := w.damage(first); len(found) != 100 || !slices.IsSortedFunc(found, func(a, b snapshot.Finding) int { return strings.Compare(a.Path, b.Path) }) {
			t.Errorf("known are %d", len(found))
		}
		if _, err := w.snaps.Verify(t.Context(), w.p, second.ID, snapshot.VerifyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, profile := range []string{"posts", "daily"} { // whose newest one knows of all, or of the first hundred
		third := w.create(profile)
		if len(third.Differing) != 150 || third.Counts.Warnings != 150 {
			t.Errorf("%s: %d differ, %d warnings", profile, len(third.Differing), third.Counts.Warnings)
		}
		w.verify(third)
	}
}
