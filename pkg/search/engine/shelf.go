package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/search"
)

// shelf has the indexes of a collection. One goroutine takes in what has changed.
type shelf struct {
	t      *tenant
	stored string // the name that the store has for the collection
	wake   chan struct{}
	stop   context.CancelFunc
	ctx    context.Context //nolint:containedctx // of its goroutines; end ends them
	work   sync.WaitGroup

	mu         sync.Mutex
	ended      bool
	project    *project.Project
	collection *project.Collection
	searches   map[string]*searched // by name
	dirty      map[bson.ObjectID]task
	given      int                    // bytes of the records in there
	behind     map[bson.ObjectID]bool // what the feed has told of in this moment
	moved      bool                   // the feed has told of something in this moment
	since      time.Time              // of the oldest that is dirty
	inFlight   int
	at         *stamp // all up to here is in dirty or behind, or done
	waiting    []chan struct{}
	failed     map[bson.ObjectID]error
	lastError  error
	recent     map[bson.ObjectID]int64 // see written.go
	told       [lately]telling         // what the feed told of last: the nth stands at n%lately
	tellings   uint64                  // of how many versions the feed has told
	era        uint64                  // grows when what was handed over can't be trusted any more
	troubled   chan struct{}           // closed while indexing fails
	followed   chan struct{}           // closed while the feed tells of changes
}

// searched is one search: what answers, and what will.
type searched struct {
	config *search.Config
	live   *built // nil: none is complete
	next   *built // being made; nil: none is
	stale  bool   // live is of another config, and nobody has asked for a new one
}

func newShelf(t *tenant, stored string) *shelf {
	s := &shelf{
		t: t, stored: stored, wake: make(chan struct{}, 1), searches: map[string]*searched{},
		dirty: map[bson.ObjectID]task{}, behind: map[bson.ObjectID]bool{}, failed: map[bson.ObjectID]error{},
		recent: map[bson.ObjectID]int64{}, followed: make(chan struct{}), troubled: make(chan struct{}),
	}
	s.ctx, s.stop = context.WithCancel(t.e.ctx)
	s.goes(s.run)
	return s
}

// goes runs fn behind, unless the shelf has ended. The caller holds s.mu, or is the only one who has the shelf.
func (s *shelf) goes(fn func()) {
	if s.ended {
		return
	}
	s.work.Add(1)
	if !s.t.e.goes(func() { defer s.work.Done(); fn() }) {
		s.work.Done()
	}
}

// end stops the shelf and drops its indexes.
func (s *shelf) end() error {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.stop()
	s.work.Wait()
	return s.t.e.drop(s.t.database, func(n indexName) bool { return n.stored == s.stored })
}

// indexes gives all, those that are being made, too.
func (s *shelf) indexes() []*built {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.both()
}

// receiving gives those that changes are taken in to: not those whose making has not begun, which reads all records as they are then,
// and to which a change of before, of which nothing is told later, could only be too old.
// The caller holds s.mu.
func (s *shelf) receiving() []*built {
	return slices.DeleteFunc(s.both(), func(b *built) bool { return !b.state.Complete && !b.begun })
}

func (s *shelf) both() (out []*built) {
	for _, one := range s.searches {
		for _, b := range []*built{one.live, one.next} {
			if b != nil {
				out = append(out, b)
			}
		}
	}
	return out
}

// oldest is the place of the index that is farthest behind; nil if none stands anywhere.
func (s *shelf) oldest() (oldest *stamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.both() {
		if b.at != nil && (oldest == nil || b.at.Count < oldest.Count) {
			oldest = b.at
		}
	}
	return oldest
}

// renewWorn has indexes be made anew in which most are versions of records that were replaced: these take room in memory and on the
// disk until then. One that is stale waits until somebody asks for a new one. Those that are outgrown don't answer, and wait for nobody.
func (s *shelf) renewWorn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.searches {
		if one.live == nil || one.next != nil {
			continue
		}
		dead, records := one.live.ix.Wear()
		worn := dead > max(int(s.t.e.worn.Load()), records) && !one.stale
		if !worn && !one.live.outgrown() {
			continue
		}
		if err := s.make(one); err != nil {
			s.lastError = err
		}
	}
}

// serve has the searches be those of a collection's config.
func (s *shelf) serve(p *project.Project, c *project.Collection) error {
	want := map[string]*search.Config{}
	for _, config := range c.Searches {
		if config.Mode.Indexed() {
			want[config.Name] = config
		}
	}
	s.become(p, c, want)
	var all []error
	for _, config := range want {
		all = append(all, s.declare(config))
	}
	s.mu.Lock()
	var gone []*built
	for name, one := range s.searches {
		if want[name] == nil {
			delete(s.searches, name)
			gone = append(gone, one.live, one.next)
		}
	}
	s.mu.Unlock()
	for _, b := range gone {
		all = append(all, s.discard(b))
	}
	return errors.Join(append(all, s.tidy())...)
}

// tidy drops indexes of the collection that are of no use any more. None is begun meanwhile, which would not be known to be of use.
func (s *shelf) tidy() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	keep := map[string]bool{}
	for _, b := range s.both() {
		keep[b.name.String()] = true
	}
	return s.t.e.drop(s.t.database, func(n indexName) bool { return n.stored == s.stored && !keep[n.String()] })
}

