package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/search/index"
	"github.com/svcctl/svc/pkg/store"
)

// Query is what a caller looks for.
type Query struct {
	Project    *project.Project
	Collection *project.Collection
	Search     *search.Config    // of the collection; its mode is not regex
	Text       string            // as they wrote it
	Words      []search.Word     // of Text
	Lang       string            // the language that the caller reads in; "": the fields themselves
	Hidden     *document.PathSet // what they may not see
	Filter     *mql.Filter       // the records that they may see; nil: all. Scores are as if there were no others
	Now        time.Time         // what the time of now is in Filter; a zero one is in none
	// Accept gives those of some ids that the caller wants; nil: all. Only they count among the TopK of the sources of an rrf.
	Accept func(ctx context.Context, ids []bson.ObjectID) ([]bson.ObjectID, error)
	// TopK is how many of each source of an rrf count; 0: what the config says, negative: all.
	TopK int
}

// Hit is a record that was found.
type Hit struct {
	ID    bson.ObjectID
	Score float64
	// Sources say, of an rrf, where it was found, in the order of the config.
	Sources []Share

	number uint32 // of the index, but of an rrf
}

// Share is what a source of an rrf has given to a score.
type Share struct {
	Search string
	Rank   int // from 1 on
	Score  float64
	Share  float64
}

// Results are what a query has found, the best first. They have to be closed, and are not safe for concurrent use.
type Results struct {
	found []*matches // one for each source
	fused []Hit      // of an rrf
	given int
	cut   bool // a source of an rrf has found more than its topK
}

// matches are what one index has found.
type matches struct {
	how     *bound
	asked   *asked
	view    *index.View
	matches *index.Matches
}

func (m *matches) close() error {
	if m.matches != nil {
		m.matches.Release()
	}
	return m.view.Close()
}

