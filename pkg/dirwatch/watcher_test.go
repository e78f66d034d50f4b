package dirwatch_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/svcctl/svc/pkg/dirwatch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a watched directory "tree" under a temporary one, and a second one, "marker", that tells when everything
// before has been dealt with: events come in order, and the tree that waits longest is looked at first.
type fixture struct {
	*testing.T
	w       *dirwatch.Watcher
	base    string
	changes chan string
	marks   int
}

var quick = dirwatch.Options{
	Logger: slog.New(slog.DiscardHandler), Debounce: 30 * time.Millisecond, MaxDelay: 300 * time.Millisecond, Poll: time.Hour,
}

// watch starts to watch; prepare makes what is there before.
func watch(t *testing.T, w *dirwatch.Watcher, prepare func(f *fixture), skip ...string) *fixture {
	t.Helper()
	f := &fixture{T: t, w: w, base: t.TempDir(), changes: make(chan string, 100)}
	f.mkdir("marker")
	prepare(f)
	for _, key := range []string{"tree", "marker"} {
		if err := w.Watch(key, f.path(key), skip...); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Start(ctx, func(key string) { f.changes <- key }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Start = %v", err)
		}
	})
	f.unchanged() // the watch is in place
	return f
}

func (f *fixture) path(name string) string { return filepath.Join(f.base, filepath.FromSlash(name)) }

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) mkdir(name string) { f.must(os.MkdirAll(f.path(name), 0o755)) }

func (f *fixture) write(name, content string) {
	f.Helper()
	f.must(os.WriteFile(f.path(name), []byte(content), 0o644))
}

func (f *fixture) link(target, name string) {
	f.must(os.Symlink(filepath.FromSlash(target), f.path(name)))
}

func (f *fixture) rename(from, to string) { f.must(os.Rename(f.path(from), f.path(to))) }

// changed waits for a report of the tree.
func (f *fixture) changed() {
	f.Helper()
	select {
	case key := <-f.changes:
		if key != "tree" {
			f.Fatalf("%s was reported, want tree", key)
		}
	case <-time.After(20 * time.Second):
		f.Fatal("no change was reported")
	}
}

// unchanged checks that nothing so far makes the tree be reported.
func (f *fixture) unchanged() {
	f.Helper()
	f.marks++
	f.write("marker/m", string(rune('a'+f.marks)))
	select {
	case key := <-f.changes:
		if key != "marker" {
			f.Fatalf("%s was reported, want nothing", key)
		}
	case <-time.After(20 * time.Second):
		f.Fatal("the marker was not reported")
	}
}

