package embedded

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/svcctl/svc/pkg/store"
)

// formatMajorVersion pins what the engine writes. Raise it one release after the engine that can read it, so that
// going back one release stays possible.
const formatMajorVersion = pebble.FormatWALSyncChunks

// Sizes of the blocks of tables, before they are compressed.
const (
	blockSize      = 16 << 10
	indexBlockSize = 256 << 10
)

// Store is a store in one directory. Open makes it.
type Store struct {
	opts  Options
	db    *pebble.DB
	lock  *pebble.Lock
	disk  *disk
	cat   *catalog
	feeds *feeds
	id    [8]byte // drawn when it was made; positions in the feed have it

	stamps  stamps
	intents intents
	waiting atomic.Int64 // writes that wait for a transaction

	// commit is held while a write is decided and given its place in the log. Only changes of the catalog, which
	// are rare, hold it over their fsync.
	commit  sync.Mutex
	applied atomic.Uint64 // commits so far that are visible; it moves under the mutex
	touched touched
	synced  atomic.Uint64 // those of them that are known to be on disk
	// expiring is held while documents are deleted because they have expired, so that none is after its index or
	// its collection has gone. It comes before commit.
	expiring    sync.Mutex
	checkpoints sync.Mutex // held while one is made
	// building holds a token while an index is built: one at a time.
	building chan struct{}
	// ctx is for what goes on in the background; Close ends it.
	ctx    context.Context //nolint:containedctx // see above
	cancel context.CancelFunc

	failed atomic.Pointer[error] // set once the engine can't go on
	inLog  atomic.Int64          // batches that have a place in the log, and whose writers wait for its fsync
	onDisk atomic.Uint64         // the engine's number of a batch that is: see damage.go
	told   sync.Map              // names of damaged files that were logged

	state struct {
		sync.Mutex
		closed  bool
		closing chan struct{} // closed with closed, for long operations to stop
		running sync.WaitGroup
		views   map[*view]struct{} // that are open
	}
	limits limits
}

// limits is how long things may take, and how large they may be.
type limits struct {
	transaction time.Duration // from its begin to its commit
	patience    time.Duration // for which a transaction is tried again that loses against others
	view        time.Duration // for which a view can be read
	commit      int           // bytes of one commit, about
}

var _ store.Store = (*Store)(nil)

// Open opens the store in opts.Dir, creating it unless it is to be read only, and recovers what an unclean end left
// behind. A directory that another process has open is refused at once (errs.Unavailable, code "store_in_use").
func Open(ctx context.Context, opts Options) (*Store, error) {
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		return nil, errBadOptions.With(err)
	}
	if opts.FS == vfs.Default { // one name for a directory, so that this process can't open it twice either
		dir, err := filepath.Abs(opts.Dir)
		if err != nil {
			return nil, openError(opts.Dir, err)
		}
		opts.Dir = dir
	}
	s := &Store{opts: opts, building: make(chan struct{}, 1), touched: touched{seed: maphash.MakeSeed()}}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.state.closing = make(chan struct{})
	s.state.views = map[*view]struct{}{}
	s.limits = limits{transaction: time.Minute, patience: 30 * time.Second, view: 5 * time.Minute, commit: maxAtomic}
	s.disk = newDisk(&s.opts)

	if err := s.place(); err != nil {
		return nil, err
	}
	locks := s.opts.FS
	if opts.ReadOnly {
		locks = readerFS{FS: locks}
	}
	lock, err := pebble.LockDirectory(opts.Dir, locks)
	if err != nil {
		return nil, lockError(&opts, err)
	}
	s.lock = lock
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

// place makes the store's directory or, if nothing is to be made, sees that there is a store.
func (s *Store) place() error {
	if !s.opts.ReadOnly && !s.opts.Existing {
		if err := s.disk.makeDir(); err != nil {
			return openError(s.opts.Dir, err)
		}
		return nil
	}
	found, err := pebble.Peek(s.opts.Dir, s.opts.FS)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errNoStore(s.opts.Dir)
	case err != nil:
		return openError(s.opts.Dir, err)
	case found.Exists:
		return nil
	}
	if err := checkUnused(s.opts.Dir, s.opts.FS); err != nil {
		return openError(s.opts.Dir, err)
	}
	return errNoStore(s.opts.Dir)
}

func (s *Store) open() error {
	if !s.opts.ReadOnly {
		// Before the engine opens: it needs room to replay its log, and a full disk has eaten the ballast before.
		s.disk.prepare()
	}
	if err := checkLogs(s.opts.Dir, s.opts.FS); err != nil {
		return openError(s.opts.Dir, err)
	}
	err := guarded("open", func() (err error) {
		s.db, err = pebble.Open(s.opts.Dir, s.engineOptions())
		return err
	})
	if err != nil {
		return openError(s.opts.Dir, err)
	}
	if err := s.checkLayout(); err != nil {
		return err
	}
	if s.cat, err = loadCatalog(s.db); err != nil {
		return openError(s.opts.Dir, err)
	}
	if s.feeds, err = loadFeeds(s.db); err != nil {
		return openError(s.opts.Dir, err)
	}
	if s.opts.ReadOnly {
		return nil
	}
	if err := s.resumeBuilds(); err != nil {
		return openError(s.opts.Dir, err)
	}
	s.background(s.sweeps)
	return nil
}

