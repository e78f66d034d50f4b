package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

func TestReopen(t *testing.T) {
	opts := embedded.Options{Dir: t.TempDir() + "/new/store", Ballast: 1 << 20}
	unique := index("unique", "n")
	unique.Unique = true
	func() {
		s := open(t, opts)
		c := collection(s)
		createIndex(t, c, unique)
		createIndex(t, c, index("list", "-l.x"))
		for i := range 10 {
			must(t, c, insert(t, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i}, {Key: "l", Value: bson.A{bson.D{{Key: "x", Value: i}}, bson.D{{Key: "x", Value: -i}}}}}))
		}
		validateAndClose(t, s)
	}()
	s := open(t, opts)
	c := collection(s)
	if got, err := c.Indexes(t.Context()); err != nil || len(got) != 2 || got[0].Name != "list" || !got[0].Keys[0].Desc || !got[1].Unique {
		t.Errorf("indexes are %+v, %v", got, err)
	}
	// Were it forgotten that the index has lists in it, it would give this order wrongly, and documents twice.
	if got := find(t, c, store.Query{Sort: sortBy("-l.x")}); len(got) != 10 || got[0].Lookup("_id").AsInt64() != 9 {
		t.Errorf("sorted by a list: %v", got)
	}
	results, err := c.Write(t.Context(), []store.Op{insert(t, bson.D{{Key: "_id", Value: 100}, {Key: "n", Value: 5}})}, false)
	var dup *store.DuplicateKeyError
	if err != nil || !errors.As(results[0].Err, &dup) || dup.Index != "unique" {
		t.Errorf("a taken key after reopening: %v, %v", results, err)
	}
	// Numbers of dropped things are not given again.
	if err := s.DropDatabase(t.Context(), "db"); err != nil {
		t.Fatal(err)
	}
	createIndex(t, c, index("n", "n"))
	if n, err := c.Count(t.Context(), nil, 0); n != 0 || err != nil {
		t.Errorf("%d documents after a drop, %v", n, err)
	}
}

const lockDirEnv = "EMBEDDED_TEST_LOCK_DIR"

// TestLockHolder is not a test: TestLock runs it in a process of its own, which holds a store until it is killed.
func TestLockHolder(t *testing.T) {
	dir := os.Getenv(lockDirEnv)
	if dir == "" {
		t.Skip("run by TestLock")
	}
	s := open(t, embedded.Options{Dir: dir, Ballast: -1})
	must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: 1}}))
	fmt.Println("holding")
	select {}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	opts := embedded.Options{Dir: dir, Ballast: -1, OnFatal: func(err error) { t.Error(err) }}
	holder := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLockHolder$")
	holder.Env = append(os.Environ(), lockDirEnv+"="+dir)
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "holding"; {
	}
	wantInUse(t, opts)
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait() // it was killed

	s := open(t, opts)
	if _, err := collection(s).Get(t.Context(), value(t, 1)); err != nil {
		t.Errorf("the document of the process that was killed: %v", err)
	}
	wantInUse(t, opts) // in this process too
}

func wantInUse(t *testing.T, opts embedded.Options) {
	t.Helper()
	_, err := embedded.Open(t.Context(), opts)
	if e := errs.From(err); e == nil || e.Kind != errs.Unavailable || e.Code != "store_in_use" || !strings.Contains(e.Message, opts.Dir) {
		t.Errorf("opening a store that is in use: %v", err)
	}
}

func TestOpenRefusals(t *testing.T) {
	ok := embedded.Options{Dir: "/store", FS: vfs.NewMem(), OnFatal: func(error) {}}
	for name, change := range map[string]func(*embedded.Options){
		"no directory":    func(o *embedded.Options) { o.Dir = "" },
		"no OnFatal":      func(o *embedded.Options) { o.OnFatal = nil },
		"small cache":     func(o *embedded.Options) { o.CacheSize = 1 },
		"small memtable":  func(o *embedded.Options) { o.MemTableSize = 1 },
		"file for a dir":  func(o *embedded.Options) { o.FS, o.Dir = nil, os.Args[0] },
		"dir not allowed": func(o *embedded.Options) { o.FS, o.Dir = nil, "/proc/nothing" },
	} {
		t.Run(name, func(t *testing.T) {
			opts := ok
			change(&opts)
			if s, err := embedded.Open(t.Context(), opts); err == nil {
				t.Error("opened", s.Close())
			} else if errs.KindOf(err) == errs.Internal {
				t.Errorf("got %v", err)
			}
		})
	}
}

