package due

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
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/runs"
	"github.com/svcctl/svc/pkg/store"
)

// collectionName is where the states of tasks are, one document for each. No collection of a project can have such a name.
const collectionName = "svc.due"

// state is what is kept about a task. Who begins a run of it writes it in the same transaction, so that of two who do so at once one has
// to look again.
type state struct {
	Name      string     `bson:"_id"`      // of the task
	Rev       int64      `bson:"rev"`      // grows with each write
	Schedule  string     `bson:"schedule"` // "": what comes begins with the first slot from then on
	Done      slots.Done `bson:"done"`
	Open      *attempt   `bson:"open,omitempty"`      // what was begun, and has not been seen to end well
	Succeeded time.Time  `bson:"succeeded,omitempty"` // when a run of it has last ended well
	Wanted    []string   `bson:"wanted,omitempty"`    // the snapshots that the last Prune was begun for
}

// attempt is a slot that was claimed, and how its tries have ended.
type attempt struct {
	Slot   time.Time `bson:"slot"`
	Run    string    `bson:"run"`              // id of the newest try
	Tries  int       `bson:"tries"`            // from 1
	Failed time.Time `bson:"failed,omitempty"` // when that has failed; zero: it goes on, or nobody has seen its end
	Code   string    `bson:"code,omitempty"`   // of the last failure, also of a slot before
	Why    string    `bson:"why,omitempty"`
}

// isRunning says that the newest try goes on, as far as the state knows.
func (s *state) isRunning() bool { return s.Open != nil && s.Open.Failed.IsZero() }

// load gives the states of a project's tasks by name.
func load(ctx context.Context, db store.Database) (map[string]state, error) {
	states := map[string]state{}
	err := db.Collection(collectionName).Find(ctx, store.Query{}, func(doc bson.Raw) error {
		s, err := decode(doc)
		states[s.Name] = s
		return err
	})
	return states, err
}

func decode(doc bson.Raw) (state, error) {
	var s state
	if err := bson.Unmarshal(bytes.Clone(doc), &s); err != nil {
		return state{}, errs.Wrap(err, "decode the state of a task of snapshots")
	}
	return s, nil
}

// write writes a state in place of the one that was read. It fails with store.ErrStale if that is another by now.
func (s *state) write(ctx context.Context, to store.Writer) error {
	next := *s
	next.Rev++
	doc, err := bson.Marshal(next)
	if err != nil {
		return errs.Wrap(err, "encode the state of a task of snapshots")
	}
	op := store.Op{Kind: store.Insert, Doc: doc}
	if s.Rev > 0 {
		op.Kind, op.If = store.Replace, mql.MustCompile(bson.D{{Key: "rev", Value: s.Rev}})
	}
	results, err := to.Write(ctx, []store.Op{op}, true)
	if err != nil {
		return err
	}
	err = results[0].Err
	if _, taken := errors.AsType[*store.DuplicateKeyError](err); taken || errors.Is(err, errs.ErrNotFound) {
		return store.ErrStale
	}
	if err == nil {
		*s = next
	}
	return err
}

// isFinding says that a check has come to its end, and what it found is bad: another try finds the same, and waits for the next slot.
func (a *attempt) isFinding() bool {
	return a.Code == snapshot.ErrDamaged.Code || a.Code == runs.DrillDiffers
}

// Pauses before another try: they double with each that fails.
const (
	firstPause = time.Minute
	maxPause   = time.Hour
)

// isAhead says that something that has been is dated so far ahead that the clock was set back since. Nobody waits until it is that late again.
func isAhead(at, now time.Time) bool { return at.After(now.Add(maxPause)) }

// again is when a try that has failed is followed by the next.
func (a *attempt) again(now time.Time) time.Time {
	if isAhead(a.Failed, now) {
		return now
	}
	pause := firstPause
	for range a.Tries - 1 {
		if pause *= 2; pause >= maxPause {
			pause = maxPause
			break
		}
	}
	return a.Failed.Add(pause)
}

// ended takes in how a run of the task has ended, and says whether it has.
func (s *state) ended(run *operation.Run, now time.Time) bool {
	if run != nil && run.Status.Active() {
		return false
	}
	switch {
	case run == nil: // nobody knows any more
		s.Open.Failed, s.Open.Code, s.Open.Why = now, operation.ErrLost.Code, operation.ErrLost.Message
	case run.Status == operation.Succeeded:
		s.Open, s.Succeeded = nil, run.FinishedAt
	case run.Status == operation.Cancelled && run.CancelRequested: // somebody does not want it: the next slot counts
		s.Open = nil
	default:
		s.Open.Failed = run.FinishedAt
		if run.Error != nil {
			s.Open.Code, s.Open.Why = run.Error.Code, run.Error.Message
		}
	}
	return true
}
