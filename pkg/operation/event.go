package operation

import (
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// newEvent makes the next event of a run.
func newEvent(run *Run, kind EventKind, elapsed time.Duration, at time.Time, message string, more ...bson.E) Event {
	p := run.Progress
	data := bson.D{
		{Key: "operation", Value: string(run.Kind)},
		{Key: "name", Value: run.Name},
		{Key: "id", Value: run.ID},
	}
	for _, text := range []bson.E{{Key: "phase", Value: p.Phase}, {Key: "collection", Value: p.Collection}} {
		if text.Value != "" {
			data = append(data, text)
		}
	}
	for _, n := range []bson.E{
		{Key: "done", Value: p.Done},
		{Key: "total", Value: p.Total},
		{Key: "bytesDone", Value: p.BytesDone},
		{Key: "bytesTotal", Value: p.BytesTotal},
		{Key: "written", Value: p.Written},
		{Key: "linked", Value: p.Linked},
		{Key: "copied", Value: p.Copied},
		{Key: "deduplicated", Value: p.Deduplicated},
		{Key: "warnings", Value: p.Warnings},
	} {
		if n.Value != int64(0) {
			data = append(data, n)
		}
	}
	data = append(data, bson.E{Key: "elapsedSeconds", Value: float64(elapsed.Milliseconds()) / 1000})
	if kind == EventProgress {
		data = append(data, pace(run, elapsed)...)
	}
	data = append(append(data, bson.E{Key: "message", Value: message}), more...)
	raw, err := document.Marshal(data)
	if err != nil { // text that is not UTF-8
		raw, _ = document.Marshal(bson.D{{Key: "message", Value: "a message that is no text"}})
	}
	return Event{ID: run.LastEvent + 1, At: at, Kind: kind, Data: raw}
}

// pace tells how fast a run is in its phase, and how long that has left.
func pace(run *Run, elapsed time.Duration) (data bson.D) {
	p := run.Progress
	if n := len(run.Phases); n > 0 && run.Phases[n-1].Name == p.Phase {
		elapsed = run.Phases[n-1].Took
	}
	if left, ok := remaining(p, elapsed); ok {
		data = append(data, bson.E{Key: "etaSeconds", Value: left.Round(time.Second).Seconds()})
	}
	for _, n := range []struct {
		name string
		done int64
	}{{"perSecond", p.Done}, {"bytesPerSecond", p.BytesDone}} {
		if n.done > 0 && elapsed >= time.Millisecond {
			data = append(data, bson.E{Key: n.name, Value: math.Round(float64(n.done)/elapsed.Seconds()*10) / 10})
		}
	}
	return data
}

// remaining guesses how long there is left, from what was done so far.
func remaining(p Progress, elapsed time.Duration) (time.Duration, bool) {
	done, total := p.Done, p.Total
	if p.BytesTotal > 0 {
		done, total = p.BytesDone, p.BytesTotal
	}
	if done <= 0 || total < done {
		return 0, false
	}
	return time.Duration(float64(elapsed) * float64(total-done) / float64(done)), true
}
