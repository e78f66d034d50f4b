package embedded_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// TestR21FlippedByte changes one byte of a store's files: opening it, a read or Validate has to say so, and no read may
// give anything but what was written. FLIPS is the number of bytes.
func TestR21FlippedByte(t *testing.T) {
	flips, seed := figure(t, "FLIPS", 120, 30), seedOf(t)
	r := rand.New(rand.NewPCG(seed, 0))
	closed, crashed, want := damageable(t)
	counts := map[string]map[string]int{}
	for i := range flips {
		from, clean := closed, true
		if i%3 == 0 {
			from, clean = crashed, false
		}
		f := flip(t, r, from)
		outcome := f.outcome(t, want)
		if counts[f.kind] == nil {
			counts[f.kind] = map[string]int{}
		}
		counts[f.kind][outcome]++
		if !f.allowed(outcome, clean) {
			t.Errorf("closed %v: %s, byte %d of %d: %s", clean, f.name, f.offset, f.size, outcome)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%-8s %v", kind, counts[kind])
	}
}

// damageable makes a store that has every kind of file: closed as it should be, and as a power cut leaves it.
func damageable(t *testing.T) (closed, crashed *vfs.MemFS, want map[string]bson.Raw) {
	t.Helper()
	fs := vfs.NewCrashableMem()
	s := open(t, embedded.Options{Dir: "/store", FS: fs, Ballast: 1 << 10, MemTableSize: 256 << 10})
	db := s.Database("db")
	createIndex(t, db.Collection(shared), index("n", "n", "v"))
	createIndex(t, db.Collection("own0"), index("tags", "tags"))
	l := newLedger(2)
	for w := range l.journals {
		w := newWorker(t, db, l, w, state{}, 7, 1)
		for range 100 {
			if err := w.step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	must(t, db.Collection(shared), insert(t, bson.D{{Key: "_id", Value: "last"}}))
	want, err := everything(t, s)
	if err != nil {
		t.Fatal(err)
	}
	crashed = fs.CrashClone(vfs.CrashCloneCfg{})
	validateAndClose(t, s)
	return fs, crashed, want
}

// everything reads all documents, by each way to them.
func everything(t *testing.T, s *embedded.Store) (map[string]bson.Raw, error) {
	t.Helper()
	db := s.Database("db")
	names, err := db.CollectionNames(t.Context())
	if err != nil {
		return nil, err
	}
	all := map[string]bson.Raw{}
	for _, name := range names {
		c := db.Collection(name)
		indexes, err := c.Indexes(t.Context())
		if err != nil {
			return nil, err
		}
		ways := []store.Query{{}}
		for _, x := range indexes {
			ways = append(ways, store.Query{Sort: sortBy(x.Keys[0].Path)})
		}
		for _, q := range ways {
			seen := map[string]bool{}
			err := c.Find(t.Context(), q, func(doc bson.Raw) error {
				key := name + "/" + doc.Lookup("_id").String()
				if before := all[key]; seen[key] || (before != nil && !bytes.Equal(before, doc)) {
					return fmt.Errorf("%s is there in two versions", key)
				}
				seen[key], all[key] = true, bytes.Clone(doc)
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
		for key, doc := range all {
			if !strings.HasPrefix(key, name+"/") {
				continue
			}
			if got, err := c.Get(t.Context(), doc.Lookup("_id")); err != nil {
				return nil, err
			} else if !bytes.Equal(got, doc) {
				return nil, fmt.Errorf("%s is another one by its _id", key)
			}
		}
	}
	return all, nil
}

// flipped is a store of which one byte is another.
type flipped struct {
	fs         *vfs.MemFS
	name, kind string
	offset     int
	size       int
}

// kindOf is the kind of a file of a store.
func kindOf(name string) string {
	switch before, _, _ := strings.Cut(name, "-"); {
	case strings.HasSuffix(name, ".log"):
		return "log"
	case strings.HasSuffix(name, ".sst"):
		return "table"
	default:
		return before
	}
}

func flip(t *testing.T, r *rand.Rand, from *vfs.MemFS) flipped {
	t.Helper()
	f := flipped{fs: from.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: r})}
	names, err := f.fs.List("/store")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string][]string{}
	for _, name := range names {
		if info, err := f.fs.Stat("/store/" + name); err == nil && info.Size() > 0 {
			kinds[kindOf(name)] = append(kinds[kindOf(name)], name)
		}
	}
	order := slices.Sorted(maps.Keys(kinds))
	f.kind = order[r.IntN(len(order))]
	slices.Sort(kinds[f.kind])
	f.name = kinds[f.kind][r.IntN(len(kinds[f.kind]))]
	data := readFile(t, f.fs, "/store/"+f.name)
	f.size, f.offset = len(data), r.IntN(len(data))
	data[f.offset] ^= byte(1 + r.IntN(255))
	file, err := f.fs.Create("/store/"+f.name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.Write(data)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return f
}

func readFile(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	file, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(file)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	return data
}

// outcome says what happens to whoever uses the store.
func (f flipped) outcome(t *testing.T, want map[string]bson.Raw) string {
	t.Helper()
	s, err := embedded.Open(t.Context(), embedded.Options{Dir: "/store", FS: f.fs, Ballast: -1, OnFatal: func(err error) {
		t.Errorf("%s, byte %d: the process would end: %v", f.name, f.offset, err)
	}})
	if err != nil {
		if e := errs.From(err); e == nil || e.Kind != errs.Unavailable {
			t.Errorf("%s, byte %d: Open: %v", f.name, f.offset, err)
		}
		return "not opened"
	}
	defer s.Close()
	found, err := everything(t, s)
	if err != nil {
		return "not read"
	}
	if err := validate(t.Context(), s); err != nil {
		return "not valid"
	}
	same := func(a, b map[string]bson.Raw) bool {
		return maps.EqualFunc(a, b, func(a, b bson.Raw) bool { return bytes.Equal(a, b) })
	}
	short := maps.Clone(want)
	maps.DeleteFunc(short, func(key string, _ bson.Raw) bool { return strings.HasSuffix(key, `"last"`) })
	if err := s.Close(); err != nil { // what the store does not need it has removed by then
		t.Error(err)
	}
	_, err = f.fs.Stat("/store/" + f.name)
	switch {
	case same(found, want) && err != nil:
		return "was not in use"
	case same(found, want):
		return "unharmed"
	case same(found, short):
		return "last write lost"
	default:
		return "lost or wrong, and nobody noticed"
	}
}

// allowed says whether an outcome is good enough. The end of the log of a store that was not closed looks as if the power
// had gone before it was written. Space that a file does not use, and the engine's note of its options, do no harm.
func (f flipped) allowed(outcome string, clean bool) bool {
	switch outcome {
	case "last write lost":
		return f.kind == "log" && !clean
	case "unharmed":
		const footer = 53 // at the end of a table, of which the handles of blocks need not fill all
		return f.kind != "MANIFEST" && (f.kind != "table" || f.offset >= f.size-footer)
	default:
		return !strings.HasPrefix(outcome, "lost")
	}
}
