package barrier

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/gate"
)

// presence is what a process says of itself.
type presence struct {
	ID     string            `bson:"_id"`
	Holder string            `bson:"holder"`
	Beat   int64             `bson:"beat"`
	Shut   map[string]string `bson:"shut"` // how, by the key of a wish
}

// How a process has shut a database.
const (
	noWrites = "writes"
	nothing  = "all"
)

// self is what this process knows of its own presence.
type self struct {
	beat   int64        // 0: it has never shown
	shown  gate.Instant // when the last write of it began that is known to be done
	unsure bool         // one behind that has failed, and may be done all the same
}

// sighting is how a process was seen, and since when it has been like that for us.
type sighting struct {
	beat  int64
	since gate.Instant
}

// gone is the beat of a process that is not there.
const gone = -1

// show writes the presence of this process. missed says that others may have removed it: they took this process for dead.
func (b *Barrier) show(ctx context.Context) (missed bool, err error) {
	first := b.me.beat == 0
	b.me.beat++
	began := b.o.Gate.Clock()
	was, err := b.writePresence(ctx)
	if err != nil {
		b.me.unsure = true
		return false, err
	}
	missed = !first && (!was || b.me.unsure && !began.Within(b.o.Dead, b.me.shown)) // else one that has failed may have put it in again
	b.me.shown, b.me.unsure = began, false
	return missed, nil
}

// writePresence says whether it was there.
func (b *Barrier) writePresence(ctx context.Context) (was bool, err error) {
	me := presence{ID: b.id, Holder: b.o.Holder, Beat: b.me.beat, Shut: map[string]string{}}
	b.mu.Lock()
	for key, c := range b.shut {
		switch {
		case c.shut == nil:
		case c.reads:
			me.Shut[key] = nothing
		default:
			me.Shut[key] = noWrites
		}
	}
	b.mu.Unlock()
	doc, err := bson.Marshal(me)
	if err != nil {
		return false, errs.Wrap(err, "show an instance")
	}
	is := mql.MustCompile(bson.D{{Key: "_id", Value: b.id}})
	results, err := b.o.DB.Collection(instances).Write(ctx, []store.Op{{Kind: store.Replace, Doc: doc, Filter: is, Upsert: true}}, true)
	if err != nil {
		return false, err
	}
	return results[0].Upserted.Type == 0, results[0].Err
}

// presences reads those of all, and notes since when they have been as they are. What this process did not see because it stood still itself, or could not
// reach the store, says nothing of others: then they begin anew.
func (b *Barrier) presences(ctx context.Context) ([]presence, error) {
	at := b.o.Gate.Clock()
	all, err := find[presence](ctx, b.o.DB.Collection(instances))
	if err != nil {
		return nil, err
	}
	now := b.o.Gate.Clock()
	if !now.Within(b.o.Dead/2, b.read) {
		clear(b.seen)
	}
	b.read = at
	for _, p := range all {
		if was, ok := b.seen[p.ID]; !ok || was.beat != p.Beat {
			b.seen[p.ID] = sighting{p.Beat, now}
		}
	}
	return all, nil
}

// noteAbsent notes since when those are not there who want something, and forgets others who are not.
func (b *Barrier) noteAbsent(all []presence, wishes []wish) {
	known := map[string]bool{}
	for _, p := range all {
		known[p.ID] = true
	}
	for _, w := range wishes {
		if was, ok := b.seen[w.By]; !known[w.By] && (!ok || was.beat != gone) {
			if !b.isDead(w.By) {
				was.since = b.o.Gate.Clock()
			}
			b.seen[w.By] = sighting{gone, was.since}
		}
		known[w.By] = true
	}
	for id := range b.seen {
		if !known[id] {
			delete(b.seen, id)
		}
	}
}

// isDead says that a process had not shown for long when the presences were last read.
func (b *Barrier) isDead(id string) bool {
	was, ok := b.seen[id]
	return id != b.id && ok && b.read.Steady-was.since.Steady > b.o.Dead
}

// removeDead removes the presences of those who are dead, before anything goes on without them: so one that is alive after all learns it when it shows again.
// alive says that one has just done so.
func (b *Barrier) removeDead(ctx context.Context, all []presence) (alive bool, err error) {
	for _, p := range all {
		if !b.isDead(p.ID) {
			continue
		}
		as := mql.MustCompile(bson.D{{Key: "beat", Value: p.Beat}})
		err := store.WriteAll(ctx, b.o.DB.Collection(instances), store.Op{Kind: store.Delete, ID: store.Name(p.ID), If: as})
		switch {
		case errors.Is(err, store.ErrStale):
			alive = true
		case err != nil && !errors.Is(err, errs.ErrNotFound):
			return false, err
		}
	}
	return alive, nil
}
