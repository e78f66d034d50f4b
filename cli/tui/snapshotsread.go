package tui

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// The kinds of rows, before their ids.
const (
	kindRun      = "run"
	kindSnapshot = "snapshot"
)

// How many are shown.
const (
	shownRuns      = 10
	shownSnapshots = 500
)

// snapshotsFor is how long the list of snapshots is good for while no run begins or ends: the service reads it from the disk.
const snapshotsFor = 10 * time.Second

// snapshotsRead is what the service says of snapshots.
type snapshotsRead struct {
	runs      []api.Run // newest first
	snapshots []api.Snapshot
	more      bool // there are more snapshots
}

// active is the run that goes on; nil: none does.
func (r *snapshotsRead) active() *api.Run {
	return first(r.runs, (*api.Run).Active)
}

func (r *snapshotsRead) run(id string) *api.Run {
	return first(r.runs, func(run *api.Run) bool { return run.ID == id })
}

func (r *snapshotsRead) snapshot(id string) *api.Snapshot {
	return first(r.snapshots, func(s *api.Snapshot) bool { return s.ID == id })
}

// snapshotReader asks for snapshots and runs. It is used by one read at a time.
type snapshotReader struct {
	client    *client.Client
	namespace string
	now       func() time.Time
	again     atomic.Bool // the snapshots have changed

	last  *api.List[api.Snapshot]
	at    time.Time // when that was read
	state string    // of the runs then
}

func (r *snapshotReader) read(ctx context.Context) (*snapshotsRead, error) {
	runs, err := r.client.ListSnapshotRuns(ctx, r.namespace, client.SnapshotRunsQuery{Limit: shownRuns})
	if err != nil {
		return nil, err
	}
	var state strings.Builder
	for _, run := range runs.Items {
		state.WriteString(run.ID + " " + run.Status + "\n")
	}
	if again := r.again.Swap(false); again || r.last == nil || r.state != state.String() || r.now().Sub(r.at) >= snapshotsFor {
		list, err := r.client.ListSnapshots(ctx, r.namespace, "", client.Query{Limit: shownSnapshots})
		if err != nil {
			r.again.Store(again)
			return nil, err
		}
		r.last, r.at, r.state = list, r.now(), state.String()
	}
	return &snapshotsRead{runs: runs.Items, snapshots: r.last.Items, more: r.last.HasMore}, nil
}

func (s *snapshots) valueOf(id string) any {
	if s.read == nil {
		return nil
	}
	kind, id, _ := strings.Cut(id, "/")
	if run := s.read.run(id); kind == kindRun && run != nil {
		return run
	}
	if one := s.read.snapshot(id); kind == kindSnapshot && one != nil {
		return one
	}
	return nil
}