// Search looks for records. It waits for an index that is being made as long as ctx lasts, though not longer than a moment:
// ErrBuilding then.
func (e *Engine) Search(ctx context.Context, q Query) (*Results, error) {
	began := time.Now()
	defer func() { e.metrics.seconds.WithLabelValues(string(q.Search.Mode)).Observe(time.Since(began).Seconds()) }()
	s, err := e.shelf(q.Project, q.Collection)
	if err != nil {
		return nil, err
	}
	r := &Results{}
	if q.Search.Mode != search.RRF {
		m, err := s.search(ctx, q, q.Search)
		if err != nil {
			return nil, err
		}
		r.found = []*matches{m}
		return r, nil
	}
	if err := r.fuse(ctx, s, q); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// search asks the index of a search, and the next one if that has taken its place meanwhile.
func (s *shelf) search(ctx context.Context, q Query, config *search.Config) (*matches, error) {
	if p := store.PaceOf(ctx); p != nil {
		p.Leave() // what follows may wait for others
	}
	var before *built
	for again := false; ; {
		b, err := s.ready(ctx, config.Name)
		if err != nil {
			return nil, err
		}
		m, err := s.ask(ctx, b, q)
		switch {
		case errors.Is(err, index.ErrDropped):
			if s.ctx.Err() != nil || ctx.Err() != nil { // no other takes its place: the shelf has ended
				return nil, ErrBuilding.With(err)
			}
			if b == before {
				sleep(ctx, takeoverLook)
			}
			before = b
			continue
		case errors.Is(err, index.ErrClosed):
			return nil, errClosed
		}
		s.t.e.renew(err)
		if !errors.Is(err, index.ErrDamaged) {
			return m, err
		}
		if again {
			return nil, ErrBuilding.With(err)
		}
		again = true
	}
}

// takeoverLook is how long a search waits before it looks again whether another index has taken the place of one that was dropped.
const takeoverLook = 5 * time.Millisecond

func (s *shelf) ask(ctx context.Context, b *built, q Query) (m *matches, err error) {
	if how := b.bound.Load(); how.Mode == search.Vector {
		return s.near(ctx, b, how, q)
	}
	view, err := b.view(ctx, q)
	if err != nil {
		return nil, err
	}
	m = &matches{how: b.bound.Load(), view: view}
	if !m.how.isOf(q) {
		return nil, errors.Join(ErrBuilding, m.close())
	}
	ctx = byPace(ctx)
	if m.asked, err = m.how.ask(ctx, view, q.Words, q.Lang, q.Hidden, s.t.e.o.Now()); err == nil {
		m.matches, err = view.Search(ctx, m.asked.query)
	}
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// isOf says whether fields have the names that they have for a query, as is so but for one that began before some were renamed: that would
// look into fields that it does not know of.
func (b *bound) isOf(q Query) bool { return b.names.Equal(q.Collection.FieldNames) }

// byPace has what an index does go by the pace of the reads with the context.
func byPace(ctx context.Context) context.Context {
	if p := store.PaceOf(ctx); p != nil {
		return index.WithStep(ctx, p.Step)
	}
	return ctx
}

// ready gives the index that answers a search.
func (s *shelf) ready(ctx context.Context, name string) (*built, error) {
	s.mu.Lock()
	one := s.searches[name]
	var live, next *built
	if one != nil {
		live, next = one.live, one.next
	}
	s.mu.Unlock()
	switch {
	case live != nil:
		return live, nil
	case next == nil:
		return nil, ErrBuilding
	}
	ctx, cancel := context.WithTimeout(ctx, momentForBuilding)
	defer cancel()
	select {
	case <-next.finished:
	case <-ctx.Done():
		return nil, ErrBuilding
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.live == nil {
		return nil, ErrBuilding
	}
	return one.live, nil
}

// view gives the records of an index that a query's filter lets through, which may have the time of now in it; nil: all. It is ErrBuilding for a query
// that does not have the names of fields that the index is searched by: while these become others, a set of the same filter may be of the fields of before.
func (b *built) view(ctx context.Context, q Query) (*index.View, error) {
	b.s.mu.Lock() // behind become, not amidst
	known := b.bound.Load().isOf(q)
	b.s.mu.Unlock()
	if !known {
		return nil, ErrBuilding
	}
	if q.Filter == nil {
		return b.ix.View()
	}
	if m := movingOf(q.Filter, q.Now); m != nil { // else all of it stays as it is
		return b.viewMoving(ctx, q, m)
	}
	return b.ix.ViewSet(ctx, setName(q.Filter), q.Filter, b.fill(q, nil))
}

func setName(f *mql.Filter) string {
	sum := sha256.Sum256(f.Raw())
	return string(sum[:])
}

// Close ends what the results hold.
func (r *Results) Close() error {
	var all []error
	for _, m := range r.found {
		all = append(all, m.close())
	}
	return errors.Join(all...)
}

// Rewind has Next begin with the best again.
func (r *Results) Rewind() {
	r.given = 0
	if r.fused == nil {
		r.found[0].matches.Rewind()
	}
}

// Cut says that the sources of an rrf have found more than counts.
func (r *Results) Cut() bool { return r.cut }

// Len is how many records were found.
func (r *Results) Len() int {
	if r.fused != nil {
		return len(r.fused)
	}
	return r.found[0].matches.Len()
}

// Next gives the next n records, fewer only at the end.
func (r *Results) Next(n int) []Hit {
	from := r.given
	if r.fused != nil {
		to := min(from+n, len(r.fused))
		r.given = to
		return r.fused[from:to]
	}
	return r.found[0].next(n)
}

func (m *matches) next(n int) []Hit {
	hits := m.matches.Next(n)
	out := make([]Hit, 0, len(hits))
	for _, h := range hits {
		if len(h.ID) == len(bson.ObjectID{}) {
			out = append(out, Hit{ID: bson.ObjectID(h.ID), Score: float64(h.Score), number: h.Number})
		}
	}
	return out
}

// fuse ranks what the sources of an rrf have found: 1/(k+rank) of each, by its weight (Cormack, Clarke and Büttcher, 2009).
func (r *Results) fuse(ctx context.Context, s *shelf, q Query) error {
	topK := cmp.Or(q.TopK, q.Search.TopK)
	hits := map[bson.ObjectID]*Hit{}
	for _, source := range q.Search.Sources {
		m, err := s.search(ctx, q, q.Collection.Search(source.Name))
		if errors.Is(err, ErrNothingToSearch) { // the caller sees none of its fields
			continue
		}
		if err != nil {
			return err
		}
		r.found = append(r.found, m)
		ranked, more, err := m.ranked(ctx, q, topK)
		if err != nil {
			return err
		}
		r.cut = r.cut || more
		for i, h := range ranked {
			hit := hits[h.ID]
			if hit == nil {
				hit = &Hit{ID: h.ID}
				hits[h.ID] = hit
			}
			share := source.Weight / float64(q.Search.K+i+1)
			hit.Score += share
			hit.Sources = append(hit.Sources, Share{Search: source.Name, Rank: i + 1, Score: h.Score, Share: share})
		}
	}
	if len(r.found) == 0 {
		return ErrNothingToSearch
	}
	r.fused = make([]Hit, 0, len(hits))
	for _, h := range hits {
		r.fused = append(r.fused, *h)
	}
	slices.SortFunc(r.fused, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), slices.Compare(a.ID[:], b.ID[:]))
	})
	return nil
}

// ranked gives the best topK of those that the caller wants, all of them if it is negative, and whether there are more.
func (m *matches) ranked(ctx context.Context, q Query, topK int) (out []Hit, more bool, err error) {
	if topK < 0 {
		topK = m.matches.Len()
	}
	if q.Accept == nil {
		return m.next(topK), m.matches.Len() > topK, nil
	}
	for n := topK; len(out) <= topK; n = min(2*n, mostAtOnce) {
		hits := m.next(n)
		if len(hits) == 0 {
			break
		}
		ids := make([]bson.ObjectID, len(hits))
		for i, h := range hits {
			ids[i] = h.ID
		}
		accepted, err := q.Accept(ctx, ids)
		if err != nil {
			return nil, false, err
		}
		wanted := make(map[bson.ObjectID]bool, len(accepted))
		for _, id := range accepted {
			wanted[id] = true
		}
		for _, h := range hits {
			if wanted[h.ID] {
				out = append(out, h)
			}
		}
	}
	return out[:min(topK, len(out))], len(out) > topK, nil
}

// mostAtOnce bounds how many ids Accept is asked for at once.
const mostAtOnce = 4096
