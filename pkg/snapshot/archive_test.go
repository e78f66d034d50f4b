package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/archive"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

func (w *world) export(info snapshot.Info) []byte {
	w.Helper()
	var out bytes.Buffer
	if err := w.snaps.Export(w.Context(), w.p, info.ID, &out); err != nil {
		w.Fatal(err)
	}
	return out.Bytes()
}

func (w *world) imports(archived []byte, change func(*snapshot.ImportOptions)) (snapshot.Info, error) {
	w.Helper()
	o := snapshot.ImportOptions{Limits: archive.DefaultLimits()}
	if change != nil {
		change(&o)
	}
	return w.snaps.Import(w.Context(), w.p, bytes.NewReader(archived), o)
}

// nothing wants no snapshot, and no file where snapshots are.
func (w *world) nothing() {
	w.Helper()
	dir := filepath.Join(w.p.Dir, "snapshots")
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return
	}
	for name := range contents(w, dir) {
		w.Errorf("%s is left", name)
	}
}

// An archive becomes the same snapshot elsewhere: to the byte, with its id, checked.
func TestExportAndImport(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		from := newWorld(t, s)
		from.fill()
		for _, profile := range []string{"daily", "both", "db"} {
			info := from.create(profile)
			archived := from.export(info)
			if again := from.export(info); !bytes.Equal(again, archived) {
				t.Errorf("%s: the same snapshot gives another archive", profile)
			}
			to := newWorld(t, teststore.Memory(t))
			got, err := to.imports(archived, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.ID != info.ID || got.Profile != profile || !got.State.Verified.Whole() || !got.State.Whole() || got.Counts != info.Counts {
				t.Errorf("%s came as %+v", info.ID, got)
			}
			if diff := cmp.Diff(contents(t, from.path(info)), contents(t, to.path(got))); diff != "" {
				t.Error(diff)
			}
			to.verify(got)
			if !bytes.Equal(to.export(got), archived) {
				t.Errorf("%s: what was imported gives another archive", profile)
			}
			files, size, err := info.ArchiveSize()
			if err != nil || files != int64(len(contents(t, from.path(info)))) || size <= info.Counts.Bytes {
				t.Errorf("an archive has %d files of %d bytes, %v", files, size, err)
			}
			for range 2 { // a second one is not there beside it
				if _, err := to.imports(archived, func(o *snapshot.ImportOptions) { o.Profile = "other" }); !errors.Is(err, snapshot.ErrExists) {
					t.Errorf("imported twice: %v", err)
				}
			}
			list, err := to.snaps.List(t.Context(), to.p)
			if err != nil || len(list) != 1 {
				t.Errorf("there are %d, %v", len(list), err)
			}
		}
	})
}

// The profile that an import names is that of the snapshot from then on, whatever the manifest says.
func TestImportIntoProfile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fillWith(3, 3)
	archived := w.export(w.create("daily"))
	to := newWorld(t, teststore.Memory(t))
	info, err := to.imports(archived, func(o *snapshot.ImportOptions) { o.Profile = "rest" })
	if err != nil {
		t.Fatal(err)
	}
	show, err := to.snaps.Show(t.Context(), to.p, info.ID)
	if err != nil {
		t.Fatal(err)
	}
	look, err := to.snaps.Look(t.Context(), to.p, info.ID)
	if err != nil {
		t.Fatal(err)
	}
	where, err := to.snaps.Where(t.Context(), to.p, info.ID)
	if err != nil || where != "rest" || info.Profile != "rest" || show.Profile != "rest" || look.Profile != "rest" {
		t.Errorf("it is in %q, of %q, %q and %q, %v", where, info.Profile, show.Profile, look.Profile, err)
	}
	if _, err := newWorld(t, teststore.Memory(t)).imports(archived, func(o *snapshot.ImportOptions) { o.Profile = "rset" }); errs.From(err).Code != "profile_not_found" {
		t.Errorf("a profile that nobody has: %v", err)
	}
	for _, bad := range []string{"..", "a/b", ".hidden", "x" + strings.Repeat("y", 100)} {
		to := newWorld(t, teststore.Memory(t))
		if _, err := to.imports(archived, func(o *snapshot.ImportOptions) { o.Profile = bad }); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s: %v", bad, err)
		}
		to.nothing()
	}
}

// One that is there already is asked about, if it is the very same.
func TestImportOfWhatIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fillWith(3, 3)
	info := w.create("daily")
	archived := w.export(info)
	mine := errors.New("mine")
	asked := ""
	got, err := w.imports(archived, func(o *snapshot.ImportOptions) {
		o.Known = func(i snapshot.Info) error { asked = i.ID; return mine }
	})
	if asked != info.ID || !errors.Is(err, mine) || got.ID != info.ID {
		t.Errorf("asked about %q: %v", asked, err)
	}
	manifest := filepath.Join(w.path(info), "manifest.json")
	if err := os.WriteFile(manifest, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = w.imports(archived, func(o *snapshot.ImportOptions) {
		o.Known = func(snapshot.Info) error { t.Error("it is not the same"); return nil }
	})
	if !errors.Is(err, snapshot.ErrExists) || !strings.Contains(err.Error(), info.ID+" already: it is damaged: delete it") {
		t.Errorf("another of that id: %v", err)
	}
}