func TestChangesAreReported(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		prepare func(f *fixture)
		change  []func(f *fixture) // each is a change of its own
	}{
		"a file is written": {
			func(f *fixture) { f.mkdir("tree"); f.write("tree/a.yaml", "1") },
			[]func(f *fixture){
				func(f *fixture) { f.write("tree/a.yaml", "2") },
				func(f *fixture) { f.write("tree/a.yaml", "3") },
				func(f *fixture) { f.write("tree/b.yaml", "1") },
				func(f *fixture) { f.must(os.Remove(f.path("tree/a.yaml"))) },
			},
		},
		"an editor saves by renaming": {
			func(f *fixture) { f.mkdir("tree"); f.write("tree/a.yaml", "1") },
			[]func(f *fixture){
				func(f *fixture) {
					f.write("tree/4913", "")
					f.must(os.Remove(f.path("tree/4913")))
					f.rename("tree/a.yaml", "tree/a.yaml~")
					f.write("tree/a.yaml", "2")
					f.must(os.Remove(f.path("tree/a.yaml~")))
				},
				func(f *fixture) { // GNOME's way
					f.write("tree/.goutputstream-X1Y2Z3", "4")
					f.rename("tree/.goutputstream-X1Y2Z3", "tree/a.yaml")
				},
				func(f *fixture) { // and again: the watch survives
					f.write("tree/.a.yaml.tmp", "3")
					f.rename("tree/.a.yaml.tmp", "tree/a.yaml")
				},
			},
		},
		"a mounted volume swaps its versions": {
			func(f *fixture) {
				f.mkdir("tree/..v1")
				f.write("tree/..v1/a.yaml", "1")
				f.link("..v1", "tree/..data")
				f.link("..data/a.yaml", "tree/a.yaml")
			},
			[]func(f *fixture){
				func(f *fixture) {
					f.mkdir("tree/..v2")
					f.write("tree/..v2/a.yaml", "2")
					f.link("..v2", "tree/..data_tmp")
					f.rename("tree/..data_tmp", "tree/..data")
					f.must(os.RemoveAll(f.path("tree/..v1")))
				},
				func(f *fixture) {
					f.mkdir("tree/..v3")
					f.write("tree/..v3/a.yaml", "3")
					f.link("..v3", "tree/..data_tmp")
					f.rename("tree/..data_tmp", "tree/..data")
					f.must(os.RemoveAll(f.path("tree/..v2")))
				},
			},
		},
		"the directory itself is a link that is swapped": {
			func(f *fixture) {
				f.mkdir("v1/p")
				f.write("v1/p/a.yaml", "1")
				f.mkdir("v2/p")
				f.write("v2/p/a.yaml", "2")
				f.link("v1", "current")
				f.link("current/p", "tree")
			},
			[]func(f *fixture){
				func(f *fixture) {
					f.link("v2", "next")
					f.rename("next", "current")
				},
				func(f *fixture) { f.write("v2/p/a.yaml", "3") },
			},
		},
		"a subdirectory appears with files in it": {
			func(f *fixture) { f.mkdir("tree") },
			[]func(f *fixture){
				func(f *fixture) {
					f.mkdir("tree/a/b/c")
					f.write("tree/a/b/c/x.yaml", "1")
				},
				func(f *fixture) { f.write("tree/a/b/c/x.yaml", "2") },
				func(f *fixture) { // renamed, and replaced by another of its name
					f.rename("tree/a", "tree/z")
					f.mkdir("tree/a/b/c")
					f.write("tree/a/b/c/x.yaml", "1")
				},
				func(f *fixture) { f.write("tree/a/b/c/x.yaml", "2") },
				func(f *fixture) { f.write("tree/z/b/c/x.yaml", "4") },
			},
		},
		"the directory is deleted and comes back": {
			func(f *fixture) {
				f.mkdir("tree/sub")
				f.write("tree/sub/a.yaml", "1")
			},
			[]func(f *fixture){
				func(f *fixture) { f.must(os.RemoveAll(f.path("tree"))) },
				func(f *fixture) {
					f.mkdir("tree/sub")
					f.write("tree/sub/a.yaml", "2")
				},
				func(f *fixture) { f.write("tree/sub/a.yaml", "3") },
			},
		},
		"the directory does not exist yet": {
			func(*fixture) {},
			[]func(f *fixture){
				func(f *fixture) {
					f.mkdir("tree")
					f.write("tree/a.yaml", "1")
				},
			},
		},
		"many files change, as in a checkout": {
			func(f *fixture) { f.mkdir("tree") },
			[]func(f *fixture){
				func(f *fixture) {
					f.mkdir("tree/.git")
					f.write("tree/.git/index.lock", "")
					for i := range 50 {
						dir := "tree/" + string(rune('a'+i%5))
						f.mkdir(dir)
						f.write(dir+"/"+string(rune('A'+i))+".yaml", "1")
					}
					f.must(os.Remove(f.path("tree/.git/index.lock")))
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := watch(t, dirwatch.New(quick), tc.prepare)
			for _, change := range tc.change {
				change(f)
				f.changed()
				f.settle()
			}
		})
	}
}

// settle takes reports of the tree that are still to come: a slow machine may see one change as two.
func (f *fixture) settle() {
	f.Helper()
	f.marks++
	f.write("marker/m", string(rune('a'+f.marks)))
	for {
		select {
		case key := <-f.changes:
			if key == "marker" {
				return
			}
		case <-time.After(20 * time.Second):
			f.Fatal("the marker was not reported")
		}
	}
}

func TestNoChangeIsReported(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(f *fixture){
		"mode":              func(f *fixture) { f.must(os.Chmod(f.path("tree/a.yaml"), 0o600)) },
		"same content":      func(f *fixture) { f.write("tree/a.yaml", "1") },
		"backup file":       func(f *fixture) { f.write("tree/a.yaml~", "2") },
		"swap file":         func(f *fixture) { f.write("tree/.a.yaml.swp", "2") },
		"probe of vim":      func(f *fixture) { f.write("tree/4913", "2") },
		"lock of emacs":     func(f *fixture) { f.link("me@host.1234", "tree/.#a.yaml") },
		"swap file of kate": func(f *fixture) { f.write("tree/.a.yaml.kate-swp", "2") },
		"unsaved in emacs":  func(f *fixture) { f.write("tree/#a.yaml#", "2") },
		"unsaved in gedit":  func(f *fixture) { f.write("tree/.goutputstream-X1Y2Z3", "2") },
		"version control":   func(f *fixture) { f.write("tree/.git/index", "2") },
		"snapshot": func(f *fixture) {
			f.mkdir("tree/saved/20260301T031500Z-k3x9q2")
			f.write("tree/saved/20260301T031500Z-k3x9q2/a.yaml", "2")
		},
		"state of a snapshot":  func(f *fixture) { f.write("tree/saved/20260301T031500Z-k3x9q2.state.json", "2") },
		"snapshot in work":     func(f *fixture) { f.mkdir("tree/saved/.partial-abc"); f.write("tree/saved/.partial-abc/a.yaml", "2") },
		"lock of snapshots":    func(f *fixture) { f.write("tree/saved/.lock", "2") },
		"skipped directory":    func(f *fixture) { f.write("tree/data/snapshots/x", "2") },
		"link to the outside":  func(f *fixture) { f.link(f.path("outside"), "tree/out") },
		"file outside":         func(f *fixture) { f.write("outside/x", "2") },
		"neighbor":             func(f *fixture) { f.write("tree2", "2") },
		"link back to the top": func(f *fixture) { f.link(".", "tree/self") },
		"same versions, swapped": func(f *fixture) {
			f.mkdir("tree/..v2")
			f.write("tree/..v2/c.yaml", "1")
			f.link("..v2", "tree/..data_tmp")
			f.rename("tree/..data_tmp", "tree/..data")
		},
		"empty directory": func(f *fixture) { f.mkdir("tree/empty") },
		"back to what it was": func(f *fixture) {
			f.rename("tree/a.yaml", "tree/b.yaml")
			f.rename("tree/b.yaml", "tree/a.yaml")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := watch(t, dirwatch.New(quick), func(f *fixture) {
				f.mkdir("tree/.git")
				f.mkdir("tree/data/snapshots")
				f.mkdir("tree/saved")
				f.mkdir("outside")
				f.mkdir("tree/..v1")
				f.write("tree/..v1/c.yaml", "1")
				f.link("..v1", "tree/..data")
				f.link("..data/c.yaml", "tree/c.yaml")
				f.write("tree/a.yaml", "1")
			}, "data/snapshots")
			change(f)
			f.unchanged()
			f.write("tree/a.yaml", "2") // the watch is as good as before
			f.changed()
		})
	}
}

