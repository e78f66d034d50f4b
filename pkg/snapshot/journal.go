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
// each database of a drill.
const (
	journals  = "svc.restores"
	restoring = "restore"
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
}

func (s *Snapshots) journals(p *project.Project) store.Collection {
	return s.o.Store.Database(project.DatabaseName(p.Namespace)).Collection(journals)
}

// journal is that of a restore which begins.
func (r *restore) journal() *journal {
	j := &journal{ID: restoring, Restore: r.short, Step: stepLoading, Swaps: []store.Rename{}, Media: len(r.media) > 0}
	for _, p := range r.parts {
		if p.shadow != "" {
			j.Swaps = append(j.Swaps, store.Rename{From: p.shadow, To: p.stored()})
		}
	}
	return j
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
	doc, err := s.journals(p).Get(ctx, store.Name(restoring))
	if errors.Is(err, errs.ErrNotFound) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	j := &journal{}
	if err := bson.Unmarshal(doc, j); err != nil {
		return nil, errs.Wrap(err, "read what is noted of a restore")
	}
	return j, nil
}

// step takes a restore to another step, or fails if it is not at the one that is known here.
func (s *Snapshots) step(ctx context.Context, p *project.Project, j *journal, to string) error {
	set := mql.MustCompileUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "step", Value: to}}}})
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

var errTaken = errs.New(errs.Conflict, "restore_taken_over", "another instance has taken this restore for dead and has ended it: look at the snapshots, and try again")

// gone is the error of a step that somebody else has taken.
func gone(err error) error {
	if errors.Is(err, store.ErrStale) || errors.Is(err, errs.ErrNotFound) {
		return errTaken.With(err)
	}
	return err
}

// remove ends what is stored of a restore.
func (s *Snapshots) remove(ctx context.Context, p *project.Project, j *journal) error {
	err := store.WriteAll(ctx, s.journals(p), store.Op{Kind: store.Delete, ID: store.Name(restoring), If: j.same()})
	if errors.Is(gone(err), errTaken) { // it has been ended
		return nil
	}
	return err
}
