package embedded_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// failingDiskEnv says that this is the process in which disks fail.
const failingDiskEnv = "EMBEDDED_TEST_FAILING_DISK"

// TestR4FailingDisk lets the nth call of the file system fail, once or for good, in a script that makes the store do
// everything it does. Nothing may be acknowledged that a new process does not find, whether the machine went down with
// the old one or not; and no error may leave the store worse than unable to write. IOERRORS is the number of calls tried
// for each way to fail; 0 is all of them. All that runs in another process: what is left of stores whose process has died
// stays in there, where it would look like a leak of other tests.
func TestR4FailingDisk(t *testing.T) {
	if os.Getenv(failingDiskEnv) == "" {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestR4FailingDisk$", "-test.v")
		child.Env = append(os.Environ(), failingDiskEnv+"=1")
		out, err := child.CombinedOutput()
		t.Logf("%s", out)
		if err != nil || !bytes.Contains(out, []byte("--- PASS: TestR4FailingDisk ")) {
			t.Errorf("the process in which disks fail: %v", err)
		}
		return
	}
	tries, seed := figure(t, "IOERRORS", 12, 3), seedOf(t)
	dry := &faultFS{FS: vfs.NewCrashableMem()}
	failAt(t, dry, seed)
	for _, way := range []fault{
		{err: syscall.EIO},
		{err: syscall.EIO, forGood: true},
		{err: syscall.EIO, reads: true},
		{err: syscall.EIO, reads: true, forGood: true},
		{err: syscall.ENOSPC},
		{err: syscall.ENOSPC, forGood: true},
		{err: syscall.ENOSPC, short: true},
		{err: syscall.EIO, short: true, forGood: true},
	} {
		calls := dry.changes.Load()
		if way.reads {
			calls = dry.reads.Load()
		}
		stride := 1.0
		if tries > 0 {
			stride = max(1, float64(calls)/float64(tries))
		}
		t.Run(way.String(), func(t *testing.T) {
			n := 0
			for at := 1.0; at <= float64(calls); at += stride {
				way.at = int64(at)
				failAt(t, &faultFS{FS: vfs.NewCrashableMem(), fault: way}, seed)
				if n++; t.Failed() {
					t.Fatalf("call %d", way.at)
				}
			}
			t.Logf("%d of %d calls failed", n, calls)
		})
	}
}

// failAt runs the script on fs, in a process of its own as it were, and then looks at what there is.
func failAt(t *testing.T, fs *faultFS, seed uint64) {
	t.Helper()
	l := newLedger(1)
	ended := make(chan struct{})
	exited := make(chan struct{}, 1)
	opts := embedded.Options{
		Dir: "/store", FS: fs, Ballast: 1 << 10, MemTableSize: 256 << 10, CacheSize: 1 << 20,
		OnFatal: func(error) {
			select {
			case exited <- struct{}{}:
			default:
			}
			select {} // a process that has ended
		},
	}
	go func() {
		defer close(ended)
		s, err := embedded.Open(t.Context(), opts)
		if err != nil {
			wantKind(t, err)
			return
		}
		script(t, s, l, seed)
		wantKind(t, s.Close())
	}()
	select {
	case <-ended:
	case <-exited:
	}
	settled := l.settledSteps()
	mem := fs.FS.(*vfs.MemFS)
	down := mem.CrashClone(vfs.CrashCloneCfg{}) // the machine went down with the process
	alone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(seed, 3))})
	fs.off.Store(true) // what is left of the old process may come to rest
	for _, left := range []vfs.FS{down, alone} {
		after := start(t, embedded.Options{Dir: "/store", FS: left, Ballast: -1})
		found := contents(t, after.Database("db"))
		if err := l.clone().resolve(found, settled); err != nil {
			t.Error(err)
		}
		must(t, after.Database("db").Collection("after"), insert(t, bson.D{{Key: "_id", Value: 1}}))
		validateAndClose(t, after)
	}
}

// wantKind checks that an error, if there is one, says that the store can't go on, or what failed inside of it.
func wantKind(t *testing.T, err error) {
	t.Helper()
	if err != nil && !slices.Contains([]errs.Kind{errs.Unavailable, errs.Full, errs.Internal}, errs.KindOf(err)) {
		t.Errorf("got %v", err)
	}
}