func (s *Store) engineOptions() *pebble.Options {
	o := &pebble.Options{
		FS:                          engineFS{FS: s.disk.fs, dir: s.opts.Dir, failed: s.fail, tables: new(atomic.Int32)},
		Lock:                        s.lock,
		Logger:                      engineLogger{s: s},
		CacheSize:                   s.opts.CacheSize,
		MemTableSize:                s.opts.MemTableSize,
		WALMinSyncInterval:          s.untilSync,
		MemTableStopWritesThreshold: 4, // a burst goes on while a flush is slow
		MaxOpenFiles:                500,
		FormatMajorVersion:          formatMajorVersion,
		ReadOnly:                    s.opts.ReadOnly,
		EventListener:               &pebble.EventListener{DataCorruption: s.tableDamaged},
	}
	for i := range o.Levels {
		l := &o.Levels[i]
		// Inserts ask for keys that are not there: the filter answers without reading a block.
		l.FilterPolicy = bloom.FilterPolicy(10)
		// Every block that is read costs a look into the cache, so they are larger than the engine's 4 KiB, and a
		// table has one index block rather than two levels of them.
		l.BlockSize, l.IndexBlockSize = blockSize, indexBlockSize
	}
	// What recent writes go to first is soon written again, a level down: to compress it would be for that time.
	o.Levels[0].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
	o.Levels[1].Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression } // and below
	return o
}

// checkLayout writes the version of the layout and an id to a new store, and refuses any other version.
func (s *Store) checkLayout() error {
	version, err := s.get(keyVersion())
	if err != nil {
		return openError(s.opts.Dir, err)
	}
	if version == nil && (s.opts.ReadOnly || s.opts.Existing) { // it was ended before it had begun
		return errNoStore(s.opts.Dir)
	}
	if version == nil {
		_, _ = rand.Read(s.id[:]) // never fails
		return s.write(func(b *pebble.Batch) error {
			return errors.Join(
				b.Set(keyVersion(), binary.BigEndian.AppendUint32(nil, layoutVersion), nil),
				b.Set(keyStoreID(), s.id[:], nil),
			)
		})
	}
	if len(version) != 4 || binary.BigEndian.Uint32(version) != layoutVersion {
		return errLayout(s.opts.Dir, version)
	}
	id, err := s.get(keyStoreID())
	if err == nil && copy(s.id[:], id) != len(s.id) {
		err = errors.New("the id of the store is missing")
	}
	if err != nil {
		return openError(s.opts.Dir, err)
	}
	return nil
}

// get reads a copy of one value; nil if there is none.
func (s *Store) get(key []byte) (_ []byte, err error) {
	value, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	value = bytes.Clone(value)
	return value, closer.Close()
}

// Name is "embedded".
func (*Store) Name() string { return "embedded" }

// Ping says whether the store serves reads and writes.
func (s *Store) Ping(ctx context.Context) error {
	done, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	return s.disk.check()
}

// Close waits for running operations and then closes the files; a build of an index is cut short, and so are
// transactions and views. An engine that has failed is left as it is: what it holds in memory must not reach the disk
// any more.
func (s *Store) Close() error {
	s.state.Lock()
	if s.state.closed {
		s.state.Unlock()
		return nil
	}
	s.state.closed = true
	close(s.state.closing)
	views := slices.Collect(maps.Keys(s.state.views))
	s.state.Unlock()
	s.cancel()
	for _, v := range views {
		_ = v.end(store.ErrClosed) // an error of a snapshot's end shows when the engine closes
	}
	s.state.running.Wait()
	return s.release()
}

func (s *Store) release() error {
	s.cancel()
	s.state.running.Wait()
	var err error
	if s.db != nil && s.failed.Load() == nil {
		if !s.opts.ReadOnly && s.onDisk.Load() > 0 {
			err = errors.Join(s.flush(), s.noteAll())
		}
		err = errors.Join(err, s.db.Close())
	}
	return internal(errors.Join(err, s.lock.Close()), "close the store")
}

// flushPatience is how long Close waits for recent writes to reach tables. A disk that is full makes it wait in vain.
const flushPatience = 5 * time.Second

// flush writes the recent writes to tables, so that opening the store has no log to replay. Without it they are still
// in the log.
func (s *Store) flush() error {
	if s.disk.full.Load() {
		return nil
	}
	return guarded("flush", func() error {
		done, err := s.db.AsyncFlush()
		if err != nil {
			return err
		}
		patience := time.After(flushPatience)
		select {
		case <-done:
		case <-patience:
			return nil
		}
		s.settle(patience)
		return nil
	})
}

// settle waits for the compactions that a flush has set off, since opening a store waits for those that it begins with.
func (s *Store) settle(patience <-chan time.Time) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for quiet := 0; quiet < 3; {
		if quiet++; s.db.Metrics().Compact.NumInProgress > 0 {
			quiet = 0
		}
		select {
		case <-tick.C:
		case <-patience:
			return
		}
	}
}

// begin registers an operation; done ends it.
func (s *Store) begin(ctx context.Context) (done func(), err error) {
	if err := store.Ended(ctx); err != nil {
		return nil, err
	}
	if s.failed.Load() != nil {
		return nil, errFailed.With(*s.failed.Load())
	}
	s.state.Lock()
	defer s.state.Unlock()
	if s.state.closed {
		return nil, store.ErrClosed
	}
	s.state.running.Add(1)
	return s.state.running.Done, nil
}

// background runs fn, which must return soon after its ctx ends. A panic of it is logged.
func (s *Store) background(fn func(ctx context.Context)) {
	s.state.running.Go(func() {
		defer func() {
			if r := recover(); r != nil {
				s.opts.Logger.Error("store background task failed", slog.Any("panic", r), slog.String("stack", string(debug.Stack())))
			}
		}()
		fn(s.ctx)
	})
}
