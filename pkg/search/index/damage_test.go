package index_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/svcctl/svc/pkg/search/index"
)

// history is what the records were at each position.
type history map[string]map[string]record

// writeOn writes some records, with a flush now and then, and gives what was written.
func writeOn(t *testing.T, fs vfs.FS, seed uint64) history {
	t.Helper()
	w := &world{T: t, r: rand.New(rand.NewPCG(seed, 2)), records: map[string]record{}}
	w.db = openOn(t, fs)
	w.ix = openIndex(t, w.db, "a")
	all := history{}
	for i := range 12 {
		w.write()
		all[string(w.ix.Position())] = maps.Clone(w.records)
		if i%4 == 0 {
			if err := w.ix.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	closeDB(t, w.db)
	return all
}

// files lists all files below a directory.
func files(t *testing.T, fs vfs.FS, dir string) (out []string) {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		p := path.Join(dir, name)
		info, err := fs.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			out = append(out, files(t, fs, p)...)
		} else {
			out = append(out, p)
		}
	}
	return out
}

// rewrite changes what is in a file.
func rewrite(t *testing.T, fs vfs.FS, name string, change func([]byte) []byte) {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if f, err = fs.Create(name, vfs.WriteCategoryUnspecified); err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(change(b))
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedFiles damages each file in turn. What comes of it is an index that is what it says of its position, or one from which
// nothing is known.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	sound := vfs.NewMem()
	all := writeOn(t, sound, *seed)
	r := rand.New(rand.NewPCG(*seed, 3))
	damages := map[string]func([]byte) []byte{
		"empty":   func([]byte) []byte { return nil },
		"half":    func(b []byte) []byte { return b[:len(b)/2] },
		"garbage": func(b []byte) []byte { return []byte(strings.Repeat("garbage ", len(b)/8+1)) },
		"longer":  func(b []byte) []byte { return append(b, "and more"...) },
	}
	for i := range 2 {
		damages[fmt.Sprint("a byte", i)] = func(b []byte) []byte {
			if len(b) > 0 {
				b[r.IntN(len(b))] ^= byte(1 + r.IntN(255))
			}
			return b
		}
	}
	outcomes := map[string]int{}
	for _, file := range files(t, sound, "search") {
		for name, damage := range damages {
			outcomes[surviveDamage(t, sound, all, file, name, func(fs vfs.FS) { rewrite(t, fs, file, damage) })]++
		}
		outcomes[surviveDamage(t, sound, all, file, "removed", func(fs vfs.FS) {
			if err := fs.Remove(file); err != nil {
				t.Fatal(err)
			}
		})]++
	}
	t.Log(outcomes)
	for _, outcome := range []string{"whole", "begun anew"} {
		if outcomes[outcome] == 0 {
			t.Errorf("no damage ended with an index that is %s: %v", outcome, outcomes)
		}
	}
}

func surviveDamage(t *testing.T, sound vfs.FS, all history, file, name string, damage func(vfs.FS)) (outcome string) {
	t.Helper()
	fs := vfs.NewMem()
	if _, err := vfs.Clone(sound, fs, "search", "search"); err != nil {
		t.Fatal(err)
	}
	damage(fs)
	db := openOn(t, fs)
	ix := openIndex(t, db, "a")
	w := &world{T: t, r: rand.New(rand.NewPCG(1, 4)), db: db, ix: ix}
	outcome = "whole"
	at := ix.Position()
	if w.records = all[string(at)]; at == nil {
		outcome, w.records = "begun anew", map[string]record{}
	}
	if w.records == nil {
		t.Fatalf("%s, %s: nothing was ever at %q", file, name, at)
	}
	err := w.compare()
	if errors.Is(err, index.ErrDamaged) {
		outcome = "damage found later"
		if err := db.Renew(t.Context()); err != nil {
			t.Fatalf("%s, %s: %v", file, name, err)
		}
		if w.ix = openIndex(t, db, "a"); w.ix.Position() != nil {
			t.Errorf("%s, %s: a new index is at %q", file, name, w.ix.Position())
		}
		w.records = map[string]record{}
		err = w.compare()
	}
	if err != nil {
		t.Errorf("%s, %s: %v", file, name, err)
	}
	w.records = maps.Clone(w.records)
	w.rev = 1 << 20
	w.write() // it goes on
	if err := w.compare(); err != nil && !errors.Is(err, index.ErrDamaged) {
		t.Errorf("%s, %s: %v", file, name, err)
	}
	if err := db.Close(t.Context()); err != nil && !errors.Is(err, index.ErrDamaged) {
		t.Errorf("%s, %s: %v", file, name, err)
	}
	return outcome
}

// flipping is a file system that gives other bytes than were written, from a moment on.
type flipping struct {
	vfs.FS
	on atomic.Bool
}

type flippingFile struct {
	vfs.File
	fs *flipping
}

func (fs *flipping) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.Open(name, opts...)
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return f, err
	}
	return flippingFile{f, fs}, nil
}

func (f flippingFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if f.fs.on.Load() && n > 0 {
		p[n/2] ^= 1
	}
	return n, err
}

