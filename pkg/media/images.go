package media

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/imagefilter"
)

// ImagesOptions are what Images need of their surroundings.
type ImagesOptions struct {
	Logger   *slog.Logger
	Now      func() time.Time
	MaxBytes int64         // of all derived pictures on the disk; 0 keeps none
	Memory   int64         // bytes that filters take at once; 0 is 512 MiB
	Wait     time.Duration // how long one waits for that; 0 is 20 s
	Cores    int           // how many filters run at once; 0 is as many as there are
	MaxTime  time.Duration // how long one picture may take to be made; 0 is 2 min

	// Count is told what became of a picture, and how long that took; nil: nobody is. It must be safe for concurrent use.
	Count func(outcome string, took time.Duration)
}

// What becomes of a picture that is asked for. However many wait for one that is being made, it counts once.
const (
	PictureKept    = "kept"    // it was there
	PictureMade    = "made"    // it was made
	PictureRefused = "refused" // none can be made of that file
	PictureBusy    = "busy"    // there was no memory for it in time
	PictureFailed  = "failed"  // the service failed, or nobody waited any more
)

const (
	defaultMemory = 512 << 20
	defaultWait   = 20 * time.Second // less than a request may take
	defaultTime   = 2 * time.Minute
	retryAfter    = 5 * time.Second

	// aloneQuarters is how many quarters of the memory one picture may take, while no other is made. Large pictures are rare, and
	// all at once rarer. Of the default that is 896 MiB, which keeps the process with one of them at about 1 GB.
	aloneQuarters = 7

	// large is a picture that is worth a collection of garbage.
	large = 64 << 20

	rememberFailure = time.Minute
	maxFailures     = 1000
)

// Images are the pictures that filters make, for all projects: each is made once, however many ask for it, kept on the disk
// until others are used more, and so many are made at once as the memory allows.
type Images struct {
	root   *os.Root
	opts   ImagesOptions
	memory *semaphore.Weighted
	ctx    context.Context //nolint:containedctx // ends what is being made, on Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	entries map[string]*list.Element // of order, by key
	order   *list.List               // of *entry; the one that was used last is in front
	total   int64                    // bytes on the disk
	making  map[string]*making
	failed  map[string]failure
	fullLog bool // the log has it that nothing can be written
}

// making is a picture that is being made. It goes on while somebody waits for it, whoever asked first, and to its end when
// one waited as long as they could: they ask again.
type making struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiting int
	wanted  bool

	result imagefilter.Result // from done on
	err    error
}

// failure is what became of a picture that can't be made, so that it is not tried with every request.
type failure struct {
	err   error
	until time.Time
}

// Make makes a picture. Before it takes much memory, it reserves that, once; what it has is given back when it ends.
type Make func(ctx context.Context, reserve func(bytes int64) error) (imagefilter.Result, error)

// OpenImages keeps pictures below dir, which is made when it is not there. What is there already is looked through meanwhile.
// The context's values stay, its end does nothing: that is what Close is for.
func OpenImages(ctx context.Context, dir string, opts ImagesOptions) (*Images, error) {
	if opts.Memory <= 0 {
		opts.Memory = defaultMemory
	}
	if opts.Wait <= 0 {
		opts.Wait = defaultWait
	}
	if opts.MaxTime <= 0 {
		opts.MaxTime = defaultTime
	}
	if opts.Cores <= 0 {
		opts.Cores = runtime.GOMAXPROCS(0)
	}
	if opts.Count == nil {
		opts.Count = func(string, time.Duration) {}
	}
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return nil, fmt.Errorf("make the folder of derived pictures: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder of derived pictures: %w", err)
	}
	i := &Images{
		root: root, opts: opts, memory: semaphore.NewWeighted(opts.Memory),
		entries: map[string]*list.Element{}, order: list.New(), making: map[string]*making{}, failed: map[string]failure{},
	}
	i.ctx, i.cancel = context.WithCancel(context.WithoutCancel(ctx))
	i.work.Go(i.scan)
	return i, nil
}

// Close ends what is being made, and waits for it.
func (i *Images) Close() error {
	i.mu.Lock()
	i.closed = true
	i.mu.Unlock()
	i.cancel()
	i.work.Wait()
	return i.root.Close()
}

// ImageHash stands for what a filter makes of a content, before it is made: it is the Hash of the Info that Image gives.
func ImageHash(contentHash string, f *imagefilter.Filter) string {
	sum := sha256.Sum256([]byte(contentHash + "\n" + f.Hash()))
	return hex.EncodeToString(sum[:])
}

// Get gives the picture of that key, which is the hash of all that it depends on: the one that is kept, else one that is made
// now, by one call of make for all who wait. Where that finds its file gone, which is the end for who asked for it, the others
// go on with theirs.
func (i *Images) Get(ctx context.Context, key string, work Make) (*File, imagefilter.Result, error) {
	if !keyForm.MatchString(key) {
		return nil, imagefilter.Result{}, errs.Wrap(fmt.Errorf("%q is no hash", key), "find a derived picture")
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, imagefilter.Result{}, err
		}
		if file, result, ok := i.kept(ctx, key); ok {
			i.opts.Count(PictureKept, 0)
			return file, result, nil
		}
		m, first, err := i.join(key, work)
		if err != nil {
			return nil, imagefilter.Result{}, err
		}
		if m == nil { // it was kept just now
			continue
		}
		select {
		case <-m.done:
		case <-ctx.Done():
			return nil, imagefilter.Result{}, i.leave(key, m, ctx.Err())
		}
		if !first && errs.KindOf(m.err) == errs.NotFound {
			continue
		}
		if m.err != nil {
			return nil, imagefilter.Result{}, m.err
		}
		if file, result, ok := i.kept(ctx, key); ok {
			return file, result, nil
		}
		return inMemory(m.result, i.opts.Now()), m.result, nil
	}
}