// S53 and S54: whatever is no archive of ours, of which every file is what its manifest says, is refused whole, and leaves nothing. What
// archives can be beside that, package archive refuses.
func TestS53ImportRefuses(t *testing.T) {
	t.Parallel()
	from := newWorld(t, teststore.Memory(t))
	from.fillWith(4, 4)
	info := from.create("both")
	whole := from.export(info)
	swap := func(old, new string) func(string) string {
		return func(manifest string) string { return strings.Replace(manifest, old, new, 1) }
	}
	manifests := map[string]func(string) string{
		"no JSON":                 func(string) string { return "x" },
		"nothing in it":           func(string) string { return "{}" },
		"another format":          swap(`"format": 1`, `"format": 2`),
		"a member more":           swap(`"format": 1,`, `"format": 1, "users": [],`),
		"a member twice":          swap(`"format": 1,`, `"format": 1, "format": 1,`),
		"other spaces":            swap(`"format": 1`, `"format":  1`),
		"an id that leads away":   swap(`"id": "`+info.ID+`"`, `"id": "../../../etc"`),
		"another root":            swap(`"root": "`+info.Root[:8], `"root": "00000000`),
		"a file outside":          swap(`"path":"config/project.yaml"`, `"path":"../project.yaml"`),
		"an absolute file":        swap(`"path":"config/project.yaml"`, `"path":"/etc/passwd"`),
		"a file that is no part":  swap(`"path":"config/project.yaml"`, `"path":"users.json"`),
		"another file":            swap(`"path":"indexes.json"`, `"path":"indexes.jsom"`),
		"a file in no collection": swap(`"path":"collections/posts.jsonl.zst"`, `"path":"collections/users.jsonl.zst"`),
		"a profile that leads":    swap(`"profile": "both"`, `"profile": "../both"`),
		"more behind it":          func(m string) string { return m + "{}" },
		"more records": swap(`"counts": {
    "documents": `, `"counts": {
    "documents": 1`),
		"more bytes":               swap(`"mediaBytes": `, `"mediaBytes": 4`),
		"fewer than none missing":  swap(`"missing": 0`, `"missing": -1`),
		"others that were written": swap(`"written": `, `"written": -`),
		"an id of another time":    swap(`"id": "`+info.ID[:4], `"id": "9999`),
	}
	for name, change := range manifests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := newWorld(t, teststore.Memory(t))
			_, err := to.imports(rewritten(t, from, info, change), nil)
			e := errs.From(err) // of the archive's: its files do not come, which would be refused, too
			if e == nil || e.Kind != errs.Invalid || !strings.Contains(e.Message, "its manifest is not what svcd writes: ") && e.Code != "bad_profile" {
				t.Errorf("%v", err)
			}
			to.nothing()
		})
	}
	_, err := newWorld(t, teststore.Memory(t)).imports(rewritten(t, from, info, swap(`"bytes": `, `"bytes": 99999999999999`)), nil)
	if e := errs.From(err); e == nil || e.Kind != errs.TooLarge {
		t.Errorf("records that take more, uncompressed, than the limit: %v", err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 4
	for name, tt := range map[string]struct {
		archived []byte
		change   func(*snapshot.ImportOptions)
		kind     errs.Kind
	}{
		"nothing":         {nil, nil, errs.Invalid},
		"something else":  {[]byte("PK\x03\x04 a zip"), nil, errs.Invalid},
		"half of it":      {whole[:len(whole)/2], nil, errs.Invalid},
		"all but the end": {whole[:len(whole)-1], nil, errs.Invalid},
		"more behind it":  {append(bytes.Clone(whole), whole...), nil, errs.Invalid},
		"a bit flipped":   {flipped, nil, errs.Invalid},
		"too many files":  {whole, func(o *snapshot.ImportOptions) { o.Limits.Files = 3 }, errs.TooLarge},
		"too many bytes":  {whole, func(o *snapshot.ImportOptions) { o.Limits.Bytes = 100 }, errs.TooLarge},
		"a large file":    {whole, func(o *snapshot.ImportOptions) { o.Limits.FileBytes = 10 }, errs.TooLarge},
		"not confirmed":   {whole, func(o *snapshot.ImportOptions) { o.Confirm = func() error { return errs.ErrDenied } }, errs.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := newWorld(t, teststore.Memory(t))
			if _, err := to.imports(tt.archived, tt.change); errs.KindOf(err) != tt.kind {
				t.Errorf("%v", err)
			}
			to.nothing()
		})
	}
}

