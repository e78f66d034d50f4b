package operation

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// decided is an Outcome that is certain before the run has ended.
type decided struct {
	Result  []byte `bson:"result,omitempty"`
	Output  []byte `bson:"output,omitempty"`
	Subject string `bson:"subject,omitempty"`
}

// Heir looks at what a run has left whose instance is gone, before the run is given up. It may end that, and Settle the run. left says that something is left
// that somebody is still to end, and to settle the run by. It may take its time, until ctx ends: other runs don't wait for it.
type Heir func(ctx context.Context, database string, run *Run) (left bool, err error)

// Inherit has heir called for runs of a kind that are about to be given up. It is to be set before the first Patrol.
func (rs *Runs) Inherit(kind Kind, heir Heir) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.heirs[kind] = heir
}

// leftBeats is for so long a run is not given up of which something is left: then it is lost, and may be settled still.
const leftBeats = 30

// asking is an heir that looks at what a run has left, aside: that may take long, such as where a store does not answer.
type asking struct {
	beat  int64
	token string
	done  chan struct{}
	left  bool // once it is done, as is
	err   error
	old   bool // a Patrol has waited for it
}

// ask has the heir of a silent run look at what it has left, unless it does so already, or nobody has to.
func (rs *Runs) ask(ctx context.Context, database string, r *record) {
	key := liveKey{database, r.ID}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	heir := rs.heirs[r.Kind]
	if heir == nil || r.Decided != nil {
		return
	}
	if a := rs.asked[key]; a != nil && a.beat == r.Beat && a.token == r.Token { // else it is an answer of before
		return
	}
	a := &asking{beat: r.Beat, token: r.Token, done: make(chan struct{})}
	rs.asked[key] = a
	run := r.Run
	rs.heirWork.Go(func() {
		defer close(a.done)
		a.left, a.err = heir(ctx, database, &run)
	})
}

// waits says that a silent run is not to be given up now, for what it has left, or as what it is given up else. For an answer of its heir it waits until patience ends, once.
func (rs *Runs) waits(ctx, patience context.Context, database string, r *record) (wait bool, as *errs.Error) {
	key := liveKey{database, r.ID}
	rs.mu.Lock()
	a, since := rs.asked[key], rs.left[key]
	fresh := a != nil && !a.old
	rs.mu.Unlock()
	if a == nil {
		return false, ErrLost
	}
	if fresh {
		select {
		case <-a.done:
		case <-patience.Done():
		}
	}
	left, err := true, error(nil)
	rs.mu.Lock()
	select {
	case <-a.done:
		left, err = a.left, a.err
		delete(rs.asked, key)
	default:
		a.old = true
	}
	rs.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		rs.log.DebugContext(ctx, "what a run has left is not ended yet", "kind", r.Kind, "run", r.ID, "error", err)
	}
	switch {
	case !left && err == nil:
		return false, ErrLost
	case since.IsZero():
		rs.mu.Lock()
		rs.left[key] = time.Now()
		rs.mu.Unlock()
		return true, nil
	}
	return time.Since(since) < leftBeats*rs.opts.Beat, ErrLeft
}

// settleTries bounds how often a record is read again because somebody has written it meanwhile.
const settleTries = 5

// Settle gives a run the end that its work has come to, whoever has brought it there: with failed nil it succeeds. Of a run that this instance does, and that succeeds, it notes that:
// should the instance die before the run has ended, or the run end as one whose work is Open, that is its end all the same. A run that has ended so gets its end by this, too. A run of another instance has ended with it, also one that was given up before; one that
// has ended in another way, or that nobody keeps any more, stays as it is. It can be called again.
func (rs *Runs) Settle(ctx context.Context, database, id string, outcome Outcome, failed error) error {
	d := decided{Subject: outcome.Subject}
	for _, one := range []struct {
		v  any
		to *[]byte
	}{{outcome.Result, &d.Result}, {outcome.Output, &d.Output}} {
		v, err := packable(one.v, maxResult)
		if err != nil { // such as too large: how it has ended counts for more
			rs.log.WarnContext(ctx, "what a run gave is not kept", "run", id, "error", err)
		}
		*one.to = pack(v)
	}
	rs.mu.Lock()
	l := rs.live[liveKey{database, id}]
	rs.mu.Unlock()
	if l != nil {
		switch ended, over := l.note(nil, failed); {
		case ended && !over:
			return errEnding
		case ended: // its record says how
		case failed != nil: // it says so itself, and why, unless it was silent for too long
			return nil
		default:
			err := l.decide(ctx, d)
			if err == nil {
				if ended, _ := l.note(&d, nil); ended { // meanwhile
					return errEnding
				}
			}
			if !isLost(err) {
				return err
			}
		}
	}
	var err error
	for range settleTries {
		var run *Run
		if run, err = rs.settle(ctx, database, id, nil, d, failed); !isLost(err) {
			if run != nil && l != nil {
				l.showSettled(run)
			}
			return err
		}
	}
	return err
}

// showSettled has who asks this process for a run that has ended told how it was settled since. One that is about to end reads that in its record.
func (l *Live) showSettled(run *Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		return
	}
	l.run.Status, l.run.Error, l.run.FinishedAt, l.run.Subject = run.Status, run.Error, run.FinishedAt, run.Subject
	l.run.Result, l.run.Output, l.run.Events, l.run.LastEvent = run.Result, run.Output, run.Events, run.LastEvent
}

