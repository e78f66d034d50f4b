package embedded

import (
	"context"
	"hash/maphash"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
)

// A page of a list often comes with how many records there are in all, and counting them reads them all. So a filter by
// which is counted again and again is kept with its count, its tally, and each commit says what it changes in it. Keeping
// one up costs a commit two matches for each document; a tally that has cost as much as counting anew, and was not asked
// for meanwhile, is given up.
const (
	maxTallies    = 8        // that a collection keeps
	tallyMemory   = 32       // filters that were asked for once
	maxTallyKey   = 4 << 10  // bytes of a filter
	maxTallyParts = 16       // conditions of a filter
	maxTallyDoc   = 64 << 10 // bytes of a document, before and after; a commit does not match larger ones
	leastTallied  = 256      // keys: to read fewer costs less than to keep a tally up
	documentWorth = 2        // matches that a commit makes of a document
)

// tallies are those of one collection. The commit mutex guards them.
type tallies struct {
	kept  []*tally // what was asked for last comes first
	asked [tallyMemory]uint64
	next  int // place in asked
}

// tally is how many documents match a filter.
type tally struct {
	key    string
	filter *mql.Filter
	n      int64 // while they are being counted: what commits since then have changed
	ready  bool
	worth  int64 // keys that counting reads
	spent  int64 // matches since it was last asked for
}

var tallySeed = maphash.MakeSeed() //nolint:gochecknoglobals // a constant of the process

// tallyKey is a filter as bytes; "" if none is kept of it.
func tallyKey(filter *mql.Filter) string {
	if filter == nil {
		return ""
	}
	if raw := filter.Raw(); len(raw) <= maxTallyKey {
		return string(raw)
	}
	return ""
}

// ask gives the count of a filter, if it is kept. Who asks for it the second time is given a tally to settle.
func (t *tallies) ask(key string, filter *mql.Filter) (n int64, ok bool, begun *tally) {
	if i := slices.IndexFunc(t.kept, func(o *tally) bool { return o.key == key }); i >= 0 {
		one := t.kept[i]
		copy(t.kept[1:], t.kept[:i])
		t.kept[0], one.spent = one, 0
		return one.n, one.ready, nil
	}
	hash := maphash.String(tallySeed, key)
	if !slices.Contains(t.asked[:], hash) {
		t.asked[t.next] = hash
		t.next = (t.next + 1) % tallyMemory
		return 0, false, nil
	}
	if !quick(filter) {
		return 0, false, nil
	}
	begun = &tally{key: key, filter: filter}
	t.kept = slices.Insert(t.kept[:min(len(t.kept), maxTallies-1)], 0, begun)
	return 0, false, begun
}

// quick says that a match costs little, whatever the document: commits wait for it.
func quick(filter *mql.Filter) bool {
	var doc bson.D
	if err := bson.Unmarshal(filter.Raw(), &doc); err != nil {
		return false
	}
	size := mql.Measure(doc)
	return size.Clauses <= maxTallyParts && len(size.Regexes) == 0
}

// settle takes what was counted in the snapshot of when the tally was begun. Few keys, or an error, end it.
func (t *tallies) settle(one *tally, n, keys int64, err error) {
	one.n, one.worth, one.ready = one.n+n, keys, true
	if err != nil || keys < leastTallied {
		t.kept = slices.DeleteFunc(t.kept, func(o *tally) bool { return o == one })
	}
}

// tallied is what a commit changes in a tally.
type tallied struct {
	coll *collection
	one  *tally
	by   int64
	gone bool // it can't be kept up any more
}

// tally takes up what an edit changes in the tallies of its collection.
func (w *writer) tally(e *edit) {
	for _, one := range w.coll.tallies.kept {
		change := tallied{coll: w.coll, one: one}
		switch one.spent += documentWorth; {
		case one.ready && one.spent > one.worth, len(e.old) != e.before, len(e.old)+len(e.new) > maxTallyDoc:
			change.gone = true
		default:
			change.by = matches(one.filter, e.new) - matches(one.filter, e.old)
		}
		if change.gone || change.by != 0 {
			w.ledger.tallied = append(w.ledger.tallied, change)
		}
	}
}

func matches(filter *mql.Filter, doc bson.Raw) int64 {
	if doc != nil && filter.Match(doc) {
		return 1
	}
	return 0
}

// keep carries out what a commit changes in tallies, once it is applied.
func (l *ledger) keep() {
	for _, c := range l.tallied {
		if c.gone {
			c.coll.tallies.kept = slices.DeleteFunc(c.coll.tallies.kept, func(o *tally) bool { return o == c.one })
		}
		c.one.n += c.by
	}
}

// countOften is Count for a filter that may have a tally.
func (c *Collection) countOften(ctx context.Context, key string, filter *mql.Filter) (n int64, err error) {
	st, begun, n, ok, err := c.beginTally(key, filter)
	if err != nil || ok {
		return n, err
	}
	defer closeInto(&err, st.close)
	n, keys, err := st.count(ctx, filter, 0)
	if begun != nil {
		c.s.commit.Lock()
		defer c.s.commit.Unlock()
		st.coll.tallies.settle(begun, n, keys, err)
	}
	return n, err
}

// beginTally gives a count that is kept, or else a state to count in, and the tally to settle, if any, which is of the
// moment of that state.
func (c *Collection) beginTally(key string, filter *mql.Filter) (st *state, begun *tally, n int64, ok bool, err error) {
	c.s.commit.Lock()
	defer c.s.commit.Unlock()
	coll := c.s.cat.get(c.name)
	if coll == nil {
		return &state{s: c.s, indexes: noIndexes}, nil, 0, false, nil
	}
	if n, ok, begun = coll.tallies.ask(key, filter); ok {
		return nil, nil, n, true, nil
	}
	if st, err = c.state(); err != nil && begun != nil {
		coll.tallies.settle(begun, 0, 0, err)
	}
	return st, begun, 0, false, err
}
