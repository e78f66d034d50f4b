package api

import "encoding/json"

// Job is a job of a project and how it stands.
type Job struct {
	Name        string          `json:"name"`
	File        string          `json:"file"`
	Cron        string          `json:"cron,omitempty"` // "": it runs by hand only
	TimeoutMS   int64           `json:"timeout"`
	Meta        json.RawMessage `json:"meta,omitempty"`
	Suspended   bool            `json:"suspended"`
	SuspendedBy *Actor          `json:"suspendedBy,omitempty"`
	SuspendedAt Time            `json:"suspendedAt"`
	NextRun     Time            `json:"nextRun"` // null: it has no schedule, or is suspended
	LastRun     *Run            `json:"lastRun"` // null: it has never run, or not for long
	Slots       JobSlots        `json:"slots"`
}

// JobSlots counts what became of the times at which a job was due.
type JobSlots struct {
	Run     int64 `json:"run"`
	Skipped int64 `json:"skipped"` // a run was active
	Missed  int64 `json:"missed"`  // no instance was there
}

// JobTimes is the body of GET …/jobs/<name>/next.
type JobTimes struct {
	Times []Time `json:"times"`
}

// Actor is who did something; the service itself has kind "service".
type Actor struct {
	Kind string `json:"kind"`
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

// The statuses of runs.
const (
	RunQueued    = "queued"
	RunRunning   = "running"
	RunSucceeded = "succeeded"
	RunFailed    = "failed"
	RunCancelled = "cancelled"
	RunLost      = "lost"
)

// Run is a run of an action or job, of searches that are made anew, or of snapshots. Lists leave out events.
type Run struct {
	ID              string          `json:"id"`
	Kind            string          `json:"kind"` // action, job, search, or one of those of snapshots, such as RunKindRestore
	Name            string          `json:"name"`
	Subject         string          `json:"subject,omitempty"` // what it is about: the id of a snapshot
	Status          string          `json:"status"`
	Trigger         string          `json:"trigger"` // call, schedule or manual
	Slot            Time            `json:"slot"`    // of schedule: when it was due; else null
	By              Actor           `json:"by"`
	Instance        string          `json:"instance"`
	Cancellable     bool            `json:"cancellable"`
	CancelRequested bool            `json:"cancelRequested"`
	CreatedAt       Time            `json:"createdAt"`
	StartedAt       Time            `json:"startedAt"`
	FinishedAt      Time            `json:"finishedAt"`
	Progress        RunProgress     `json:"progress"`
	Phases          []RunPhase      `json:"phases,omitempty"` // that it has gone through, in their order, the present one included
	Error           *RunError       `json:"error,omitempty"`
	Input           json.RawMessage `json:"input,omitempty"`
	Result          json.RawMessage `json:"result,omitempty"`
	Output          json.RawMessage `json:"output,omitempty"`
	Events          []RunEvent      `json:"events,omitempty"`
}

// Active says that the run has not ended.
func (r *Run) Active() bool { return r.Status == RunQueued || r.Status == RunRunning }

// RunProgress is how far a run is. Zero members are unknown.
type RunProgress struct {
	Phase      string `json:"phase,omitempty"`
	Collection string `json:"collection,omitempty"`
	Message    string `json:"message,omitempty"`
	Done       int64  `json:"done,omitempty"`
	Total      int64  `json:"total,omitempty"`
	BytesDone  int64  `json:"bytesDone,omitempty"`
	BytesTotal int64  `json:"bytesTotal,omitempty"`

	RunCounters
}

// RunCounters count what a run of snapshots has done with files, and what it had to say, from its beginning.
type RunCounters struct {
	Written      int64 `json:"written,omitempty"`
	Linked       int64 `json:"linked,omitempty"` // by hard links to files of records
	Copied       int64 `json:"copied,omitempty"` // where links can't be
	Deduplicated int64 `json:"deduplicated,omitempty"`
	Warnings     int64 `json:"warnings,omitempty"`
}

// RunPhase is how far a phase of a run is, or came.
type RunPhase struct {
	Phase      string  `json:"phase"`
	Done       int64   `json:"done"`
	Total      int64   `json:"total"` // 0: unknown
	BytesDone  int64   `json:"bytesDone"`
	BytesTotal int64   `json:"bytesTotal"`
	Seconds    float64 `json:"seconds"` // that it has taken
}

// RunError is why a run did not succeed.
type RunError struct {
	Code    string       `json:"code"`
	Message string       `json:"message"`
	Errors  []FieldError `json:"errors,omitempty"`
}

// The kinds of events of runs. Done and Error are the last of a run; Stopping is of the stream alone, and says that the
// service stops: connect again.
const (
	EventProgress = "progress"
	EventLog      = "log"
	EventDone     = "done"
	EventError    = "error"
	EventStopping = "stopping"
)

// RunEvent is something that happened in a run.
type RunEvent struct {
	ID    int64        `json:"id"`
	At    Time         `json:"at,omitzero"` // of the events of a run's record; those of a stream come as they happen
	Event string       `json:"event"`
	Data  RunEventData `json:"data"`
}

// RunEventData is what an event says, and all that a stream sends of it beside its id and kind.
type RunEventData struct {
	Operation      string   `json:"operation"` // the kind of run
	Name           string   `json:"name"`
	ID             string   `json:"id"` // of the run
	Phase          string   `json:"phase,omitempty"`
	Collection     string   `json:"collection,omitempty"`
	Done           int64    `json:"done,omitempty"`
	Total          int64    `json:"total,omitempty"`
	BytesDone      int64    `json:"bytesDone,omitempty"`
	BytesTotal     int64    `json:"bytesTotal,omitempty"`
	ElapsedSeconds float64  `json:"elapsedSeconds"`
	ETASeconds     *float64 `json:"etaSeconds,omitempty"`     // until the end of the phase
	PerSecond      float64  `json:"perSecond,omitempty"`      // of Done, in the phase
	BytesPerSecond float64  `json:"bytesPerSecond,omitempty"` // of BytesDone, likewise
	Message        string   `json:"message"`
	Level          string   `json:"level,omitempty"`  // of a log line: debug, info, warn or error
	Status         string   `json:"status,omitempty"` // of the last event
	Code           string   `json:"code,omitempty"`   // of the last event of a run that did not succeed

	RunCounters
}
