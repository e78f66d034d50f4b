package index

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"iter"
	"math"
	"math/bits"
	"slices"
	"sync"
	"time"
)

// How a Group counts.
const (
	Should  Occur = iota // records that match have a better score
	Must                 // others are left out
	MustNot              // those that match are left out
)

// Occur is how a Group counts.
type Occur uint8

// A Query is what to look for.
type Query struct {
	Groups []Group // MaxGroups at most
	// AtLeast is how many groups of kind Should a record matches. 0 is 1, or none if a group is of kind Must.
	AtLeast  int
	Recency  *Recency // nil: how old records are makes no difference
	MinScore float32
}

// A Group is one thing to look for, in one or more fields. Its score is the sum of its leaves' scores.
type Group struct {
	Occur  Occur
	Leaves []Leaf
}

// A Leaf is a term, or several that count as one, or a phrase, in one field.
type Leaf struct {
	Field  Field
	Terms  []string // each once, but for a phrase
	Phrase []uint32 // the places of the Terms from the first on, which is 0; nil: any of the Terms
	Boost  float32
	Tag    string // of who asks, for Explain
}

// Recency gives new records a better score: it is multiplied with 1 + Weight * 0.5^(age / HalfLife). The age is Now less the record's
// value, in milliseconds; a value in the future is as old as Now, so that a date far ahead is worth no more than one of today. A
// record without a value keeps its score, as a very old one does.
type Recency struct {
	Field    Field
	Now      time.Time
	HalfLife time.Duration // more than 0
	Weight   float32
}

// of gives what the score of a record is multiplied with.
func (r *Recency) of(values []int64, number uint32) float32 {
	at, ok := valueOf(values, number)
	if !ok {
		return 1
	}
	age := max(0, float64(r.Now.UnixMilli())-float64(at))
	return 1 + r.Weight*float32(math.Exp2(-age/(float64(r.HalfLife)/float64(time.Millisecond))))
}

// Of gives what the score of a record is multiplied with; 1 if r is nil.
func (r *Recency) Of(v *View, number uint32) float64 {
	if r == nil {
		return 1
	}
	return float64(r.of(v.values[r.Field], number))
}

// A Hit is a record that has been found.
type Hit struct {
	Number uint32
	ID     []byte // not to be changed
	Score  float32
}

// Constants of BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009).
const (
	k1 = 1.2
	b  = 0.75
)

// scratch is memory of a search, by numbers of records.
type scratch struct {
	scores  []float32
	groups  []uint64 // that the record has matched, unless the query is plain
	plain   bool
	touched []uint32
	list    []posting
}

var scratches = sync.Pool{New: func() any { return &scratch{} }} //nolint:gochecknoglobals // memory that is used again

// MaxGroups is what a Query may have.
const MaxGroups = 64

// Matches are the records that a query has found. They are not safe for concurrent use, and have to be released before the View is
// closed.
type Matches struct {
	v     *View
	sc    *scratch
	ahead []Hit // that Next gives next
	given int
	last  Hit // of those that were looked for ahead
}

// Search finds records.
func (v *View) Search(ctx context.Context, q Query) (*Matches, error) {
	if len(q.Groups) > MaxGroups {
		return nil, errors.New("a query has too many groups")
	}
	if q.Recency != nil && q.Recency.HalfLife <= 0 {
		return nil, errors.New("the half-life of a query has to be more than 0")
	}
	m := v.matches()
	sc := m.sc
	if sc.plain = q.plain(); sc.plain {
		for _, g := range q.Groups {
			for _, l := range g.Leaves {
				if err := v.leafAlone(ctx, sc, l); err != nil {
					m.Release()
					return nil, v.ix.disk.fail(err)
				}
			}
		}
		return m, nil
	}
	var must, mustNot, should uint64
	for i, g := range q.Groups {
		bit := uint64(1) << i
		switch g.Occur {
		case Must:
			must |= bit
		case MustNot:
			mustNot |= bit
		case Should:
			should |= bit
		}
		for _, l := range g.Leaves {
			if err := v.leaf(ctx, sc, l, bit, g.Occur != MustNot); err != nil {
				m.Release()
				return nil, v.ix.disk.fail(err)
			}
		}
	}
	atLeast := q.AtLeast
	if atLeast == 0 && must == 0 {
		atLeast = 1
	}
	var dates []int64
	if q.Recency != nil {
		dates = v.values[q.Recency.Field]
	}
	m.keep(func(number uint32) bool {
		got := sc.groups[number]
		if got&must != must || got&mustNot != 0 || bits.OnesCount64(got&should) < atLeast {
			return false
		}
		if q.Recency != nil {
			sc.scores[number] *= q.Recency.of(dates, number)
		}
		return sc.scores[number] >= q.MinScore
	})
	return m, nil
}

