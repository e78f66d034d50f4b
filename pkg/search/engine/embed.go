package engine

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/search/index"
	"github.com/svcctl/svc/pkg/store/lease"
)

// What becomes of a record in an index of mode vector: its texts are taken from it (bound.embeds), and the vectors that are kept of them
// go into the index with it. What has none yet goes in without, and waits: the index's own goroutine asks the group for vectors, if
// the instance has the lease, or else looks whether another has kept them, and has the records be indexed once more. No write
// of a record waits for that.

// embedded is the text of a record that becomes one vector: that of all fields, in the language of the records or in another.
type embedded struct {
	field index.Field
	lang  string   // "": the fields themselves
	paths []string // what it is made of
}

// embedsOf gives what is embedded of records.
func embedsOf(c *search.Config) (out []embedded) {
	own := embedded{}
	for _, f := range c.Fields {
		own.paths = append(own.paths, f.Path)
	}
	out = append(out, own)
	for _, f := range c.Fields {
		for _, lang := range f.Translations {
			i := slices.IndexFunc(out, func(e embedded) bool { return e.lang == lang })
			if i < 0 {
				i = len(out)
				out = append(out, embedded{index.Field(i), lang, slices.Clone(own.paths)}) //nolint:gosec // configs are bounded
			}
			out[i].paths = append(out[i].paths, fieldtype.I18n+"."+lang+"."+f.Path)
		}
	}
	return out
}

// visible says whether a caller may see all that is embedded: a vector can't be taken apart.
func (e embedded) visible(hidden *document.PathSet) bool {
	return !slices.ContainsFunc(e.paths, hidden.Reaches)
}

// near gives what a caller looks into, the best first: what is embedded in their language, and where a record has nothing in that, its
// own.
func (b *bound) near(lang string, hidden *document.PathSet) (out []index.Field) {
	for _, e := range b.embeds {
		if (e.lang == "" || e.lang == lang) && e.visible(hidden) {
			out = append(out, e.field)
		}
	}
	if len(out) == 0 || out[0] != b.embeds[0].field { // a translation stands for the fields themselves where there is none
		return nil
	}
	slices.Reverse(out)
	return out
}

// embedTexts gives what is embedded of a record: texts that say something.
func (b *bound) embedTexts(doc bson.Raw, said saying) map[index.Field]string {
	out := map[index.Field]string{}
	if b.script != nil {
		for _, e := range b.embeds {
			text := strings.TrimSpace(strings.Join(said.texts[e.lang], "\n"))
			if text != "" && text != out[b.embeds[0].field] { // which stands for what has none of its own
				out[e.field] = text
			}
		}
		return out
	}
	for _, e := range b.embeds {
		if e.lang != "" {
			if _, err := doc.LookupErr(fieldtype.I18n, e.lang); err != nil {
				continue
			}
		}
		var parts []string
		for _, f := range b.Fields {
			texts(doc, f.Path, e.lang, func(text string) { parts = append(parts, text) })
		}
		if text := strings.TrimSpace(strings.Join(parts, "\n")); text != "" {
			out[e.field] = text
		}
	}
	return out
}

// standingField is where an index of mode vector has which records have no vector, and why.
const standingField = math.MaxUint16 - 1

const (
	waitingTerm = "waiting"
	refusedTerm = "refused"
)

// vectorsFor gives what is known of the texts of records that are found by an index.
func (b *built) vectorsFor(ctx context.Context, how *bound, docs map[bson.ObjectID]bson.Raw, said map[bson.ObjectID]saying) (map[vectorKey]known, error) {
	if how.Mode != search.Vector {
		return nil, nil
	}
	var keys []vectorKey
	for id, doc := range docs {
		if how.Filter.Match(doc) {
			for _, text := range how.embedTexts(doc, said[id]) {
				keys = append(keys, newVectorKey(b.state.Form.Reference, text))
			}
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	kept, err := b.s.t.vectorsOf(ctx, keys)
	if g, groupErr := b.group(); err == nil && groupErr == nil && g.Dimensions() > 0 {
		maps.DeleteFunc(kept, func(_ vectorKey, one known) bool { // of a model that was replaced behind its name
			return one.vector.Dense != nil && len(one.vector.Dense) != g.Dimensions()
		})
	}
	return kept, err
}

// embed adds the vectors of a record to what becomes of it.
func (b *built) embed(c *index.Change, how *bound, doc bson.Raw, said saying, kept map[vectorKey]known) {
	standing := ""
	c.Fields, c.Vectors = map[index.Field][]index.Token{}, map[index.Field][]float32{}
	for field, text := range how.embedTexts(doc, said) {
		switch one, ok := kept[newVectorKey(b.state.Form.Reference, text)]; {
		case !ok:
			standing = waitingTerm
		case one.refused && standing == "":
			standing = refusedTerm
		case one.refused:
		case one.vector.Sparse != nil:
			c.Fields[field] = index.Weights(ofLengthOne(one.vector.Sparse))
		default:
			c.Vectors[field] = one.vector.Dense
		}
	}
	if standing != "" {
		c.Fields[standingField] = []index.Token{{Term: standing}}
	}
}

// ofLengthOne gives a sparse vector of length 1, so that products with another such are cosines.
func ofLengthOne(v map[string]float32) map[string]float32 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	out := make(map[string]float32, len(v))
	for token, x := range v {
		out[token] = float32(float64(x) / math.Sqrt(sum))
	}
	return out
}

// standing is which records of an index have no vector.
type standing struct {
	mu      sync.Mutex
	waiting map[bson.ObjectID]bool // true: their vectors are kept, and they are about to be indexed once more
	idle    int                    // of waiting, those that are false
	refused map[bson.ObjectID]bool
	since   time.Time // that some have been waiting
	now     func() time.Time
	failed  error         // of the last try to get vectors; nil: it went well
	wake    func()        // whoever gets vectors; nil: nobody does yet
	change  chan struct{} // closed at each change
}

func newStanding(now func() time.Time) *standing {
	return &standing{
		now: now, waiting: map[bson.ObjectID]bool{}, refused: map[bson.ObjectID]bool{}, change: make(chan struct{}),
	}
}

// note takes in how records stand that were indexed.
func (s *standing) note(changes []index.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range changes {
		id := bson.ObjectID(changes[i].ID)
		s.forget(id)
		delete(s.refused, id)
		if changes[i].Gone || len(changes[i].Fields[standingField]) == 0 {
			continue
		}
		if changes[i].Fields[standingField][0].Term == refusedTerm {
			s.refused[id] = true
		} else {
			s.wait(id)
		}
	}
	s.changed()
}

// wait and forget need s.mu.
func (s *standing) wait(id bson.ObjectID) {
	s.forget(id)
	if len(s.waiting) == 0 {
		s.since = s.now()
	}
	s.waiting[id] = false
	s.idle++
}

func (s *standing) forget(id bson.ObjectID) {
	if indexing, ok := s.waiting[id]; ok && !indexing {
		s.idle--
	}
	delete(s.waiting, id)
}

// changed tells whoever waits. The caller holds s.mu.
func (s *standing) changed() {
	if s.idle > 0 && s.wake != nil {
		s.wake()
	}
	close(s.change)
	s.change = make(chan struct{})
}

// sample gives up to n records that wait for somebody to see to them.
func (s *standing) sample(n int) []bson.ObjectID {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]bson.ObjectID, 0, min(n, s.idle))
	for id, indexing := range s.waiting {
		if len(out) == min(n, s.idle) {
			break
		}
		if !indexing {
			out = append(out, id)
		}
	}
	return out
}

