package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/search/index"
	"github.com/svcctl/svc/pkg/store/lease"
)

// How vectors are got.
const (
	recordsAtOnce = 128             // whose vectors are asked for together
	lookEvery     = time.Second     // for vectors that another instance keeps
	leaseTime     = 5 * time.Second // that another takes over after
	lingering     = 5 * time.Second // for which the lease is kept when nothing waits
	shortTrouble  = 4 * firstRetry  // after which a failure is taken for one text's fault
)

// embedder gets the vectors of one reference for the indexes of a project: one instance at a time does.
type embedder struct {
	t     *tenant
	lease string
	some  chan struct{} // has something when records may wait
	wait  time.Duration // after the next failure; of run alone

	mu  sync.Mutex
	all []*built
}

// embedder gives that of a reference.
func (t *tenant) embedder(reference string) *embedder {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.embedders[reference]
	if e == nil {
		e = &embedder{t: t, lease: "vectors " + printOf(reference), some: make(chan struct{}, 1), wait: firstRetry}
		t.embedders[reference] = e
		t.e.goes(func() { e.run(t.ctx) })
	}
	return e
}

// add has it see to one more index.
func (e *embedder) add(b *built) {
	e.mu.Lock()
	e.all = append(e.all, b)
	e.mu.Unlock()
	b.standing.mu.Lock()
	b.standing.wake = e.wake
	b.standing.changed()
	b.standing.mu.Unlock()
}

func (e *embedder) wake() {
	select {
	case e.some <- struct{}{}:
	default:
	}
}

// indexes gives those that it sees to, but for those that nobody needs any more.
func (e *embedder) indexes() []*built {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = slices.DeleteFunc(e.all, func(b *built) bool { return b.ctx.Err() != nil })
	return slices.Clone(e.all)
}

// run has the vectors of records that wait be computed, until ctx ends.
func (e *embedder) run(ctx context.Context) {
	for {
		_, missing, err := e.missing(ctx)
		if err == nil && missing != nil {
			err = e.t.asOnlyOne(ctx, e.lease, leaseTime, e.compute)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			e.wait = firstRetry
			if missing == nil {
				e.someWait(ctx, nil)
			}
			continue
		case errors.Is(err, lease.ErrHeld), errors.Is(err, lease.ErrLost):
			sleep(ctx, lookEvery)
			continue
		}
		e.failed(err)
		e.t.e.o.Logger.WarnContext(ctx, "records wait for their vectors; that is tried again", "namespace", e.t.namespace, "error", err)
		sleep(ctx, max(e.wait, min(errs.From(err).RetryAfter, longestRetry)))
		e.wait = min(2*e.wait, longestRetry)
	}
}

// asOnlyOne runs fn while no other instance does; lease.ErrHeld if another is at it.
func (t *tenant) asOnlyOne(ctx context.Context, name string, ttl time.Duration, fn func(ctx context.Context) error) error {
	if t.e.o.Alone {
		return fn(ctx)
	}
	return t.leases.Hold(ctx, name, ttl, func(ctx context.Context, _ *lease.Lease) error { return fn(ctx) })
}

// failed tells how the last try went.
func (e *embedder) failed(err error) {
	for _, b := range e.indexes() {
		b.standing.fail(err)
	}
}

// someWait waits until records may wait for vectors. It is false when ctx ends, or enough is over.
func (e *embedder) someWait(ctx context.Context, enough <-chan time.Time) bool {
	select {
	case <-e.some:
		return true
	case <-enough:
	case <-ctx.Done():
	}
	return false
}

// compute asks for vectors until none is missing, and none comes for a while.
func (e *embedder) compute(ctx context.Context) error {
	for {
		b, missing, err := e.missing(ctx)
		if err != nil {
			return err
		}
		if missing == nil {
			timer := time.NewTimer(lingering)
			more := e.someWait(ctx, timer.C)
			timer.Stop()
			if !more {
				return ctx.Err()
			}
			continue
		}
		group, err := b.group()
		if err == nil {
			var some bool
			if some, err = e.t.ask(ctx, group, missing, e.wait > shortTrouble); some {
				e.wait = firstRetry
			}
		}
		if err != nil {
			return err
		}
		e.failed(nil)
	}
}