func TestPollingFindsChangesWithoutEvents(t *testing.T) {
	opts := quick
	opts.Poll = 20 * time.Millisecond
	f := watch(t, dirwatch.WithoutEvents(opts), func(f *fixture) { f.mkdir("tree") })
	f.write("tree/a.yaml", "1")
	f.changed()
	f.mkdir("tree/sub")
	f.write("tree/sub/b.yaml", "1")
	f.changed()
}

func TestRefusedDirectoriesAreLookedAtSoon(t *testing.T) {
	f := watch(t, dirwatch.WithoutDirectories(quick), func(f *fixture) { f.mkdir("tree") })
	f.write("tree/a.yaml", "1")
	f.changed()
	f.mkdir("tree/sub")
	f.write("tree/sub/b.yaml", "1")
	f.changed()
}

func TestAGitLockHoldsAChangeBack(t *testing.T) {
	f := watch(t, dirwatch.New(quick), func(f *fixture) {
		f.mkdir("tree/.git")
		f.mkdir("tree/p")
		f.write("tree/p/a.yaml", "1")
	})
	f.write("tree/.git/index.lock", "")
	f.write("tree/p/a.yaml", "2")
	f.unchanged()
	f.must(os.Remove(f.path("tree/.git/index.lock")))
	f.changed()
}

func TestWatchAndUnwatchWhileRunning(t *testing.T) {
	f := watch(t, dirwatch.New(quick), func(f *fixture) {
		f.mkdir("tree")
		f.mkdir("other")
	})
	f.w.Unwatch("tree")
	f.write("tree/a.yaml", "1")
	f.unchanged()

	f.must(f.w.Watch("tree", f.path("other")))
	f.write("other/a.yaml", "1")
	f.changed()
	f.must(f.w.Watch("tree", f.path("other"))) // the same again
	f.unchanged()
	f.must(f.w.Watch("tree", f.path("tree"))) // now elsewhere
	f.write("other/a.yaml", "2")
	f.unchanged()
	f.write("tree/a.yaml", "2")
	f.changed()
}

func TestAChangeBeforeStartIsReported(t *testing.T) {
	w := dirwatch.New(quick)
	f := &fixture{T: t, w: w, base: t.TempDir(), changes: make(chan string, 10)}
	f.mkdir("tree")
	f.must(w.Watch("tree", f.path("tree")))
	f.write("tree/a.yaml", "1")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Start(ctx, func(key string) { f.changes <- key }) }()
	f.changed()
	cancel()
	f.must(<-done)
}

func TestABurstIsReportedWhileItLasts(t *testing.T) {
	opts := quick
	opts.Debounce = time.Hour // it never gets quiet
	opts.MaxDelay = 100 * time.Millisecond
	w := dirwatch.New(opts)
	f := &fixture{T: t, w: w, base: t.TempDir(), changes: make(chan string, 10)}
	f.mkdir("tree")
	f.must(w.Watch("tree", f.path("tree")))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Start(ctx, func(key string) { f.changes <- key }) }()
	f.write("tree/a.yaml", "1")
	f.changed()
	cancel()
	f.must(<-done)
}

func TestSumSeesContentOfUnchangedSizeAndTime(t *testing.T) {
	f := &fixture{T: t, base: t.TempDir()}
	when := time.Now().Add(-time.Hour)
	sum := func(content string) [32]byte {
		f.write("a", content)
		f.must(os.Chtimes(f.path("a"), when, when))
		return dirwatch.Sum(f.base)
	}
	first := sum("1")
	if sum("2") == first {
		t.Error("two contents have one fingerprint")
	}
	if sum("1") != first {
		t.Error("one content has two fingerprints")
	}
	if dirwatch.Sum(f.path("nowhere")) != [32]byte{} {
		t.Error("a missing directory has a fingerprint")
	}
}
