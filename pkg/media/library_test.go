package media_test

import (
	"log/slog"
	"path/filepath"
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
