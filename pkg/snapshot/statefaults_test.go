package snapshot_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// R4: whichever operation on the disk fails while a snapshot is pinned or checked, or is the last one before the process dies, what is known of it is what was known
// before or what is known now, it can be read, the snapshot is whole, and the next time goes.
func TestR4StateFails(t *testing.T) {
	t.Parallel()
	for what, do := range map[string]func(w *world, id string) error{
		"pin": func(w *world, id string) error { return w.snaps.Pin(w.Context(), w.p, id, true) },
		"check": func(w *world, id string) error {
			v, err := w.snaps.Verify(w.Context(), w.p, id, snapshot.VerifyOptions{})
			if err == nil && !v.Whole() && len(v.Found) > 0 { // a file that can't be read is what a check finds
				text := v.Found[0].Text
				for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
					if strings.Contains(text, errno.Error()) {
						return errno
					}
				}
			}
			return err
		},
	} {
		for name, errno := range map[string]syscall.Errno{"EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC} {
			for _, dies := range []bool{false, true} {
				t.Run(fmt.Sprint(what, " ", name, " dies ", dies), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, teststore.Memory(t))
					w.fillWith(2, 2)
					info := w.create("daily")
					failed := 0
					for at := 1; ; at++ {
						if err := w.snaps.Pin(t.Context(), w.p, info.ID, false); err != nil {
							t.Fatal(err)
						}
						before := w.list(t)[0].State
						f := &nth{at: at, stays: dies, what: errno}
						w.faults = f.fault
						err := do(w, info.ID)
						w.faults = nil
						now := w.list(t)
						if len(now) != 1 || now[0].Problem != "" || now[0].State.Damaged {
							t.Fatalf("operation %d: there is %+v", at, now)
						}
						if f.n < at {
							if err != nil || failed < 5 {
								t.Fatalf("nothing failed in %d operations: %v", f.n, err)
							}
							break
						}
						if err != nil {
							failed++
						}
						if err != nil && !errors.Is(err, errno) || errors.Is(err, syscall.ENOSPC) && !errors.Is(err, errno) {
							t.Fatalf("operation %d: %v", at, err)
						}
						if e := errs.From(err); what == "pin" && errno == syscall.ENOSPC && e != nil && e.Kind != errs.Full {
							t.Fatalf("operation %d: %v", at, err)
						}
						if what == "pin" && err == nil && !now[0].State.Pinned {
							t.Fatalf("operation %d failed, and nothing was said", at)
						}
						if what == "check" && now[0].State.Pinned != before.Pinned {
							t.Fatalf("operation %d: a check has pinned it: %+v", at, now[0].State)
						}
						if err := w.snaps.Sweep(t.Context(), w.p); err != nil {
							t.Fatal(err)
						}
						if v := w.verify(info); v.Dangling > 0 { // so that the next check starts from a whole one
							t.Fatalf("operation %d: %+v", at, v)
						}
						for name := range contents(t, filepath.Join(w.p.Dir, "snapshots")) {
							if base := filepath.Base(name); strings.HasPrefix(base, ".") && base != ".lock" {
								t.Fatalf("operation %d left %s", at, name)
							}
						}
					}
				})
			}
		}
	}
}
