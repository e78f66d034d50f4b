package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrDamaged says that what is on disk can't be read or written any more. What has been read goes on to be served; DB.Renew, or
// closing and opening the DB, begins anew.
var ErrDamaged = errors.New("the search index is damaged")

// errDamaged is for what can be read, and is not what was written.
var errDamaged = fmt.Errorf("%w: a list of records", ErrDamaged)

// markerFile is in the folder of a disk that is not to be opened again.
const markerFile = "damaged"

// disk is one folder with a Pebble. It is closed when it is retired and nobody uses it any more.
type disk struct {
	kv     *pebble.DB
	fs     vfs.FS
	path   string
	logger *slog.Logger
	room   uint64 // what Pebble takes in memory before writes wait

	write   sync.Mutex // of batches, so that there is room for what was found to have some
	written int64      // how many; guarded by write
	flushed int64      // of those, how many outlast a crash; likewise

	mu      sync.Mutex
	lost    error         // why nothing may be written any more
	stuck   error         // of the last work behind
	tried   chan struct{} // closed when it ends, well or not
	users   int
	idle    chan struct{} // closed when retired and without users
	retired bool
	left    bool // whoever waited for that has gone
}

func openDisk(o Options, path string) (*disk, error) {
	k := &disk{fs: o.fs, path: path, room: uint64(o.memory) * (segments - 1), logger: o.Logger, idle: make(chan struct{}), tried: make(chan struct{})}
	cache := pebble.NewCache(cacheSize)
	defer cache.Unref()
	opts := &pebble.Options{
		FS: patient{o.fs, k, o.retry}, DisableWAL: true, MemTableSize: uint64(o.memory) / tableShare, MemTableStopWritesThreshold: segments * tableShare,
		FormatMajorVersion: pebble.FormatNewest, Logger: pebbleLog{k}, Cache: cache,
	}
	opts.EventListener = &pebble.EventListener{
		BackgroundError: func(err error) { k.background(err) },
		DataCorruption:  func(info pebble.DataCorruptionInfo) { k.lose(info.Details) },
		FlushEnd: func(info pebble.FlushInfo) {
			if info.Err == nil {
				k.background(nil)
			}
		},
	}
	var err error
	if k.kv, err = pebble.Open(path, opts); err != nil {
		return nil, err
	}
	return k, nil
}

// isDamage says whether an error of opening is one of the files themselves, not of the system they are on.
func isDamage(err error) bool {
	if pebble.IsCorruptionError(err) || errors.Is(err, ErrDamaged) || errors.Is(err, fs.ErrNotExist) {
		return true
	}
	var no syscall.Errno
	return !errors.As(err, &no)
}

// lose notes that nothing may be written any more, and that the folder is not to be opened again.
func (k *disk) lose(err error) {
	k.mu.Lock()
	first := k.lost == nil
	if first {
		k.lost = err
	}
	k.mu.Unlock()
	if !first {
		return
	}
	k.logger.Error("the search index is damaged; it is to be made anew", "error", err)
	if f, err := k.fs.Create(k.fs.PathJoin(k.path, markerFile), vfs.WriteCategoryUnspecified); err == nil {
		_ = f.Close() // who can't write it, learns of the damage by reading again
	}
}

// lostBy is why nothing may be written; nil: it may.
func (k *disk) lostBy() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lost == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrDamaged, k.lost)
}

// fail is for errors on their way to the caller: it notes damage.
func (k *disk) fail(err error) error {
	if err == nil || !pebble.IsCorruptionError(err) && !errors.Is(err, ErrDamaged) {
		return err
	}
	k.lose(err)
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

func (k *disk) background(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stuck = err
	close(k.tried)
	k.tried = make(chan struct{})
}

// patient has Pebble try again, when it has failed to write, not at once: it would do nothing else.
type patient struct {
	vfs.FS
	of   *disk
	wait time.Duration
}

func (p patient) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if p.of.failing() != nil {
		time.Sleep(p.wait)
	}
	f, err := p.FS.Create(name, category)
	if errors.Is(err, fs.ErrNotExist) { // somebody has removed the folder: no other try goes better
		p.of.lose(err)
	}
	return f, err
}

