package folder_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/svcctl/svc/pkg/folder"
)

func open(t *testing.T, dir string, fault folder.Fault) *folder.Folder {
	t.Helper()
	f, err := folder.Open(dir, fault)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func wantFile(t *testing.T, f *folder.Folder, name, want string) {
	t.Helper()
	if got, err := f.Read(name, 1<<20); err != nil || string(got) != want {
		t.Errorf("%s is %q, %v, want %q", name, got, err, want)
	}
}

// counted fails the operation of a number, from 1.
type counted struct {
	n, at int
	what  error
}

func (c *counted) fault(string, string) error {
	if c.n++; c.n == c.at {
		return c.what
	}
	return nil
}

// TestWriteFails: whichever operation fails, what is there is whole, and nothing else is.
func TestWriteFails(t *testing.T) {
	t.Parallel()
	for at := 1; ; at++ {
		dir := t.TempDir()
		wantFile(t, written(t, dir, "old"), "a", "old")
		fails := &counted{at: at, what: syscall.ENOSPC}
		f := open(t, dir, fails.fault)
		err := f.Write("a", []byte("new"))
		if fails.n < at {
			if err != nil {
				t.Fatal(err)
			}
			wantFile(t, open(t, dir, nil), "a", "new")
			if at < 6 {
				t.Fatalf("only %d operations could fail", at-1)
			}
			return
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("operation %d: %v", at, err)
		}
		left, err := open(t, dir, nil).Entries(".")
		if err != nil || len(left) != 1 {
			t.Fatalf("operation %d left %v, %v", at, left, err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(got) != "old" && string(got) != "new" {
			t.Fatalf("operation %d left %q, %v", at, got, err)
		}
	}
}

func written(t *testing.T, dir, text string) *folder.Folder {
	t.Helper()
	f := open(t, dir, nil)
	if err := f.Write("a", []byte(text)); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestBring(t *testing.T) {
	t.Parallel()
	for name, why := range map[string]error{"linked": nil, "another file system": syscall.EXDEV, "too many links": syscall.EMLINK} {
		from := written(t, t.TempDir(), "text")
		to := open(t, t.TempDir(), func(op, _ string) error {
			if op == "link" {
				return why
			}
			return nil
		})
		if err := to.Make("sub"); err != nil {
			t.Fatal(err)
		}
		linked, err := folder.Bring(t.Context(), from, "a", to, "sub/b")
		if err != nil || linked != (why == nil) {
			t.Errorf("%s: %v, %v", name, linked, err)
		}
		wantFile(t, to, "sub/b", "text")
		a, err := from.Stat("a")
		if err != nil {
			t.Fatal(err)
		}
		b, err := to.Stat("sub/b")
		if err != nil || os.SameFile(a, b) != linked {
			t.Errorf("%s: the same file: %v, %v", name, os.SameFile(a, b), err)
		}
		if _, err := folder.Bring(t.Context(), from, "a", to, "sub/b"); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s, onto one that is there: %v", name, err)
		}
		if _, err := folder.Bring(t.Context(), from, "none", to, "c"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s, of none: %v", name, err)
		}
	}
}

// TestCopyFails leaves no part of a file.
func TestCopyFails(t *testing.T) {
	t.Parallel()
	from := open(t, t.TempDir(), nil)
	if err := from.Write("a", bytes.Repeat([]byte("text"), 1<<20)); err != nil {
		t.Fatal(err)
	}
	for _, op := range []string{"create", "write", "sync", "close"} {
		to := open(t, t.TempDir(), func(o, _ string) error {
			if o == op {
				return syscall.EIO
			}
			return nil
		})
		if err := folder.Copy(t.Context(), from, "a", to, "b"); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %v", op, err)
		}
		if left, err := to.Entries("."); err != nil || len(left) > 0 {
			t.Errorf("%s left %v, %v", op, left, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	to := open(t, t.TempDir(), nil)
	if err := folder.Copy(ctx, from, "a", to, "b"); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if left, err := to.Entries("."); err != nil || len(left) > 0 {
		t.Errorf("canceled, it left %v, %v", left, err)
	}
}

// TestInside: no path leads out of a folder, nor is what is no file read as one.
func TestInside(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f := written(t, dir, "text")
	for name, target := range map[string]string{"link": "a", "out": outside} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	to := open(t, t.TempDir(), nil)
	for _, name := range []string{"link", "out", "out/secret", "../secret", "pipe", ".", outside + "/secret"} {
		if data, err := f.Read(name, 1<<20); err == nil {
			t.Errorf("%s can be read: %q", name, data)
		}
		if err := folder.Copy(t.Context(), f, name, to, "b"); err == nil {
			t.Errorf("%s can be copied", name)
		}
		if strings.Contains(name, "secret") {
			if err := folder.Link(f, name, to, "b"); err == nil {
				t.Errorf("%s can be linked", name)
			}
		}
	}
	for _, name := range []string{"out/new", "../new"} {
		if err := f.Write(name, nil); err == nil {
			t.Errorf("%s can be written", name)
		}
		if err := folder.Link(f, "a", f, name); err == nil {
			t.Errorf("a can be linked as %s", name)
		}
	}
	if err := f.Make("a"); err == nil {
		t.Error("a folder can be made where a file is")
	}
	if _, err := f.Read("a", 3); err == nil {
		t.Error("a file can be read that is larger than was said")
	}
}
