package operation

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// Kind says what a run is of.
type Kind string

// The kinds of runs.
const (
	Action Kind = "action"
	Job    Kind = "job"
	Search Kind = "search" // its indexes are made anew

	Snapshot Kind = "snapshot" // one is taken
	Verify   Kind = "verify"   // snapshots are checked
	Restore  Kind = "restore"  // records are replaced by those of one
	Prune    Kind = "prune"    // snapshots that are not kept are removed
	Import   Kind = "import"   // an archive is unpacked
	Drill    Kind = "drill"    // a restore is rehearsed
	Backup   Kind = "backup"   // a snapshot of everything is taken
)

// Status is how a run stands.
type Status string

// The statuses. A run is active while it is Queued or Running; all others are final.
const (
	Queued    Status = "queued"
	Running   Status = "running"
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
	Lost      Status = "lost" // the instance that did it is gone; how far it came is not known
)

// Active says that a run has not ended.
func (s Status) Active() bool { return s == Queued || s == Running }

// Trigger says what started a run.
type Trigger string

// The triggers.
const (
	Call     Trigger = "call"     // a caller of the API
	Schedule Trigger = "schedule" // a slot of a job's schedule
	Manual   Trigger = "manual"   // somebody who did not wait for a job's next slot
)

// Actor is who started a run; the zero value is the service itself.
type Actor struct {
	Kind string `bson:"kind"` // as access.Kind
	ID   string `bson:"id,omitempty"`
	Name string `bson:"name,omitempty"`
}

// Ref names a run. Kind and Name are part of it, so that who may see the runs of one action can't reach those of
// another by their id.
type Ref struct {
	Kind Kind
	Name string // of the action or job
	ID   string
}

// Run is what is known about a run. Its values are not to be changed.
type Run struct {
	ID          string    `bson:"_id"`
	Kind        Kind      `bson:"kind"`
	Name        string    `bson:"name"`
	Subject     string    `bson:"subject,omitempty"` // what it is about: the id of a snapshot; ""
	Status      Status    `bson:"status"`
	Trigger     Trigger   `bson:"trigger"`
	Slot        time.Time `bson:"slot,omitempty"` // of Schedule: the time that the run was due
	By          Actor     `bson:"by"`
	Instance    string    `bson:"instance"` // which one did it, for people
	Cancellable bool      `bson:"cancellable"`
	// CancelRequested says that somebody wants it cancelled. It ends soon, unless it was about to end anyway.
	CancelRequested bool      `bson:"cancel"`
	CreatedAt       time.Time `bson:"createdAt"`
	StartedAt       time.Time `bson:"startedAt,omitempty"` // zero while it is queued
	FinishedAt      time.Time `bson:"finishedAt,omitempty"`
	Progress        Progress  `bson:"progress"`
	Phases          []Phase   `bson:"phases,omitempty"` // the newest that it has gone through, the present one last
	Error           *Failure  `bson:"error,omitempty"`  // of all final statuses but Succeeded
	Events          []Event   `bson:"events,omitempty"` // the newest that fit; List leaves them out
	LastEvent       int64     `bson:"lastEvent"`        // id of the newest

	Input  bson.RawValue `bson:"-"` // what the run was given; its Type is 0 if there is none, or it is too large to keep
	Result bson.RawValue `bson:"-"` // what it gave; its Type is 0 if there is none
	Output bson.RawValue `bson:"-"` // what of that is shown to people; its Type is 0 if there is none
}

// Progress is how far a run is. Zero members are unknown.
type Progress struct {
	Phase      string `bson:"phase,omitempty"`
	Collection string `bson:"collection,omitempty"`
	Message    string `bson:"message,omitempty"`
	Done       int64  `bson:"done,omitempty"`
	Total      int64  `bson:"total,omitempty"`
	BytesDone  int64  `bson:"bytesDone,omitempty"`
	BytesTotal int64  `bson:"bytesTotal,omitempty"`

	Counters `bson:",inline"`
}

// Counters count, from the beginning of a run, how files came to be that it made, and what it warned of.
type Counters struct {
	Written      int64 `bson:"written,omitempty"`
	Linked       int64 `bson:"linked,omitempty"` // hard links
	Copied       int64 `bson:"copied,omitempty"` // where links can't be
	Deduplicated int64 `bson:"deduplicated,omitempty"`
	Warnings     int64 `bson:"warnings,omitempty"`
}

// Phase is how far a phase of a run is, or came: the last Progress that named it.
type Phase struct {
	Name       string        `bson:"name"`
	Done       int64         `bson:"done"`
	Total      int64         `bson:"total"`
	BytesDone  int64         `bson:"bytesDone"`
	BytesTotal int64         `bson:"bytesTotal"`
	Took       time.Duration `bson:"took"` // so far
}