// join waits with others for a picture, or is the first and begins to make it. It gives nil when the picture is there.
func (i *Images) join(key string, work Make) (m *making, first bool, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil, false, errStopping
	}
	if i.entries[key] != nil {
		return nil, false, nil
	}
	if f, ok := i.failed[key]; ok {
		if i.opts.Now().Before(f.until) {
			return nil, false, f.err
		}
		delete(i.failed, key)
	}
	m = i.making[key]
	if first = m == nil; first {
		ctx, cancel := context.WithTimeoutCause(i.ctx, i.opts.MaxTime, errTooSlow)
		m = &making{done: make(chan struct{}), cancel: cancel}
		i.making[key] = m
		i.work.Go(func() { i.make(ctx, key, m, work) })
	}
	m.waiting++
	return m, first, nil
}

// leave gives up waiting, because of why. What nobody waits for any more, and nobody will ask for again, is not made.
func (i *Images) leave(key string, m *making, why error) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	m.waiting--
	if errors.Is(why, context.DeadlineExceeded) {
		m.wanted, why = true, errUnderWay
	}
	if m.waiting == 0 && !m.wanted && i.making[key] == m {
		delete(i.making, key)
		m.cancel()
	}
	return why
}

var (
	errStopping = errs.New(errs.Unavailable, "stopping", "the service is stopping: try again in a moment")
	errTooSlow  = errs.New(errs.Limit, "image_too_slow", "the picture takes too long to be made: store a smaller one, or give the filter less to do, such as a smaller size or blur")
	errMemory   = errs.New(errs.Limit, "image_too_large", "the picture takes more memory to be made than there is for that: store a smaller one or another kind of its format, have the filter give another type, or raise the setting media.pictureMemory")
	errUnderWay = &errs.Error{Kind: errs.Unavailable, Code: "image_under_way", Message: "the picture is still being made: ask for it again in a moment", RetryAfter: retryAfter}
	errBusy     = &errs.Error{Kind: errs.Unavailable, Code: "images_busy", Message: "too many pictures are being made: try again in a moment", RetryAfter: retryAfter}
)

// make makes a picture and tells who waits for it.
func (i *Images) make(ctx context.Context, key string, m *making, work Make) {
	defer m.cancel()
	start := i.opts.Now()
	m.result, m.err = i.run(ctx, work)
	switch {
	case m.err == nil:
	case i.ctx.Err() != nil:
		m.err = errStopping
	case errors.Is(context.Cause(ctx), errTooSlow):
		m.err = errTooSlow
	}
	i.opts.Count(outcome(m.err), i.opts.Now().Sub(start))
	var temp string
	var size int64
	if m.err == nil {
		temp, size = i.write(m.result)
	}
	i.mu.Lock()
	if m.err == nil && temp != "" {
		i.keep(key, temp, size, m.result)
	}
	if m.err != nil && lasting(m.err) {
		if len(i.failed) >= maxFailures {
			clear(i.failed)
		}
		i.failed[key] = failure{m.err, i.opts.Now().Add(rememberFailure)}
	}
	if i.making[key] == m {
		delete(i.making, key)
	}
	i.mu.Unlock()
	close(m.done)
}

// outcome is what became of a picture that was made, or was not because of err.
func outcome(err error) string {
	switch {
	case err == nil:
		return PictureMade
	case errors.Is(err, errPanic):
		return PictureFailed
	case lasting(err):
		return PictureRefused
	case errors.Is(err, errBusy):
		return PictureBusy
	}
	return PictureFailed
}

// lasting says that making the picture again would fail again.
func lasting(err error) bool {
	switch errs.KindOf(err) {
	case errs.Invalid, errs.MediaType, errs.Limit, errs.TooLarge:
		return true
	default:
		return errors.Is(err, errPanic)
	}
}

var errPanic = errors.New("panic")

// run calls work with what it needs of memory. A panic of it is an error.
func (i *Images) run(ctx context.Context, work Make) (result imagefilter.Result, err error) {
	var held int64
	defer func() {
		if held > 0 {
			i.memory.Release(held)
		}
		if p := recover(); p != nil {
			err = errs.Wrap(fmt.Errorf("%w: %v\n%s", errPanic, p, debug.Stack()), "make a picture")
		}
	}()
	return work(ctx, func(bytes int64) error {
		if held > 0 {
			return errs.Wrap(errors.New("memory is reserved twice"), "make a picture")
		}
		if bytes > i.opts.Memory/4*aloneQuarters {
			return errMemory
		}
		n := min(max(bytes, i.opts.Memory/int64(i.opts.Cores)), i.opts.Memory)
		waiting, cancel := context.WithTimeout(ctx, i.opts.Wait)
		defer cancel()
		// What is free is had however long this took to come to its turn.
		if !i.memory.TryAcquire(n) {
			if err := i.memory.Acquire(waiting, n); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return errBusy
			}
		}
		held = n
		if bytes >= large {
			runtime.GC() // else what the pictures before it have left is in memory beside it
		}
		return nil
	})
}