// What is opened to be read only stays as it is, be it missing, whole, or left behind by a crash.
func TestReadOnly(t *testing.T) {
	fs := vfs.NewCrashableMem()
	opts := embedded.Options{Dir: "/store", FS: fs, Ballast: -1, OnFatal: func(err error) { t.Error(err) }}
	readOnly := opts
	readOnly.ReadOnly, readOnly.Ballast = true, 1<<20
	for _, prepare := range []func() error{func() error { return nil }, func() error { return fs.MkdirAll("/store", 0o700) }} {
		if err := prepare(); err != nil {
			t.Fatal(err)
		}
		if _, err := embedded.Open(t.Context(), readOnly); !errors.Is(err, embedded.ErrNoStore) || err.Error() != "no store in /store yet" {
			t.Errorf("without a store: %v", err)
		}
		if names, _ := fs.List("/store"); len(names) > 0 {
			t.Errorf("made %v", names)
		}
	}

	c := collection(open(t, opts))
	must(t, c, insert(t, bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 1}}))
	if err := embedded.MarkIndex(c, index("n", "n")); err != nil {
		t.Fatal(err)
	}
	wantInUse(t, readOnly)
	readOnly.FS = fs.CrashClone(vfs.CrashCloneCfg{})
	before := files(t, readOnly.FS)
	s, err := embedded.Open(t.Context(), readOnly)
	if err != nil {
		t.Fatal(err)
	}
	c = collection(s)
	if docs := find(t, c, store.Query{Sort: sortBy("n")}); len(docs) != 1 {
		t.Errorf("%d documents", len(docs))
	}
	if got, err := c.Indexes(t.Context()); len(got) > 0 || err != nil {
		t.Errorf("an index that was not finished: %v, %v", got, err)
	}
	_, writeErr := c.Write(t.Context(), []store.Op{insert(t, bson.D{{Key: "_id", Value: 2}})}, true)
	for doing, err := range map[string]error{
		"Write": writeErr, "CreateIndex": c.CreateIndex(t.Context(), index("m", "m")),
		"DropDatabase": s.DropDatabase(t.Context(), "db"),
	} {
		if errs.From(err).Code != "store_read_only" {
			t.Errorf("%s: %v", doing, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(before, files(t, readOnly.FS)); d != "" {
		t.Errorf("files have changed (-before +after):\n%s", d)
	}
}

// files gives the size of each file of a store.
func files(t *testing.T, fs vfs.FS) map[string]int64 {
	t.Helper()
	names, err := fs.List("/store")
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int64{}
	for _, name := range names {
		info, err := fs.Stat(fs.PathJoin("/store", name))
		if err != nil {
			t.Fatal(err)
		}
		sizes[name] = info.Size()
	}
	return sizes
}

func TestUniqueRace(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	unique := index("n", "n")
	unique.Unique = true
	createIndex(t, c, unique)
	const racers, rounds = 64, 20
	for round := range rounds {
		var wg sync.WaitGroup
		var won, lost atomic.Int32
		for i := range racers {
			op := insert(t, bson.D{{Key: "_id", Value: round*racers + i}, {Key: "n", Value: round}})
			wg.Go(func() {
				results, err := c.Write(t.Context(), []store.Op{op}, i%2 == 0)
				var dup *store.DuplicateKeyError
				switch {
				case err != nil:
					t.Error(err)
				case results[0].Err == nil:
					won.Add(1)
				case errors.As(results[0].Err, &dup):
					lost.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || lost.Load() != racers-1 {
			t.Errorf("%d won and %d lost", won.Load(), lost.Load())
		}
	}
}

// TestUniqueBuildRace builds a unique index while others insert: either it fails for a violation, or it holds.
func TestUniqueBuildRace(t *testing.T) {
	for round := range 10 {
		s := start(t, embedded.Options{InMemory: true})
		c := collection(s)
		var ops []store.Op
		for i := range 2000 {
			ops = append(ops, insert(t, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i}}))
		}
		must(t, c, ops...)
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range 200 {
				op := insert(t, bson.D{{Key: "_id", Value: 2000 + i}, {Key: "n", Value: 2000 - 50*round + i}})
				if _, err := c.Write(t.Context(), []store.Op{op}, false); err != nil {
					t.Error(err)
				}
			}
		})
		unique := index("n", "n")
		unique.Unique = true
		err := c.CreateIndex(t.Context(), unique)
		wg.Wait()
		var violation *store.ViolationError
		if err != nil && !errors.As(err, &violation) {
			t.Fatal(err)
		}
		if violation != nil && (len(violation.IDs) < 2 || len(violation.IDs) > 5) {
			t.Errorf("violated by %v", violation.IDs)
		}
		validateAndClose(t, s)
	}
}

// space is a file system that tells the free space it is told.
type space struct {
	vfs.FS
	free atomic.Uint64
}

func newSpace() *space {
	fs := &space{FS: vfs.NewMem()}
	fs.free.Store(1 << 40)
	return fs
}

func (s *space) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: s.free.Load(), TotalBytes: 1 << 40}, nil
}