// Failure is why a run did not succeed, as it may be shown to whoever may see the run.
type Failure struct {
	Code    string            `bson:"code"`
	Message string            `bson:"message"`
	Fields  []errs.FieldError `bson:"fields,omitempty"`
	Open    bool              `bson:"open,omitempty"` // see the function of that name
}

// Open marks the error of a run whose work goes on when it has ended: it has failed for now, and gets the end that its work comes to from who ends that, by Runs.Settle.
func Open(err error) error { return &openError{err} }

type openError struct{ error }

func (e *openError) Unwrap() error { return e.error }

// EventKind is what an event tells of.
type EventKind string

// The kinds of events. Done and Error are the last of a run.
const (
	EventProgress EventKind = "progress"
	EventLog      EventKind = "log"
	EventDone     EventKind = "done"
	EventError    EventKind = "error"
)

// Event is something that happened in a run. Ids grow by one.
//
// Data has operation (the kind of run), name, id, elapsedSeconds, what is known of phase, collection, done, total,
// bytesDone, bytesTotal and the Counters, and message; progress also has etaSeconds (until the end of the phase), perSecond and
// bytesPerSecond (in the phase), a log level, and the last event status and, if the run did not succeed, code.
type Event struct {
	ID   int64     `bson:"id"`
	At   time.Time `bson:"at"`
	Kind EventKind `bson:"event"`
	Data bson.Raw  `bson:"data"`
}

// Spec is a run to be started.
type Spec struct {
	Database string // of the project
	Kind     Kind
	Name     string
	Subject  string // what it is about, by which it is found (Query.Subject); "": that shows later (Outcome.Subject), or never
	ID       string // "": a new one
	Trigger  Trigger
	Slot     time.Time
	By       Actor
	// Input is a value of the model of package document, kept up to 256 KiB for those who look at the run later; nil: none.
	Input       any
	Cancellable bool
	Timeout     time.Duration // counted from when the run begins; 0: none
	// Claim, if set, runs in the transaction that records the run: the run starts only if that commits. It may run
	// several times, and only writes through tx.
	Claim func(ctx context.Context, tx store.Tx) error
	// Ended, if set, is called when the end of the run is recorded, before its followers learn of it. It returns soon.
	// Should the instance die before, nobody calls it.
	Ended func(run *Run)
}

// Func is what a run does. ctx ends when the run is cancelled or lost, its time is over or the service stops; Func
// then returns soon. The error is the run's, in the form that package errs makes public; what is given beside it is kept if the run
// has failed, such as what a check has found, and the error says more. Its panics are errors.
type Func func(ctx context.Context, r *Live) (Outcome, error)

// Outcome is what a run gave: values of the model of package document; nil: nothing.
type Outcome struct {
	Result any
	Output any // what of the result is shown to people

	Subject string // what the run was about; "": as Spec says
}

// Errors, for errors.Is. The first ones are causes of the context of a run.
var (
	ErrCancelled = errs.New(errs.Conflict, "run_cancelled", "the run was cancelled")
	ErrLost      = errs.New(errs.Conflict, "run_lost", "the instance of svcd that did the run is gone, or was silent for too long: the run was given up; see what it has done before you start it again")
	// ErrLeft is ErrLost of a run of which something is left that others end: Runs.Settle says then how it has ended.
	ErrLeft = errs.New(errs.Conflict, "run_left",
		"the instance of svcd that did the run is gone, or was silent for too long: the next one that serves the project ends what it has begun, or takes it back, and this run says then which")
	ErrTimeout  = errs.New(errs.Timeout, "run_timeout", "the run took longer than its timeout allows, and was ended")
	ErrStopping = errs.New(errs.Unavailable, "stopping", "the service is stopping; try again")

	ErrNotCancellable = errs.New(errs.Conflict, "not_cancellable", "a run of this kind can't be cancelled: wait until it has ended")
	ErrEnded          = errs.New(errs.Conflict, "run_ended", "the run has ended already")
	ErrTooMany        = errs.New(errs.Throttled, "too_many_runs", "too many runs are waiting already: try again when some of them have ended")
	ErrExists         = errs.New(errs.Conflict, "run_exists", "there is a run of this id already: start it with another one")
	ErrNotFound       = errs.New(errs.NotFound, "run_not_found", "run not found")
	errTooLarge       = errs.New(errs.Limit, "result_too_large", "the result of the run is larger than 4 MiB, which is the limit: have it give less, or write it to records or files")
)
