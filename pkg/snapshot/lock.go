package snapshot

import (
	"context"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/svcctl/svc/pkg/project"
)

const (
	lockFile  = ".lock" // no profile has such a name
	lockPause = 20 * time.Millisecond
)

// lockStates keeps all others from the states of a project's snapshots, until unlock is called: also other processes, where these may share the
// folder. Without that, one could remove what another has just pinned. The folder has to be there.
func (s *Snapshots) lockStates(ctx context.Context, p *project.Project) (unlock func(), err error) {
	s.states.Lock()
	if s.o.Holder == "" {
		return s.states.Unlock, nil
	}
	file := flock.New(filepath.Join(p.Dir, filepath.FromSlash(p.SnapshotDir), lockFile), flock.SetPermissions(0o600))
	if _, err := file.TryLockContext(ctx, lockPause); err != nil {
		s.states.Unlock()
		return nil, unwritten(ended(ctx, err), "lock the states of snapshots")
	}
	return func() {
		_ = file.Close() // which unlocks it, also where it fails
		s.states.Unlock()
	}, nil
}