// leastBoost is what a Leaf counts for at least whose scores are never too small to be more than 0.
const leastBoost = 1e-6

// plain says whether everything is found that has a score, whatever groups it matches: no other query is as frequent.
func (q *Query) plain() bool {
	if q.AtLeast > 1 || q.Recency != nil || q.MinScore > 0 {
		return false
	}
	for _, g := range q.Groups {
		if g.Occur != Should || slices.ContainsFunc(g.Leaves, func(l Leaf) bool { return !(l.Boost >= leastBoost) }) {
			return false
		}
	}
	return true
}

// matches gives Matches of nothing yet.
func (v *View) matches() *Matches {
	sc := scratches.Get().(*scratch) //nolint:errcheck // nothing else is put in
	if n := int(v.next); len(sc.scores) < n {
		sc.scores, sc.groups = make([]float32, n+n/4), make([]uint64, n+n/4)
	}
	return &Matches{v: v, sc: sc}
}

// leaf adds the scores of a leaf.
func (v *View) leaf(ctx context.Context, sc *scratch, l Leaf, bit uint64, scored bool) error {
	var err error
	if sc.list, err = v.matching(ctx, sc.list[:0], l); err != nil || len(sc.list) == 0 {
		return err
	}
	w := v.weigh(l, len(sc.list))
	for _, p := range sc.list {
		if sc.groups[p.number] == 0 {
			sc.touched = append(sc.touched, p.number)
		}
		sc.groups[p.number] |= bit
		if scored {
			sc.scores[p.number] += w.score(p)
		}
	}
	return nil
}

// leafAlone is leaf of a plain query: a record that has no score yet was not found yet.
func (v *View) leafAlone(ctx context.Context, sc *scratch, l Leaf) error {
	var err error
	if sc.list, err = v.matching(ctx, sc.list[:0], l); err != nil || len(sc.list) == 0 {
		return err
	}
	w, scores, touched := v.weigh(l, len(sc.list)), sc.scores, sc.touched
	for _, p := range sc.list {
		old := scores[p.number]
		if old == 0 {
			touched = append(touched, p.number)
		}
		scores[p.number] = old + w.score(p)
	}
	sc.touched = touched
	return nil
}

// matching appends who matches a leaf, and how often.
func (v *View) matching(ctx context.Context, dst []posting, l Leaf) (_ []posting, err error) {
	if l.Phrase != nil && len(l.Terms) > 0 {
		return v.phrase(ctx, dst, l)
	}
	for _, t := range l.Terms {
		if err := step(ctx); err != nil {
			return dst, err
		}
		if dst, err = v.postings(dst, l.Field, t); err != nil {
			return dst, err
		}
	}
	if len(l.Terms) > 1 {
		dst = union(dst)
	}
	return dst, nil
}

// weight is what the scores of a leaf are made with.
type weight struct {
	whole   float32 // what no score is more than
	perTerm float32
	lengths []uint16
}

// weigh gives the weight of a leaf that so many records match.
func (v *View) weigh(l Leaf, found int) weight {
	n := v.totals.fields[l.Field]
	df := float64(found)
	return weight{
		whole:   l.Boost * (k1 + 1) * float32(math.Log(1+(float64(n.records)-df+0.5)/(df+0.5))),
		perTerm: float32(k1 * b * float64(n.records) / max(1, float64(n.terms))),
		lengths: v.lengths[l.Field],
	}
}

func (w weight) score(p posting) float32 {
	length := float32(0)
	if int(p.number) < len(w.lengths) {
		length = float32(w.lengths[p.number])
	}
	tf := float32(p.count)
	return w.whole * tf / (tf + k1*(1-b) + w.perTerm*length)
}

