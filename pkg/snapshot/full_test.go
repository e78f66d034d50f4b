package snapshot_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// space is a file system that tells the free space it is told.
type space struct {
	vfs.FS

	free atomic.Uint64
}

func (s *space) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: s.free.Load(), TotalBytes: 1 << 40}, nil
}

func (s *space) Unwrap() vfs.FS { return s.FS }

// R4: where the disk of the store gets below what is kept free on it, from any phase of a restore on, and stays so, the restore fails and names that disk, or is done; the project is open, all is
// as before, or as in the snapshot, and what was made is removed at once, for that takes up space. When there is some, the next restore goes.
func TestR4RestoreWithLittleSpace(t *testing.T) {
	t.Parallel()
	for _, mode := range []snapshot.RestoreMode{snapshot.Replace, snapshot.Merge} {
		for _, phase := range []snapshot.Phase{snapshot.Verifying, snapshot.Loading, snapshot.Indexing, snapshot.Safety, snapshot.Media, snapshot.Swapping} {
			t.Run(string(mode)+" "+string(phase), func(t *testing.T) {
				t.Parallel()
				disk := &space{FS: vfs.NewMem()}
				disk.free.Store(1 << 40)
				var passed atomic.Int64 // what is known of the disk is good for a moment
				began := time.Now()
				s, err := embedded.Open(t.Context(), embedded.Options{
					Dir: "/store", FS: disk, Now: func() time.Time { return began.Add(time.Duration(passed.Add(int64(time.Second)))) }, OnFatal: func(err error) { t.Error(err) },
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				})
				w := newTroubled(newWorld(t, s))
				w.fillWith(6, 30)
				info := w.create("daily")
				w.change()
				before := w.state()
				o := snapshot.RestoreOptions{Media: true, Mode: mode}
				_, err = w.snaps.Restore(t.Context(), w.p, info.ID, w.p, o, func(p snapshot.Progress) {
					if p.Phase == phase {
						disk.free.Store(embedded.DefaultMinFree - 1<<20)
					}
				})
				if e := errs.From(err); e == nil || e.Kind != errs.Full || e.Code != "store_full" || !strings.Contains(e.Message, "the disk of the store has 63 MiB free") {
					t.Errorf("it fails with %v", err)
				}
				if diff := cmp.Diff(before, w.state()); diff != "" {
					t.Errorf("with little space: %s", diff)
				}
				if err := w.reaches(); err != nil {
					t.Errorf("the project is shut: %v", err)
				}
				for database, names := range w.f.shadows {
					for name := range names {
						if stats, err := w.store.Database(database).Collection(name).Stats(t.Context()); err != nil || stats.Documents > 0 {
							t.Errorf("%s takes up space: %+v, %v", name, stats, err)
						}
					}
				}
				disk.free.Store(1 << 40)
				w.clock.Pass(time.Second)
				if _, err := w.snaps.Restore(t.Context(), w.p, info.ID, w.p, o, nil); err != nil {
					t.Errorf("with room again: %v", err)
				}
				w.leaves(t)
			})
		}
	}
}
