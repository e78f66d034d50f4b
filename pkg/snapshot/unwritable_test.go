package snapshot_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// TestUnwritable: where the folder of snapshots can only be read, all that writes there says so, and what is there stays.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	for _, what := range []error{syscall.EROFS, syscall.EACCES, syscall.EPERM} {
		w := newWorld(t, teststore.Memory(t))
		w.fillWith(2, 1)
		info := w.create("daily")
		w.faults = func(string, string) error { return what }
		for name, do := range map[string]func() error{
			"create": func() error { _, err := w.snaps.Create(t.Context(), w.p, w.profile("both"), nil); return err },
			"verify": func() error {
				_, err := w.snaps.Verify(t.Context(), w.p, info.ID, snapshot.VerifyOptions{})
				return err
			},
			"pin":    func() error { return w.snaps.Pin(t.Context(), w.p, info.ID, true) },
			"delete": func() error { return w.snaps.Delete(t.Context(), w.p, info.ID) },
		} {
			if err := do(); !errors.Is(err, what) || errs.From(err).Code != "snapshots_unwritable" || errs.KindOf(err) != errs.Unavailable {
				t.Errorf("%s, %v: %v", name, what, err)
			}
		}
		w.faults = nil
		w.verify(info)
	}
}