func (s *space) Unwrap() vfs.FS { return s.FS }

func TestLittleSpace(t *testing.T) {
	fs := newSpace()
	var passed atomic.Int64
	begin := time.Now()
	now := func() time.Time { return begin.Add(time.Duration(passed.Load())) }
	s := open(t, embedded.Options{Dir: "/store", FS: fs, Ballast: 1 << 20, Now: now})
	c := collection(s)
	must(t, c, insert(t, bson.D{{Key: "_id", Value: 1}}))
	createIndex(t, c, index("there", "a"))

	passed.Add(int64(time.Second)) // nobody takes that much space in no time
	fs.free.Store(embedded.DefaultMinFree - 1)
	if _, err := c.Write(t.Context(), []store.Op{insert(t, bson.D{{Key: "_id", Value: 2}})}, false); errs.KindOf(err) != errs.Full {
		t.Errorf("Write with little space: %v", err)
	}
	reserve := store.WithReserve(t.Context())
	if results, err := c.Write(reserve, []store.Op{insert(t, bson.D{{Key: "_id", Value: 3}})}, false); err != nil || results[0].Err != nil {
		t.Errorf("Write into the reserve: %v", err)
	}
	err := s.Database("test").Transact(reserve, func(ctx context.Context, tx store.Tx) error {
		_, err := tx.Collection("things").Write(ctx, []store.Op{insert(t, bson.D{{Key: "_id", Value: 4}})}, true)
		return err
	})
	if err != nil {
		t.Errorf("a transaction that writes into the reserve: %v", err)
	}
	fs.free.Store(embedded.DefaultMinFree/4 - 1)
	if _, err := c.Write(reserve, []store.Op{insert(t, bson.D{{Key: "_id", Value: 5}})}, false); errs.KindOf(err) != errs.Full {
		t.Errorf("Write with no reserve left: %v", err)
	}
	fs.free.Store(embedded.DefaultMinFree - 1)
	if err := c.CreateIndex(t.Context(), index("n", "n")); errs.KindOf(err) != errs.Full {
		t.Errorf("CreateIndex with little space: %v", err)
	}
	if err := c.CreateIndex(t.Context(), index("there", "a")); err != nil { // or the service could not start
		t.Errorf("CreateIndex of one that is there: %v", err)
	}
	if err := s.Ping(t.Context()); errs.KindOf(err) != errs.Full {
		t.Errorf("Ping with little space: %v", err)
	}
	if _, err := c.Get(t.Context(), value(t, 1)); err != nil {
		t.Errorf("Get with little space: %v", err)
	}
	fs.free.Store(1 << 40)
	must(t, c, insert(t, bson.D{{Key: "_id", Value: 2}}))
}
