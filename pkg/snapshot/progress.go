package snapshot

import "strings"

// Phase is a part of what is done, in the order in which they come.
type Phase string

// The phases: of a snapshot from Plan to Manifesting, of a check Verifying, of a comparison Comparing. A restore has Verifying, then Loading
// and Indexing of each collection, Safety, Media and Swapping; one that merges has Safety before Loading. What retention removes is Pruning.
const (
	Plan        Phase = "plan"
	Collections Phase = "collections"
	Media       Phase = "media"
	Manifesting Phase = "manifest"
	Verifying   Phase = "verify"
	Comparing   Phase = "compare"
	Safety      Phase = "safety"
	Loading     Phase = "load"
	Indexing    Phase = "index"
	Swapping    Phase = "swap"
	Pruning     Phase = "prune"
)

// Progress is how far something has come. Totals are estimates, 0 where nothing is known.
type Progress struct {
	Phase      Phase
	Collection string // that is read or written now; ""
	Done       int64  // records in Collections, Safety, Loading and Comparing, files in Media and Verifying, snapshots in Pruning, steps elsewhere
	Total      int64
	BytesDone  int64
	BytesTotal int64

	// Files so far.
	Written      int64
	Linked       int64
	Copied       int64
	Deduplicated int64

	Warning string // something that went wrong, and that is no reason to stop; ""
}

// Report is told of progress: at the beginning of each phase, every few hundred records or files or few megabytes, and at the end. It is called by the
// goroutine that does the work, one call at a time. It may be nil.
type Report func(Progress)

// tracker is the progress of one operation.
type tracker struct {
	report Report
	now    Progress
	since  int64 // of Done that was not told
	bytes  int64 // of BytesDone, likewise

	warnings []string // the first maxWarnings
	warned   int64
}

const (
	tellEvery   = 250 // records or files
	tellBytes   = 16 << 20
	maxWarnings = 100
	maxWarning  = 8 << 10 // bytes of one: ids of records can be of any length
)

func newTracker(report Report) *tracker { return &tracker{report: report} }

func (t *tracker) tell() {
	t.since, t.bytes = 0, 0
	if t.report != nil {
		t.report(t.now)
	}
}

// begin begins a phase, when all of the one before is told. Files are counted on.
func (t *tracker) begin(phase Phase, total, bytes int64) { t.beginAt(phase, "", total, bytes) }

// beginAt is begin for a phase that each collection has.
func (t *tracker) beginAt(phase Phase, collection string, total, bytes int64) {
	if t.since > 0 || t.bytes > 0 {
		t.tell()
	}
	now := &t.now
	now.Phase, now.Collection, now.Done, now.Total, now.BytesDone, now.BytesTotal = phase, collection, 0, total, 0, bytes
	t.tell()
}

// done counts what was done.
func (t *tracker) done(n, bytes int64) {
	t.now.Done += n
	t.now.BytesDone += bytes
	t.since += n
	t.bytes += bytes
	if t.since >= tellEvery || t.bytes >= tellBytes {
		t.tell()
	}
}

func (t *tracker) at(collection string) { t.now.Collection = collection }

// warn tells of something that went wrong.
func (t *tracker) warn(text string) {
	if len(text) > maxWarning {
		text = strings.ToValidUTF8(text[:maxWarning], "") + " …"
	}
	if t.warned++; len(t.warnings) < maxWarnings {
		t.warnings = append(t.warnings, text)
	}
	t.now.Warning = text
	t.tell()
	t.now.Warning = ""
}

// count notes how a file came to be.
func (t *tracker) count(how How) {
	switch how {
	case Written:
		t.now.Written++
	case Linked:
		t.now.Linked++
	case Copied:
		t.now.Copied++
	case Deduplicated:
		t.now.Deduplicated++
	}
}
