package snapshot_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// TestPace: while somebody writes, who reads records rests as long as it worked, within bounds, and not for so long that the view would end.
func TestPace(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		each    time.Duration // of a record
		records int
		busy    bool
		want    []time.Duration
	}{
		"nobody writes":      {time.Millisecond, 64, false, nil},
		"somebody does":      {300 * time.Microsecond, 32, true, []time.Duration{4800 * time.Microsecond, 4800 * time.Microsecond}},
		"little work":        {10 * time.Microsecond, 64, true, nil},
		"small steps add up": {100 * time.Microsecond, 64, true, []time.Duration{3200 * time.Microsecond, 3200 * time.Microsecond}},
		"much at once":       {time.Second, 32, true, []time.Duration{10 * time.Millisecond, 10 * time.Millisecond}},
		"for too long":       {2 * time.Second, 64, true, []time.Duration{10 * time.Millisecond}},
	} {
		if diff := cmp.Diff(tt.want, snapshot.Rests(tt.records, tt.each, tt.busy)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestPaceAsks: it is the project's own database of which it is asked whether somebody writes to it.
func TestPaceAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fill()
	if got := w.snaps.PacedBy(w.p, func(database string) bool { return database == "svc_"+w.p.Namespace }); !got {
		t.Error("another database is asked about")
	}
}
