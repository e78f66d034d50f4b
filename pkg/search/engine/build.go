package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/search/index"
	"github.com/svcctl/svc/pkg/store"
)

// indexName is what an index is called: which search it is of, what is in it, and a number that grows.
type indexName struct {
	database, stored, search string
	print                    string // see search.Config.Fingerprint
	number                   int64
}

func (n indexName) String() string {
	return strings.Join([]string{n.database, n.stored, n.search, n.print, fmt.Sprintf("%020d", n.number)}, "\x00")
}

func parseName(name string) (n indexName, ok bool) {
	parts := strings.Split(name, "\x00")
	if len(parts) != 5 {
		return n, false
	}
	n = indexName{database: parts[0], stored: parts[1], search: parts[2], print: parts[3]}
	_, err := fmt.Sscanf(parts[4], "%d", &n.number)
	return n, err == nil
}

// state is kept with an index, as its position.
type state struct {
	Complete bool   `bson:"complete"` // all records are in it
	At       *stamp `bson:"at"`
	Epoch    int64  `bson:"epoch"` // how often it had been asked for anew
	Form     form   `bson:"form"`
}

// form is what is in an index, by what fields are stored as: what searches need to know of it once its config has changed.
type form struct {
	Mode     search.Mode    `bson:"mode"`
	Fields   []search.Field `bson:"fields"`
	Override string         `bson:"override"`
	Filter   []byte         `bson:"filter"`
	MinGram  int            `bson:"minGram"`
	MaxGram  int            `bson:"maxGram"`
	Recency  string         `bson:"recency"`        // path of the date; "": there is none
	Eval     string         `bson:"eval,omitempty"` // the print of the script that gave the text; "": none did
	// Of mode vector: the group, and what its vectors are.
	Group     string `bson:"group,omitempty"`
	Reference string `bson:"reference,omitempty"`
}

// built is one index of a search.
type built struct {
	s    *shelf
	name indexName
	ix   *index.Index

	at    *stamp // guarded by the shelf's mu
	state state  // likewise, but for Form
	begun bool   // likewise: its making has

	bound atomic.Pointer[bound]

	standing *standing // of mode vector
	getting  bool      // guarded by the shelf's mu: somebody gets vectors
	parking  *parking
	retrying bool // guarded by the shelf's mu: what is parked is tried again

	// While it is made:
	ctx      context.Context //nolint:containedctx // of the making; cancel ends it
	cancel   context.CancelFunc
	finished chan struct{} // closed when it is made, or given up
	done     atomic.Int64  // records that were read
	total    atomic.Int64  // about

	guard   sync.Mutex
	touched map[bson.ObjectID]bool // what has changed since the making began; nil: it is made
}

