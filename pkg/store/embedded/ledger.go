package embedded

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

// ledger is what a commit tells the feed of its database, and how it changes the counters. A commit that is given up
// takes it along: numbers and totals move on in applied only, so there are no gaps.
type ledger struct {
	feed    *feed // of the commit's database; nil while there is nothing to tell
	changes []change
	counts  []countChange
	tallied []tallied
	head    feedHead // where the feed ends with the commit, once it is sealed
}

// change is an entry of the feed to be.
type change struct {
	kind store.EventKind
	name string        // of the collection
	id   bson.RawValue // of the document; none for Dropped and Renamed
	to   string        // Renamed

	details bson.Raw // see writer.details
}

type countChange struct {
	coll *collection
	by   counts
}

// log takes up a change of the document whose _id is id for the feed, in order, and for the
// builds of indexes. id is valid during the call only.
func (w *writer) log(kind store.EventKind, id bson.RawValue, details bson.Raw) {
	for _, x := range w.indexes.all {
		if x.changed != nil {
			x.changed[string(idKey(id))] = struct{}{}
		}
	}
	id.Value = bytes.Clone(id.Value)
	w.note(w.coll.name.database, change{kind: kind, name: w.coll.name.collection, id: id, details: details})
}

// note takes up a change. All of a commit are of one database.
func (c *commit) note(database string, what change) {
	if store.IsBookkeeping(what.name) && (what.to == "" || store.IsBookkeeping(what.to)) {
		return
	}
	c.ledger.feed = c.s.feeds.of(database)
	c.ledger.changes = append(c.ledger.changes, what)
}

// count takes up how many documents and bytes of them w's collection gains; negative if it loses some.
func (w *writer) count(docs, bytes int64) {
	by := counts{docs: docs, bytes: bytes}
	for i := range w.ledger.counts {
		if w.ledger.counts[i].coll == w.coll {
			w.ledger.counts[i].by.add(by)
			return
		}
	}
	w.ledger.counts = append(w.ledger.counts, countChange{coll: w.coll, by: by})
}

// seal adds what was taken up to the batch, just before it is applied.
func (c *commit) seal() error {
	l := &c.ledger
	if l.feed != nil {
		l.head = l.feed.end()
		now := millis(c.s.opts.Now())
		for _, what := range l.changes {
			key, value := l.feed.entry(&l.head, what, now)
			if err := c.batch.Set(key, value, nil); err != nil {
				return internal(err, "stage an entry of the feed")
			}
		}
	}
	for _, n := range l.counts {
		total := n.coll.counts
		total.add(n.by)
		if err := c.batch.Set(countsKey(n.coll.id), total.encode(), nil); err != nil {
			return internal(err, "stage counters")
		}
	}
	return nil
}

// applied tells that the batch is visible now.
func (c *commit) applied() {
	if c.ledger.feed != nil {
		c.ledger.feed.advance(c.ledger.head)
	}
	for _, n := range c.ledger.counts {
		n.coll.counts.add(n.by)
	}
	c.ledger.keep()
}

// durable tells that the batch is on disk, outside of the commit mutex, in any order of commits.
func (c *commit) durable() {
	if c.ledger.feed != nil {
		c.ledger.feed.publish(c.ledger.head)
	}
}