// become has records be read by the names that their fields have in a config from now on, and indexes be searched as that says, in one step: what is
// taken in meanwhile, by the one or the other, is taken in once more.
func (s *shelf) become(p *project.Project, c *project.Collection, want map[string]*search.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.project == p {
		return
	}
	renamed := s.project != nil && !s.collection.FieldNames.Equal(c.FieldNames)
	if s.project != nil {
		s.distrust() // fields may have other names
	}
	s.project, s.collection = p, c
	for name, one := range s.searches {
		if config := want[name]; config != nil {
			s.bind(one, config)
		}
	}
	if !renamed {
		return
	}
	for _, b := range s.both() {
		b.ix.ForgetSets() // filters mean other fields
	}
}

// bind has the indexes of a search be searched as a config says, and gives the fingerprint of that. The caller holds s.mu.
func (s *shelf) bind(one *searched, config *search.Config) (fingerprint string) {
	one.config = config
	fingerprint = s.fingerprint(config, one.live)
	for _, b := range []*built{one.live, one.next} {
		if b != nil {
			b.bind(config, s.collection, b.name.print == fingerprint)
			s.getVectors(b)
		}
	}
	return fingerprint
}

// discard ends the making of an index, if it is being made, and drops it.
func (s *shelf) discard(b *built) error {
	if b == nil {
		return nil
	}
	b.cancel()
	return s.t.e.db.Drop(b.name.String())
}

// declare has one search be as its config says.
func (s *shelf) declare(config *search.Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.searches[config.Name]
	if one == nil {
		one = &searched{}
		if err := s.load(config.Name, one); err != nil {
			return err
		}
		s.searches[config.Name] = one
	}
	fingerprint := s.bind(one, config)
	epoch := s.t.epoch(s.stored, config.Name)
	if one.next != nil && one.next.name.print == fingerprint && one.next.state.Epoch >= epoch {
		return nil
	}
	one.stale = false
	switch {
	case one.live == nil || one.live.state.Epoch < epoch:
	case one.live.name.print == fingerprint:
		return nil
	case !config.AutoRegenerate:
		one.stale = true
		return nil
	}
	return s.make(one)
}

// fingerprint tells what is in the index of a search apart. The caller holds s.mu.
func (s *shelf) fingerprint(c *search.Config, live *built) string {
	content := c.Fingerprint(s.collection.StoredField, s.project.FieldNames[s.collection.StoredName()])
	if c.Mode != search.Vector {
		return content
	}
	reference := s.t.e.reference(c)
	if reference == "" && live != nil && strings.HasPrefix(live.name.print, content+"-") { // the settings have no such group: it may come back
		return live.name.print
	}
	return content + "-" + printOf(reference)
}

// getVectors has somebody get the vectors of an index of mode vector. The caller holds s.mu.
func (s *shelf) getVectors(b *built) {
	if b.state.Form.Mode == search.Vector && !b.getting {
		b.getting = true
		s.t.embedder(b.state.Form.Reference).add(b)
	}
}

// load finds the index of a search that answered last. The caller holds s.mu.
func (s *shelf) load(name string, one *searched) error {
	for _, text := range s.t.e.db.Names() {
		n, ok := parseName(text)
		if !ok || n.database != s.t.database || n.stored != s.stored || n.search != name {
			continue
		}
		b, err := s.open(n)
		if err != nil {
			return err
		}
		if !b.state.Complete || one.live != nil && one.live.name.number > n.number {
			continue // serve drops it
		}
		one.live = b
		s.t.counted(b.at)
	}
	return nil
}

// open opens an index. The caller holds s.mu.
func (s *shelf) open(n indexName) (*built, error) {
	ix, err := s.t.e.db.Index(n.String())
	if err != nil {
		return nil, err
	}
	return newBuilt(s, n, ix)
}

// lose has all indexes be made anew, since the feed does not know any more what has changed.
func (s *shelf) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = nil
	if isClosed(s.followed) {
		s.followed = make(chan struct{})
	}
	for _, one := range s.searches {
		if one.live != nil {
			one.live.at = nil
		}
	}
	s.remake()
}

// replaced has all indexes be made anew, since the collection is another one.
func (s *shelf) replaced(at *stamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = at
	s.remake()
}

// remake has all indexes be made anew. What was handed over until then may be of a collection of before. The caller holds s.mu.
func (s *shelf) remake() {
	s.distrust()
	for _, one := range s.searches {
		if err := s.make(one); err != nil {
			s.lastError = err
		}
	}
}

// renew has all indexes be made anew, since those of before are gone.
func (s *shelf) renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.searches {
		for _, b := range []*built{one.live, one.next} {
			if b != nil {
				b.cancel()
			}
		}
		one.live, one.next = nil, nil
	}
	s.remake()
}

// following says that the feed tells of all changes behind a place.
func (s *shelf) following(at *stamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = at
	}
	for _, b := range s.both() {
		if b.at == nil {
			b.at = s.at
		}
	}
	if !isClosed(s.followed) {
		s.distrust() // nothing is told of what was written between what the feed had told of before and this place
		close(s.followed)
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