// failing is why the last work behind failed; nil: it did not.
func (k *disk) failing() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stuck
}

// commit applies a batch. One that Pebble has no room for, as it can't write, fails: it would wait for the disk.
func (k *disk) commit(b *pebble.Batch) error {
	if err := k.lostBy(); err != nil {
		return err
	}
	if !k.hasRoom(b.Len()) {
		if err := k.flush(nil); err != nil {
			return fmt.Errorf("the search index can't be written: %w", err)
		}
	}
	k.write.Lock()
	defer k.write.Unlock()
	if err := b.Commit(pebble.NoSync); err != nil {
		return err
	}
	k.written++
	return k.lostBy()
}

// hasRoom says whether Pebble takes so many bytes without waiting for a disk that it can't write to.
func (k *disk) hasRoom(size int) bool {
	return k.failing() == nil || k.kv.Metrics().MemTable.Size+uint64(size) < k.room
}

// sync has all that was committed outlast a crash.
func (k *disk) sync(ctx context.Context) error {
	err := k.flush(ctx.Done())
	if ctx.Err() != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return err
}

// flush writes what Pebble has in memory, until that is done, has failed, or stop is closed. Pebble itself tries until it can.
func (k *disk) flush(stop <-chan struct{}) (err error) {
	var done <-chan struct{}
	var all int64
	for {
		if err := k.lostBy(); err != nil {
			return err
		}
		k.mu.Lock()
		tried := k.tried
		k.mu.Unlock()
		if done == nil {
			if done, all, err = k.begin(); err != nil {
				return err
			}
		}
		select {
		case <-done:
			k.write.Lock()
			k.flushed = max(k.flushed, all)
			k.write.Unlock()
			return k.lostBy()
		case <-tried: // that or what was before it
			if err := k.failing(); err != nil {
				return errors.Join(k.lostBy(), err)
			}
		case <-stop:
			return nil
		}
	}
}

// begin has Pebble write what it has in memory, which is all of so many batches; done is nil if it is at that and has no room for more.
func (k *disk) begin() (done <-chan struct{}, all int64, err error) {
	k.write.Lock()
	defer k.write.Unlock()
	switch {
	case k.flushed == k.written:
		nothing := make(chan struct{})
		close(nothing)
		return nothing, k.written, nil
	case !k.hasRoom(0):
		return nil, 0, nil
	}
	done, err = k.kv.AsyncFlush()
	return done, k.written, err
}

// use has the disk stay open until drop is called.
func (k *disk) use() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.users++
}

// drop ends a use, and closes the disk after the last one if nobody waits for that.
func (k *disk) drop() error {
	k.mu.Lock()
	k.users--
	k.check()
	last := k.left && k.users == 0
	k.mu.Unlock()
	if last {
		return k.kv.Close()
	}
	return nil
}

// check tells who waits for it that nobody uses the disk. The caller holds k.mu.
func (k *disk) check() {
	if k.retired && k.users == 0 {
		close(k.idle)
	}
}

// retire closes the disk when nobody uses it any more. If that is not so until ctx ends, it fails, and whoever is last closes it.
func (k *disk) retire(ctx context.Context) error {
	k.mu.Lock()
	k.retired = true
	k.check()
	k.mu.Unlock()
	select {
	case <-k.idle:
		return k.kv.Close()
	case <-ctx.Done():
	}
	k.mu.Lock()
	k.left = k.users > 0
	left := k.left
	k.mu.Unlock()
	if !left {
		return k.kv.Close()
	}
	return fmt.Errorf("the search index is still in use: %w", context.Cause(ctx))
}

// pebbleLog passes on what Pebble fails with. What it does otherwise is its own matter.
type pebbleLog struct{ of *disk }

func (pebbleLog) Infof(string, ...any) {}

func (l pebbleLog) Errorf(format string, args ...any) {
	l.of.logger.Warn("the search index", "error", fmt.Sprintf(format, args...))
}

// Fatalf must not return, says Pebble, for it does not know any more what is on disk. Nothing is written after it, though, and what
// is on disk is derived: no reason to end the process.
func (l pebbleLog) Fatalf(format string, args ...any) { l.of.lose(fmt.Errorf(format, args...)) }