// missing gives texts that have no vector yet, and one of the indexes that need them; nil: no record waits.
func (e *embedder) missing(ctx context.Context) (*built, map[vectorKey]string, error) {
	for _, b := range e.indexes() {
		missing, err := b.missing(ctx)
		if err != nil && b.ctx.Err() != nil { // nobody needs it any more
			continue
		}
		if err != nil || missing != nil {
			return b, missing, err
		}
	}
	return nil, nil, nil
}

// missing has those of the records that wait be indexed whose vectors are kept by now, until there are some whose are not, and gives
// their texts; nil: nothing waits.
func (b *built) missing(ctx context.Context) (map[vectorKey]string, error) {
	for {
		ids := b.standing.sample(recordsAtOnce)
		if len(ids) == 0 {
			return nil, nil
		}
		sortIDs(ids)
		docs, n, err := b.s.findSome(ctx, ids)
		if err != nil {
			return nil, err
		}
		ids = ids[:n]
		how := b.bound.Load()
		said, n, err := how.say(ctx, ids, docs)
		if err != nil {
			return nil, err
		}
		ids = ids[:n]
		kept, err := b.vectorsFor(ctx, how, docs, said)
		if err != nil {
			return nil, err
		}
		out := map[vectorKey]string{}
		var ready []bson.ObjectID
		for _, id := range ids {
			if doc := docs[id]; doc == nil || !how.Filter.Match(doc) || !b.lacks(how.embedTexts(doc, said[id]), kept, out) {
				ready = append(ready, id)
			}
		}
		b.standing.indexing(ready)
		b.s.again(ready)
		if len(out) > 0 {
			return out, nil
		}
	}
}

// lacks adds to out those of texts whose vectors are not kept, and says whether there were some.
func (b *built) lacks(texts map[index.Field]string, kept map[vectorKey]known, out map[vectorKey]string) (some bool) {
	for _, text := range texts {
		key := newVectorKey(b.state.Form.Reference, text)
		if _, ok := kept[key]; !ok {
			out[key], some = text, true
		}
	}
	return some
}

// group gives the group whose vectors the index has.
func (b *built) group() (*embedding.Group, error) {
	groups, f := b.s.t.e.o.Groups, b.state.Form
	g, err := groups.Group(f.Group)
	if err == nil && g.Reference() == f.Reference {
		return g, nil
	}
	if other := groups.Of(f.Reference); other != nil { // the settings have kept the model, by another name
		return other, nil
	}
	if err != nil {
		return nil, err
	}
	return nil, errs.New(errs.Unavailable, "search_stale",
		"the embedding group %s has another model than the index of this search was made with: make the index anew, with svcctl search regenerate", f.Group)
}

// ask asks a group for the vectors of texts, and keeps them; some says whether there were any. Of texts among which one is refused it asks
// for halves, until it is known which one that is; so it does when a group that is not offline fails again and again, for that may be one
// text's fault, which keeps no other from its vector then. A provider that is away for a moment is not asked more often for it.
func (t *tenant) ask(ctx context.Context, group *embedding.Group, missing map[vectorKey]string, again bool) (some bool, err error) {
	keys := slices.Collect(maps.Keys(missing)) // in another order each time, so that the text at fault is not always among the first
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = missing[k]
	}
	vectors, err := group.Documents(ctx, list)
	refused := err != nil && errs.From(err).Code == embedding.CodeRefused
	if (refused || again && failedLive(group, err)) && len(keys) > 1 {
		half := make(map[vectorKey]string, len(keys)/2)
		for _, k := range keys[:len(keys)/2] {
			half[k] = missing[k]
			delete(missing, k)
		}
		first, err := t.ask(ctx, group, half, again)
		if err != nil && !(again && failedLive(group, err)) {
			return first, err
		}
		second, otherErr := t.ask(ctx, group, missing, again)
		return first || second, cmp.Or(otherErr, err)
	}
	if refused { // one text, unless it is any
		err = group.Probe(ctx)
	}
	if err != nil {
		return false, err
	}
	out := make(map[vectorKey]known, len(keys))
	for i, k := range keys {
		if refused || vectors[i].IsZero() {
			out[k] = known{refused: true}
		} else {
			out[k] = known{vector: vectors[i]}
		}
	}
	return true, t.keep(ctx, out)
}

// failedLive says whether err is that of a group that can be asked all the same.
func failedLive(group *embedding.Group, err error) bool {
	return err != nil && errs.From(err).Code == embedding.CodeOffline && group.Err() == nil
}
