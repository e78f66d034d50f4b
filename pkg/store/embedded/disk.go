package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

const ballastName = "BALLAST"

// disk watches the space of the store's file system. The engine can't survive a write that fails, so writes stop
// while there still is some; the ballast is for when somebody else takes the rest.
type disk struct {
	opts *Options
	fs   vfs.FS // what the engine writes to
	path string // of the ballast

	opened time.Time
	known  atomic.Int64 // until when, in ns since opened, what the system has told of the space is good enough

	full atomic.Bool
	met  atomic.Bool // a write has met a full disk, and the ballast is not back yet
	mu   sync.Mutex  // guards the ballast file
}

func newDisk(opts *Options) *disk {
	d := &disk{opts: opts, opened: opts.Now(), path: opts.FS.PathJoin(opts.Dir, ballastName)}
	d.fs = vfs.OnDiskFull(opts.FS, d.onFull)
	return d
}

// onFull runs when a write has met a full disk; the write is tried once more after it.
func (d *disk) onFull() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.met.Store(true)
	d.full.Store(true)
	if err := d.opts.FS.Remove(d.path); err != nil {
		d.opts.Logger.Error("store disk is full and no ballast is left", slog.Any("error", err))
		return
	}
	d.opts.Logger.Error("store disk is full: gave up the ballast, refusing writes")
}

// prepare makes the ballast if it is not there and there is room for it.
func (d *disk) prepare() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.opts.Ballast > 0 {
		if _, err := d.opts.FS.Stat(d.path); err == nil {
			return
		}
		use, err := d.opts.FS.GetDiskUsage(d.opts.Dir)
		if err == nil && use.AvailBytes < d.opts.MinFree+uint64(d.opts.Ballast) {
			return
		}
		if err := d.fill(); err != nil {
			err = errors.Join(err, d.opts.FS.Remove(d.path))
			d.opts.Logger.Warn("store ballast not made", slog.Any("error", err))
			return
		}
	}
	d.met.Store(false)
}

func (d *disk) fill() error {
	f, err := d.opts.FS.Create(d.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for left := d.opts.Ballast; left > 0 && err == nil; left -= int64(len(block)) {
		_, err = f.Write(block[:min(left, int64(len(block)))])
	}
	return errors.Join(err, f.Close())
}

// While there is far more space than is to be kept free, the system is not asked before each write: nobody fills a disk by
// more than fillRate, in bytes a second, and what was told is good for maxKnown at most.
const (
	fillRate = 4 << 30
	maxKnown = 100 * time.Millisecond
)

// knownFor is how long room for so many bytes is good for.
func knownFor(room uint64) time.Duration {
	return min(maxKnown, time.Duration(float64(room)/fillRate*float64(time.Second)))
}

// reservePart is the part of MinFree that even writes by store.WithReserve leave free.
const reservePart = 4

// checkFor is check for a write by a context, which may let it into the reserve.
func (d *disk) checkFor(ctx context.Context) error {
	err := d.check()
	if err == nil || !store.MayUseReserve(ctx) || d.met.Load() {
		return err
	}
	if use, failed := d.opts.FS.GetDiskUsage(d.opts.Dir); failed == nil && use.AvailBytes >= d.opts.MinFree/reservePart {
		return nil
	}
	return err
}

// check says whether there is room for a write. It costs one call of the system, now and then.
func (d *disk) check() error {
	since := d.opts.Now().Sub(d.opened)
	if int64(since) < d.known.Load() && !d.met.Load() {
		return nil
	}
	d.known.Store(0)
	// After a write has met a full disk, numbers don't count (a quota may be what is full): the ballast has to fit
	// again.
	if d.met.Load() {
		d.prepare()
	}
	full := d.met.Load()
	use, err := d.opts.FS.GetDiskUsage(d.opts.Dir)
	if err == nil && use.AvailBytes < d.opts.MinFree { // not every file system tells
		full = true
	}
	if was := d.full.Swap(full); was && !full {
		d.opts.Logger.Info("store disk has room again", slog.Uint64("free_bytes", use.AvailBytes))
	} else if full && !was {
		d.opts.Logger.Error("store disk is nearly full: refusing writes",
			slog.Uint64("free_bytes", use.AvailBytes), slog.Uint64("needed_bytes", d.opts.MinFree))
	}
	switch {
	case !full:
		if err == nil {
			d.known.Store(int64(since + knownFor(use.AvailBytes-d.opts.MinFree)))
		}
		return nil
	case err != nil || use.AvailBytes >= d.opts.MinFree: // a write has failed
		return store.ErrFull
	default:
		return errs.New(store.ErrFull.Kind, store.ErrFull.Code,
			"not written: the disk of the store has %s free, and %s are kept free: make room and try again",
			inMiB(use.AvailBytes), inMiB(d.opts.MinFree))
	}
}

// inMiB gives a size in whole MiB, or in bytes if it has less than one.
func inMiB(n uint64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// makeDir makes the directory so that it outlives a crash.
func (d *disk) makeDir() error {
	fs := d.opts.FS
	var parents []string // of the directories that are missing
	for dir := d.opts.Dir; ; {
		if _, err := fs.Stat(dir); err == nil {
			break
		}
		parent := fs.PathDir(dir)
		parents = append(parents, parent)
		if parent == dir {
			break
		}
		dir = parent
	}
	if err := fs.MkdirAll(d.opts.Dir, 0o700); err != nil {
		return err
	}
	for _, dir := range parents {
		f, err := fs.OpenDir(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}
