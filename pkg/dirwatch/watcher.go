package dirwatch

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// degradedPoll is the longest time between two looks while the kernel does not tell us of every change.
	degradedPoll = 5 * time.Second
	// lockPatience is how long a git lock file holds a change back; a stale one must not do so for ever.
	lockPatience = 30 * time.Second
)

// Options configure a Watcher. Zero durations take their defaults.
type Options struct {
	Logger   *slog.Logger  // required
	Debounce time.Duration // a change is reported when nothing more came for this long; default 300 ms
	MaxDelay time.Duration // a change is reported after this long, even if more keep coming; default 3 s
	Poll     time.Duration // every directory is looked at again after this long; default 60 s
}

// Watcher watches directory trees by key. Watch and Unwatch are safe for concurrent use, before and during Start.
type Watcher struct {
	opts Options

	// Replaced by tests of the fallback.
	open     func() (*fsnotify.Watcher, error)
	add      func(n *fsnotify.Watcher, dir string) error
	degraded time.Duration // see degradedPoll

	mu    sync.Mutex
	trees map[string]*tree
	kick  chan struct{} // trees has changed
}

// tree is one watched directory. All but the first three are owned by the loop of Start once the tree is in the map.
type tree struct {
	key, dir string
	skip     []string

	seen     snapshot  // as of the last look
	reported [32]byte  // the sum that the caller knows of
	first    time.Time // oldest event not looked at yet; zero when there is none
	due      time.Time // when to look
}

// New makes a Watcher that watches nothing.
func New(opts Options) *Watcher {
	set := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	set(&opts.Debounce, 300*time.Millisecond)
	set(&opts.MaxDelay, 3*time.Second)
	set(&opts.Poll, time.Minute)
	return &Watcher{
		opts:     opts,
		open:     fsnotify.NewWatcher,
		add:      (*fsnotify.Watcher).Add,
		degraded: degradedPoll,
		trees:    map[string]*tree{},
		kick:     make(chan struct{}, 1),
	}
}

// Watch begins to watch the tree under dir, which need not exist yet, for key. What is there when Watch returns is taken
// as known to the caller: read the directory after Watch, and nothing is missed. skip names subdirectories, as slash
// paths relative to dir, that don't matter. Another Watch of the key replaces the first, and takes what is there now as
// known: a caller who reads the directory for reasons of its own calls Watch before, else a change that it has seen and
// that is undone before the next look would never be reported.
func (w *Watcher) Watch(key, dir string, skip ...string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	t := &tree{key: key, dir: dir, skip: slices.Clone(skip)}
	t.seen = scan(t.dir, t.skip, nil)
	t.reported = t.seen.sum
	w.mu.Lock()
	w.trees[key] = t
	w.mu.Unlock()
	w.wake()
	return nil
}

// Unwatch forgets key. A call of onChange that is under way may still come.
func (w *Watcher) Unwatch(key string) {
	w.mu.Lock()
	delete(w.trees, key)
	w.mu.Unlock()
	w.wake()
}

func (w *Watcher) wake() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// Start reports each key whose tree has changed to onChange, one call at a time, until ctx ends; then it returns nil.
// onChange must be quick and may call Watch and Unwatch. Start may be called once.
func (w *Watcher) Start(ctx context.Context, onChange func(key string)) error {
	l := &loop{
		Watcher: w, watched: map[string]fs.FileInfo{}, known: map[*tree]bool{}, onChange: onChange,
		poll: time.NewTimer(w.opts.Poll),
	}
	defer l.poll.Stop()
	n, err := w.open()
	if err != nil {
		w.opts.Logger.WarnContext(ctx, "no file system events, polling", slog.Any("error", err))
		l.degrade()
	} else {
		l.notify = n
		defer func() {
			if err := n.Close(); err != nil {
				w.opts.Logger.WarnContext(ctx, "closing file system events failed", slog.Any("error", err))
			}
		}()
	}
	l.run(ctx)
	return nil
}

// loop is a running Watcher. One goroutine owns it.
type loop struct {
	*Watcher
	notify   *fsnotify.Watcher      // nil: polling only
	watched  map[string]fs.FileInfo // directories that notify watches
	known    map[*tree]bool         // trees that have been looked at since they came
	polling  bool                   // the kernel does not tell of every change
	poll     *time.Timer            // of the next look at everything
	onChange func(key string)
}

