package snapshot

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
)

// journals is the collection of a project's database that says what is under way of restores: a document for the restore, and one for
// each database of a drill; and one of how the last restore has ended that another process had left.
const (
	journals  = "svc.restores"
	restoring = "restore"
	lastEnded = "last"
)

// A restore is at one of these steps. Whoever changes it does so on the condition that it is at the one before: so of two processes that each
// take the other one for dead, one goes on.
const (
	stepLoading = "loading" // nothing that is served has changed
	stepUndoing = "undoing" // it has been given up
	stepDecided = "decided" // it will be done, whatever happens
)

// journal is what is stored of a restore.
type journal struct {
	ID      string         `bson:"_id"` // restoring
	Restore string         `bson:"restore"`
	Step    string         `bson:"step"`
	Swaps   []store.Rename `bson:"swaps"`
	Media   bool           `bson:"media"` // files may be aside by the name of Restore

	// What whoever ends it tells of it; a journal of before this was noted has none of them.
	Run      Run    `bson:"run"`
	Snapshot string `bson:"snapshot"`
	Safety   string `bson:"safety,omitempty"`  // from stepDecided on, as is
	Outcome  []byte `bson:"outcome,omitempty"` // what Run.Outcome has made
}

// ending is what is noted of how a restore was ended by who came behind its process: for that one, should it only have stood still.
type ending struct {
	ID      string `bson:"_id"` // lastEnded
	Restore string `bson:"restore"`
	Forward bool   `bson:"forward"`
}

func (s *Snapshots) journals(p *project.Project) store.Collection {
	return s.journalsIn(project.DatabaseName(p.Namespace))
}

func (s *Snapshots) journalsIn(database string) store.Collection {
	return s.o.Store.Database(database).Collection(journals)
}

// journal is that of a restore which begins.
func (r *restore) journal() *journal {
	j := &journal{ID: restoring, Restore: r.short, Step: stepLoading, Swaps: []store.Rename{}, Media: len(r.media) > 0, Run: r.o.Run, Snapshot: r.from.m.ID}
	for _, p := range r.parts {
		if p.shadow != "" {
			j.Swaps = append(j.Swaps, store.Rename{From: p.shadow, To: p.stored()})
		}
	}
	return j
}

// ended is how a restore of p has ended that is at its last step.
func (j *journal) ended(p *project.Project) Ended {
	e := Ended{Project: p, Run: j.Run, Snapshot: j.Snapshot, Forward: j.Step == stepDecided}
	if e.Forward {
		e.Safety, e.Outcome = j.Safety, j.Outcome
	}
	return e
}

func (s *Snapshots) begin(ctx context.Context, p *project.Project, j *journal) error {
	doc, err := bson.Marshal(j)
	if err != nil {
		return errs.Wrap(err, "note a restore")
	}
	return store.WriteAll(ctx, s.journals(p), store.Op{Kind: store.Insert, Doc: doc})
}

// readJournal gives what is stored of a restore; nil: nothing is.
func (s *Snapshots) readJournal(ctx context.Context, p *project.Project) (*journal, error) {
	return readNote[journal](ctx, s.journals(p), restoring)
}

func readNote[T any](ctx context.Context, from store.Collection, id string) (*T, error) {
	doc, err := from.Get(ctx, store.Name(id))
	if errors.Is(err, errs.ErrNotFound) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	out := new(T)
	if err := bson.Unmarshal(doc, out); err != nil {
		return nil, errs.Wrap(err, "read what is noted of a restore")
	}
	return out, nil
}

// HasLeft says that what is noted in a project's database is of the restore of a run, or of one of which nobody knows the run: Recover ends it.
func (s *Snapshots) HasLeft(ctx context.Context, database, run string) (bool, error) {
	j, err := readNote[journal](ctx, s.journalsIn(database), restoring)
	return j != nil && (j.Run.ID == run || j.Run.ID == ""), err
}

// endedForward says that somebody else has ended a restore, and has done it.
func (s *Snapshots) endedForward(ctx context.Context, p *project.Project, restore string) (bool, error) {
	last, err := readNote[ending](ctx, s.journals(p), lastEnded)
	return last != nil && last.Restore == restore && last.Forward, err
}

// commit takes a restore to the step behind which it is done in any case.
func (s *Snapshots) commit(ctx context.Context, p *project.Project, j *journal) error {
	return s.step(ctx, p, j, stepDecided, bson.E{Key: "safety", Value: j.Safety}, bson.E{Key: "outcome", Value: bson.Binary{Data: j.Outcome}})
}

// step takes a restore to another step, or fails if it is not at the one that is known here.
func (s *Snapshots) step(ctx context.Context, p *project.Project, j *journal, to string, more ...bson.E) error {
	set := mql.MustCompileUpdate(bson.D{{Key: "$set", Value: append(bson.D{{Key: "step", Value: to}}, more...)}})
	err := store.WriteAll(ctx, s.journals(p), store.Op{Kind: store.Update, ID: store.Name(restoring), If: j.same(), Update: set})
	if err == nil {
		j.Step = to
	}
	return gone(err)
}

// same is what is stored as long as nobody else has gone on with it.
func (j *journal) same() *mql.Filter {
	return mql.MustCompile(bson.D{{Key: "restore", Value: j.Restore}, {Key: "step", Value: j.Step}})
}

var errTaken = errs.New(errs.Conflict, "restore_taken_over", "another instance took this one for dead and ended its restore: compare the records with the snapshot, and restore again if they differ")

// gone is the error of a step that somebody else has taken.
func gone(err error) error {
	if errors.Is(err, store.ErrStale) || errors.Is(err, errs.ErrNotFound) {
		return errTaken.With(err)
	}
	return err
}

// remove ends what is stored of a restore. Of one that another process has left, it notes how.
func (s *Snapshots) remove(ctx context.Context, p *project.Project, j *journal, left bool) error {
	ops := []store.Op{{Kind: store.Delete, ID: store.Name(restoring), If: j.same()}}
	if left {
		doc, err := bson.Marshal(ending{ID: lastEnded, Restore: j.Restore, Forward: j.Step == stepDecided})
		if err != nil {
			return errs.Wrap(err, "note how a restore has ended")
		}
		last := mql.MustCompile(bson.D{{Key: "_id", Value: lastEnded}})
		ops = append(ops, store.Op{Kind: store.Replace, Doc: doc, Filter: last, Upsert: true})
	}
	err := store.WriteAll(ctx, s.journals(p), ops...)
	if errors.Is(gone(err), errTaken) { // it has been ended
		return nil
	}
	return err
}
