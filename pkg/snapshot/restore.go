package snapshot

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/gate"
)

// RestoreMode says what becomes of records that a snapshot does not have.
type RestoreMode string

// The modes of a restore.
const (
	Replace RestoreMode = "replace" // they go
	Merge   RestoreMode = "merge"   // they stay; those that the snapshot has become what they were
)

// RestoreOptions say what of a snapshot is restored, and how.
type RestoreOptions struct {
	Collections []string // none: all that it has
	Media       bool     // files of the records, too
	Mode        RestoreMode
	DryRun      bool // nothing is changed
	Limit       int  // how many of the records that differ a dry run tells of each collection
	Run         Run  // that it is done for; zero: none
}

// Run is a run that a restore is done for: whoever ends the restore tells how it has ended (Options.Ended), also where the process of the run is gone.
type Run struct {
	Namespace string `bson:"namespace"` // of the project that has it, which may be another one than is restored into
	ID        string `bson:"id"`

	// Outcome makes what is noted of the result once it is known, for who ends the restore; nil: nothing is. It is called once at most.
	Outcome func(done *RestoreResult) ([]byte, error) `bson:"-"`
}

// Ended is how a restore has ended.
type Ended struct {
	Project  *project.Project // whose records it is about; of one that is being made, little is known
	Run      Run              // without Outcome; zero: of none, or nobody knows which
	Snapshot string           // id; "": nobody knows
	Forward  bool             // it is done; else everything is as before
	Safety   string           // the snapshot of what was before; "": there is none, or it is not done
	Outcome  []byte           // as Run.Outcome has made it; nil: it is not done, or nothing was noted
}

// RestoreResult is what a restore has done, or would do.
type RestoreResult struct {
	// Safety is the id of the snapshot that was taken of the collections before: "" for a dry run, and where there were none.
	Safety      string
	Collections []Restored // by name
	Drift       []Drift
	Files       RestoredFiles
	Diff        *Diff // of a dry run: from what is stored to what would be
	Warnings    []string
	// SafetyWarnings are those of the safety snapshot, the first hundred: of what was missing or damaged before, which it can't have. The restore is none the worse for it.
	SafetyWarnings []string
}

// Restored is a collection that was restored.
type Restored struct {
	Name      string
	Records   int64 // that it has now
	Bytes     int64 // of these
	Restored  int64 // of them from the snapshot
	Unchanged bool  // there was nothing to be done: neither side has the collection
}

// RestoredFiles counts files that records of the snapshot name.
type RestoredFiles struct {
	Linked, Copied int64
	WereThere      int64 // with the same content
	Missing        int64 // neither in the snapshot nor in their place
}

// Drift is where a snapshot and the config do not go together. It is told of, and nothing is guessed.
type Drift struct {
	Collection string // "": the config as a whole
	Kind       string
	Text       string
}

// Kinds of Drift.
const (
	DriftConfig     = "config"     // the config declares fields of the collection otherwise, or is another one and can't be compared
	DriftElsewhere  = "elsewhere"  // the config is another one, in nothing that concerns what is restored: this is told, and nothing to worry about
	DriftUndeclared = "undeclared" // the config does not have the collection: it was restored all the same
	DriftIndexes    = "indexes"    // the config has others: the collection has those of the snapshot until they are made
	DriftFields     = "fields"     // fields were renamed since: records have them by the names of before
)

// Gate keeps everybody who uses them from the records of a database, in all processes that share the store: *gate.Gate where there is one,
// else package store/barrier.
type Gate interface {
	Shut(ctx context.Context, database string) (gate.Shut, error)
}

// Restore has records, and files, of target be those of a snapshot of p. target is p, or another project that the snapshot is brought into:
// then addresses of files are those of that one.
//
// Nothing that is served changes before the very last step, which is one: whatever fails, or ends the process before, leaves everything
// as it was, and whatever comes behind is gone on with, by Recover at the latest. From the safety snapshot on, writes to target are refused
// (gate.ErrShut): so everything that was acknowledged is either in that snapshot or stays.
func (s *Snapshots) Restore(ctx context.Context, p *project.Project, id string, target *project.Project, o RestoreOptions, report Report) (RestoreResult, error) {
	return s.restoreFrom(ctx, p, id, o, report, func(r *restore) error {
		r.into(target)
		if o.DryRun {
			return r.dryRun(ctx)
		}
		return s.alone(ctx, target.Namespace, r.run)
	})
}

