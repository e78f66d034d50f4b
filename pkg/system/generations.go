package system

import (
	"context"
	"errors"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// Generations number the configs that each project has been served from. They live in the store, so that a number
// means the same config on every instance and after a restart.
type Generations struct {
	coll store.Collection
	now  func() time.Time
}

// Generation is the latest one of a project.
type Generation struct {
	Project  string    `bson:"_id"`  // id of the registration
	Rev      int64     `bson:"_rev"` // grows with each write
	Number   int64     `bson:"number"`
	Revision string    `bson:"revision"` // hash of the config's files
	Since    time.Time `bson:"since"`
}

// Number gives the generation of a project's revision: the latest one if that is its revision, else the next.
func (g *Generations) Number(ctx context.Context, projectID, revision string) (int64, error) {
	var number int64
	err := retry(ctx, func() error {
		latest, err := get[Generation](ctx, g.coll, stringValue(projectID))
		missing := errors.Is(err, errs.ErrNotFound)
		switch {
		case err != nil && !missing:
			return err
		case !missing && latest.Revision == revision:
			number = latest.Number
			return nil
		}
		next := Generation{Project: projectID, Rev: latest.Rev + 1, Number: latest.Number + 1, Revision: revision, Since: g.now()}
		number = next.Number
		if missing {
			if err = insert(ctx, g.coll, next); isDuplicate(err) {
				return store.ErrStale // another instance was first
			}
			return err
		}
		op, err := replaceOp(next, latest.Rev)
		if err != nil {
			return err
		}
		return write(ctx, g.coll, op)
	})
	return number, err
}

// Remove forgets the generations of a project whose registration is gone. Where there are none, it does nothing.
func (g *Generations) Remove(ctx context.Context, projectID string) error {
	err := write(ctx, g.coll, store.Op{Kind: store.Delete, ID: stringValue(projectID)})
	if errors.Is(err, errs.ErrNotFound) {
		return nil
	}
	return err
}