// script does a bit of everything, in one goroutine, until the store does not read any more.
func script(t *testing.T, s *embedded.Store, l *ledger, seed uint64) {
	t.Helper()
	db := s.Database("db")
	w := newWorker(t, db, l, 0, state{}, seed, 1)
	r := rand.New(rand.NewPCG(seed, 2))
	for i := range 120 {
		err := w.step(t.Context())
		for j, job := range jobs(false) {
			if err == nil && i%20 == 5+j {
				err = job(t.Context(), s, r)
			}
		}
		if err == nil {
			continue
		}
		wantKind(t, err)
		// What became of the step has to be read before there can be another.
		settled := l.settledSteps()
		found, err := readContents(t, db)
		if err != nil {
			wantKind(t, err)
			return
		}
		if err := l.resolve(found, settled); err != nil {
			t.Errorf("in the same process: %v", err)
		}
		w.cur = cloneState(found)
	}
}

// TestFullDisk fills the disk under the store: the ballast lets the write in hand be finished, later ones are refused
// until there is room again, and reads go on.
func TestFullDisk(t *testing.T) {
	var full, ballast atomic.Bool
	mem := vfs.NewCrashableMem()
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		isBallast := strings.HasSuffix(op.Path, "BALLAST")
		switch {
		case isBallast && op.Kind == errorfs.OpRemove:
			ballast.Store(false)
		case isBallast && op.Kind == errorfs.OpCreate && !full.Load():
			ballast.Store(true)
		}
		if full.Load() && (isBallast || ballast.Load()) && (op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpCreate) {
			return syscall.ENOSPC
		}
		return nil
	}))
	s := open(t, embedded.Options{Dir: "/store", FS: fs, Ballast: 1 << 20})
	c := collection(s)
	must(t, c, insert(t, bson.D{{Key: "_id", Value: 0}}))
	if !ballast.Load() {
		t.Fatal("there is no ballast")
	}
	full.Store(true)
	done := 0
	var err error
	for err == nil && done < 100 {
		done++
		_, err = c.Write(t.Context(), []store.Op{insert(t, bson.D{{Key: "_id", Value: done}})}, false)
	}
	if errs.KindOf(err) != errs.Full || ballast.Load() {
		t.Fatalf("after %d writes on a full disk: %v, ballast %v", done, err, ballast.Load())
	}
	if done < 2 {
		t.Error("the write that met the full disk was not finished")
	}
	if n, err := c.Count(t.Context(), nil, 0); err != nil || n != int64(done) {
		t.Errorf("%d documents, %v, want %d", n, err, done)
	}
	full.Store(false)
	must(t, c, insert(t, bson.D{{Key: "_id", Value: "again"}}))
	if !ballast.Load() {
		t.Error("the ballast is not made again")
	}
	recovered := open(t, embedded.Options{Dir: "/store", FS: mem.CrashClone(vfs.CrashCloneCfg{}), Ballast: -1})
	if n, err := collection(recovered).Count(t.Context(), nil, 0); err != nil || n != int64(done)+1 {
		t.Errorf("%d documents after a crash, %v, want %d", n, err, done+1)
	}
}

// TestTablesFailSlowly: when tables can't be written, the engine tries again for ever, but less and less often; and it goes
// on when they can.
func TestTablesFailSlowly(t *testing.T) {
	const tries = 6
	var full atomic.Bool
	var failed atomic.Int32
	enough := make(chan struct{})
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !full.Load() || !strings.HasSuffix(op.Path, ".sst") || op.Kind != errorfs.OpCreate {
			return nil
		}
		if failed.Add(1) == tries {
			close(enough)
		}
		return syscall.EIO
	}))
	s := open(t, embedded.Options{Dir: "/store", FS: fs, Ballast: -1})
	c := collection(s)
	must(t, c, insert(t, bson.D{{Key: "_id", Value: 0}}))
	full.Store(true)
	since := time.Now()
	flushed, err := embedded.StartFlush(s)
	if err != nil {
		t.Fatal(err)
	}
	<-enough
	// 5, 10, 20, 40 and 80 ms lie between six tries.
	if took := time.Since(since); took < 155*time.Millisecond {
		t.Errorf("%d tries took %v", tries, took)
	}
	if _, err := c.Get(t.Context(), value(t, 0)); err != nil {
		t.Errorf("a read meanwhile: %v", err)
	}
	must(t, c, insert(t, bson.D{{Key: "_id", Value: 1}}))
	full.Store(false)
	<-flushed
	validateAndClose(t, s)
}
