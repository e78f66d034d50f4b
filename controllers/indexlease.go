package controllers

import (
	"context"
	"errors"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store/lease"
)

const (
	indexLease     = "indexes"
	indexLeaseTime = 10 * time.Second
	// indexLook is how often an instance looks whether another one has finished with a project's indexes, or is gone.
	indexLook = time.Second
)

// errNoIndexLease says that a run has found something to do, and that it has no lease for that.
var errNoIndexLease = errs.New(errs.Conflict, "no_index_lease", "the indexes may be changed with a lease only")

// alone says that no other instance can work on the store.
func (r *indexReconciler) alone() bool { return r.Instance == "" }

// leased does a run, and does it again with a lease if there is something to do: a project's indexes are changed by one instance at
// a time. It fails with lease.ErrHeld while another one is at it, and with lease.ErrLost if another one took over.
//
// An index is built by the server, which can't hold that against a token. Nor need it: to build what another one builds, or has
// built, does nothing, and to drop what is gone neither. So the token is checked before each step (may), and what a paused
// holder has sent off all the same is put right by whoever comes next, for a run begins with what is there.
func (r *indexReconciler) leased(ctx context.Context, run *indexRun, p *project.Project) error {
	err := run.all(ctx, p)
	if !errors.Is(err, errNoIndexLease) {
		return err
	}
	return r.leasesOf(p.Namespace).Hold(ctx, indexLease, indexLeaseTime, func(ctx context.Context, held *lease.Lease) error {
		run.lease, run.refused = held, map[string]refusal{}
		return run.all(ctx, p)
	})
}

// leasesOf gives the leases of a project's database. They remember what they have seen of other holders.
func (r *indexReconciler) leasesOf(namespace string) *lease.Leases {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leases[namespace] == nil {
		r.leases[namespace] = lease.New(r.Store.Database(project.DatabaseName(namespace)), r.Instance, nil)
	}
	return r.leases[namespace]
}

// may says that a run may change an index now.
func (r *indexRun) may(ctx context.Context) error {
	switch {
	case r.alone():
		return nil
	case r.lease == nil:
		return errNoIndexLease
	}
	return r.lease.Renew(ctx)
}