// restoreFrom opens a snapshot for do, which restores it.
func (s *Snapshots) restoreFrom(ctx context.Context, p *project.Project, id string, o RestoreOptions, report Report, do func(r *restore) error) (RestoreResult, error) {
	if o.Mode == "" {
		o.Mode = Replace
	}
	if o.Mode != Replace && o.Mode != Merge {
		return RestoreResult{}, errBadMode
	}
	from, err := s.openSide(p, id)
	if err != nil {
		return RestoreResult{}, err
	}
	defer from.close()
	r := &restore{s: s, from: from, o: o, t: newTracker(report), short: strings.ToLower(rand.Text()[:8])}
	err = do(r)
	r.result.Warnings = r.t.warnings
	return r.result, ended(ctx, err)
}

// into says whose records are replaced.
func (r *restore) into(p *project.Project) {
	r.p, r.raw = p, r.s.o.Store.Database(project.DatabaseName(p.Namespace))
}

// restore is one that is under way.
type restore struct {
	s      *Snapshots
	from   *savedSide
	p      *project.Project              // whose records are replaced
	own    bool                          // its config is that of the snapshot
	was    map[string]*schema.Collection // what the config of the snapshot says of collections, and is what the one that is served does; nil: they are the same, or not known
	is     map[string]*schema.Collection
	o      RestoreOptions
	t      *tracker
	raw    store.Database  // of p; fields have the names of the store
	short  string          // names what is this restore's own
	parts  []*part         // by name
	media  map[string]bool // hashes of the files that are brought
	kept   map[string]bool // of a dry run: places of files that stay, since those of the snapshot are damaged
	trial  bool            // it is a drill: there are no files of a project
	beside *others         // nil: not asked for yet
	result RestoreResult

	decided bool // it is not to be given up

	files *media.Store // nil: no files are brought
	hold  *media.Hold
	back  *media.PutBack
}

// run does it, while nobody else makes, deletes or restores snapshots of the project.
func (r *restore) run(ctx context.Context) (err error) {
	if err := r.s.recover(ctx, r.p); err != nil { // what an earlier one has left
		return err
	}
	r.s.setOurs(r.p, r.short)
	defer r.s.setOurs(r.p, "")
	for _, step := range []func(context.Context) error{r.plan, r.check, r.room} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	j := r.journal()
	defer func() {
		if err != nil && !r.decided {
			r.giveUp(context.WithoutCancel(ctx), j)
		}
	}()
	if err := r.s.begin(ctx, r.p, j); err != nil {
		return err
	}
	if r.o.Mode == Replace {
		if err := r.load(ctx); err != nil {
			return err
		}
	}
	shut, err := r.s.shut(ctx, r.p)
	if err != nil {
		return err
	}
	defer func() {
		if !r.s.isStuck(r.p) {
			shut.Open()
		}
	}()
	release, err := r.holdFiles(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := r.safety(ctx); err != nil {
		return err
	}
	if r.o.Mode == Merge {
		if err := r.load(ctx); err != nil {
			return err
		}
	}
	if err := r.bring(ctx); err != nil {
		return err
	}
	if err := r.swap(ctx, j, shut); err != nil {
		return err
	}
	return nil
}

// safety takes a snapshot of the collections that are about to be replaced.
func (r *restore) safety(ctx context.Context) error {
	profile := Profile{Name: SafetyProfile, Media: true, Dedup: true, Mode: JSON}
	there, err := r.raw.CollectionNames(ctx) // which may be more than at the beginning
	if err != nil {
		return err
	}
	for _, p := range r.parts {
		if p.live = slices.Contains(there, p.stored()); p.live {
			profile.Only = append(profile.Only, p.name)
		}
	}
	if len(profile.Only) == 0 {
		return nil
	}
	t, exported := newTracker(nil), Progress{}
	t.report = func(now Progress) { // how far it is, by its records; its files are told by the snapshot, and not counted with those that are brought
		if now.Phase == Collections {
			exported = now
		}
		r.t.now.Phase, r.t.now.Collection = Safety, now.Collection
		r.t.now.Done, r.t.now.Total, r.t.now.BytesDone, r.t.now.BytesTotal = exported.Done, exported.Total, exported.BytesDone, exported.BytesTotal
		r.t.tell()
	}
	info, err := r.s.create(ctx, r.p, profile, t, r.hold)
	r.result.Safety, r.result.SafetyWarnings = info.ID, t.warnings
	return err
}
