package engine

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/search/index"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/fieldnames"
)

// again has records be indexed once more. The channel is closed when they are.
func (s *shelf) again(ids []bson.ObjectID) <-chan struct{} {
	done := make(chan struct{})
	if len(ids) == 0 {
		close(done)
		return done
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touch(ids...)
	s.waiting = append(s.waiting, done)
	s.signal()
	return done
}

// touch has records be read and indexed. The caller holds s.mu.
func (s *shelf) touch(ids ...bson.ObjectID) {
	for _, id := range ids {
		s.toDo(id, task{})
	}
}

// begin notes since when something waits, before the first does. The caller holds s.mu.
func (s *shelf) begin() {
	if len(s.dirty)+len(s.behind) == 0 {
		s.since = s.t.e.o.Now()
	}
}

// toDo has something be done. The caller holds s.mu.
func (s *shelf) toDo(id bson.ObjectID, t task) {
	s.begin()
	s.given += len(t.doc) - len(s.dirty[id].doc)
	s.dirty[id] = t
}

// signal wakes the goroutine of the shelf.
func (s *shelf) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// chunk is how many records are read and taken in at once.
const chunk = 256

// errChunk ends a read of as many records as are taken in at once.
var errChunk = errors.New("these are as many records as are taken in at once")

// run takes in what has changed until the shelf ends.
func (s *shelf) run() {
	var last *stamp
	var gathered <-chan time.Time // nil: nothing is left of what the feed has told of
	due := true
	for wait := firstRetry; ; {
		w, left := s.take(due)
		switch {
		case !left:
			gathered = nil
		case gathered == nil:
			gathered = time.After(time.Duration(s.t.e.gather.Load()))
		}
		if len(w.tasks) == 0 && len(w.waiting) == 0 && (w.at == nil || w.at == last) {
			select {
			case <-gathered:
				due = true
			case <-s.wake:
				due = false
			case <-s.ctx.Done():
				return
			}
			continue
		}
		select {
		case <-gathered:
			due = true
		default:
			due = false
		}
		err := s.apply(s.ctx, w)
		s.t.e.metrics.took(len(w.tasks), err)
		s.mu.Lock()
		s.inFlight, s.lastError = 0, err
		s.trouble(err != nil)
		if err != nil || w.era != s.era { // they are not done, nor is what stands behind them, or by what could not be trusted
			s.waiting, s.moved = append(w.waiting, s.waiting...), true
			w.waiting = nil
			for id := range w.tasks {
				s.toDo(id, task{})
			}
		}
		s.mu.Unlock()
		if err != nil {
			if s.ctx.Err() != nil {
				return
			}
			s.t.e.o.Logger.WarnContext(s.ctx, "records can't be indexed; that is tried again",
				"namespace", s.t.namespace, "collection", s.stored, "records", len(w.tasks), "error", err)
			s.t.e.renew(err)
			sleep(s.ctx, wait)
			wait = min(2*wait, longestRetry)
			continue
		}
		wait = firstRetry
		if w.at != nil {
			last = w.at
		}
		s.renewWorn()
		for _, done := range w.waiting {
			close(done)
		}
	}
}

// trouble notes whether indexing fails for now: no write waits for it then. The caller holds s.mu.
func (s *shelf) trouble(now bool) {
	switch was := isClosed(s.troubled); {
	case now && !was:
		close(s.troubled)
	case was && !now:
		s.troubled = make(chan struct{})
	}
}

// work is what there is to do at once.
type work struct {
	tasks   map[bson.ObjectID]task
	to      []*built // what it is done to
	at      *stamp   // stands for it and all that was done before; nil: there is something left of before
	waiting []chan struct{}
	era     uint64
}

// take takes what there is to do: what the feed has told of only if that is due, else that is left.
func (s *shelf) take(due bool) (w work, left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w = work{tasks: s.dirty, to: s.receiving(), waiting: s.waiting, era: s.era}
	s.dirty, s.given, s.waiting = map[bson.ObjectID]task{}, 0, nil
	if due {
		for id := range s.behind {
			if _, ok := w.tasks[id]; !ok {
				w.tasks[id] = task{}
			}
		}
		clear(s.behind)
		w.at, s.moved = s.at, false
	}
	s.inFlight = len(w.tasks)
	return w, s.moved
}

// apply takes records in: those that were handed over as they were then, the others as they are now.
func (s *shelf) apply(ctx context.Context, w work) error {
	given, unread := make([]bson.ObjectID, 0, len(w.tasks)), make([]bson.ObjectID, 0, len(w.tasks))
	for id, t := range w.tasks {
		if t.given {
			given = append(given, id)
		} else {
			unread = append(unread, id)
		}
	}
	sortIDs(given)
	sortIDs(unread)
	for len(given) > 0 {
		docs, n := w.someGiven(given)
		if err := w.update(ctx, given[:n], docs); err != nil {
			return err
		}
		given = given[n:]
	}
	for len(unread) > 0 {
		docs, n, err := s.findSome(ctx, unread[:min(chunk, len(unread))])
		if err != nil {
			return err
		}
		if err := w.update(ctx, unread[:n], docs); err != nil {
			return err
		}
		unread = unread[n:]
	}
	if w.at == nil {
		return nil
	}
	for _, b := range w.to {
		if err := b.reached(ctx, w.at); err != nil && !errors.Is(err, index.ErrDropped) {
			return err
		}
	}
	return nil
}

// someGiven gives the first of some records that were handed over: n of them, which are as many as are taken in at once.
func (w *work) someGiven(ids []bson.ObjectID) (docs map[bson.ObjectID]bson.Raw, n int) {
	docs = map[bson.ObjectID]bson.Raw{}
	for size := 0; n < min(chunk, len(ids)) && size < chunkBytes; n++ {
		if doc := w.tasks[ids[n]].doc; doc != nil {
			docs[ids[n]] = doc
			size += len(doc)
		}
	}
	return docs, n
}

// update takes records in that are as they are in docs.
func (w *work) update(ctx context.Context, ids []bson.ObjectID, docs map[bson.ObjectID]bson.Raw) error {
	for _, b := range w.to {
		if err := b.update(ctx, ids, docs); err != nil && !errors.Is(err, index.ErrDropped) { // another has taken its place
			return err
		}
	}
	return nil
}

// records gives the collection, with the names of fields that are declared.
func (s *shelf) records() store.Collection {
	s.mu.Lock()
	names := s.project.FieldNames
	s.mu.Unlock()
	return fieldnames.Wrap(s.t.db, names).Collection(s.stored)
}

// findSome reads the first of some records by their ids, which ascend: n of them, which are all unless they are too large to be taken in
// at once.
func (s *shelf) findSome(ctx context.Context, ids []bson.ObjectID) (docs map[bson.ObjectID]bson.Raw, n int, err error) {
	filter := mql.OneOf("_id", idValues(ids))
	docs, n = make(map[bson.ObjectID]bson.Raw, len(ids)), len(ids)
	size := 0
	err = s.records().Find(ctx, store.Query{Filter: filter, Sort: byID()}, func(doc bson.Raw) error {
		id := idOf(doc)
		docs[id] = bytes.Clone(doc)
		if size += len(doc); size >= chunkBytes {
			n = slices.Index(ids, id) + 1
			return errChunk
		}
		return nil
	})
	if errors.Is(err, errChunk) {
		err = nil
	}
	return docs, n, err
}

// sortIDs puts ids in the order that stores give records in by their ids.
func sortIDs(ids []bson.ObjectID) {
	slices.SortFunc(ids, func(a, b bson.ObjectID) int { return bytes.Compare(a[:], b[:]) })
}

func idValues(ids []bson.ObjectID) []bson.RawValue {
	out := make([]bson.RawValue, len(ids))
	for i := range ids {
		out[i] = bson.RawValue{Type: bson.TypeObjectID, Value: ids[i][:]}
	}
	return out
}

func idOf(doc bson.Raw) bson.ObjectID {
	v, _ := doc.LookupErr("_id")
	id, _ := v.ObjectIDOK()
	return id
}
