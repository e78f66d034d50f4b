package engine

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/search/index"
)

// queryPatience is how long a search waits for the vector of its words: a group whose members are slow has more of them asked by then.
const queryPatience = 10 * time.Second

// reference is that of the vectors that a search of mode vector has from now on; "": its group is not in the settings.
func (e *Engine) reference(c *search.Config) string {
	if c.Mode != search.Vector {
		return ""
	}
	g, err := e.o.Groups.Group(c.Group)
	if err != nil {
		return ""
	}
	return g.Reference()
}

// answers says whether there is a group for the vectors of the index.
func (b *built) answers() bool {
	_, err := b.group()
	return err == nil && !b.outgrown()
}

// outgrown says that the group of an index gives vectors of another length by now: its model was replaced behind the name that it had.
func (b *built) outgrown() bool {
	g, err := b.group()
	had := b.ix.Dimensions()
	return err == nil && had > 0 && g.Dimensions() > 0 && had != g.Dimensions()
}

// alike leaves out vectors that can't be compared with those that the index has: it is outgrown.
func (b *built) alike(changes []index.Change) {
	had := b.ix.Dimensions()
	for i := range changes {
		maps.DeleteFunc(changes[i].Vectors, func(_ index.Field, v []float32) bool {
			if had == 0 {
				had = len(v)
			}
			return len(v) != had
		})
	}
}

// near asks an index of mode vector.
func (s *shelf) near(ctx context.Context, b *built, how *bound, q Query) (*matches, error) {
	if !how.isOf(q) {
		return nil, ErrBuilding
	}
	fields := how.near(q.Lang, q.Hidden)
	if len(fields) == 0 {
		return nil, ErrNothingToSearch
	}
	vector, err := s.vectorOf(ctx, b, search.Plain(q.Text, q.Words))
	if err != nil {
		return nil, err
	}
	if b.outgrown() {
		s.renewWorn()
		return nil, ErrBuilding
	}
	near := index.Near{Fields: fields, To: vector.Dense, MinScore: float32(how.MinScore), Recency: how.recency(q.Hidden, s.t.e.o.Now())}
	if vector.Sparse != nil {
		near.Tokens = ofLengthOne(vector.Sparse)
	}
	view, err := b.view(ctx, q)
	if err != nil {
		return nil, err
	}
	m := &matches{how: how, asked: &asked{query: index.Query{Recency: near.Recency}}, view: view}
	if !b.bound.Load().isOf(q) { // meanwhile
		return nil, errors.Join(ErrBuilding, m.close())
	}
	if m.matches, err = view.Near(byPace(ctx), near); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// vectorOf gives the vector of what is looked for.
func (s *shelf) vectorOf(ctx context.Context, b *built, text string) (embedding.Vector, error) {
	group, err := b.group()
	if err != nil {
		return embedding.Vector{}, err
	}
	key := group.Reference() + "\x00" + text
	if v, ok := s.t.e.asked.get(key); ok {
		return v, nil
	}
	ctx, cancel := context.WithTimeout(ctx, queryPatience)
	defer cancel()
	v, err := group.Query(ctx, text)
	if err == nil {
		s.t.e.asked.put(key, v)
	}
	return v, err
}

// recall keeps the vectors of what was looked for last: pages, counts and facets ask for the same again. It is safe for concurrent use.
type recall struct {
	mu       sync.Mutex
	new, old map[string]embedding.Vector
}

// recalled is how many of them there are at least, once there were so many.
const recalled = 1000

func (r *recall) get(key string) (embedding.Vector, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.new[key]
	if !ok {
		if v, ok = r.old[key]; ok {
			r.set(key, v)
		}
	}
	return v, ok
}

func (r *recall) put(key string, v embedding.Vector) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(key, v)
}

func (r *recall) set(key string, v embedding.Vector) {
	if r.new == nil || len(r.new) >= recalled {
		r.new, r.old = make(map[string]embedding.Vector, recalled), r.new
	}
	r.new[key] = v
}