func (l *loop) run(ctx context.Context) {
	var events chan fsnotify.Event
	var failures chan error
	if l.notify != nil {
		events, failures = l.notify.Events, l.notify.Errors
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	l.welcome(ctx)
	for {
		timer.Reset(l.untilDue())
		select {
		case <-ctx.Done():
			return
		case <-l.kick:
			l.welcome(ctx)
		case e := <-events:
			l.mark(func(t *tree) bool { return e.Op != fsnotify.Chmod && t.seen.concerns(e.Name) })
		case err := <-failures:
			// Events were lost: anything may have changed.
			l.opts.Logger.WarnContext(ctx, "file system events were lost, looking again", slog.Any("error", err))
			l.mark(func(*tree) bool { return true })
		case <-l.poll.C:
			l.mark(func(*tree) bool { return true })
			l.poll.Reset(l.pollEvery())
		case <-timer.C:
			l.work(ctx)
		}
	}
}

func (l *loop) pollEvery() time.Duration {
	if l.polling {
		return min(l.opts.Poll, l.degraded)
	}
	return l.opts.Poll
}

// degrade looks more often from now on.
func (l *loop) degrade() {
	l.polling = true
	l.poll.Reset(l.pollEvery())
}

func (l *loop) all() []*tree {
	l.mu.Lock()
	defer l.mu.Unlock()
	trees := make([]*tree, 0, len(l.trees))
	for _, t := range l.trees {
		trees = append(trees, t)
	}
	return trees
}

// welcome starts to watch trees that are new, and stops for those that went. A new one may have changed since Watch
// looked at it.
func (l *loop) welcome(ctx context.Context) {
	trees := l.all()
	known := make(map[*tree]bool, len(trees))
	for _, t := range trees {
		known[t] = true
		if !l.known[t] {
			l.touch(t)
		}
	}
	l.known = known
	l.sync(ctx)
}

// mark notes an event for the trees that match.
func (l *loop) mark(match func(*tree) bool) {
	for _, t := range l.all() {
		if match(t) {
			l.touch(t)
		}
	}
}

func (l *loop) touch(t *tree) {
	now := time.Now()
	if t.first.IsZero() {
		t.first = now
	}
	t.due = now.Add(l.opts.Debounce)
	if last := t.first.Add(l.opts.MaxDelay); t.due.After(last) {
		t.due = last
	}
}

// untilDue is the time until a tree has to be looked at.
func (l *loop) untilDue() time.Duration {
	wait := time.Hour
	for _, t := range l.all() {
		if !t.first.IsZero() {
			wait = min(wait, max(0, time.Until(t.due)))
		}
	}
	return wait
}

// work looks at the trees that are due, the one that waits longest first.
func (l *loop) work(ctx context.Context) {
	now := time.Now()
	due := slices.DeleteFunc(l.all(), func(t *tree) bool { return t.first.IsZero() || t.due.After(now) })
	slices.SortFunc(due, func(a, b *tree) int { return a.due.Compare(b.due) })
	for _, t := range due {
		if ctx.Err() != nil {
			return
		}
		if now.Sub(t.first) < lockPatience && gitLocked(t.dir) {
			t.due = now.Add(l.opts.Debounce)
			continue
		}
		first := t.first
		t.first = time.Time{}
		if l.look(ctx, t); now.Sub(first) < lockPatience && gitLocked(t.dir) { // a git command has begun meanwhile
			t.first, t.due = first, now.Add(l.opts.Debounce)
			continue
		}
		l.report(t)
	}
}

// look reads a tree.
func (l *loop) look(ctx context.Context, t *tree) {
	// A directory that has just been added to the watch may have got files before: look again until none is new.
	for range 5 {
		t.seen = scan(t.dir, t.skip, t.seen.files)
		if !l.sync(ctx) {
			break
		}
	}
	if t.seen.truncated {
		l.opts.Logger.WarnContext(ctx, "directory has too many files, some are not watched",
			slog.String("key", t.key), slog.Int("limit", maxFiles))
	}
}

// report tells of a tree if its content has changed.
func (l *loop) report(t *tree) {
	if t.seen.sum == t.reported {
		return
	}
	t.reported = t.seen.sum
	l.mu.Lock()
	current := l.trees[t.key] == t
	l.mu.Unlock()
	if current {
		l.onChange(t.key)
	}
}

// sync makes the kernel watch exactly the directories that the trees want, and says whether one is new.
func (l *loop) sync(ctx context.Context) bool {
	if l.notify == nil {
		return false
	}
	want := map[string]fs.FileInfo{}
	for _, t := range l.all() {
		maps.Copy(want, t.seen.dirs)
		for dir, a := range t.seen.anchors {
			want[dir] = a.info
		}
	}
	active := map[string]bool{}
	for _, dir := range l.notify.WatchList() {
		active[dir] = true
	}
	// Remove before adding: the kernel knows a renamed directory under one number, whatever its path.
	for dir, info := range l.watched {
		if w, ok := want[dir]; ok && active[dir] && os.SameFile(w, info) {
			continue
		}
		delete(l.watched, dir)
		if active[dir] {
			_ = l.notify.Remove(dir) // it fails when the directory went meanwhile, which is what we want
		}
	}
	added := false
	for dir, info := range want {
		if _, ok := l.watched[dir]; ok {
			continue
		}
		if err := l.add(l.notify, dir); err != nil {
			l.refused(ctx, dir, err)
			continue
		}
		l.watched[dir] = info
		added = true
	}
	return added
}

// refused handles a directory that can't be watched.
func (l *loop) refused(ctx context.Context, dir string, err error) {
	if errors.Is(err, fs.ErrNotExist) || l.polling {
		return // it went meanwhile, or polling already makes up for it
	}
	l.degrade()
	hint := ""
	if errors.Is(err, syscall.ENOSPC) {
		hint = "raise fs.inotify.max_user_watches"
	}
	l.opts.Logger.WarnContext(ctx, "a directory can't be watched, polling as well",
		slog.String("dir", dir), slog.Any("error", err), slog.String("hint", hint))
}
