package runs

import (
	"fmt"
	"slices"
	"time"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

// Phases are the phases of a run as they are shown: each once, in the order in which they came first. Events tell of them as they go on, and a
// run what they came to. Whoever shows a run keeps one, and tells it of both.
type Phases struct {
	list []Phase
	at   int // of the present one, or of the last

	// Counters are those of files, from the beginning of the run.
	Counters api.RunCounters
	// Elapsed is how long the run has gone on, in seconds.
	Elapsed float64
	ended   bool
	whole   bool // it has succeeded
}

// Phase is how far a phase is, or came. A run may go through one several times, such as once for each collection: then it is all of them.
type Phase struct {
	Name       string
	Collection string // that is read or written now; ""
	Done       int64
	Total      int64 // 0: unknown
	BytesDone  int64
	BytesTotal int64
	Over       bool // the run has come through it

	// Of the present one, as far as they are known.
	PerSecond      float64
	BytesPerSecond float64
	Left           *float64 // seconds

	before passes // what Done and the others have of earlier times
}

// passes sum up what a phase has done in times that are over.
type passes struct{ done, total, bytesDone, bytesTotal int64 }

// All gives the phases.
func (p *Phases) All() []Phase {
	out := slices.Clone(p.list)
	for i := range out {
		if out[i].Over = i != p.at || p.whole; p.ended { // how fast it was going tells nothing any more
			out[i].PerSecond, out[i].BytesPerSecond, out[i].Left = 0, 0, nil
		}
	}
	return out
}

// Now gives the phase that the run is in; nil: it has not begun, or has ended.
func (p *Phases) Now() *Phase {
	if p.ended || p.at >= len(p.list) {
		return nil
	}
	return &p.list[p.at]
}

// Event takes in what an event says. It says whether the run is in another phase than before.
func (p *Phases) Event(e api.RunEvent) (entered bool) {
	d := e.Data
	p.Elapsed = max(p.Elapsed, d.ElapsedSeconds)
	if e.Event == api.EventDone || e.Event == api.EventError {
		p.end(e.Event == api.EventDone)
	}
	if e.Event != api.EventProgress || d.Phase == "" {
		return false
	}
	p.Counters = d.RunCounters
	i := slices.IndexFunc(p.list, func(one Phase) bool { return one.Name == d.Phase })
	if i < 0 {
		i = len(p.list)
		p.list = append(p.list, Phase{Name: d.Phase})
	}
	one := &p.list[i]
	entered = p.at != i || len(p.list) == 1 && one.Done == 0
	if p.at != i {
		one.before = passes{one.Done, one.Total, one.BytesDone, one.BytesTotal}
	}
	p.at = i
	one.Collection, one.PerSecond, one.BytesPerSecond, one.Left = d.Collection, d.PerSecond, d.BytesPerSecond, d.ETASeconds
	one.Done, one.Total = one.before.done+d.Done, one.before.total+d.Total
	one.BytesDone, one.BytesTotal = one.before.bytesDone+d.BytesDone, one.before.bytesTotal+d.BytesTotal
	return entered
}

// manyPhases is how many phases a run keeps: one that has so many may have had others before.
const manyPhases = 32

// Run takes in how a run stands, which says what its phases came to: events leave out what was quick. It must not be older than the events that
// were taken in.
func (p *Phases) Run(run *api.Run) {
	p.Counters = run.Progress.RunCounters
	if !run.Active() {
		p.end(run.Status == api.RunSucceeded)
	}
	if !run.StartedAt.IsZero() && !run.FinishedAt.IsZero() {
		p.Elapsed = run.FinishedAt.Sub(run.StartedAt.Time).Seconds()
	}
	if len(run.Phases) == 0 {
		return
	}
	var list []Phase
	if len(run.Phases) >= manyPhases {
		for _, known := range p.list {
			list = append(list, Phase{Name: known.Name})
		}
	}
	for _, x := range run.Phases {
		at := slices.IndexFunc(list, func(one Phase) bool { return one.Name == x.Phase })
		if at < 0 {
			at = len(list)
			list = append(list, Phase{Name: x.Phase})
		}
		one := &list[at]
		one.before = passes{one.Done, one.Total, one.BytesDone, one.BytesTotal}
		one.Done, one.Total = one.Done+x.Done, one.Total+x.Total
		one.BytesDone, one.BytesTotal = one.BytesDone+x.BytesDone, one.BytesTotal+x.BytesTotal
		p.at = at
	}
	for _, known := range p.list {
		at := slices.IndexFunc(list, func(one Phase) bool { return one.Name == known.Name })
		switch {
		case at < 0:
		case len(run.Phases) >= manyPhases && list[at].Done < known.Done:
			list[at] = known
		default:
			list[at].PerSecond, list[at].BytesPerSecond, list[at].Left = known.PerSecond, known.BytesPerSecond, known.Left
		}
	}
	p.list = list
	p.list[p.at].Collection = run.Progress.Collection
}

func (p *Phases) end(whole bool) { p.ended, p.whole = true, whole }

// Part is how much of it is done, from 0 to 1; known is false where nobody knows how much there is.
func (p *Phase) Part() (part float64, known bool) {
	switch {
	case p.Over:
		return 1, true
	case p.Total > 0:
		return min(float64(p.Done)/float64(p.Total), 1), true
	case p.BytesTotal > 0:
		return min(float64(p.BytesDone)/float64(p.BytesTotal), 1), true
	}
	return 0, false
}

// unit is what Done counts, one of it; "": steps, which tell nobody anything.
func (p *Phase) unit() string {
	switch p.Name {
	case api.RunPhaseCollections, api.RunPhaseLoad, api.RunPhaseCompare, api.RunPhaseSafety:
		return "record"
	case api.RunPhaseMedia, api.RunPhaseImport:
		return "file"
	case api.RunPhaseVerify:
		if p.Collection != "" {
			return "record"
		}
		return "file"
	case api.RunPhasePrune:
		return "snapshot"
	}
	return ""
}

// Facts say how far it is, in a few words each, what matters most first: "2500 of 5000 records", "3s left", "1.2 MiB", "1200/s".
func (p *Phase) Facts() (facts []string) {
	unit := p.unit()
	switch {
	case unit == "":
	case p.Over || p.Total == 0:
		facts = append(facts, output.Count(p.Done, unit))
	default:
		facts = append(facts, fmt.Sprintf("%d of %s", p.Done, output.Count(max(p.Done, p.Total), unit)))
	}
	if !p.Over && p.Left != nil {
		facts = append(facts, Left(*p.Left))
	}
	if p.BytesDone > 0 {
		facts = append(facts, output.Size(p.BytesDone))
	}
	if !p.Over && unit != "" && p.PerSecond > 0 {
		facts = append(facts, fmt.Sprintf("%.0f/s", p.PerSecond))
	}
	return facts
}

// Files says how files came to be in a snapshot, as far as there are any: "written 5", "hardlinked 100".
func (p *Phases) Files() (facts []string) {
	for _, c := range []struct {
		name  string
		count int64
	}{{"written", p.Counters.Written}, {"hardlinked", p.Counters.Linked}, {"copied", p.Counters.Copied}, {"deduplicated", p.Counters.Deduplicated}} {
		if c.count > 0 {
			facts = append(facts, fmt.Sprintf("%s %d", c.name, c.count))
		}
	}
	return facts
}

// Left says how many seconds something still takes, which is an estimate.
func Left(seconds float64) string {
	return (time.Duration(max(seconds, 0)*float64(time.Second)) + time.Second/2).Truncate(time.Second).String() + " left"
}

// Span is a number of seconds for people.
func Span(seconds float64) string {
	switch d := time.Duration(seconds * float64(time.Second)); {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}
