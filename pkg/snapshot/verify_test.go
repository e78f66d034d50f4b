package snapshot_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// R21: one flipped byte in any file of a snapshot is found, and the file is named.
func TestR21FlippedByte(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fill()
	info := w.create("both")
	w.verify(info)
	n := 0
	for name, text := range contents(t, w.path(info)) {
		places := []int{0, len(text) / 2, len(text) - 1}
		if strings.HasPrefix(name, "manifest.json") {
			places = places[:0]
			for at := range text {
				places = append(places, at)
			}
			places = sampled(t, places, 150)
		}
		for _, at := range places {
			if text == "" {
				continue
			}
			changed := []byte(text)
			changed[at] ^= 1 << (at % 8)
			// A file of its own: others are linked to the one that is there.
			replace(t, filepath.Join(w.path(info), name), string(changed))
			v, err := w.snaps.Verify(t.Context(), w.p, info.ID, snapshot.VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if v.Problems != 1 || len(v.Found) != 1 || v.Found[0].Path != name || v.Whole() {
				t.Errorf("byte %d of %s: %d problems, %+v", at, name, v.Problems, v.Found)
			}
			n++
		}
		replace(t, filepath.Join(w.path(info), name), text)
	}
	w.verify(info)
	if n < 300 {
		t.Errorf("only %d bytes were flipped", n)
	}
}

// sampled is some of a list, its ends among them.
func sampled(t testing.TB, all []int, n int) []int {
	t.Helper()
	if len(all) <= n {
		return all
	}
	out := []int{all[0], all[len(all)-1]}
	for _, i := range shuffled(t, len(all))[:n-2] {
		out = append(out, all[i])
	}
	return out
}

func replace(tb testing.TB, name, text string) {
	tb.Helper()
	if err := os.Remove(name); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

func TestVerifyFinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fill()
	info := w.create("both")
	dir := w.path(info)
	media := "media/" + hashOf("the same everywhere")
	owned := ""
	for _, n := range []int{0, 5, 10} {
		owned += ", the file gallery/same.txt of posts/" + idOf(n).Hex()
	}
	owned = ": " + owned[2:] + ", and 5 more; the file that is served is whole: take a new snapshot"
	for name, c := range map[string]struct {
		do   func() error
		undo func() error
		want []snapshot.Finding
	}{
		"a file too much": {
			func() error { return os.WriteFile(filepath.Join(dir, "config/new"), nil, 0o600) },
			func() error { return os.Remove(filepath.Join(dir, "config/new")) },
			[]snapshot.Finding{{Path: "config/new", Text: "it is none of the snapshot's files"}},
		},
		"a file too few": {
			func() error { return os.Rename(filepath.Join(dir, media), filepath.Join(dir, "../x")) },
			func() error { return os.Rename(filepath.Join(dir, "../x"), filepath.Join(dir, media)) },
			[]snapshot.Finding{{Path: media, Text: "it is not there" + owned}},
		},
		"a link": {
			func() error {
				return errors.Join(os.Rename(filepath.Join(dir, media), filepath.Join(dir, "../x")), os.Symlink("../../x", filepath.Join(dir, media)))
			},
			func() error {
				return errors.Join(os.Remove(filepath.Join(dir, media)), os.Rename(filepath.Join(dir, "../x"), filepath.Join(dir, media)))
			},
			[]snapshot.Finding{{Path: media, Text: "it is no regular file" + owned}},
		},
		"a file that is cut off": {
			func() error { return os.Truncate(filepath.Join(dir, "db/items.bson"), 100) },
			nil,
			[]snapshot.Finding{{Path: "db/items.bson", Text: "it has 100 bytes, and should have " + itoa(int(size(info, "db/items.bson")))}},
		},
	} {
		before, err := os.ReadFile(filepath.Join(dir, "db/items.bson"))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		v, err := w.snaps.Verify(t.Context(), w.p, info.ID, snapshot.VerifyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, v.Found); diff != "" || v.Problems != 1 {
			t.Errorf("%s: %s", name, diff)
		}
		if c.undo != nil {
			err = c.undo()
		} else {
			err = os.WriteFile(filepath.Join(dir, "db/items.bson"), before, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.verify(info)
	}
}

func size(info snapshot.Info, name string) int64 {
	for _, f := range info.Files {
		if f.Path == name {
			return f.Size
		}
	}
	return -1
}

// TestVerifySample reads a part of the files, and keeps how that ended.
func TestVerifySample(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fill()
	info := w.create("daily")
	var phases []snapshot.Progress
	v, err := w.snaps.Verify(t.Context(), w.p, info.ID, snapshot.VerifyOptions{Sample: 0.3, Report: func(p snapshot.Progress) { phases = append(phases, p) }})
	if err != nil {
		t.Fatal(err)
	}
	if v.Problems != 0 || v.Files == 0 || v.Files >= int64(len(info.Files)) || v.Whole() || v.Sample != 0.3 {
		t.Errorf("%+v of %d files", v, len(info.Files))
	}
	if first, last := phases[0], phases[len(phases)-1]; first.Phase != snapshot.Verifying || first.Total != v.Files || last.Done != v.Files || last.BytesDone != v.Bytes {
		t.Errorf("progress from %+v to %+v", first, last)
	}
	if got, err := w.snaps.Show(t.Context(), w.p, info.ID); err != nil || cmp.Diff(v, got.State.Verified) != "" {
		t.Errorf("it is kept that %+v, %v", got.State.Verified, err)
	}
	if v, err := w.snaps.Verify(t.Context(), w.p, info.ID, snapshot.VerifyOptions{Sample: 1e-9}); err != nil || v.Files != 1 {
		t.Errorf("a very small sample: %+v, %v", v, err)
	}
	for _, bad := range []float64{-0.1, 1.1} {
		if _, err := w.snaps.Verify(t.Context(), w.p, info.ID, snapshot.VerifyOptions{Sample: bad}); err == nil {
			t.Errorf("a sample of %v", bad)
		}
	}
	w.verify(info)
	replace(t, filepath.Join(w.path(info), "indexes.json"), "{}") // sizes are looked at in any case
	v, err = w.snaps.Verify(t.Context(), w.p, info.ID, snapshot.VerifyOptions{Sample: 1e-9})
	if err != nil || v.Problems == 0 {
		t.Fatalf("%+v, %v", v, err)
	}
	if got, err := w.snaps.Look(t.Context(), w.p, info.ID); err != nil || got.State.Whole() || !got.Damaged() {
		t.Errorf("what a check of a part has found: %+v, %v", got.State, err)
	}
}

func TestListPinDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fill()
	if list, err := w.snaps.List(t.Context(), w.p); err != nil || len(list) > 0 {
		t.Errorf("before the first: %v, %v", list, err)
	}
	if _, err := w.snaps.Show(t.Context(), w.p, "20260301T120000Z-abcdef"); !errors.Is(err, snapshot.ErrNotFound) {
		t.Errorf("before the first: %v", err)
	}
	a, b, c := w.create("daily"), w.create("posts"), w.create("daily")
	if err := w.snaps.Pin(t.Context(), w.p, b.ID, true); err != nil {
		t.Fatal(err)
	}
	v := w.verify(c)
	list, err := w.snaps.List(t.Context(), w.p)
	if err != nil || len(list) != 3 {
		t.Fatalf("%v, %v", list, err)
	}
	for i, want := range []snapshot.Info{c, b, a} {
		want.Files = nil
		switch i {
		case 0:
			want.State.Verified, want.State.WholeAt = v, v.At
		case 1:
			want.State.Pinned = true
		}
		if diff := cmp.Diff(want, list[i]); diff != "" {
			t.Error(diff)
		}
	}
	if err := w.snaps.Delete(t.Context(), w.p, b.ID); !errors.Is(err, snapshot.ErrPinned) {
		t.Errorf("delete one that is pinned: %v", err)
	}
	if err := w.snaps.Delete(t.Context(), w.p, a.ID); err != nil {
		t.Fatal(err)
	}
	w.verify(c) // it has links to what was in the other
	for _, id := range []string{a.ID, "../x", "", "20260301T120000Z-abcdef", "daily/" + c.ID} {
		if err := w.snaps.Delete(t.Context(), w.p, id); !errors.Is(err, snapshot.ErrNotFound) {
			t.Errorf("delete %q: %v", id, err)
		}
	}
	if err := w.snaps.Pin(t.Context(), w.p, b.ID, false); err != nil {
		t.Fatal(err)
	}
	if err := w.snaps.Delete(t.Context(), w.p, b.ID); err != nil {
		t.Fatal(err)
	}
	for name := range contents(t, filepath.Join(w.p.Dir, "snapshots")) {
		if !strings.Contains(name, c.ID) {
			t.Errorf("%s is left", name)
		}
	}
}

// TestStateDamaged: a snapshot whose state can't be read is not deleted.
func TestStateDamaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	info := w.create("daily")
	w.verify(info)
	name := w.path(info) + ".state.json"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for at := range text {
		changed := []byte(string(text))
		changed[at] ^= 1
		if err := os.WriteFile(name, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := w.snaps.Show(t.Context(), w.p, info.ID)
		if err != nil {
			t.Fatal(err)
		}
		if at < len(text)-1 && (!got.State.Damaged || !got.State.Pinned || got.State.Verified != nil) {
			t.Errorf("byte %d of the state: %+v", at, got.State)
		}
	}
	if err := os.WriteFile(name, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.snaps.Delete(t.Context(), w.p, info.ID); !errors.Is(err, snapshot.ErrPinned) {
		t.Errorf("delete: %v", err)
	}
	if err := w.snaps.Pin(t.Context(), w.p, info.ID, false); err != nil {
		t.Fatal(err)
	}
	if err := w.snaps.Delete(t.Context(), w.p, info.ID); err != nil {
		t.Fatal(err)
	}
}

// TestManifestUnreadable: a snapshot that can't be read is listed, and says why.
func TestManifestUnreadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	info := w.create("daily")
	name := filepath.Join(w.path(info), "manifest.json")
	for _, text := range []string{"", "{", `{"format":2,"files":[]}`, `{"files":[]}`, `[]`, "\x00"} {
		replace(t, name, text)
		list, err := w.snaps.List(t.Context(), w.p)
		if err != nil || len(list) != 1 || list[0].ID != info.ID || list[0].Profile != "daily" || !strings.HasPrefix(list[0].Problem, "manifest.json: ") {
			t.Errorf("%q: %+v, %v", text, list, err)
		}
		if _, err := w.snaps.Show(t.Context(), w.p, info.ID); !errors.Is(err, snapshot.ErrDamaged) {
			t.Errorf("%q: %v", text, err)
		}
	}
	w.clock.Pass(time.Second)
	w.create("daily") // goes on without it
}

// TestOtherName: a snapshot whose folder somebody has copied to another name is not taken for one that was made.
func TestOtherName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fill()
	info := w.create("daily")
	other := "20200101T000000Z-aaaaaa"
	if err := os.CopyFS(filepath.Join(filepath.Dir(w.path(info)), other), os.DirFS(w.path(info))); err != nil {
		t.Fatal(err)
	}
	want := "the snapshot is damaged: manifest.json: it is that of " + info.ID
	for name, do := range map[string]func() error{
		"show": func() error { _, err := w.snaps.Show(t.Context(), w.p, other); return err },
		"compare": func() error {
			_, err := w.snaps.Compare(t.Context(), w.p, other, snapshot.CompareOptions{})
			return err
		},
		"export": func() error { return w.snaps.Export(t.Context(), w.p, other, io.Discard) },
		"restore": func() error {
			_, err := w.snaps.Restore(t.Context(), w.p, other, w.p, snapshot.RestoreOptions{}, nil)
			return err
		},
	} {
		if err := do(); !errors.Is(err, snapshot.ErrDamaged) || errs.From(err).Message != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	if err := w.snaps.Sweep(t.Context(), w.p); err != nil {
		t.Errorf("of nothing: %v", err)
	}
	info := w.create("daily")
	w.verify(info)
	dir := filepath.Join(w.p.Dir, "snapshots")
	want := contents(t, dir)
	for _, name := range []string{
		"daily/.partial-abcdef/manifest.json", "daily/.trash-20260301T120000Z-abcdef/manifest.json", "daily/.ABCDEFGHIJ", "daily/20260301T120000Z-abcdef.state.json",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := w.snaps.List(t.Context(), w.p); err != nil || len(list) != 1 {
		t.Errorf("what is left is listed: %v, %v", list, err)
	}
	if err := w.snaps.Sweep(t.Context(), w.p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// TestChanged: whoever shows how snapshots are is told when that is something else, before a check or a deletion returns, and not each time that all is as it was.
func TestChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fillWith(1, 1)
	info := w.create("daily")
	if w.changed != 1 {
		t.Errorf("taken: told %d times", w.changed)
	}
	archived := w.export(info)
	name := filepath.Join(w.path(info), "indexes.json")
	good := contents(t, w.path(info))["indexes.json"]
	check := func(sample float64) func() error {
		return func() error {
			_, err := w.snaps.Verify(t.Context(), w.p, info.ID, snapshot.VerifyOptions{Sample: sample})
			return err
		}
	}
	for _, step := range []struct {
		what string
		do   func() error
		want int
	}{
		{"the first check, of a part", check(0.5), 1},
		{"another one", check(0.5), 0},
		{"one of everything", check(0), 1},
		{"another one", check(0), 0},
		{"pinned", func() error { return w.snaps.Pin(t.Context(), w.p, info.ID, true) }, 0},
		{"damaged", func() error { replace(t, name, "{}"); return check(0)() }, 1},
		{"damaged still", check(0), 0},
		{"whole again", func() error { replace(t, name, good); return check(0)() }, 1},
		{"unpinned", func() error { return w.snaps.Pin(t.Context(), w.p, info.ID, false) }, 0},
		{"deleted", func() error { return w.snaps.Delete(t.Context(), w.p, info.ID) }, 1},
		{"imported", func() error { _, err := w.imports(archived, nil); return err }, 1},
	} {
		w.changed = 0
		if err := step.do(); err != nil || w.changed != step.want {
			t.Errorf("%s: told %d times, want %d; %v", step.what, w.changed, step.want, err)
		}
	}
}
