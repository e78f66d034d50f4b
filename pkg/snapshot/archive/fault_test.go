package archive_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/snapshot/archive"
)

// TestDamagedSnapshots: what is not as the manifest says gets into no backup, and what was written by then is none.
func TestDamagedSnapshots(t *testing.T) {
	t.Parallel()
	c := content{"a": noise(3 << 20), "dir/b": "two", "dir/c": ""}
	for _, tt := range []struct {
		name   string
		damage func(root *os.Root) error
		during bool // while it is written
		want   string
	}{
		{"a flipped bit", func(root *os.Root) error { return root.WriteFile("dir/b", []byte("twn"), 0o600) }, false, `the file "dir/b" of the snapshot has another SHA-256`},
		{"shorter", func(root *os.Root) error { return root.WriteFile("dir/b", []byte("tw"), 0o600) }, false, `the file "dir/b" of the snapshot has 2 bytes, and its manifest says 3`},
		{"longer", func(root *os.Root) error { return root.WriteFile("dir/c", []byte("x"), 0o600) }, false, `the file "dir/c" of the snapshot has 1 bytes, and its manifest says 0`},
		{"gone", func(root *os.Root) error { return root.Remove("a") }, false, `the file "a" of the snapshot is missing`},
		{"a folder", func(root *os.Root) error { return errors.Join(root.Remove("a"), root.Mkdir("a", 0o700)) }, false, `the file "a" of the snapshot is not a regular file`},
		{"a link", func(root *os.Root) error { return errors.Join(root.Rename("a", "x"), root.Symlink("x", "a")) }, false, `the file "a" of the snapshot is not a regular file`},
		{"a link out of it", func(root *os.Root) error { return errors.Join(root.Remove("a"), root.Symlink("/etc/passwd", "a")) }, false, `the file "a" of the snapshot is not a regular file`},
		{"a named pipe", func(root *os.Root) error {
			return errors.Join(root.Remove("a"), syscall.Mkfifo(root.Name()+"/a", 0o600))
		}, false, `the file "a" of the snapshot is not a regular file`},
		{"cut off meanwhile", func(root *os.Root) error { return os.Truncate(root.Name()+"/a", 1<<20) }, true, `the file "a" of the snapshot became shorter`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := snapshot(t, c)
			damaged := false
			damage := func() {
				if damaged {
					return
				}
				damaged = true
				if err := tt.damage(root); err != nil {
					t.Error(err)
				}
			}
			if !tt.during {
				damage()
			}
			var out bytes.Buffer
			err := archive.Write(t.Context(), &out, root, parse, archive.DefaultLimits(), func(archive.Progress) { damage() })
			public(t, err, errs.Conflict, "snapshot_damaged", tt.want)
			refuses(t, out.Bytes(), archive.DefaultLimits(), errs.Invalid, "backup_truncated", "ends too early")
		})
	}
	if err := archive.Write(t.Context(), io.Discard, folder(t), parse, archive.DefaultLimits(), nil); errs.KindOf(err) != errs.Internal {
		t.Errorf("a folder without a manifest: %v", err)
	}
	root := folder(t)
	write(t, root, archive.ManifestName, "not JSON")
	err := archive.Write(t.Context(), io.Discard, root, parse, archive.DefaultLimits(), nil)
	public(t, err, errs.Invalid, "manifest_invalid", "the manifest is not JSON")
}