// union makes one list of several.
func union(list []posting) []posting {
	slices.SortFunc(list, func(a, b posting) int { return int(int64(a.number) - int64(b.number)) })
	out := list[:0]
	for _, p := range list {
		if last := len(out) - 1; last >= 0 && out[last].number == p.number {
			out[last].count += p.count
		} else {
			out = append(out, p)
		}
	}
	return out
}

// keep leaves those of the matches that f says yes to.
func (m *Matches) keep(f func(number uint32) bool) {
	kept := m.sc.touched[:0]
	for _, number := range m.sc.touched {
		if f(number) {
			kept = append(kept, number)
		} else {
			m.sc.scores[number], m.sc.groups[number] = 0, 0
		}
	}
	m.sc.touched = kept
}

// Release gives memory back. The Matches must not be used any more.
func (m *Matches) Release() {
	if sc := m.sc; len(sc.touched) > len(sc.scores)/8 {
		clear(sc.scores)
		if !sc.plain {
			clear(sc.groups)
		}
		sc.touched = sc.touched[:0]
	} else {
		m.keep(func(uint32) bool { return false })
	}
	m.sc.plain = false
	scratches.Put(m.sc)
	m.sc = nil
}

// Len is how many records were found.
func (m *Matches) Len() int { return len(m.sc.touched) }

// All gives what was found in no order.
func (m *Matches) All() iter.Seq[Hit] {
	return func(yield func(Hit) bool) {
		for _, number := range m.sc.touched {
			if !yield(m.hit(number)) {
				return
			}
		}
	}
}

func (m *Matches) hit(number uint32) Hit { return Hit{number, m.v.ids.of(number), m.sc.scores[number]} }

// Top gives the best hits, those with the same score by their ids.
func (m *Matches) Top(limit int) []Hit { return m.best(limit, nil) }

// Rewind has Next begin with the best again.
func (m *Matches) Rewind() { m.ahead, m.given = nil, 0 }

// Next gives the next hits in the order of Top, from the best on; fewer than n only at the end. What was given costs nothing again, and
// the cost grows with what is asked for, not with what was found, much.
func (m *Matches) Next(n int) []Hit {
	var out []Hit
	for len(out) < n {
		if len(m.ahead) == 0 {
			var behind *Hit
			if m.given > 0 {
				behind = &m.last
			}
			// Each time that there are not enough of them, there is more to look for.
			if m.ahead = m.best(max(n-len(out), 2*m.given, 32), behind); len(m.ahead) == 0 {
				break
			}
			m.given += len(m.ahead)
			m.last = m.ahead[len(m.ahead)-1]
		}
		k := min(n-len(out), len(m.ahead))
		out, m.ahead = append(out, m.ahead[:k]...), m.ahead[k:]
	}
	return out
}

// best gives the best hits of those that come behind one.
func (m *Matches) best(limit int, behind *Hit) []Hit {
	limit = min(limit, len(m.sc.touched))
	if limit <= 0 {
		return nil
	}
	best := make(worstFirst, 0, limit)
	for _, number := range m.sc.touched {
		s := m.sc.scores[number]
		if len(best) == limit && s < best[0].Score || behind != nil && s > behind.Score {
			continue
		}
		h := m.hit(number)
		if behind != nil && byScore(h, *behind) <= 0 {
			continue
		}
		best.offer(h, limit)
	}
	slices.SortFunc(best, byScore)
	return best
}

// byScore puts the best first, and of those with the same score the least id.
func byScore(a, b Hit) int {
	switch {
	case a.Score > b.Score:
		return -1
	case a.Score < b.Score:
		return 1
	}
	return bytes.Compare(a.ID, b.ID)
}

// worstFirst is a heap of the best hits.
type worstFirst []Hit

// offer takes in a hit if it is one of the best.
func (h *worstFirst) offer(hit Hit, limit int) {
	switch {
	case len(*h) < limit:
		heap.Push(h, hit)
	case byScore(hit, (*h)[0]) < 0:
		(*h)[0] = hit
		heap.Fix(h, 0)
	}
}

func (h worstFirst) Len() int           { return len(h) }
func (h worstFirst) Less(i, j int) bool { return byScore(h[i], h[j]) > 0 }
func (h worstFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *worstFirst) Push(x any)        { *h = append(*h, x.(Hit)) } //nolint:errcheck // nothing else is pushed

// Pop is never called: heap.Fix and heap.Push don't.
func (h *worstFirst) Pop() any { return nil }