// rewritten is an archive of a snapshot with another manifest. Its files are those of the snapshot, under the names that the manifest gives
// them.
func rewritten(t *testing.T, w *world, info snapshot.Info, change func(string) string) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(w.path(info))); err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	changed := change(string(manifest))
	if changed == string(manifest) {
		t.Fatal("the manifest is as it was")
	}
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var out bytes.Buffer
	none := func([]byte) ([]archive.File, error) { return nil, nil } // the manifest is refused before the first file
	if err := archive.Write(t.Context(), &out, root, none, archive.DefaultLimits(), nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A sender or reader who goes, and an import that is cancelled, leave nothing.
func TestImportAndExportEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fillWith(10, 10)
	info := w.create("daily")
	whole := w.export(info)
	to := newWorld(t, teststore.Memory(t))
	gone := errors.New("gone")
	from := io.MultiReader(bytes.NewReader(whole[:len(whole)*2/3]), iotest.ErrReader(gone))
	if _, err := to.snaps.Import(t.Context(), to.p, from, snapshot.ImportOptions{Limits: archive.DefaultLimits()}); !errors.Is(err, gone) {
		t.Errorf("a sender who goes: %v", err)
	}
	to.nothing()
	for _, phase := range []snapshot.Phase{snapshot.Unpacking, snapshot.Verifying} {
		ctx, cancel := context.WithCancelCause(t.Context())
		_, err := to.snaps.Import(ctx, to.p, bytes.NewReader(whole), snapshot.ImportOptions{Limits: archive.DefaultLimits(), Report: func(p snapshot.Progress) {
			if p.Phase == phase && p.Total > 0 {
				cancel(gone)
			}
		}})
		if !errors.Is(err, gone) {
			t.Errorf("%s: %v", phase, err)
		}
		to.nothing()
	}
	if err := w.snaps.Export(t.Context(), w.p, info.ID, failing{gone}); !errors.Is(err, gone) {
		t.Errorf("a reader who goes: %v", err)
	}
	if err := w.snaps.Export(t.Context(), w.p, "20260301T031500Z-aaaaaa", io.Discard); !errors.Is(err, snapshot.ErrNotFound) {
		t.Error(err)
	}
	name := filepath.Join(w.path(info), "indexes.json")
	if err := os.WriteFile(name, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.snaps.Export(t.Context(), w.p, info.ID, io.Discard); !errors.Is(err, snapshot.ErrDamaged) {
		t.Errorf("a file that is not what was written: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// Whichever operation on the disk fails, and stays so or not, an import is there whole or not at all, and a full disk is said to be one, and no other.
func TestImportFails(t *testing.T) {
	t.Parallel()
	from := newWorld(t, teststore.Memory(t))
	from.fillWith(3, 3)
	archived := from.export(from.create("daily"))
	for _, what := range []syscall.Errno{syscall.ENOSPC, syscall.EIO} {
		for _, stays := range []bool{false, true} {
			t.Run(fmt.Sprint(what, ", stays ", stays), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, teststore.Memory(t))
				for at := 1; ; at++ {
					f := &nth{at: at, what: what, stays: stays}
					w.faults = f.fault
					info, err := w.imports(archived, nil)
					w.faults = nil
					if f.n < at {
						if err != nil {
							t.Fatal(err)
						}
						w.verify(info)
						return
					}
					if err != nil && (errs.KindOf(err) == errs.Full) != (what == syscall.ENOSPC) && errs.KindOf(err) != errs.Invalid { // a file that can't be read is damage
						t.Errorf("operation %d: %v", at, err)
					}
					list, err := w.snaps.List(t.Context(), w.p)
					if err != nil {
						t.Fatal(err)
					}
					for _, x := range list {
						w.verify(x)
						if err := w.snaps.Delete(t.Context(), w.p, x.ID); err != nil {
							t.Fatal(err)
						}
					}
					if err := w.snaps.Sweep(t.Context(), w.p); err != nil {
						t.Fatal(err)
					}
					w.nothing()
				}
			})
		}
	}
}

// What an estimate counts is what a snapshot has.
func TestEstimate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fill()
	got, err := w.snaps.Estimate(t.Context(), w.p, w.profile("daily"))
	if err != nil {
		t.Fatal(err)
	}
	info := w.create("daily")
	var config int64
	for name := range contents(t, w.path(info)) {
		if strings.HasPrefix(name, "config/") {
			config++
		}
	}
	var collections []snapshot.Collection
	for _, c := range info.Collections {
		collections = append(collections, snapshot.Collection{Name: c.Name, Undeclared: c.Undeclared, Documents: c.Documents, Bytes: c.Bytes})
	}
	if diff := cmp.Diff(collections, got.Collections); diff != "" {
		t.Error(diff)
	}
	if got.Documents != info.Counts.Documents || got.MediaFiles != info.Counts.MediaFiles || got.MediaBytes != info.Counts.MediaBytes || got.ConfigFiles != config {
		t.Errorf("%+v, and the snapshot has %+v, with %d files of config", got, info.Counts, config)
	}
}
