package runs

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store"
)

// AllProfiles is the name of runs that are about the snapshots of all profiles.
const AllProfiles = "all profiles"

// Kinds are the kinds of the runs of this package.
func Kinds() []operation.Kind {
	return []operation.Kind{
		operation.Snapshot, operation.Verify, operation.Restore, operation.Prune, operation.Import, operation.Drill, operation.Backup,
	}
}

// Kept is what may be done with snapshots without a run. *snapshot.Snapshots does it.
type Kept interface {
	List(ctx context.Context, p *project.Project) ([]snapshot.Info, error)
	Where(ctx context.Context, p *project.Project, id string) (profile string, err error)
	Look(ctx context.Context, p *project.Project, id string) (snapshot.Info, error)
	Show(ctx context.Context, p *project.Project, id string) (snapshot.Info, error)
	Compare(ctx context.Context, p *project.Project, id string, o snapshot.CompareOptions) (snapshot.Diff, error)
	Estimate(ctx context.Context, p *project.Project, profile snapshot.Profile) (*snapshot.Estimate, error)
	Export(ctx context.Context, p *project.Project, id string, to io.Writer) error
	Pin(ctx context.Context, p *project.Project, id string, pinned bool) error
	Delete(ctx context.Context, p *project.Project, id string) error
}

// Service starts such runs, and tells of them. What takes long, or changes records, is done by them alone. It is safe for concurrent use.
type Service struct {
	Kept

	snapshots *snapshot.Snapshots

	runs     *operation.Runs
	log      *slog.Logger
	ctx      context.Context //nolint:containedctx // of what it does beside runs
	stop     context.CancelFunc
	discards sync.WaitGroup
}

// New makes a Service. Close it before the store.
func New(s *snapshot.Snapshots, runs *operation.Runs, log *slog.Logger) *Service {
	out := &Service{Kept: s, snapshots: s, runs: runs, log: log}
	out.ctx, out.stop = context.WithCancel(context.Background()) //nolint:forbidigo // it ends by Close
	return out
}

// Start is a run to be started. All members but Kind are optional, or as the kind needs them.
type Start struct {
	Kind     operation.Kind
	Profile  string  // of a snapshot, a prune ("": all profiles), a check of all of its snapshots
	Snapshot string  // the id of what is checked, rehearsed or restored; "": those of Profile, or its newest
	Newest   bool    // of a check of a profile: the newest alone
	Sample   float64 // of a check, as snapshot.VerifyOptions has it
	Restore  *Restore

	ID      string // of the run; "": a new one
	Trigger operation.Trigger
	Slot    time.Time
	By      operation.Actor
	Claim   func(ctx context.Context, tx store.Tx) error // as operation.Spec has it
	Ended   func(run *operation.Run)                     // likewise
	// Note is called before the run starts, when it is clear what it is to do: of which profile and snapshot, and how. What it can't note
	// does not start.
	Note func(ctx context.Context, profile, subject string, how bson.D) error
}

// Frugal says that a run only reads, or makes room: it goes on a disk that is nearly full, too.
func (s *Start) Frugal() bool {
	return s.Kind == operation.Verify || s.Kind == operation.Prune || s.Kind == operation.Restore && s.Restore != nil && s.Restore.DryRun
}

// work is a run whose kind, name and subject are known, and what it does.
type work struct {
	name    string // the profile
	subject string // the snapshot
	how     bson.D // what it is told beside
	do      func(ctx context.Context, t *teller) (*api.SnapshotResult, error)
}

// input is what the run's record keeps of it.
func (w *work) input() bson.D {
	in := bson.D{{Key: "profile", Value: w.name}}
	if w.subject != "" {
		in = append(in, bson.E{Key: "snapshot", Value: w.subject})
	}
	return append(in, w.how...)
}

// Start starts a run. What there is none of is errs.NotFound; while another one of the project goes on, it is snapshot.ErrBusy, whose
// message names that one.
func (s *Service) Start(ctx context.Context, p *project.Project, what Start) (*operation.Run, error) {
	w, err := s.work(ctx, p, what)
	if err != nil {
		return nil, err
	}
	return s.start(ctx, p, what, w)
}

func (s *Service) start(ctx context.Context, p *project.Project, what Start, w *work) (*operation.Run, error) {
	if what.Frugal() {
		ctx = store.WithReserve(ctx)
	}
	if what.Note != nil {
		if err := s.Idle(ctx, p, what.Kind); err != nil {
			return nil, err
		}
		if err := what.Note(ctx, w.name, w.subject, w.how); err != nil {
			return nil, err
		}
	}
	if what.Trigger == "" {
		what.Trigger = operation.Manual
	}
	spec := operation.Spec{
		Database: project.DatabaseName(p.Namespace), Kind: what.Kind, Name: w.name, Subject: w.subject, ID: what.ID,
		Trigger: what.Trigger, Slot: what.Slot, By: what.By, Input: w.input(), Cancellable: true, Ended: what.Ended,
		Claim: func(ctx context.Context, tx store.Tx) error {
			if what.Claim != nil {
				if err := what.Claim(ctx, tx); err != nil {
					return err
				}
			}
			return alone(ctx, tx, what.Kind)
		},
	}
	run, err := s.runs.Start(ctx, spec, func(ctx context.Context, live *operation.Live) (operation.Outcome, error) {
		t := &teller{live: live}
		result, err := w.do(ctx, t)
		if result == nil {
			return operation.Outcome{}, err
		}
		result.Warnings = t.warnings
		out, failed := outcome(result)
		if err == nil {
			err = failed
		}
		return out, err
	})
	if errors.Is(err, snapshot.ErrBusy) {
		return nil, s.busy(ctx, p, what.Kind)
	}
	return run, err
}

