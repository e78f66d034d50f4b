package embedded_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// indexed makes a store, closed, with documents and small indexes, several of which share a block of a table.
func indexed(t *testing.T) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	s := open(t, embedded.Options{Dir: "/store", FS: fs, Ballast: -1})
	for i := range 8 {
		createIndex(t, collection(s), index(fmt.Sprint("i", i), fmt.Sprint("f", i)))
	}
	for id := range 300 {
		doc := bson.D{{Key: "_id", Value: int32(id)}}
		for i := range 8 {
			doc = append(doc, bson.E{Key: fmt.Sprint("f", i), Value: int32((id * 7919 * (i + 1)) % 1000)})
		}
		must(t, collection(s), insert(t, doc))
	}
	validateAndClose(t, s)
	return fs
}

// flipAt gives a copy of a store in which one byte of a file is another, at each of the offsets.
func flipAt(t *testing.T, from *vfs.MemFS, name string, offsets ...int) *vfs.MemFS {
	t.Helper()
	fs := from.CrashClone(vfs.CrashCloneCfg{})
	data := readFile(t, fs, name)
	for _, at := range offsets {
		data[at] ^= 0x40
	}
	file, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.Write(data)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return fs
}

// Whatever blocks of index entries are damaged: one repair mends all of it, and what it has mended stays so.
func TestRepairDamagedIndexBlocks(t *testing.T) {
	from := indexed(t)
	names, err := from.List("/store")
	if err != nil {
		t.Fatal(err)
	}
	table := ""
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			table = "/store/" + name
		}
	}
	size := len(readFile(t, from, table))
	var places [][]int
	steps := figure(t, "BLOCKS", 8, 4)
	for i := range steps {
		places = append(places, []int{i * size / steps})
	}
	places = append(places, []int{size * 5 / 10, size * 6 / 10, size * 7 / 10}, []int{size * 4 / 10, size * 75 / 100})
	repaired, together := 0, 0
	for _, at := range places {
		unreadable, mended := repairTable(t, flipAt(t, from, table, at...))
		if mended {
			repaired++
		}
		if mended && unreadable > 1 {
			together++
		}
	}
	t.Logf("of %d, %d had damage to index entries alone, %d to several indexes", len(places), repaired, together)
	if repaired == 0 || together == 0 {
		t.Error("no block of index entries was damaged")
	}
}

// repairTable repairs a store of which only index entries are damaged (mended is false for any other), of so many indexes.
func repairTable(t *testing.T, fs *vfs.MemFS) (unreadable int, mended bool) {
	t.Helper()
	opts := embedded.Options{Dir: "/store", FS: fs, Ballast: -1, OnFatal: func(err error) { t.Error(err) }}
	s, err := embedded.Open(t.Context(), opts)
	if err != nil {
		return 0, false
	}
	defer func() { _ = s.Close() }()
	mended = true
	err = s.Validate(t.Context(), func(p store.Problem) {
		mended = mended && p.Repairable
		if p.Index != "" && strings.Contains(p.Text, "can't be read") {
			unreadable++
		}
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !mended || unreadable == 0 {
		return unreadable, false
	}
	if err := s.Repair(t.Context(), func(store.Problem) {}, nil); err != nil {
		t.Fatalf("Repair: %v", err)
	}
	if err := validate(t.Context(), s); err != nil {
		t.Errorf("after the repair: %v", err)
	}
	must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: "writes go on"}, {Key: "f3", Value: -1}}))
	all, err := everything(t, s)
	if err != nil || len(all) != 301 {
		t.Errorf("after the repair: %d documents, %v", len(all), err)
	}
	validateAndClose(t, s)
	validateAndClose(t, open(t, opts))
	return unreadable, true
}

// A store of which files are missing or too short is damaged: it is not taken for a new one, and the text says which.
func TestMissingFiles(t *testing.T) {
	from := indexed(t)
	for _, test := range []struct {
		file, want string
		short      bool
	}{
		{file: ".sst", want: ".sst is missing"},
		{file: ".sst", want: " bytes instead of ", short: true},
		{file: "MANIFEST-", want: ": MANIFEST-"},
		{file: "marker.manifest", want: "the file marker.manifest.* is missing"},
		{file: "marker.format-version", want: "a file marker.format-version.* is missing"},
	} {
		t.Run(test.want, func(t *testing.T) {
			fs := from.CrashClone(vfs.CrashCloneCfg{})
			names, err := fs.List("/store")
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				if !strings.HasPrefix(name, test.file) && !strings.HasSuffix(name, test.file) {
					continue
				}
				path := "/store/" + name
				data := readFile(t, fs, path)
				if err := fs.Remove(path); err != nil {
					t.Fatal(err)
				}
				if test.short {
					f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
					if err != nil {
						t.Fatal(err)
					}
					_, err = f.Write(bytes.Clone(data[:len(data)/2]))
					if err := errors.Join(err, f.Close()); err != nil {
						t.Fatal(err)
					}
				}
			}
			before, err := fs.List("/store")
			if err != nil {
				t.Fatal(err)
			}
			for _, opts := range []embedded.Options{{ReadOnly: true}, {Existing: true}, {}} {
				opts.Dir, opts.FS, opts.OnFatal, opts.Ballast = "/store", fs, func(error) {}, -1
				s, err := embedded.Open(t.Context(), opts)
				if err == nil {
					_ = s.Close()
					t.Fatal("opened")
				}
				if e := errs.From(err); e.Code != embedded.CodeDamaged || !strings.Contains(e.Message, test.want) {
					t.Errorf("%+v: %v", e, err)
				}
			}
			after, err := fs.List("/store")
			if err != nil || len(after) > len(before)+1 { // the lock
				t.Errorf("there were %v, now are %v (%v)", before, after, err)
			}
		})
	}
}