// indexing notes that records are about to be indexed once more.
func (s *standing) indexing(ids []bson.ObjectID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if indexing, ok := s.waiting[id]; ok && !indexing {
			s.waiting[id] = true
			s.idle--
		}
	}
}

// counts gives how many records wait for a vector, and for how many there will be none, the error of the last try, and since when.
func (s *standing) counts() (waiting, refused int, since time.Time, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting), len(s.refused), s.since, s.failed
}

// left gives how many records wait, and a channel that is closed when that changes.
func (s *standing) left() (waiting int, change <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting), s.change
}

func (s *standing) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err
}

// restore finds out which records wait in an index that was there before.
func (b *built) restore(ctx context.Context) error {
	s := b.standing
	s.mu.Lock()
	defer s.mu.Unlock()
	err := eachMarked(ctx, b.ix, standingField, []string{waitingTerm, refusedTerm}, s.wait)
	s.changed()
	return err
}

// How vectors are got.
const (
	recordsAtOnce = 128             // whose vectors are asked for together
	lookEvery     = time.Second     // for vectors that another instance keeps
	leaseTime     = 5 * time.Second // that another takes over after
	lingering     = 5 * time.Second // for which the lease is kept when nothing waits
)

// embedder gets the vectors of one reference for the indexes of a project: one instance at a time does.
type embedder struct {
	t     *tenant
	lease string
	some  chan struct{} // has something when records may wait

	mu  sync.Mutex
	all []*built
}

// embedder gives that of a reference.
func (t *tenant) embedder(reference string) *embedder {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.embedders[reference]
	if e == nil {
		e = &embedder{t: t, lease: "vectors " + printOf(reference), some: make(chan struct{}, 1)}
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
	for wait := firstRetry; ; {
		_, missing, err := e.missing(ctx)
		if err == nil && missing != nil {
			err = e.t.asOnlyOne(ctx, e.lease, leaseTime, e.compute)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			wait = firstRetry
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
		sleep(ctx, max(wait, min(errs.From(err).RetryAfter, longestRetry)))
		wait = min(2*wait, longestRetry)
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
			err = e.t.ask(ctx, group, missing)
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
		slices.SortFunc(ids, func(a, b bson.ObjectID) int { return bytes.Compare(a[:], b[:]) })
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

// ask asks a group for the vectors of texts, and keeps them. Of texts among which one is refused it asks for halves, until it is known
// which one that is.
func (t *tenant) ask(ctx context.Context, group *embedding.Group, missing map[vectorKey]string) error {
	keys := slices.Sorted(maps.Keys(missing))
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = missing[k]
	}
	vectors, err := group.Documents(ctx, list)
	refused := err != nil && errs.From(err).Code == embedding.CodeRefused
	if refused && len(keys) > 1 {
		half := make(map[vectorKey]string, len(keys)/2)
		for _, k := range keys[:len(keys)/2] {
			half[k] = missing[k]
			delete(missing, k)
		}
		if err := t.ask(ctx, group, half); err != nil {
			return err
		}
		return t.ask(ctx, group, missing)
	}
	if err != nil && !refused {
		return err
	}
	out := make(map[vectorKey]known, len(keys))
	for i, k := range keys {
		if refused || vectors[i].IsZero() {
			out[k] = known{refused: true}
		} else {
			out[k] = known{vector: vectors[i]}
		}
	}
	return t.keep(ctx, out)
}
