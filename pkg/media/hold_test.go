package media_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/media"
)

// TestHold: whoever removes files while they are held removes them when that ends.
func TestHold(t *testing.T) {
	t.Parallel()
	key := media.Key(photo.Field, "a.txt")
	for name, remove := range map[string]func(ctx context.Context, s *media.Store) error{
		"files of a record": func(ctx context.Context, s *media.Store) error {
			return s.Remove(ctx, photo.Dir, photo.Record, []string{key}, names())
		},
		"a record": func(ctx context.Context, s *media.Store) error {
			return s.RemoveRecord(ctx, photo.Dir, photo.Record, names())
		},
	} {
		dir := t.TempDir()
		s := open(t, dir, newClock())
		put(t, s, photo, "a.txt", "hello")
		hold, err := s.Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := remove(t.Context(), s); err != nil {
			t.Errorf("%s, held: %v", name, err)
		}
		if got, err := read(t, s, photo, "a.txt"); err != nil || got != "hello" {
			t.Errorf("%s, held: %q, %v", name, got, err)
		}
		put(t, s, photo, "b.txt", "uploads go on")
		hold.Release(t.Context())
		hold.Release(t.Context())
		if diff := cmp.Diff([]string{"medialib/"}, tree(t, dir)); diff != "" {
			t.Errorf("%s, not held any more: %s", name, diff)
		}
		put(t, s, photo, "a.txt", "hello")
		if err := remove(t.Context(), s); err != nil {
			t.Errorf("%s, once more: %v", name, err)
		}
		if _, err := read(t, s, photo, "a.txt"); err == nil {
			t.Errorf("%s, not held: it is still there", name)
		}
	}
}

// TestHoldKeepsWhatIsNamedAgain: a file that a record names when the hold ends stays.
func TestHoldKeepsWhatIsNamedAgain(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), newClock())
	put(t, s, photo, "a.txt", "hello")
	hold, err := s.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	named := names()
	live := func(ctx context.Context, dir, record string) (map[string]bool, error) { return named(ctx, dir, record) }
	if err := s.RemoveRecord(t.Context(), photo.Dir, photo.Record, live); err != nil {
		t.Fatal(err)
	}
	named = names(media.Key(photo.Field, "a.txt"))
	hold.Release(t.Context())
	if _, err := read(t, s, photo, "a.txt"); err != nil {
		t.Error(err)
	}
}

// TestHoldSweep: a sweep removes nothing of records meanwhile, and all of it afterwards; so it is with an upload that is given up.
func TestHoldSweep(t *testing.T) {
	t.Parallel()
	c := newClock()
	dir := t.TempDir()
	s := open(t, dir, c)
	put(t, s, photo, "a.txt", "hello")
	hold, err := s.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	given := stage(t, s, "b.txt", "given up")
	if _, err := given.Put(t.Context(), photo); err != nil {
		t.Fatal(err)
	}
	given.Discard()
	sweep := func() int {
		t.Helper()
		c.add(2 * time.Hour)
		n, err := s.Sweep(t.Context(), c.now().Add(-time.Hour), names())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := sweep(); n != 0 {
		t.Errorf("held, %d files were swept", n)
	}
	if _, err := read(t, s, photo, "b.txt"); err != nil {
		t.Errorf("held, an upload that was given up: %v", err)
	}
	hold.Release(t.Context())
	if n := sweep(); n != 2 {
		t.Errorf("%d files were swept, want 2", n)
	}
}

// TestHoldWaits for removals that are under way, and for other holds, of other processes, too.
func TestHoldWaits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := open(t, dir, newClock()), open(t, dir, newClock())
	put(t, a, photo, "a.txt", "hello")
	for name, s := range map[string]*media.Store{"this process": a, "another process": b} {
		begun, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			done <- a.RemoveRecord(t.Context(), photo.Dir, photo.Record, func(context.Context, string, string) (map[string]bool, error) {
				close(begun)
				<-goOn
				return map[string]bool{media.Key(photo.Field, "a.txt"): true}, nil
			})
		}()
		<-begun
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := s.Hold(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: while files are removed, a hold begins: %v", name, err)
		}
		cancel()
		held := make(chan *media.Hold, 1)
		go func() {
			hold, err := s.Hold(t.Context())
			if err != nil {
				t.Error(err)
			}
			held <- hold
		}()
		close(goOn)
		if err := <-done; err != nil {
			t.Error(err)
		}
		first := <-held
		for other, s := range map[string]*media.Store{"here": a, "there": b} {
			short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			if _, err := s.Hold(short); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: a second hold begins %s: %v", name, other, err)
			}
			cancel()
			if err := s.RemoveRecord(t.Context(), photo.Dir, photo.Record, names()); err != nil {
				t.Error(err)
			}
		}
		if _, err := read(t, a, photo, "a.txt"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		first.Release(t.Context())
		put(t, a, photo, "a.txt", "hello")
	}
}

// TestQuiet: it waits for uploads whose record is being written, and refuses others for as long as it lasts.
func TestQuiet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := open(t, dir, newClock()), open(t, dir, newClock())
	for name, s := range map[string]*media.Store{"this process": a, "another process": b} {
		hold, err := a.Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		waiting := stage(t, s, "a.txt", "hello")
		if _, err := waiting.Put(t.Context(), photo); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := hold.Quiet(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: quiet though an upload waits: %v", name, err)
		}
		cancel()
		waiting.Keep()
		resume, err := hold.Quiet(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		late := stage(t, s, "b.txt", "hello")
		if _, err := late.Put(t.Context(), photo); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("%s: an upload while it is quiet: %v", name, err)
		}
		resume()
		if _, err := late.Put(t.Context(), photo); err != nil {
			t.Errorf("%s: an upload afterwards: %v", name, err)
		}
		late.Keep()
		hold.Release(t.Context())
	}
}

func TestLocate(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), newClock())
	put(t, s, photo, "a.txt", "hello")
	name, info, err := s.Locate(photo.Dir, photo.Record, media.Key(photo.Field, "a.txt"))
	if err != nil || info.Size() != 5 {
		t.Fatalf("%q, %v, %v", name, info, err)
	}
	if got, err := s.Folder().Read(name, 10); err != nil || cmp.Diff("hello", string(got)) != "" {
		t.Errorf("%q, %v", got, err)
	}
	for _, c := range [][3]string{
		{photo.Dir, photo.Record, "photo/none"}, {photo.Dir, photo.Record, "photo/../photo/a.txt"}, {photo.Dir, photo.Record, "a.txt"},
		{photo.Dir, "x", "photo/a.txt"}, {"..", photo.Record, "photo/a.txt"}, {photo.Dir, photo.Record, "photo"},
	} {
		if _, _, err := s.Locate(c[0], c[1], c[2]); !errors.Is(err, errs.ErrNotFound) {
			t.Errorf("%v: %v", c, err)
		}
	}
}
