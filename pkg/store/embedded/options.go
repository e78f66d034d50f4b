package embedded

import (
	"errors"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Defaults of Options.
const (
	DefaultCacheSize    = 64 << 20
	DefaultMemTableSize = 8 << 20
	DefaultMinFree      = 64 << 20
	DefaultBallast      = 16 << 20
	DefaultFeedBytes    = 256 << 20
	DefaultFeedAge      = 72 * time.Hour
	DefaultSweepEvery   = time.Minute
)

// Options says where a store lives and what it may use. Sizes are in bytes; zero means the default.
type Options struct {
	// Dir is the directory of the store; it is created. One process at a time may have it open.
	Dir string
	// InMemory keeps the store in memory, for tests: Dir is then optional, and nothing outlives Close.
	InMemory bool
	// ReadOnly opens a store that is there and changes nothing on disk; writes are refused. A directory without a store
	// is refused (ErrNoStore).
	ReadOnly bool
	// Existing refuses a directory without a store (ErrNoStore), too.
	Existing bool
	// FS is the file system that Dir is on; nil means the disk, or memory with InMemory.
	FS vfs.FS
	// Logger gets what the engine reports; nil discards it.
	Logger *slog.Logger
	// OnFatal is told that the engine can't go on, because the log or the manifest could not be written. What is
	// on disk is good up to the last acknowledged write, and opening the store again recovers it; this Store only
	// fails from then on. It should log, end the process with a code of its own, and so not return: the engine
	// may end it after that without a good word. OnFatal may be called from any goroutine, more than once, and must
	// not call the store. It is required, except with InMemory.
	OnFatal func(err error)

	// CacheSize bounds the cache of table blocks together with the table of recent writes. It fills with use.
	CacheSize int64
	// MemTableSize is what the table of recent writes grows to before it is flushed. It starts at 256 KiB.
	MemTableSize uint64
	// MinFree is the free space of the disk below which writes are refused (errs.Full) and reads go on.
	MinFree uint64
	// Ballast is the size of a file that only takes up space. It is given up when the disk is full all the same,
	// so that what is in flight can be finished, and made again when there is room. Negative: none.
	Ballast int64

	// FeedBytes and FeedAge bound what is kept of the feeds of all databases, for those who watch to go on from. Of a
	// feed the last entry always stays.
	FeedBytes int64
	FeedAge   time.Duration
	// SweepEvery is the time between two looks for documents that have expired and for feeds that are too large or
	// too old.
	SweepEvery time.Duration
	// Now is the clock that these times go by; nil is time.Now.
	Now func() time.Time
}

// EnsureDefaults fills in what is unset.
func (o *Options) EnsureDefaults() {
	if o.InMemory && o.FS == nil {
		o.FS = vfs.NewMem()
		if o.Ballast == 0 {
			o.Ballast = -1
		}
	}
	if o.InMemory && o.Dir == "" {
		o.Dir = "/store"
	}
	if o.InMemory && o.OnFatal == nil {
		o.OnFatal = func(error) {}
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.FeedBytes == 0 {
		o.FeedBytes = DefaultFeedBytes
	}
	if o.FeedAge == 0 {
		o.FeedAge = DefaultFeedAge
	}
	if o.SweepEvery == 0 {
		o.SweepEvery = DefaultSweepEvery
	}
	if o.CacheSize == 0 {
		o.CacheSize = DefaultCacheSize
	}
	if o.MemTableSize == 0 {
		o.MemTableSize = DefaultMemTableSize
	}
	if o.MinFree == 0 {
		o.MinFree = DefaultMinFree
	}
	if o.Ballast == 0 {
		o.Ballast = DefaultBallast
	}
}

// Validate says what is wrong with the options, after EnsureDefaults.
func (o *Options) Validate() error {
	var problems []error
	if o.Dir == "" {
		problems = append(problems, errors.New("the directory of the store is not set"))
	}
	if o.OnFatal == nil {
		problems = append(problems, errors.New("nothing is set to be told when the engine can't go on"))
	}
	if o.CacheSize < 1<<20 {
		problems = append(problems, errors.New("the cache must have 1 MiB at least"))
	}
	if o.MemTableSize < 256<<10 || o.MemTableSize > 1<<30 {
		problems = append(problems, errors.New("the memory table must have 256 KiB to 1 GiB"))
	}
	if o.FeedBytes < 0 || o.FeedAge < 0 || o.SweepEvery < 0 {
		problems = append(problems, errors.New("the size and age of feeds and the time between sweeps can't be negative"))
	}
	return errors.Join(problems...)
}
