package engine

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/search/index"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/fieldnames"
)

// note says that records have changed. found is closed when they are found as they were then, or later; troubled when indexing fails.
func (s *shelf) note(ids []bson.ObjectID) (found, troubled <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touch(ids...)
	for _, id := range ids {
		s.noted[id] = true
	}
	done := make(chan struct{})
	s.waiting = append(s.waiting, done)
	s.signal()
	return done, s.troubled
}

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

// touch notes ids. The caller holds s.mu.
func (s *shelf) touch(ids ...bson.ObjectID) {
	if len(s.dirty) == 0 {
		s.since = s.t.e.o.Now()
	}
	for _, id := range ids {
		s.dirty[id] = true
	}
}

// signal wakes the goroutine of the shelf.
func (s *shelf) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// changed takes an event of the feed. doc is the record as it is by now; nil: it is gone.
func (s *shelf) changed(id bson.ObjectID, doc bson.Raw, at *stamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = at
	if version, ok := s.recent[id]; ok && doc != nil && version == versionOf(doc) {
		delete(s.recent, id) // whoever wrote it was faster
	} else {
		s.touch(id)
	}
	s.signal()
}

// reached takes that the feed has told everything up to a place.
func (s *shelf) reached(at *stamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = at
	s.signal()
}

// chunk is how many records are read and taken in at once.
const chunk = 256

// errChunk ends a read of as many records as are taken in at once.
var errChunk = errors.New("these are as many records as are taken in at once")

// run takes in what has changed until the shelf ends.
func (s *shelf) run() {
	var last *stamp
	for wait := firstRetry; ; {
		ids, noted, at, waiting := s.take()
		if len(ids) == 0 && len(waiting) == 0 && at == last {
			select {
			case <-s.wake:
				continue
			case <-s.ctx.Done():
				return
			}
		}
		err := s.apply(s.ctx, ids, noted, at)
		s.t.e.metrics.took(len(ids), err)
		s.mu.Lock()
		s.inFlight, s.lastError = 0, err
		s.trouble(err != nil)
		if err != nil { // they are not done, nor is what stands behind them
			s.touch(ids...)
			maps.Copy(s.noted, noted)
			s.waiting = append(waiting, s.waiting...)
		}
		s.mu.Unlock()
		if err != nil {
			if s.ctx.Err() != nil {
				return
			}
			s.t.e.o.Logger.WarnContext(s.ctx, "records can't be indexed; that is tried again",
				"namespace", s.t.namespace, "collection", s.stored, "records", len(ids), "error", err)
			s.t.e.renew(err)
			sleep(s.ctx, wait)
			wait = min(2*wait, longestRetry)
			continue
		}
		last, wait = at, firstRetry
		s.renewWorn()
		for _, done := range waiting {
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

// take takes what there is to do.
func (s *shelf) take() (ids []bson.ObjectID, noted map[bson.ObjectID]bool, at *stamp, waiting []chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids = make([]bson.ObjectID, 0, len(s.dirty))
	for id := range s.dirty {
		ids = append(ids, id)
	}
	clear(s.dirty)
	sortIDs(ids)
	waiting, s.waiting = s.waiting, nil
	noted, s.noted = s.noted, map[bson.ObjectID]bool{}
	s.inFlight = len(ids)
	return ids, noted, s.at, waiting
}

// apply takes records in as they are now. at stands for them and all that was done before.
func (s *shelf) apply(ctx context.Context, ids []bson.ObjectID, noted map[bson.ObjectID]bool, at *stamp) error {
	all := s.receiving()
	for rest := ids; len(rest) > 0; {
		docs, n, err := s.findSome(ctx, rest[:min(chunk, len(rest))])
		if err != nil {
			return err
		}
		part := rest[:n]
		rest = rest[n:]
		for _, b := range all {
			if err := b.update(ctx, part, docs); err != nil && !errors.Is(err, index.ErrDropped) { // another has taken its place
				return err
			}
		}
		s.told(part, docs, noted)
	}
	if at == nil {
		return nil
	}
	for _, b := range all {
		if err := b.reached(ctx, at); err != nil && !errors.Is(err, index.ErrDropped) {
			return err
		}
	}
	return nil
}

// maxRecent bounds what is kept of what the feed has yet to tell of.
const maxRecent = 100_000

// told notes that records were taken in that had been noted, as they were.
func (s *shelf) told(ids []bson.ObjectID, docs map[bson.ObjectID]bson.Raw, noted map[bson.ObjectID]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.recent) > maxRecent {
		clear(s.recent)
	}
	for _, id := range ids {
		if noted[id] && docs[id] != nil {
			s.recent[id] = versionOf(docs[id])
		}
	}
}

// versionOf tells the versions of a record apart.
func versionOf(doc bson.Raw) int64 {
	at, _ := document.Field(doc, "updatedAt")
	ms, _ := at.DateTimeOK()
	v, _ := document.Field(doc, "_rev")
	rev, _ := v.AsInt64OK()
	return ms<<20 ^ rev
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
