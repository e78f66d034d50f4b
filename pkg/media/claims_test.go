//go:build linux

package media_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/media"
)

// R5: of two instances on one folder, neither removes a file that a record of the other is about to name. (Two stores of one
// process are like two processes on Linux; elsewhere the locks are the process's.)
func TestR5TwoInstances(t *testing.T) {
	t.Parallel()
	key := media.Key(photo.Field, "a.txt")
	put := func(t *testing.T, s *media.Store) *media.Staged {
		t.Helper()
		st := stage(t, s, "a.txt", "hello")
		if _, err := st.Put(t.Context(), photo); err != nil {
			t.Fatal(err)
		}
		return st
	}
	remove := func(t *testing.T, s *media.Store) {
		t.Helper()
		if err := s.Remove(t.Context(), photo.Dir, photo.Record, []string{key}, names()); err != nil {
			t.Fatal(err)
		}
	}
	removeRecord := func(t *testing.T, s *media.Store) {
		t.Helper()
		if err := s.RemoveRecord(t.Context(), photo.Dir, photo.Record, names()); err != nil {
			t.Fatal(err)
		}
	}
	sweep := func(t *testing.T, s *media.Store) {
		t.Helper()
		if _, err := s.Sweep(t.Context(), time.Now().Add(1000*time.Hour), names()); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		do    func(t *testing.T, a, b *media.Store)
		stays bool
	}{
		"a discards what b has taken": {func(t *testing.T, a, b *media.Store) {
			first := put(t, a)
			second := put(t, b)
			first.Discard()
			second.Keep()
		}, true},
		"a discards what b has taken and kept": {func(t *testing.T, a, b *media.Store) {
			first := put(t, a)
			put(t, b).Keep()
			first.Discard()
		}, true},
		"a discards what is its own": {func(t *testing.T, a, _ *media.Store) { put(t, a).Discard() }, false},
		"a removes what b has put again": {func(t *testing.T, a, b *media.Store) {
			put(t, a).Keep()
			again := put(t, b)
			remove(t, a)
			again.Keep()
		}, true},
		"a removes what b has put anew": {func(t *testing.T, a, b *media.Store) {
			again := put(t, b)
			remove(t, a)
			again.Keep()
		}, true},
		"a deletes the record that b is writing": {func(t *testing.T, a, b *media.Store) {
			again := put(t, b)
			removeRecord(t, a)
			again.Keep()
		}, true},
		"a sweeps what b is writing": {func(t *testing.T, a, b *media.Store) {
			again := put(t, b)
			sweep(t, a)
			again.Keep()
		}, true},
		"a removes what nobody is at any more": {func(t *testing.T, a, b *media.Store) {
			put(t, b).Keep()
			remove(t, a)
		}, false},
		"a deletes the record of which b has given up": {func(t *testing.T, a, b *media.Store) {
			put(t, a).Keep()
			put(t, b).Discard()
			removeRecord(t, a)
		}, false},
		"two of b, of which one ends": {func(t *testing.T, a, b *media.Store) {
			first, second := put(t, b), put(t, b)
			first.Keep()
			remove(t, a)
			second.Keep()
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			later := newClock()
			later.add(time.Second)
			c.do(t, open(t, dir, newClock()), open(t, dir, later))
			_, err := read(t, open(t, dir, newClock()), photo, "a.txt")
			if stays := err == nil; stays != c.stays {
				t.Errorf("the file stays: %v, want %v (%v)", stays, c.stays, err)
			}
		})
	}
}

// An upload waits while another instance removes files of its record, as long as its caller does.
func TestClaimsWait(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := open(t, dir, newClock()), open(t, dir, newClock())
	put(t, a, photo, "a.txt", "hello")
	asked := false
	live := func(context.Context, string, string) (map[string]bool, error) { // a is between looking and removing
		asked = true
		ctx, cancel := context.WithCancel(t.Context())
		st := stage(t, b, "a.txt", "hello")
		time.AfterFunc(20*time.Millisecond, cancel)
		if _, err := st.Put(ctx, photo); !errors.Is(err, context.Canceled) {
			t.Errorf("put beside a removal: %v", err)
		}
		return map[string]bool{}, nil
	}
	if err := a.Remove(t.Context(), photo.Dir, photo.Record, []string{media.Key(photo.Field, "a.txt")}, live); err != nil || !asked {
		t.Fatal(asked, err)
	}
	put(t, b, photo, "a.txt", "hello")
}
