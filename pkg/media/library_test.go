package media_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/media"
)

func TestLibrary(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "uploads")
	l := media.NewLibrary(dir, media.Options{Logger: slog.New(slog.DiscardHandler), Now: time.Now})
	if names, err := l.Namespaces(); err != nil || len(names) != 0 {
		t.Fatalf("before the first: %v, %v", names, err)
	}
	blog, err := l.Store("blog")
	if err != nil {
		t.Fatal(err)
	}
	again, err := l.Store("blog")
	if err != nil || again != blog {
		t.Errorf("a second call gives another store, or %v", err)
	}
	if shop, err := l.Store("shop"); err != nil || shop == blog {
		t.Errorf("another project has the same store, or %v", err)
	}
	for _, bad := range []string{"", ".", "..", "../x", "a/b", `a\b`, ".tmp"} {
		if _, err := l.Store(bad); errs.KindOf(err) != errs.Invalid {
			t.Errorf("Store(%q): %v", bad, err)
		}
	}
	names, err := l.Namespaces()
	if d := cmp.Diff([]string{"blog", "shop"}, names); d != "" || err != nil {
		t.Errorf("Namespaces (-want +got):\n%s%v", d, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Store("blog"); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("after Close: %v", err)
	}
}

// TestLibraryDroppedByOthers: what another process has dropped is opened anew, so that files can come again.
func TestLibraryDroppedByOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "uploads")
	open := func() *media.Library {
		l := media.NewLibrary(dir, media.Options{Logger: slog.New(slog.DiscardHandler), Now: time.Now})
		t.Cleanup(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
		return l
	}
	ours, theirs := open(), open()
	old, err := ours.Store("blog")
	if err != nil {
		t.Fatal(err)
	}
	if err := theirs.Drop("blog"); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"blog", "shop"} {
		if err := ours.DropAside(namespace, "restore"); err != nil {
			t.Error(err)
		}
	}
	if names, err := ours.Namespaces(); err != nil || len(names) != 0 {
		t.Errorf("what is undone of a restore has made the folders %v, or %v", names, err)
	}
	again, err := ours.Store("blog")
	if err != nil || again == old {
		t.Fatalf("the store of a folder that is gone is given, or %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "blog", ".tmp")); err != nil {
		t.Error(err)
	}
	if third, err := ours.Store("blog"); err != nil || third != again {
		t.Errorf("it is opened each time, or %v", err)
	}
}

// TestLibraryDrop: while the files of a project are removed, nobody waits who asks for those of another one, or for new ones by its name, and
// these stay.
func TestLibraryDrop(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "uploads")
	var l *media.Library
	var removing func() error
	l = media.NewLibrary(dir, media.Options{Logger: slog.New(slog.DiscardHandler), Now: time.Now, Fault: func(op, _ string) error {
		if op != "remove" || removing == nil {
			return nil
		}
		return removing()
	}})
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	put := func(namespace, name string) {
		t.Helper()
		if _, err := l.Store(namespace); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, namespace, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	there := func() (names []string) {
		t.Helper()
		for _, pattern := range []string{"[a-z]*/[a-z]*", ".dropped-*"} {
			found, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range found {
				names = append(names, strings.TrimPrefix(name, dir+"/"))
			}
		}
		return names
	}
	if err := l.Drop("blog"); err != nil {
		t.Errorf("of nothing: %v", err)
	}
	put("blog", "old")
	put("shop", "other")
	removing = func() error {
		removing = nil
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = l.Store("shop")
		}()
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			return errors.New("who asks for files waits for the removal of others")
		}
		put("blog", "new")
		return nil
	}
	if err := l.Drop("blog"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"blog/new", "shop/other"}, there()); diff != "" {
		t.Error(diff)
	}
	// One that is cut off is ended by the next one of any, or by a sweep.
	for what, end := range map[string]func() error{"the next": func() error { return l.Drop("none") }, "a sweep": l.RemoveDropped} {
		put("cut", "off")
		removing = func() error { return errors.New("killed") }
		if err := l.Drop("cut"); err == nil || len(there()) != 3 {
			t.Errorf("%v, there is %v", err, there())
		}
		names, err := l.Namespaces()
		if diff := cmp.Diff([]string{"blog", "shop"}, names); diff != "" || err != nil {
			t.Errorf("%s, %v", diff, err)
		}
		removing = nil
		if err := end(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"blog/new", "shop/other"}, there()); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}