// claimName is the document that all starts of runs write, so that of two at the same time one sees the other.
const claimName = "runs"

// reading are the kinds that only read snapshots. They may take hours, which nothing has to wait for.
func reading() []operation.Kind { return []operation.Kind{operation.Verify, operation.Drill} }

// rivals are the kinds of which no run goes on beside one of a kind.
func rivals(kind operation.Kind) []operation.Kind {
	only := slices.Contains(reading(), kind)
	return slices.DeleteFunc(Kinds(), func(k operation.Kind) bool { return slices.Contains(reading(), k) != only })
}

// alone fails with ErrBusy while there is a rival in the database of a transaction.
func alone(ctx context.Context, tx store.Tx, kind operation.Kind) error {
	active, err := operation.ActiveIn(ctx, tx, operation.Query{Kinds: rivals(kind)})
	if err != nil {
		return err
	}
	if active {
		return snapshot.ErrBusy
	}
	doc, err := document.Marshal(bson.D{{Key: "_id", Value: claimName}, {Key: "token", Value: bson.NewObjectID()}})
	if err != nil {
		return err
	}
	id := mql.MustCompile(bson.D{{Key: "_id", Value: claimName}})
	results, err := tx.Collection("svc.snapshots").Write(ctx, []store.Op{{Kind: store.Replace, Doc: doc, Filter: id, Upsert: true}}, true)
	if err != nil {
		return err
	}
	return results[0].Err
}

// busy is ErrBusy with what goes on.
func (s *Service) busy(ctx context.Context, p *project.Project, kind operation.Kind) error {
	page, err := s.Runs(ctx, p, operation.Query{Kinds: rivals(kind), Active: true, Limit: 1})
	if err != nil || len(page.Items) == 0 {
		return snapshot.ErrBusy
	}
	run := page.Items[0]
	return errs.NewBusy(snapshot.ErrBusy.Code,
		"the project is busy with another run of its snapshots, the %[1]s run %[2]s: try again when that has ended, or cancel it", run.Kind, run.ID)
}

// Idle is nil if a run of a kind could start, else ErrBusy. That may change at any moment: Start says it for good.
func (s *Service) Idle(ctx context.Context, p *project.Project, kind operation.Kind) error {
	page, err := s.Runs(ctx, p, operation.Query{Kinds: rivals(kind), Active: true, Limit: 1})
	if err != nil {
		return err
	}
	if len(page.Items) > 0 {
		return s.busy(ctx, p, kind)
	}
	return nil
}

// Get gives a run by its id, whatever its kind.
func (s *Service) Get(ctx context.Context, p *project.Project, id string) (*operation.Run, error) {
	return s.runs.Find(ctx, project.DatabaseName(p.Namespace), id, Kinds()...)
}

// Runs gives runs, newest first, without their events. Without Kinds, those of all kinds of this package.
func (s *Service) Runs(ctx context.Context, p *project.Project, q operation.Query) (*operation.Page, error) {
	if len(q.Kinds) == 0 {
		q.Kinds = Kinds()
	}
	return s.runs.List(ctx, project.DatabaseName(p.Namespace), q)
}

// Newest gives the newest of the runs that a query asks for, with its events.
func (s *Service) Newest(ctx context.Context, p *project.Project, q operation.Query) (*operation.Run, error) {
	q.Limit, q.NoInput = 1, true
	page, err := s.Runs(ctx, p, q)
	if err != nil {
		return nil, err
	}
	if len(page.Items) == 0 {
		return nil, operation.ErrNotFound
	}
	return s.Get(ctx, p, page.Items[0].ID)
}

// Follow is operation.Runs.Follow for such a run.
func (s *Service) Follow(ctx context.Context, p *project.Project, run *operation.Run, after int64, fn func(operation.Event) error) error {
	return s.runs.Follow(ctx, project.DatabaseName(p.Namespace), refOf(run), after, fn)
}

// Cancel asks a run to end.
func (s *Service) Cancel(ctx context.Context, p *project.Project, run *operation.Run) error {
	return s.runs.Cancel(ctx, project.DatabaseName(p.Namespace), refOf(run))
}

func refOf(run *operation.Run) operation.Ref {
	return operation.Ref{Kind: run.Kind, Name: run.Name, ID: run.ID}
}

// Wait gives a run when it has ended. Should ctx end before, the run goes on.
func (s *Service) Wait(ctx context.Context, p *project.Project, run *operation.Run) (*operation.Run, error) {
	if err := s.Follow(ctx, p, run, run.LastEvent, func(operation.Event) error { return nil }); err != nil {
		return nil, err
	}
	return s.Get(ctx, p, run.ID)
}
