package snapshot_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// lines are those of an export.
func lines(tb testing.TB, name string) []string {
	tb.Helper()
	file, err := os.Open(name)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	zip, err := zstd.NewReader(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer zip.Close()
	text, err := io.ReadAll(zip)
	if err != nil {
		tb.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func TestCreate(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		w.fill()
		info := w.create("both")
		w.verify(info)
		dir := w.path(info)
		files := contents(t, dir)

		if got := lines(t, filepath.Join(dir, "collections/posts.jsonl.zst")); len(got) != 40 || !slices.IsSorted(got) {
			t.Errorf("%d posts, in order %v", len(got), slices.IsSorted(got))
		}
		stored := map[string][]byte{}
		if err := w.records("items").Find(t.Context(), store.Query{}, func(doc bson.Raw) error {
			stored[string(document.AppendKey(nil, doc.Lookup("_id"), false))] = slices.Clone(doc)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		raw, n := []byte(files["db/items.bson"]), 0
		for _, line := range lines(t, filepath.Join(dir, "collections/items.jsonl.zst")) {
			doc, err := document.ParseExtended([]byte(line))
			if err != nil {
				t.Fatal(err)
			}
			if want := stored[string(document.AppendKey(nil, doc.Lookup("_id"), false))]; !bytes.Equal(doc, want) {
				t.Errorf("exported\n%x\nstored\n%x", []byte(doc), want)
			}
			if !bytes.HasPrefix(raw, doc) {
				t.Fatalf("record %d of the BSON is another", n)
			}
			raw = raw[len(doc):]
			n++
		}
		if n != len(stored) || len(raw) > 0 {
			t.Errorf("%d items of %d, and %d bytes of BSON behind them", n, len(stored), len(raw))
		}
		for n := range 40 {
			if want := "cover of " + itoa(n); n%2 == 0 && files["media/"+hashOf(want)] != want {
				t.Errorf("the cover of %d is %q", n, files["media/"+hashOf(want)])
			}
		}
		if files["media/"+hashOf("the same everywhere")] != "the same everywhere" {
			t.Error("a file of several records is not there")
		}
		if files["config/project.yaml"] != string(w.p.Bundle.Files["project.yaml"]) {
			t.Error("the config is not there")
		}
		if !strings.Contains(files["indexes.json"], `"path": "sku"`) || !strings.Contains(files["db/items.metadata.json"], `"key":{"sku":{"$numberInt":"1"},"n":{"$numberInt":"-1"}},"name":"svc_sku","unique":true`) {
			t.Errorf("indexes: %s\n%s", files["indexes.json"], files["db/items.metadata.json"])
		}

		var names []string
		for _, c := range info.Collections {
			names = append(names, c.Name+" "+itoa(int(c.Documents)))
		}
		if diff := cmp.Diff([]string{"empty 0", "items 307", "legacy 1", "posts 40"}, names); diff != "" {
			t.Error(diff)
		}
		if c := info.Counts; c.MediaFiles != 20+1+8 || c.Linked != c.MediaFiles || c.Copied+c.Deduplicated+c.Missing+c.Warnings != 0 {
			t.Errorf("%+v", c)
		}
		if info.Namespace != w.p.Namespace || info.Revision != w.p.Revision || info.Tool != "1.2.3" || info.Store != s.Name() || !info.ConsistentAt.Equal(w.clock.Now()) || len(info.Position) == 0 {
			t.Errorf("%+v", info.Manifest)
		}
	})
}

func itoa(n int) string {
	text, _ := json.Marshal(n) // a number always encodes
	return string(text)
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fill()
	for profile, want := range map[string][]string{
		"posts": {"collections/posts.jsonl.zst"},
		"rest":  {"collections/empty.jsonl.zst", "collections/items.jsonl.zst", "collections/legacy.jsonl.zst"},
		"db":    {"db/empty.bson", "db/empty.metadata.json", "db/items.bson", "db/items.metadata.json", "db/legacy.bson", "db/legacy.metadata.json", "db/posts.bson", "db/posts.metadata.json"},
	} {
		info := w.create(profile)
		w.verify(info)
		var got []string
		media := 0
		for name := range contents(t, w.path(info)) {
			if strings.HasPrefix(name, "collections/") || strings.HasPrefix(name, "db/") {
				got = append(got, name)
			}
			if strings.HasPrefix(name, "media/") {
				media++
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", profile, diff)
		}
		if (media > 0) != (profile == "posts") {
			t.Errorf("%s has %d files of records", profile, media)
		}
	}
	if _, err := snapshot.ProfileOf(w.p, "none"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("a profile that there is none of: %v", err)
	}
}

// TestDedup: what has not changed is a link, what has is not, and the same records give the same bytes.
func TestDedup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fill()
	first := w.create("daily")
	w.insert("posts", bson.D{{Key: "_id", Value: idOf(1000)}, {Key: "cover", Value: w.upload("posts", idOf(1000), "cover", "new.txt", "new")}})
	second := w.create("daily")
	w.verify(second)
	var written []string
	for _, f := range second.Files {
		a, errA := os.Stat(filepath.Join(w.path(first), f.Path))
		b, errB := os.Stat(filepath.Join(w.path(second), f.Path))
		if errB != nil {
			t.Fatal(errB)
		}
		same := errA == nil && os.SameFile(a, b)
		if f.How == snapshot.Written {
			written = append(written, f.Path)
		}
		if same != (f.How == snapshot.Deduplicated || f.How == snapshot.Linked && f.Path != "media/"+hashOf("new")) {
			t.Errorf("%s is %s, the same file: %v", f.Path, f.How, same)
		}
	}
	if diff := cmp.Diff([]string{"collections/posts.jsonl.zst"}, written); diff != "" {
		t.Error(diff)
	}
	plain := w.create("both")
	again := contents(t, w.path(plain))
	for name, text := range contents(t, w.path(second)) {
		if strings.HasPrefix(name, "collections/") && again[name] != text {
			t.Errorf("%s has other bytes, of the same records", name)
		}
	}

	// Damage of the one before does not come along.
	damage := filepath.Join(w.path(second), "collections/items.jsonl.zst")
	text := []byte(contents(t, w.path(second))["collections/items.jsonl.zst"])
	text[len(text)/2] ^= 1
	if err := os.WriteFile(damage, text, 0o600); err != nil {
		t.Fatal(err)
	}
	w.verify(w.create("daily"))
}

// TestDedupOfSameSize: records that have changed and are as many and as large as before are written, and what they name is there once.
func TestDedupOfSameSize(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		w.fill()
		cover := w.upload("posts", idOf(1000), "cover", "c.txt", "cover")
		w.insert("posts", bson.D{{Key: "_id", Value: idOf(1000)}, {Key: "cover", Value: cover}, {Key: "title", Value: "before"}})
		first := w.create("daily")
		behind := encode(t, bson.D{{Key: "_id", Value: idOf(1000)}, {Key: "cover", Value: cover}, {Key: "title", Value: "behind"}})
		if err := store.WriteAll(t.Context(), w.records("posts"), store.Op{Kind: store.Replace, ID: behind.Lookup("_id"), Doc: behind}); err != nil {
			t.Fatal(err)
		}
		second := w.create("daily")
		w.verify(second)
		if a, b := first.Counts, second.Counts; a.MediaFiles != b.MediaFiles || a.MediaBytes != b.MediaBytes || b.Warnings != 0 || a.Documents != b.Documents {
			t.Errorf("counts %+v, before %+v", b, a)
		}
		for i := range second.Files {
			if f := &second.Files[i]; strings.HasPrefix(f.Path, "collections/") && (f.How == snapshot.Written) != (f.Path == "collections/posts.jsonl.zst") {
				t.Errorf("%s is %s", f.Path, f.How)
			}
		}
		third := w.create("daily")
		w.verify(third)
		if c := third.Counts; c.Written != 0 || c.NewBytes != 0 {
			t.Errorf("of nothing new, %d files are written with %d bytes", c.Written, c.NewBytes)
		}
	})
}

// TestCopies: files that can't be linked are copied, and linked to those of the snapshot before from then on.
func TestCopies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fill()
	tried := map[string]bool{}
	w.faults = func(op, name string) error {
		if op != "link" || !strings.HasPrefix(name, "media/") || tried[name] {
			return nil
		}
		tried[name] = true // the second try of a name is a link to the snapshot before
		return syscall.EXDEV
	}
	first := w.create("daily")
	clear(tried)
	second := w.create("daily")
	w.faults = nil
	if c := first.Counts; c.Copied != 29 || c.MediaFiles != 29 || c.Linked+c.Deduplicated != 0 || c.NewBytes != c.Bytes {
		t.Errorf("%+v", c)
	}
	if c := second.Counts; c.MediaFiles != 29 || c.Linked+c.Copied != 0 || c.NewBytes != 0 {
		t.Errorf("%+v", c)
	}
	for name, text := range contents(t, w.media) { // which are no links to the live ones
		replaced := "other" + text
		if err := os.WriteFile(filepath.Join(w.media, name), []byte(replaced), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.verify(first)
	w.verify(second)
}

// TestMissingFiles: what records name and is not there, or is not what they say, is told, and is no reason for no snapshot.
func TestMissingFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	gone := w.upload("posts", idOf(1), "cover", "gone.txt", "gone")
	bad := w.upload("posts", idOf(2), "cover", "bad.txt", "good")
	bare := w.upload("posts", idOf(3), "cover", "bare.txt", "bare")
	w.insert("posts",
		bson.D{{Key: "_id", Value: idOf(1)}, {Key: "cover", Value: gone}},
		bson.D{{Key: "_id", Value: idOf(2)}, {Key: "cover", Value: bad}},
		bson.D{{Key: "_id", Value: idOf(3)}, {Key: "cover", Value: bare[:1]}}, // as other hands write it
		bson.D{{Key: "_id", Value: idOf(4)}, {Key: "cover", Value: bson.D{{Key: "src", Value: "https://example.com/a.png"}}}},
		bson.D{{Key: "_id", Value: idOf(5)}, {Key: "cover", Value: bson.D{{Key: "src", Value: project.FilesRoot(w.p.Namespace) + "posts/" + idOf(5).Hex() + "/../../x"}}}},
		bson.D{{Key: "_id", Value: idOf(6)}, {Key: "cover", Value: bare}}, // the file of another record
	)
	folder := filepath.Join(w.media, w.p.Namespace, "posts")
	if err := os.Remove(filepath.Join(folder, idOf(1).Hex(), "cover/gone.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, idOf(2).Hex(), "cover/bad.txt"), []byte("BAD!"), 0o600); err != nil {
		t.Fatal(err)
	}
	var warnings []string
	info, err := w.snaps.Create(t.Context(), w.p, w.profile("posts"), func(p snapshot.Progress) {
		if p.Warning != "" {
			warnings = append(warnings, p.Warning)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(warnings)
	want := []string{
		"the file ../../x of posts/" + idOf(5).Hex() + " is not there; upload it anew (its address may change)",
		"the file cover/bad.txt of posts/" + idOf(2).Hex() + " is not what the record says: it is damaged; upload it anew (its address may change); no snapshot has it whole",
		"the file cover/gone.txt of posts/" + idOf(1).Hex() + " is not there; upload it anew (its address may change); no snapshot has it whole",
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
	slices.Sort(info.Warnings)
	if diff := cmp.Diff(want, info.Warnings); diff != "" || info.Counts.Warnings != 3 || info.Counts.Missing != 2 {
		t.Errorf("%+v\n%s", info.Counts, diff)
	}
	files := contents(t, w.path(info))
	if files["media/"+hashOf("BAD!")] != "BAD!" || files["media/"+hashOf("bare")] != "bare" || info.Counts.MediaFiles != 2 {
		t.Errorf("files: %v", info.Files)
	}
	var differing []string
	for _, d := range info.Differing {
		differing = append(differing, d.Record+" "+d.Field+"/"+d.Name+" "+d.SHA256)
	}
	slices.Sort(differing)
	if diff := cmp.Diff([]string{
		idOf(2).Hex() + " cover/bad.txt " + hashOf("BAD!"), idOf(3).Hex() + " cover/bare.txt " + hashOf("bare"),
	}, differing); diff != "" {
		t.Error(diff)
	}
	if v := w.verify(info); v.Dangling != 2 {
		t.Errorf("%d files are not in it, want 2: %v", v.Dangling, v.Without)
	}
}

// TestCanceled: whenever it is canceled, nothing is left, and the next one is whole.
func TestCanceled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fillWith(6, 5)
	canceled := 0
	for at := 1; ; at++ {
		ctx, cancel := context.WithCancel(t.Context())
		var n atomic.Int64 // files are synced several at once
		w.faults = func(string, string) error {
			if n.Add(1) == int64(at) {
				cancel()
			}
			return nil
		}
		_, err := w.snaps.Create(ctx, w.p, w.profile("daily"), nil)
		ended := n.Load() < int64(at)
		cancel()
		list, failed := w.snaps.List(t.Context(), w.p)
		if failed != nil {
			t.Fatal(failed)
		}
		if err == nil {
			w.verify(list[0])
			if len(list) != 1 || ended {
				break
			}
			if err := w.snaps.Delete(t.Context(), w.p, list[0].ID); err != nil {
				t.Fatal(err)
			}
			continue
		}
		canceled++
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("operation %d: %v", at, err)
		}
		if len(list) > 0 {
			t.Fatalf("operation %d: canceled, and it left %v", at, list)
		}
		if left := contents(t, filepath.Join(w.p.Dir, "snapshots")); len(left) > 0 {
			t.Fatalf("operation %d left %v", at, left)
		}
	}
	if canceled < 60 {
		t.Errorf("it was canceled %d times", canceled)
	}
}
