package jobs

import (
	"bytes"
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/schedule/slots"
	"github.com/svcctl/svc/pkg/store"
)

// collectionName is where the states of jobs are, one document for each. No collection of a project can have such a name.
const collectionName = "svc.jobs"

// state is what is kept about a job. Who starts a run of it writes it in the same transaction, so that of two who do so at
// once one has to look again.
type state struct {
	Name        string          `bson:"_id"`
	Rev         int64           `bson:"rev"` // grows with each write
	Schedule    string          `bson:"schedule"`
	Done        slots.Done      `bson:"done"`
	Suspended   bool            `bson:"suspended"`
	SuspendedBy operation.Actor `bson:"suspendedBy"`
	SuspendedAt time.Time       `bson:"suspendedAt,omitempty"`
	// What became of slots so far: Claimed have a run, Skipped came while another run was active, and Missed while
	// nobody was there.
	Claimed int64     `bson:"claimed"`
	Skipped int64     `bson:"skipped"`
	Missed  int64     `bson:"missed"`
	LastRun time.Time `bson:"lastRun,omitempty"` // when a run was started last
}

// load gives the states of a project's jobs by name.
func load(ctx context.Context, db store.Database) (map[string]state, error) {
	states := map[string]state{}
	err := db.Collection(collectionName).Find(ctx, store.Query{}, func(doc bson.Raw) error {
		s, err := decode(doc)
		states[s.Name] = s
		return err
	})
	return states, err
}

// read gives a job's state, which is new if there is none.
func read(ctx context.Context, from store.Reader, name string) (state, error) {
	id, err := nameID(name)
	if err != nil {
		return state{}, err
	}
	doc, err := from.Get(ctx, id)
	if errors.Is(err, errs.ErrNotFound) {
		return state{Name: name}, nil
	}
	if err != nil {
		return state{}, err
	}
	return decode(doc)
}

func decode(doc bson.Raw) (state, error) {
	var s state
	if err := bson.Unmarshal(bytes.Clone(doc), &s); err != nil {
		return state{}, errs.Wrap(err, "decode the state of a job")
	}
	return s, nil
}

func nameID(name string) (bson.RawValue, error) {
	kind, data, err := bson.MarshalValue(name)
	if err != nil {
		return bson.RawValue{}, errs.Wrap(err, "encode the name of a job")
	}
	return bson.RawValue{Type: kind, Value: data}, nil
}

// write writes a state in place of the one that was read. It fails with store.ErrStale if that is another by now.
func (s state) write(ctx context.Context, to store.Writer) error {
	before := s.Rev
	s.Rev++
	doc, err := bson.Marshal(s)
	if err != nil {
		return errs.Wrap(err, "encode the state of a job")
	}
	op := store.Op{Kind: store.Insert, Doc: doc}
	if before > 0 {
		op.Kind, op.If = store.Replace, mql.MustCompile(bson.D{{Key: "rev", Value: before}})
	}
	results, err := to.Write(ctx, []store.Op{op}, true)
	if err != nil {
		return err
	}
	err = results[0].Err
	if _, taken := errors.AsType[*store.DuplicateKeyError](err); taken || errors.Is(err, errs.ErrNotFound) {
		return store.ErrStale
	}
	return err
}
