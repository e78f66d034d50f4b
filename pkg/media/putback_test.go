package media_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/folder"
	"github.com/svcctl/svc/pkg/media"
)

// shelf is a folder with files as a snapshot has them, by their hash.
type shelf struct {
	*testing.T
	*folder.Folder
}

func newShelf(t *testing.T, contents ...string) shelf {
	t.Helper()
	f, err := folder.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	for _, c := range contents {
		if err := f.Write(sum(c), []byte(c)); err != nil {
			t.Fatal(err)
		}
	}
	return shelf{t, f}
}

func sum(content string) string {
	s := sha256.Sum256([]byte(content))
	return hex.EncodeToString(s[:])
}

func back(name, content string) media.Back {
	return media.Back{Dir: photo.Dir, Record: photo.Record, Key: media.Key(photo.Field, name), Hash: sum(content), Size: int64(len(content))}
}

func (s shelf) bring(b *media.PutBack, name, content string) (media.Returned, bool) {
	s.Helper()
	how, aside, err := b.Bring(s.Context(), back(name, content), s.Folder, sum(content))
	if err != nil {
		s.Fatalf("bring %s: %v", name, err)
	}
	return how, aside
}

func contentsOf(t *testing.T, s *media.Store, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for name := range want {
		text, err := read(t, s, photo, name)
		if err != nil {
			text = "nothing"
		}
		got[name] = text
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPutBack(t *testing.T) {
	t.Parallel()
	c := newClock()
	dir := t.TempDir()
	s := open(t, dir, c)
	put(t, s, photo, "same.txt", "same")
	put(t, s, photo, "other.txt", "what is there now")
	from := newShelf(t, "new", "same", "what was there before")
	hold, err := s.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := hold.PutBack("one")
	for range 2 { // another time nothing is wrong with what was brought
		for _, w := range []struct {
			name, content string
			how           media.Returned
			aside         bool
		}{
			{"new.txt", "new", media.Linked, false},
			{"same.txt", "same", media.WasThere, false},
			{"other.txt", "what was there before", media.Linked, true},
		} {
			how, aside := from.bring(b, w.name, w.content)
			if how != w.how && how != media.WasThere || aside != w.aside && how != media.WasThere {
				t.Errorf("%s: %v, aside %v", w.name, how, aside)
			}
		}
	}
	if err := b.Sync(); err != nil {
		t.Fatal(err)
	}
	contentsOf(t, s, map[string]string{"new.txt": "new", "same.txt": "same", "other.txt": "what is there now"})
	hold.Release(t.Context())
	if n, err := s.Sweep(t.Context(), c.now(), names(media.Key(photo.Field, "same.txt"), media.Key(photo.Field, "other.txt"))); n != 0 || err != nil {
		t.Errorf("a sweep that goes by an hour removes %d files, %v", n, err)
	}
	if err := s.ReplaceAside(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	contentsOf(t, s, map[string]string{"new.txt": "new", "same.txt": "same", "other.txt": "what was there before"})
	if err := s.ReplaceAside(t.Context(), "one"); err != nil {
		t.Errorf("once more: %v", err)
	}
	for _, name := range tree(t, dir) {
		if strings.Contains(name, ".restore/one") {
			t.Errorf("%s is left", name)
		}
	}
}

func TestPutBackDropped(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := open(t, t.TempDir(), c)
	put(t, s, photo, "a.txt", "now")
	from := newShelf(t, "before", "new")
	hold, err := s.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := hold.PutBack("one")
	from.bring(b, "a.txt", "before")
	from.bring(b, "b.txt", "new")
	hold.Release(t.Context())
	if err := s.DropAside("one"); err != nil {
		t.Fatal(err)
	}
	if err := s.ReplaceAside(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	contentsOf(t, s, map[string]string{"a.txt": "now", "b.txt": "new"})
	c.add(2 * time.Hour)
	if n, err := s.Sweep(t.Context(), c.now().Add(-time.Hour), names(media.Key(photo.Field, "a.txt"))); n != 1 || err != nil {
		t.Errorf("%d files swept, %v, want the one that no record names", n, err)
	}
}

// TestPutBackFails: whichever operation on the disk fails, what is there is whole, and it can be done again.
func TestPutBackFails(t *testing.T) {
	t.Parallel()
	from := newShelf(t, "new", "before")
	for at, ended := 1, false; !ended; at++ {
		n, again := 0, false
		c := newClock()
		s, err := media.Open(t.TempDir(), media.Options{Logger: slog.New(slog.DiscardHandler), Now: c.now, Fault: func(string, string) error {
			if n++; n == at && !again {
				return syscall.EIO
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, photo, "a.txt", "now")
		hold, err := s.Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b := hold.PutBack("one")
		all := func() error {
			for _, f := range [][2]string{{"a.txt", "before"}, {"b.txt", "new"}} {
				if _, _, err := b.Bring(t.Context(), back(f[0], f[1]), from.Folder, sum(f[1])); err != nil {
					return err
				}
			}
			return b.Sync()
		}
		err = all()
		contentsOf(t, s, map[string]string{"a.txt": "now"})
		if err == nil {
			err = b.Replace(t.Context())
		}
		switch ended = n < at; {
		case ended && err != nil:
			t.Fatal(err)
		case !ended && !errors.Is(err, syscall.EIO):
			t.Fatalf("operation %d fails, and so it ends with %v", at, err)
		}
		if text, err := read(t, s, photo, "a.txt"); err != nil || text != "now" && text != "before" {
			t.Fatalf("operation %d leaves %q, %v", at, text, err)
		}
		again = true
		if err := errors.Join(all(), b.Replace(t.Context())); err != nil {
			t.Fatalf("after operation %d has failed: %v", at, err)
		}
		contentsOf(t, s, map[string]string{"a.txt": "before", "b.txt": "new"})
		hold.Release(t.Context())
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