// TestCanceled: either side stops between any two parts, and a folder is left empty.
func TestCanceled(t *testing.T) {
	t.Parallel()
	c := content{"a": noise(1 << 20), "b": "", "dir/c": noise(200 << 10)}
	whole := backup(t, c)
	canceled := 0
	for n := range 30 { // there are fewer parts
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		stop := func(archive.Progress) {
			if calls++; calls == n {
				cancel()
			}
		}
		if n == 0 {
			cancel()
		}
		var out bytes.Buffer
		err := archive.Write(ctx, &out, snapshot(t, c), parse, archive.DefaultLimits(), stop)
		if done := err == nil; !done && !errors.Is(err, context.Canceled) || done != bytes.Equal(out.Bytes(), whole) || done && calls > n && n > 0 {
			t.Errorf("canceled at call %d of %d, it wrote %d bytes of %d: %v", n, calls, out.Len(), len(whole), err)
		}
		r, err := archive.Open(t.Context(), bytes.NewReader(whole), parse, archive.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		calls = 0
		if n == 0 {
			cancel()
		}
		to := folder(t)
		err = r.Extract(ctx, to, stop)
		if left := filesIn(t, to); err == nil != (len(left) == 4) || err != nil && (len(left) > 0 || !errors.Is(err, context.Canceled)) || err == nil && calls > n {
			t.Errorf("canceled at call %d of %d, it left %d files: %v", n, calls, len(left), err)
		}
		if err != nil {
			canceled++
		}
		cancel()
	}
	if canceled < 20 || canceled > 29 {
		t.Errorf("%d of 30 were canceled", canceled)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := archive.Open(ctx, bytes.NewReader(whole), parse, archive.DefaultLimits()); !errors.Is(err, context.Canceled) {
		t.Errorf("opened: %v", err)
	}
}

// TestOtherEndsThatFail: what the other end says is told as it is, and nothing is left.
func TestOtherEndsThatFail(t *testing.T) {
	t.Parallel()
	down := errors.New("the network is down")
	c := content{"a": noise(2 << 20), "b": noise(100)}
	whole := backup(t, c)
	for n := 0; n < len(whole)+300_000; n += 300_000 {
		n := min(n, len(whole))
		err := archive.Write(t.Context(), &breaks{left: n, err: down}, snapshot(t, c), parse, archive.DefaultLimits(), nil)
		if n < len(whole) && !errors.Is(err, down) {
			t.Errorf("written until byte %d: %v", n, err)
		}
		to := folder(t)
		if err := extract(t.Context(), io.MultiReader(bytes.NewReader(whole[:n]), &breaks{err: down}), to, archive.DefaultLimits()); !errors.Is(err, down) {
			t.Errorf("read until byte %d: %v", n, err)
		}
		if diff := cmp.Diff(content{}, filesIn(t, to)); diff != "" {
			t.Error(diff)
		}
	}
}

// breaks takes that many bytes.
type breaks struct {
	left int
	err  error
}

func (b *breaks) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	if b.left -= n; n < len(p) {
		return n, b.err
	}
	return n, nil
}

func (b *breaks) Read([]byte) (int, error) { return 0, b.err }

// TestMemoryIsFlat sees what writing and reading take of memory, all in all. It is not parallel for that.
func TestMemoryIsFlat(t *testing.T) { //nolint:paralleltest // see above
	size := int64(100 << 20)
	if os.Getenv("SOAK") != "" {
		size = 9 << 30 // a size that needs a PAX header
	}
	src, to := folder(t), folder(t)
	entries := []entry{{Name: "media/zeros", Size: size}, entryOf("media/noise", noise(20<<20))}
	write(t, src, "media/noise", noise(20<<20))
	f, err := src.Create("media/zeros")
	if err == nil {
		err = errors.Join(f.Truncate(size), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	entries[0].SHA256 = sumOfZeros(size)
	write(t, src, archive.ManifestName, manifestOf(t, entries...))

	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r, w := io.Pipe()
	written := make(chan error)
	go func() {
		err := archive.Write(t.Context(), w, src, parse, archive.DefaultLimits(), nil)
		w.CloseWithError(err)
		written <- err
	}()
	err = extract(t.Context(), r, to, archive.DefaultLimits())
	r.Close()
	err = errors.Join(err, <-written)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := to.Stat("media/zeros"); err != nil || info.Size() != size {
		t.Errorf("%v, %v", info, err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
		t.Errorf("a backup of %d MiB and its restore allocated %d KiB", size>>20, took>>10)
	}
}

func sumOfZeros(size int64) string {
	sum := sha256.New()
	_, _ = io.CopyN(sum, zeroes{}, size) // neither fails
	return fmt.Sprintf("%x", sum.Sum(nil))
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// asFull makes this test program one that restores onto a full disk.
const asFull = "ARCHIVE_TEST_FULL"

// onAFullDisk extracts the backup of its input where no file may have more than 64 KiB.
func onAFullDisk() error {
	signal.Ignore(syscall.SIGXFSZ) // a write then fails, as on a full disk
	limit := syscall.Rlimit{Cur: 64 << 10, Max: 64 << 10}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	to, err := os.OpenRoot(os.Args[1])
	if err != nil {
		return err
	}
	err = extract(context.Background(), os.Stdin, to, archive.DefaultLimits())
	if e := errs.From(err); e == nil || e.Kind != errs.Full || e.Code != "backup_disk_full" {
		return fmt.Errorf("a restore onto a full disk: %w", err)
	}
	return nil
}

// TestR5FullDisk: a restore that the disk has no room for is refused as such, and leaves nothing.
func TestR5FullDisk(t *testing.T) {
	t.Parallel()
	to := folder(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], to.Name())
	cmd.Env = append(os.Environ(), asFull+"=1")
	cmd.Stdin = bytes.NewReader(backup(t, content{"a": "small", "dir/b": noise(200 << 10)}))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if diff := cmp.Diff(content{}, filesIn(t, to)); diff != "" {
		t.Error(diff)
	}
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		if err := archive.Unstored(&os.PathError{Op: "write", Path: "secret", Err: full}, "x"); errs.KindOf(err) != errs.Full || strings.Contains(errs.From(err).Message, "secret") {
			t.Errorf("%v: %v", full, err)
		}
	}
	if err := archive.Unstored(syscall.EIO, "x"); errs.KindOf(err) != errs.Internal || !errors.Is(err, syscall.EIO) {
		t.Errorf("another error: %v", err)
	}
}