// errEnding is for who settles a run at the moment at which it ends: a little later, it is known how.
var errEnding = errs.New(errs.Unavailable, "run_ending", "the run is about to end: try again")

// note keeps what the work of a run has come to for its end, unless it has come to that: then over says that its record has it.
func (l *Live) note(came *decided, failed error) (ended, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		if came != nil {
			l.came = came
		}
		if failed != nil {
			l.failed = failed
		}
	}
	return l.ended, l.over
}

// decide notes the outcome that the run has in any case.
func (l *Live) decide(ctx context.Context, d decided) error {
	raw, err := bson.Marshal(d)
	if err != nil {
		return errs.Wrap(err, "encode the outcome of a run")
	}
	return write(ctx, l.coll, l.update(bson.D{{Key: "decided", Value: bson.Raw(raw)}}))
}

// settle is Settle of a record, and gives the run as it has ended with that; nil: it stays as it is. With seen not nil it is for the record as it was seen alone.
func (rs *Runs) settle(ctx context.Context, database, id string, seen *record, d decided, failed error) (*Run, error) {
	doc, err := rs.runsOf(database).Get(ctx, stringID(id))
	if errors.Is(err, errs.ErrNotFound) {
		return nil, nil //nolint:nilnil // nobody keeps it any more
	}
	if err != nil {
		return nil, err
	}
	r, err := decode(doc)
	if err != nil { // nor can anybody read it
		rs.log.WarnContext(ctx, "the record of a run can't be read", "run", id, "error", err)
		return nil, nil //nolint:nilnil // likewise
	}
	open := r.Error != nil && r.Error.Open
	if !r.Status.Active() && r.Status != Lost && !open || seen != nil && (r.Token != seen.Token || r.Beat != seen.Beat || r.Status != seen.Status) {
		return nil, nil //nolint:nilnil // it has ended, or was written meanwhile
	}
	run := r.Run
	run.Events = slices.DeleteFunc(run.Events, func(e Event) bool { return e.Kind == EventDone || e.Kind == EventError }) // such as that it was lost
	if run.Status, run.Error = ending(failed); run.Status == Lost {
		run.Error.Message = lostText(run.Kind, run.Error)
	}
	if failed == nil {
		run.Result, run.Output = unpack(d.Result), unpack(d.Output)
		if d.Subject != "" {
			run.Subject = d.Subject
		}
	}
	if err := rs.end(ctx, database, r, &run); err != nil {
		return nil, err
	}
	log := rs.log.InfoContext
	if run.Status == Lost {
		log = rs.log.WarnContext
	}
	what := "a run whose instance is gone has ended"
	if open {
		what = "a run whose work went on has ended with that"
	}
	log(ctx, what, "kind", run.Kind, "name", run.Name, "run", run.ID, "status", run.Status, "instance", run.Instance)
	return &run, nil
}

// end writes the last state of a run that was as before says, if it still is.
func (rs *Runs) end(ctx context.Context, database string, before *record, run *Run) error {
	run.FinishedAt = rs.now()
	last := lastEvent(run, run.FinishedAt.Sub(run.CreatedAt), run.FinishedAt)
	run.Events, run.LastEvent = append(slices.Clip(run.Events), last), last.ID
	values, err := lastState(run)
	if err != nil {
		return err
	}
	unchanged := mql.MustCompile(bson.D{
		{Key: "token", Value: before.Token}, {Key: "beat", Value: before.Beat}, {Key: "status", Value: string(before.Status)},
	})
	update := bson.D{{Key: "$set", Value: values}}
	if run.Error == nil && before.Error != nil {
		update = append(update, bson.E{Key: "$unset", Value: bson.D{{Key: "error", Value: ""}}})
	}
	err = write(ctx, rs.runsOf(database), store.Op{Kind: store.Update, ID: stringID(run.ID), If: unchanged, Update: mql.MustCompileUpdate(update)})
	if err == nil {
		rs.metrics.total.WithLabelValues(string(run.Kind), string(run.Status)).Inc()
	}
	return err
}

// orSettled is the end of a run that was silent for too long, or whose work went on: that which its work has come to, where that is known. mu is held.
func (l *Live) orSettled(err error) error {
	_, open := errors.AsType[*openError](err)
	switch {
	case !open && !errors.Is(err, ErrLost):
	case l.failed != nil:
		return l.failed
	case open && l.came != nil:
		return nil
	}
	return err
}

// settled gives the run as others have ended it; nil: they have not, or it can't be read. That they have given it up is no end if this process knows what its work has come to.
func (l *Live) settled(ctx context.Context) *Run {
	l.mu.Lock()
	failed := l.orSettled(ErrLost)
	l.mu.Unlock()
	if !errors.Is(failed, ErrLost) {
		if _, err := l.runs.settle(ctx, l.database, l.run.ID, nil, decided{}, failed); err != nil {
			l.runs.log.WarnContext(ctx, "a run that was given up stays lost, though it has ended", "run", l.run.ID, "error", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, l.runs.silence())
	defer cancel()
	run, err := l.runs.read(ctx, l.database, Ref{Kind: l.run.Kind, Name: l.run.Name, ID: l.run.ID}) // which never change
	if err != nil || run.Status.Active() {
		return nil
	}
	return run
}
