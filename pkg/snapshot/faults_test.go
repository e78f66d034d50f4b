package snapshot_test

import (
	"errors"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// nth fails one operation on the disk, by its number from 1, and all behind it if the disk stays full.
type nth struct {
	mu    sync.Mutex
	n, at int
	stays bool
	what  error
}

func (f *nth) fault(string, string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n++; f.n == f.at || f.stays && f.n > f.at {
		return f.what
	}
	return nil
}

// heal has nothing fail any more.
func (f *nth) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at, f.stays = 0, false
}

// R4: whichever operation on the disk fails while a snapshot is made, what is listed is whole, what was there stays, and live files do, too.
func TestR4CreateFails(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]error{"ENOSPC": syscall.ENOSPC, "EIO": syscall.EIO} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, teststore.Memory(t))
			w.fillWith(6, 5)
			before := w.create("daily")
			live := contents(t, w.media)
			failed := 0
			for at := 1; ; at++ {
				w.clock.Pass(time.Second)
				f := &nth{at: at, what: what, stays: at%2 == 0}
				w.faults = f.fault
				_, err := w.snaps.Create(t.Context(), w.p, w.profile("both"), nil)
				w.faults = nil
				list, lerr := w.snaps.List(t.Context(), w.p)
				if lerr != nil {
					t.Fatal(lerr)
				}
				for _, info := range list {
					w.verify(info)
				}
				if f.n < at {
					if err != nil || len(list) < 2 {
						t.Fatalf("nothing failed: %v", err)
					}
					break
				}
				failed++
				if err != nil && !errors.Is(err, what) || what == syscall.ENOSPC && err != nil && errs.KindOf(err) != errs.Full {
					t.Fatalf("operation %d: %v", at, err)
				}
				for _, info := range list {
					if info.ID == before.ID {
						continue
					}
					if err := w.snaps.Delete(t.Context(), w.p, info.ID); err != nil { // the last step failed
						t.Fatal(err)
					}
				}
				if err := w.snaps.Sweep(t.Context(), w.p); err != nil {
					t.Fatal(err)
				}
				if len(contents(t, filepath.Join(w.p.Dir, "snapshots"))) != len(contents(t, w.path(before)))+1 {
					t.Fatalf("operation %d left something", at)
				}
			}
			if failed < 60 {
				t.Errorf("only %d operations could fail", failed)
			}
			for name, text := range contents(t, w.media) {
				if live[name] != text {
					t.Errorf("the live file %s is another", name)
				}
			}
		})
	}
}

// R4: a delete that fails leaves a snapshot that is whole, or none.
func TestR4DeleteFails(t *testing.T) {
	t.Parallel()
	for _, what := range []syscall.Errno{syscall.ENOSPC, syscall.EIO} {
		t.Run(what.Error(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, teststore.Memory(t))
			w.fill()
			stays := w.create("daily")
			for at := 1; ; at++ {
				info := w.create("daily")
				f := &nth{at: at, what: what}
				w.faults = f.fault
				err := w.snaps.Delete(t.Context(), w.p, info.ID)
				w.faults = nil
				list, lerr := w.snaps.List(t.Context(), w.p)
				if lerr != nil {
					t.Fatal(lerr)
				}
				for _, info := range list {
					w.verify(info)
				}
				if f.n < at {
					if err != nil || len(list) != 1 {
						t.Fatalf("nothing failed: %v, %v", list, err)
					}
					return
				}
				if err := w.snaps.Sweep(t.Context(), w.p); err != nil {
					t.Fatal(err)
				}
				if len(list) == 2 {
					if err := w.snaps.Delete(t.Context(), w.p, info.ID); err != nil {
						t.Fatal(err)
					}
				}
				if left := contents(t, filepath.Join(w.p.Dir, "snapshots")); len(left) != len(contents(t, w.path(stays)))+1 {
					t.Fatalf("operation %d left %d files", at, len(left))
				}
			}
		})
	}
}

// TestVerifyFails: a file that can't be read is damaged, and so is the snapshot.
func TestVerifyFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fill()
	info := w.create("both")
	w.faults = func(op, name string) error {
		if op == "read" && name == "db/items.bson" {
			return syscall.EIO
		}
		return nil
	}
	v, err := w.snaps.Verify(t.Context(), w.p, info.ID, snapshot.VerifyOptions{})
	if err != nil || v.Problems != 1 || v.Found[0] != (snapshot.Finding{Path: "db/items.bson", Text: "input/output error"}) {
		t.Errorf("%+v, %v", v, err)
	}
}
