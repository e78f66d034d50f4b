package engine

import (
	"context"
	"math"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/store"
)

// A writer hands the records over that it has written, so that nobody has to read them once more to index them. The store's feed tells of
// them, too, a little later or before. What keeps an older version from taking the place of a newer one for good:
//
//   - A record is read, and not taken as it is handed over, if the feed has told of anything but that one version of it since before it was
//     written: what else it told of may be newer, and nothing more is told of it.
//   - It is read, too, if another version was handed over of which the feed has yet to tell: two writers come in any order.
//   - It is read if, since before it was written, the config has changed, or it is not known that the feed has told of everything (distrust).
//   - When the feed tells of the version that was handed over last, there is nothing to do. Of any other it has the record be read. So what
//     the feed tells of last is what is in the index.
//
// What the feed tells of is not read at once but with what comes in the next moment (gather): whoever wrote it may be about to hand it over.

// Writing is taken before records are written, and says since when the engine may have learned of them by other ways.
type Writing struct {
	s             *shelf // nil: nothing is indexed
	era, tellings uint64
}

// Record is one that was written.
type Record struct {
	ID  bson.ObjectID
	Doc bson.Raw // as it is stored, with the names that its fields are declared by; nil: it was deleted. It must not change any more.
}

// task is what there is to do for a record: to take it in as it was handed over, or as it is by then.
type task struct {
	given bool
	doc   bson.Raw // given: what it is; nil: deleted
}

const (
	gather    = 5 * time.Millisecond // how long what the feed tells of waits for more
	lately    = 256                  // how many versions are known of which the feed told last
	maxGiven  = 16 << 20             // bytes of records that were handed over and wait; more of them are read, later
	maxRecent = 100_000              // versions that were handed over, of which the feed has yet to tell
)

// What is no version that a record has.
const (
	deleted = math.MinInt64     // it is deleted
	unknown = math.MinInt64 + 1 // the store does not tell
)

// Writing says that records of a collection are about to be written.
func (e *Engine) Writing(p *project.Project, c *project.Collection) Writing {
	if !indexed(c) {
		return Writing{}
	}
	t, err := e.tenant(p, false)
	if err != nil || t == nil {
		return Writing{}
	}
	s := t.shelf(p, c)
	if s == nil { // it is not served yet, which no write waits for
		return Writing{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return Writing{s, s.era, s.tellings}
}

// indexed says whether a collection has a search with an index.
func indexed(c *project.Collection) bool {
	return slices.ContainsFunc(c.Searches, func(s *search.Config) bool { return s.Mode.Indexed() })
}

// Written hands over which records of a collection were written since w was taken, and waits until they can be found, unless all of its
// searches are async. It waits no longer than patience, and not while indexing fails: what then is not indexed yet is so a little later.
func (e *Engine) Written(ctx context.Context, p *project.Project, c *project.Collection, w Writing, records []Record) {
	if !indexed(c) || len(records) == 0 {
		return
	}
	s, err := e.shelf(p, c)
	if err != nil {
		return // whoever serves it reads all records
	}
	done, troubled := s.written(p, w, records)
	if !waits(c) {
		return
	}
	timer := time.NewTimer(e.patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-troubled:
	case <-timer.C:
	case <-ctx.Done():
	case <-e.ctx.Done():
	}
}

// waits says whether a write waits for one of the searches.
func waits(c *project.Collection) bool {
	return slices.ContainsFunc(c.Searches, func(s *search.Config) bool { return s.Mode.Indexed() && !s.Async })
}

// written takes records over. found is closed when they are found as they were then, or later; troubled when indexing fails.
func (s *shelf) written(p *project.Project, w Writing, records []Record) (found, troubled <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.recent) > maxRecent {
		clear(s.recent)
	}
	known := w.s == s && w.era == s.era && s.project == p && s.tellings-w.tellings < lately
	for _, r := range records {
		_, other := s.recent[r.ID]
		_, waiting := s.dirty[r.ID]
		version := versionOf(r.Doc)
		told, another := s.toldOf(r.ID, version, w.tellings)
		delete(s.behind, r.ID)
		if !known || other || waiting || another || s.given+len(r.Doc) > maxGiven {
			s.toDo(r.ID, task{})
			continue
		}
		s.toDo(r.ID, task{given: true, doc: r.Doc})
		if !told {
			s.recent[r.ID] = version
		}
	}
	done := make(chan struct{})
	s.waiting = append(s.waiting, done)
	s.signal()
	return done, s.troubled
}

// telling is a version of a record that the feed has told of.
type telling struct {
	id      bson.ObjectID
	version int64
}

// toldOf says whether the feed has told of a version of a record, and of another one or of that one more than once, since it had told of some
// number of versions, which is no longer ago than lately. The caller holds s.mu.
func (s *shelf) toldOf(id bson.ObjectID, version int64, since uint64) (told, another bool) {
	for n := s.tellings; n > since && n+lately > s.tellings; n-- {
		if t := s.told[(n-1)%lately]; t.id == id {
			told, another = true, another || told || t.version != version
		}
	}
	return told, another
}

// changed takes an event of the feed.
func (s *shelf) changed(id bson.ObjectID, e store.Event, at *stamp) {
	version := versionTold(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[s.tellings%lately] = telling{id, version}
	s.tellings++
	_, waiting := s.dirty[id]
	switch recent, handed := s.recent[id]; {
	case handed && recent == version:
		delete(s.recent, id) // whoever wrote it was faster
	case waiting:
		s.toDo(id, task{})
	default:
		s.begin()
		s.behind[id] = true
	}
	s.move(at)
}

// distrust has everything be read that was handed over, and that is about to be: what is known of what the feed has told does not say whether
// it is what the store has, or in which form. The caller holds s.mu.
func (s *shelf) distrust() {
	s.era++
	clear(s.recent)
	for id := range s.dirty {
		s.toDo(id, task{})
	}
}

// eraNow grows when what was read or handed over may have other names than the config has by now.
func (s *shelf) eraNow() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.era
}

// reached takes that the feed has told everything up to a place.
func (s *shelf) reached(at *stamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.move(at)
}

// move notes up to where the feed has told. The caller holds s.mu.
func (s *shelf) move(at *stamp) {
	s.at = at
	if !s.moved {
		s.moved = true
		s.signal()
	}
}

// versionFields are the fields that tell the versions of a record apart.
var versionFields = []string{"_rev", "updatedAt"} //nolint:gochecknoglobals // a constant

// versionOf tells the versions of a record apart; doc is nil if it is deleted.
func versionOf(doc bson.Raw) int64 {
	if doc == nil {
		return deleted
	}
	version, _ := versionIn(doc)
	return version
}

// versionTold gives the version of a record that an event is about.
func versionTold(e store.Event) int64 {
	if e.Kind == store.Deleted {
		return deleted
	}
	if version, ok := versionIn(e.Fields); ok {
		return version
	}
	return unknown
}

func versionIn(doc bson.Raw) (version int64, known bool) {
	at, _ := document.Field(doc, "updatedAt")
	ms, hasTime := at.DateTimeOK()
	v, _ := document.Field(doc, "_rev")
	rev, hasRev := v.AsInt64OK()
	return ms<<20 ^ rev, hasTime && hasRev
}
