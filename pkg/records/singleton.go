package records

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// singletonID is the id of the record of a singleton, the same in every one of them: so there is never a second record,
// however many are created at once. As a date it is years ahead, behind the ids of records from before the collection
// was a singleton.
func singletonID() bson.ObjectID { return bson.ObjectID([]byte("svcsingleton")) }

var errSingleton = errs.New(errs.Conflict, "singleton", "the collection has one record, which is there already: change it by PUT")

// only gives the id of a singleton's record, and whether there is one: the oldest of what is there, since it may have been
// made before the collection became a singleton.
func (s *Service) only(ctx context.Context, c *Call) (id bson.ObjectID, found bool, err error) {
	ctx, cancel := withDeadline(ctx, c)
	defer cancel()
	err = s.collection(ctx, c).Find(ctx, store.Query{Sort: mql.Sort{{Path: "_id"}}, Limit: 1}, func(doc bson.Raw) error {
		id, found = idOf(doc), true
		return nil
	})
	if !found {
		id = singletonID()
	}
	return id, found, s.storeError(ctx, err)
}

// newID gives the id of a record that is to be made. A singleton has no room for another one; two that are made at once
// have the same id.
func (s *Service) newID(ctx context.Context, c *Call, now time.Time, place int) (bson.ObjectID, error) {
	switch {
	case c.Collection.Singleton:
	case c.NewID != nil:
		return c.NewID(place), nil
	default:
		return bson.NewObjectIDFromTimestamp(now), nil
	}
	id, found, err := s.only(ctx, c)
	if err == nil && found {
		err = errSingleton
	}
	return id, err
}

// isOnly says that a create of a singleton found that it is there already.
func isOnly(c *Call, dup *store.DuplicateKeyError) bool {
	return c.Collection.Singleton && slices.Equal(dup.Paths, []string{"_id"})
}

// GetOnly gives the record of a singleton.
func (s *Service) GetOnly(ctx context.Context, c *Call, p GetParams) (Record, error) {
	if _, err := s.grant(ctx, c, access.Get); err != nil {
		return Record{}, err
	}
	id, _, err := s.only(ctx, c)
	if err != nil {
		return Record{}, err
	}
	return s.Get(ctx, c, id.Hex(), p)
}

// PutOnly changes the record of a singleton, or creates it for a caller who may do that, too. For others it is not there.
func (s *Service) PutOnly(ctx context.Context, c *Call, ch Change) (w Written, created bool, err error) {
	if _, err := s.grant(ctx, c, access.Put); err != nil {
		return Written{}, false, err
	}
	if err := c.affects(1); err != nil {
		return Written{}, false, err
	}
	for range conflictRetries {
		id, found, err := s.only(ctx, c)
		if err != nil {
			return Written{}, false, err
		}
		if found {
			w, err = s.Update(ctx, c, id.Hex(), ch)
			if !errors.Is(err, errs.ErrNotFound) {
				return w, false, err
			}
			if now, still, onlyErr := s.only(ctx, c); onlyErr != nil || still && now == id { // not for this caller
				return w, false, errors.Join(onlyErr, err)
			}
			continue
		}
		if _, err := s.grant(ctx, c, access.Post); err != nil {
			return Written{}, false, errs.ErrNotFound
		}
		if ch.There || len(ch.IfRev) > 0 {
			return Written{}, false, errStale
		}
		if w, err = s.Create(ctx, c, ch.Body); !errors.Is(err, errSingleton) {
			return w, true, err
		}
	}
	return Written{}, false, errBusyRecord
}