func newBuilt(s *shelf, n indexName, ix *index.Index) (*built, error) {
	b := &built{s: s, name: n, ix: ix, finished: make(chan struct{}), standing: newStanding(s.t.e.o.Now), parking: newParking()}
	b.ctx, b.cancel = context.WithCancel(s.ctx)
	if p := ix.Position(); len(p) > 0 {
		if err := bson.Unmarshal(p, &b.state); err != nil {
			return nil, errs.Wrap(err, "read the state of a search index")
		}
		b.at = b.state.At
	}
	if b.state.Complete {
		close(b.finished)
		if err := b.restore(b.ctx); err != nil {
			return nil, err
		}
	}
	if b.state.Complete && b.state.Form.Eval != "" {
		if err := b.parking.restore(b.ctx, ix, s.t.e.o.Now()); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// formOf is a config by what its fields are stored as.
func (e *Engine) formOf(c *search.Config, in *project.Collection) form {
	out := form{Mode: c.Mode, MinGram: c.MinGram, MaxGram: c.MaxGram, Group: c.Group, Reference: e.reference(c)}
	for _, f := range c.Fields {
		f.Path = in.StoredField(f.Path)
		out.Fields = append(out.Fields, f)
	}
	if c.Override != "" {
		out.Override = in.StoredField(c.Override)
	}
	if c.Eval != nil {
		out.Eval = c.Eval.Print
	}
	if c.Recency != nil {
		out.Recency = in.StoredField(c.Recency.Path)
	}
	if c.Filter != nil {
		out.Filter = bytes.Clone(c.Filter.Stored(in.FieldNames).Raw())
	}
	return out
}

// bind has the index be searched as a config says. If it is another one than it was made for, what is in it stays what it is.
func (b *built) bind(c *search.Config, in *project.Collection, same bool) {
	if same {
		b.binds(c, in)
		return
	}
	own := *c
	f, back := b.state.Form, in.FieldNames.Inverse()
	own.Mode, own.MinGram, own.MaxGram, own.Override, own.Group = f.Mode, f.MinGram, f.MaxGram, back.Path(f.Override), f.Group
	own.Fields = nil
	for _, field := range f.Fields {
		field.Path = back.Path(field.Path)
		for _, now := range c.Fields {
			if now.Path == field.Path {
				field.Weight = now.Weight
			}
		}
		own.Fields = append(own.Fields, field)
	}
	own.Eval = evalOf(f, &own, c)
	if c.Recency != nil && in.StoredField(c.Recency.Path) != f.Recency {
		own.Recency = nil
	}
	own.Filter = nil
	if len(f.Filter) > 0 {
		var doc bson.D
		if err := bson.Unmarshal(f.Filter, &doc); err == nil {
			if stored, err := mql.Compile(doc); err == nil {
				own.Filter = stored.Stored(back)
			}
		}
	}
	b.binds(&own, in)
}

// make begins to make the index of a search, in place of one that is being made. The caller holds s.mu.
func (s *shelf) make(one *searched) error {
	if one.next != nil {
		if err := s.discard(one.next); err != nil {
			return err
		}
		one.next = nil
	}
	n := indexName{s.t.database, s.stored, one.config.Name, s.fingerprint(one.config, nil), s.t.e.o.Now().UnixNano()}
	if one.live != nil {
		n.number = max(n.number, one.live.name.number+1)
	}
	b, err := s.open(n)
	if err != nil {
		return err
	}
	b.state.Form, b.state.Epoch = s.t.e.formOf(one.config, s.collection), s.t.epoch(s.stored, one.config.Name)
	b.bind(one.config, s.collection, true)
	b.touched, b.at = map[bson.ObjectID]bool{}, s.at
	one.next, one.stale = b, false
	s.getVectors(b)
	followed := s.followed
	s.goes(func() {
		defer close(b.finished)
		select {
		case <-followed:
			s.build(b, one)
		case <-b.ctx.Done():
		}
	})
	return nil
}

// build makes an index of all records, until that is done or given up.
func (s *shelf) build(b *built, one *searched) {
	var last *bson.ObjectID
	for wait := firstRetry; ; wait = min(2*wait, longestRetry) {
		err := s.scan(b, &last)
		if err == nil {
			err = s.vectorsCome(b, one)
		}
		if err == nil {
			err = s.complete(b, one)
		}
		if err == nil || b.ctx.Err() != nil {
			return
		}
		s.t.e.o.Logger.WarnContext(b.ctx, "a search index can't be made; that is tried again",
			"namespace", s.t.namespace, "collection", s.stored, "search", b.name.search, "error", err)
		s.t.e.renew(err)
		sleep(b.ctx, wait)
	}
}

// scan has an index take in all records behind last, as soon as there is room for one more that does.
func (s *shelf) scan(b *built, last **bson.ObjectID) error {
	slots := s.t.e.building
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-b.ctx.Done():
		return b.ctx.Err()
	}
	s.mu.Lock()
	b.begun = true
	s.mu.Unlock()
	return b.scan(last)
}

// vectorsCome waits until an index of mode vector has its vectors, if there is one before it that answers meanwhile.
func (s *shelf) vectorsCome(b *built, one *searched) error {
	for {
		waiting, change := b.standing.left()
		s.mu.Lock()
		before := one.live
		s.mu.Unlock()
		if waiting == 0 || before == nil || before.state.Form.Mode == search.Vector && !before.answers() {
			return nil
		}
		b.done.Store(max(0, b.total.Load()-int64(waiting)))
		select {
		case <-change:
		case <-b.ctx.Done():
			return b.ctx.Err()
		}
	}
}

// scan takes in all records behind last, from the first on if that is nil. What changes meanwhile is taken in by the shelf.
func (b *built) scan(last **bson.ObjectID) error {
	if stats, err := b.s.records().Stats(b.ctx); err == nil {
		b.total.Store(stats.Documents)
	}
	for {
		var filter *mql.Filter
		if *last != nil {
			filter = mql.On("_id", &mql.Cmp{Op: mql.Gt, Value: idValues([]bson.ObjectID{**last})[0]})
		}
		ids, docs, size := make([]bson.ObjectID, 0, chunk), make(map[bson.ObjectID]bson.Raw, chunk), 0
		era := b.s.eraNow()
		err := b.s.records().Find(b.ctx, store.Query{Filter: filter, Sort: byID(), Limit: chunk}, func(doc bson.Raw) error {
			id := idOf(doc)
			ids = append(ids, id)
			docs[id] = bytes.Clone(doc)
			if size += len(doc); size >= chunkBytes {
				return errChunk
			}
			return nil
		})
		if err != nil && !errors.Is(err, errChunk) || len(ids) == 0 {
			return err
		}
		if err := b.take(b.ctx, ids, docs, true); err != nil {
			return err
		}
		if b.s.eraNow() != era {
			continue // fields may have been read by other names than they are looked for by
		}
		b.done.Add(int64(len(ids)))
		*last = &ids[len(ids)-1]
	}
}

func byID() mql.Sort { return mql.Sort{{Path: "_id"}} }

// update takes in records that have changed, as they are in docs; those that are not are gone.
func (b *built) update(ctx context.Context, ids []bson.ObjectID, docs map[bson.ObjectID]bson.Raw) error {
	return b.take(ctx, ids, docs, false)
}

// take takes records in, as many at once as their texts allow.
func (b *built) take(ctx context.Context, ids []bson.ObjectID, docs map[bson.ObjectID]bson.Raw, scanned bool) error {
	how := b.bound.Load()
	for len(ids) > 0 {
		said, n, err := how.say(ctx, ids, docs)
		if err == nil {
			err = b.takeSome(ctx, how, ids[:n], docs, said, scanned)
		}
		if err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// takeSome takes records in. Those that were read by a scan are left out if they have changed since it began: they may be older than
// what is known.
func (b *built) takeSome(
	ctx context.Context, how *bound, ids []bson.ObjectID, docs map[bson.ObjectID]bson.Raw, said map[bson.ObjectID]saying, scanned bool,
) error {
	kept, err := b.vectorsFor(ctx, how, docs, said)
	if err != nil {
		return err
	}
	changes := b.changes(how, ids, docs, said, kept)
	b.guard.Lock()
	defer b.guard.Unlock()
	if b.touched != nil {
		left := changes[:0]
		for _, c := range changes {
			id := bson.ObjectID(c.ID)
			switch {
			case scanned && b.touched[id]:
				continue
			case !scanned:
				b.touched[id] = true
			}
			left = append(left, c)
		}
		changes = left
	}
	b.alike(changes)
	if err := b.ix.Apply(ctx, changes, nil); err != nil {
		return err
	}
	if how.Mode == search.Vector {
		b.standing.note(changes)
	}
	if how.script != nil {
		b.parking.note(changes, said, b.s.t.e.o.Now(), b.s.t.e.o.Retries)
	}
	return nil
}

// reached notes that everything up to a place in the feed is in the index.
func (b *built) reached(ctx context.Context, at *stamp) error {
	b.s.mu.Lock()
	b.at, b.state.At = at, at
	blob, err := bson.Marshal(b.state)
	b.s.mu.Unlock()
	if err != nil {
		return err
	}
	return b.ix.Apply(ctx, nil, blob)
}

// complete has an index answer from now on, in place of the one before.
func (s *shelf) complete(b *built, one *searched) error {
	s.mu.Lock()
	if one.next != b {
		s.mu.Unlock()
		return context.Canceled
	}
	b.state.Complete, b.state.At = true, b.at
	blob, err := bson.Marshal(b.state)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if err := errors.Join(b.ix.Apply(b.ctx, nil, blob), b.ix.Flush(b.ctx)); err != nil {
		return err
	}
	b.guard.Lock()
	b.touched = nil
	b.guard.Unlock()
	s.mu.Lock()
	if one.next != b {
		s.mu.Unlock()
		return context.Canceled
	}
	before := one.live
	one.live, one.next = b, nil
	s.mu.Unlock()
	s.t.e.o.Logger.InfoContext(s.ctx, "search index made", "namespace", s.t.namespace, "collection", s.stored,
		"search", b.name.search, "records", b.done.Load())
	return s.discard(before)
}