// TestDamageFoundLater has the disk give other bytes while the index is in use, and makes it anew.
func TestDamageFoundLater(t *testing.T) {
	t.Parallel()
	fs := &flipping{FS: vfs.NewMem()}
	db := openOn(t, fs)
	ix := openIndex(t, db, "a")
	put(t, ix, "x", "y")
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, err := ix.View()
	if err != nil {
		t.Fatal(err)
	}
	fs.on.Store(true)
	_, err = before.Search(t.Context(), index.Query{Groups: []index.Group{{Leaves: []index.Leaf{{Field: 1, Terms: []string{"x"}, Boost: 1}}}}})
	if !errors.Is(err, index.ErrDamaged) {
		t.Fatalf("searching what is damaged: %v", err)
	}
	if err := ix.Apply(t.Context(), nil, []byte("1")); !errors.Is(err, index.ErrDamaged) {
		t.Errorf("writing to what is damaged: %v", err)
	}
	fs.on.Store(false)
	if err := db.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ix.Apply(t.Context(), nil, []byte("1")); !errors.Is(err, index.ErrDropped) {
		t.Errorf("writing to what was before: %v", err)
	}
	again := openIndex(t, db, "a")
	if again.Position() != nil {
		t.Errorf("a new index is at %q", again.Position())
	}
	put(t, again, "z")
	if err := before.Close(); err != nil && !errors.Is(err, index.ErrDamaged) {
		t.Error(err)
	}
	closeDB(t, db)
	if names, err := fs.List("search"); err != nil || len(names) != 2 { // LOCK is the other
		t.Errorf("there are the folders %v, %v", names, err)
	}
	db = openOn(t, fs)
	defer closeDB(t, db)
	v, err := openIndex(t, db, "a").View()
	if err != nil {
		t.Fatal(err)
	}
	if got := found(t, v, "all"); got != "z" {
		t.Errorf("opened again it has %q", got)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

// TestFolderRemoved has somebody remove the files of an index that is in use, which shows when it is written.
func TestFolderRemoved(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	db := openOn(t, fs)
	ix := openIndex(t, db, "a")
	put(t, ix, "x")
	if err := fs.RemoveAll("search"); err != nil {
		t.Fatal(err)
	}
	if err := ix.Flush(t.Context()); !errors.Is(err, index.ErrDamaged) {
		t.Fatalf("writing into a folder that is gone: %v", err)
	}
	if err := db.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, openIndex(t, db, "a"), "z")
	closeDB(t, db)
	db = openOn(t, fs)
	defer closeDB(t, db)
	v, err := openIndex(t, db, "a").View()
	if err != nil {
		t.Fatal(err)
	}
	if got := found(t, v, "all"); got != "z" {
		t.Errorf("opened again it has %q", got)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

// TestDiskFull has every write fail for a while, and then those of the list of files alone, which Pebble takes for the end.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fails func(op errorfs.Op) bool
		lost  bool // what was there is to be made anew
	}{
		"all": {fails: func(op errorfs.Op) bool {
			return op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose
		}},
		"tables": {fails: func(op errorfs.Op) bool {
			return op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.HasSuffix(op.Path, ".sst")
		}},
		"manifest": {lost: true, fails: func(op errorfs.Op) bool {
			return (op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpFileSync) && strings.Contains(op.Path, "MANIFEST")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var full atomic.Bool
			fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
				if full.Load() && tc.fails(op) {
					return syscall.ENOSPC
				}
				return nil
			}))
			db, err := index.OpenSmall(index.Options{Dir: "search"}, fs)
			if err != nil {
				t.Fatal(err)
			}
			w := &world{T: t, r: rand.New(rand.NewPCG(*seed, 5)), records: map[string]record{}, db: db, ix: openIndex(t, db, "a")}
			for range 10 {
				w.write()
			}
			if err := w.ix.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			full.Store(true)
			failed := 0
			for range 10 {
				for range 20 {
					was := maps.Clone(w.records)
					changes, position := w.change(&sync.Mutex{})
					if err := w.ix.Apply(t.Context(), changes, position); err != nil {
						w.records = was
						failed++
					}
				}
				if err := w.ix.Flush(t.Context()); err == nil {
					t.Fatal("a full disk was written to")
				}
			}
			if failed == 0 {
				t.Error("all that came was taken in: memory has no bound")
			}
			if err := w.compare(); err != nil {
				t.Fatalf("while the disk is full: %v", err)
			}
			full.Store(false)
			if err = w.ix.Flush(t.Context()); err != nil { // of what Pebble tried while the disk was full
				err = w.ix.Flush(t.Context())
			}
			lost := errors.Is(err, index.ErrDamaged)
			if err != nil && !lost || lost != tc.lost && name != "all" { // which fails the list of files, too, if Pebble is at it
				t.Fatalf("when there is room again: %v", err)
			}
			if lost {
				if err := db.Renew(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.ix, w.records = openIndex(t, db, "a"), map[string]record{}
			}
			for range 20 {
				w.write()
			}
			w.check(w.view(""), "")
			closeDB(t, db)
			if db, err = index.OpenSmall(index.Options{Dir: "search"}, fs); err != nil {
				t.Fatal(err)
			}
			defer closeDB(t, db)
			w.db, w.ix = db, openIndex(t, db, "a")
			w.check(w.view(""), "")
		})
	}
}
