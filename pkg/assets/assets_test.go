package assets_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/assets"
	"github.com/svcctl/svc/pkg/errs"
)

// tree makes files in a new directory, by name.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func link(t *testing.T, dir, target, name string) {
	t.Helper()
	if err := os.Symlink(target, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
		t.Skip("no symbolic links here:", err)
	}
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// TestOpen opens what is a file below the folder, and nothing else (S44).
func TestOpen(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{
		"secret.txt": "s", "public/a.css": "a", "public/img/b.SVG": "b", "public/.hidden": "h", "public/.git/config": "h", "public/%2e": "p",
		"public/token": "t", "public/no ending": "n", "public/aux.txt": "x", "public/dot.": "d", "public/grüße.txt": "g", "other/o.txt": "o",
	})
	link(t, dir, "../secret.txt", "public/out")
	link(t, dir, "/etc", "public/etc")
	link(t, dir, "img/b.SVG", "public/in.svg")
	link(t, dir, "../other", "public/other")
	link(t, dir, "nowhere", "public/broken")
	link(t, dir, "public", "link")
	link(t, dir, "..", "up")
	a := assets.New(time.Now, []string{filepath.Join(dir, "public", "token")})
	for _, tt := range []struct{ folder, name, want string }{
		{"public", "a.css", "a.css text/css; charset=utf-8 a"},
		{"public", "img/b.SVG", "b.SVG image/svg+xml b"},
		{"public", "in.svg", "in.svg image/svg+xml b"},
		{"public", "no ending", "no ending  n"},
		{"public", "grüße.txt", "grüße.txt text/plain; charset=utf-8 g"},
		{"public", "%2e", "%2e  p"},
		{"public/img", "b.SVG", "b.SVG image/svg+xml b"},
		{"link", "a.css", "a.css text/css; charset=utf-8 a"},
		{"public", "none", ""},
		{"public", "", ""},
		{"public", ".", ""},
		{"public", "..", ""},
		{"public", "img", ""},
		{"public", "img/", ""},
		{"public", "a.css/", ""},
		{"public", "a.css/x", ""},
		{"public", "./a.css", ""},
		{"public", "img//b.SVG", ""},
		{"public", "img/../a.css", ""},
		{"public", "../secret.txt", ""},
		{"public", "../public/a.css", ""},
		{"public", "/etc/passwd", ""},
		{"public", "/a.css", ""},
		{"public", `img\b.SVG`, ""},
		{"public", `..\secret.txt`, ""},
		{"public", "a.css\x00", ""},
		{"public", "a.css\n", ""},
		{"public", "\xff", ""},
		{"public", "out", ""},
		{"public", "etc/hostname", ""},
		{"public", "other/o.txt", ""},
		{"public", "broken", ""},
		{"public", ".hidden", ""},
		{"public", ".git/config", ""},
		{"public", "token", ""}, // of the service
		{"public", "aux.txt", ""},
		{"public", "NUL", ""},
		{"public", "img/con .svg", ""},
		{"public", "COM1", ""},
		{"public", "lpt¹.txt", ""},
		{"public", "dot.", ""},
		{"public", "a.css ", ""},
		{"public", "a.css::$DATA", ""},
		{"public", strings.Repeat("n", 300), ""},
		{"public", strings.Repeat("d/", 3000) + "x", ""},
		{"gone", "a.css", ""},
		{"up", filepath.Base(dir) + "/secret.txt", ""},
		{"../" + filepath.Base(dir) + "/public", "a.css", ""},
		{"secret.txt", "x", ""},
	} {
		got := ""
		f, err := a.Open(t.Context(), assets.Folder{Dir: dir, Path: tt.folder}, tt.name)
		if err == nil {
			text, _ := io.ReadAll(f)
			got = f.Name + " " + f.Type + " " + string(text)
			if f.Hash != hashOf(string(text)) {
				t.Errorf("%s: hash %s", tt.name, f.Hash)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		} else if errs.KindOf(err) != errs.NotFound {
			t.Errorf("%s %q: %v", tt.folder, tt.name, err)
		}
		if got != tt.want {
			t.Errorf("%s %q: %q, want %q", tt.folder, tt.name, got, tt.want)
		}
	}
	if _, err := a.Open(t.Context(), assets.Folder{Path: "public"}, "a.css"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("of a project without a directory: %v", err)
	}
}

// TestPipe: what is no file is not opened, which could wait for ever.
func TestPipe(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"public/a": "a"})
	if err := syscall.Mkfifo(filepath.Join(dir, "public", "pipe"), 0o600); err != nil {
		t.Skip("no pipes here:", err)
	}
	if _, err := assets.New(time.Now, nil).Open(t.Context(), assets.Folder{Dir: dir, Path: "public"}, "pipe"); errs.KindOf(err) != errs.NotFound {
		t.Error(err)
	}
}

// TestHashes: a file that has changed has another hash at once, however it was changed.
func TestHashes(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"public/a": "one"})
	path := filepath.Join(dir, "public", "a")
	now := time.Now()
	a := assets.New(func() time.Time { return now }, nil)
	expect := func(when, text string) {
		t.Helper()
		f, err := a.Open(t.Context(), assets.Folder{Dir: dir, Path: "public"}, "a")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if f.Hash != hashOf(text) {
			t.Errorf("%s: not the hash of %q", when, text)
		}
	}
	change := func(text string, at time.Time) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	change("one", now)
	expect("first", "one")
	change("two", now)
	expect("written again in the same moment", "two")
	now = now.Add(time.Hour)
	expect("an hour later", "two")
	expect("as it is known", "two")
	change("three", now.Add(-time.Minute))
	expect("of another size and time", "three")
	replaced := filepath.Join(dir, "new")
	if err := os.WriteFile(replaced, []byte("eerht"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(replaced, now.Add(-time.Minute), now.Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(replaced, path); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" {
		expect("another file of the same size and time", "eerht")
	}
}

// TestMany: who asks at the same time gets the same, and one who leaves takes nothing from the others.
func TestMany(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("text", 1<<16)
	dir := tree(t, map[string]string{"public/a": text})
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "public", "a"), old, old); err != nil {
		t.Fatal(err)
	}
	a := assets.New(time.Now, nil)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			if i%4 == 0 {
				cancel()
			}
			defer cancel()
			f, err := a.Open(ctx, assets.Folder{Dir: dir, Path: "public"}, "a")
			if err != nil {
				if i%4 != 0 {
					t.Error(err)
				}
				return
			}
			defer f.Close()
			if got, err := io.ReadAll(f); err != nil || string(got) != text || f.Hash != hashOf(text) {
				t.Errorf("%d bytes, hash %s, %v", len(got), f.Hash, err)
			}
		})
	}
	wg.Wait()
}
