package index

import (
	"bytes"
	"container/heap"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"sync"
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
	Groups []Group
	// AtLeast is how many groups of kind Should a record matches. 0 is 1, or none if a group is of kind Must.
	AtLeast  int
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
}

// A Hit is a record that has been found.
type Hit struct {
	Number uint32
	ID     []byte
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
	groups  []uint64 // that the record has matched
	touched []uint32
	list    []posting
}

var scratches = sync.Pool{New: func() any { return &scratch{} }} //nolint:gochecknoglobals // memory that is used again

// maxGroups is what a Query may have.
const maxGroups = 64

// Matches are the records that a query has found.
type Matches struct {
	v  *View
	sc *scratch
}

// Search finds records. The Matches have to be released.
func (v *View) Search(ctx context.Context, q Query) (*Matches, error) {
	sc := scratches.Get().(*scratch) //nolint:errcheck // nothing else is put in
	m := &Matches{v, sc}
	if n := int(v.next); len(sc.scores) < n {
		sc.scores, sc.groups = make([]float32, n+n/4), make([]uint64, n+n/4)
	}
	var must, mustNot, should uint64
	for i, g := range q.Groups[:min(len(q.Groups), maxGroups)] {
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
			if err := ctx.Err(); err != nil {
				m.Release()
				return nil, context.Cause(ctx)
			}
			if err := v.leaf(sc, l, bit, g.Occur != MustNot); err != nil {
				m.Release()
				return nil, err
			}
		}
	}
	atLeast := q.AtLeast
	if atLeast == 0 && must == 0 {
		atLeast = 1
	}
	m.keep(func(number uint32) bool {
		got := sc.groups[number]
		return got&must == must && got&mustNot == 0 && popcount(got&should) >= atLeast && sc.scores[number] >= q.MinScore
	})
	return m, nil
}

// leaf adds the scores of a leaf.
func (v *View) leaf(sc *scratch, l Leaf, bit uint64, scored bool) error {
	var err error
	sc.list = sc.list[:0]
	switch {
	case len(l.Terms) == 0:
		return nil
	case l.Phrase != nil:
		sc.list, err = v.phrase(sc.list, l)
	default:
		for _, t := range l.Terms {
			if sc.list, err = v.postings(sc.list, l.Field, t); err != nil {
				break
			}
		}
		if len(l.Terms) > 1 {
			sc.list = union(sc.list)
		}
	}
	if err != nil || len(sc.list) == 0 {
		return err
	}
	n := v.totals.fields[l.Field]
	df := float64(len(sc.list))
	weight := l.Boost * float32(math.Log(1+(float64(n.records)-df+0.5)/(df+0.5))) * (k1 + 1)
	perTerm := float32(k1 * b * float64(n.records) / float64(n.terms))
	lengths := v.lengths[l.Field]
	for _, p := range sc.list {
		if sc.groups[p.number] == 0 {
			sc.touched = append(sc.touched, p.number)
		}
		sc.groups[p.number] |= bit
		if scored {
			tf := float32(p.count)
			sc.scores[p.number] += weight * tf / (tf + k1*(1-b) + perTerm*float32(lengths[p.number]))
		}
	}
	return nil
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

func popcount(x uint64) int {
	n := 0
	for ; x != 0; x &= x - 1 {
		n++
	}
	return n
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
	m.keep(func(uint32) bool { return false })
	scratches.Put(m.sc)
	m.sc = nil
}

// Len is how many records were found.
func (m *Matches) Len() int { return len(m.sc.touched) }

// Top gives the best hits, those with the same score by their ids.
func (m *Matches) Top(limit int) ([]Hit, error) {
	limit = min(limit, len(m.sc.touched))
	if limit <= 0 {
		return nil, nil
	}
	best := make(scoreHeap, 0, limit)
	for _, number := range m.sc.touched {
		switch s := m.sc.scores[number]; {
		case len(best) < limit:
			heap.Push(&best, s)
		case s > best[0]:
			best[0] = s
			heap.Fix(&best, 0)
		}
	}
	// Those with the least score are more than there is room for, maybe: their ids decide.
	hits := make([]Hit, 0, limit)
	for _, number := range m.sc.touched {
		s := m.sc.scores[number]
		if s < best[0] {
			continue
		}
		id, err := m.v.ID(number)
		if err != nil {
			return nil, err
		}
		if id != nil {
			hits = append(hits, Hit{number, id, s})
		}
	}
	slices.SortFunc(hits, byScore)
	return hits[:min(limit, len(hits))], nil
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

type scoreHeap []float32

func (h scoreHeap) Len() int           { return len(h) }
func (h scoreHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h scoreHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *scoreHeap) Push(x any)        { *h = append(*h, x.(float32)) } //nolint:errcheck // nothing else is pushed

// Pop is never called: heap.Fix and heap.Push don't.
func (h *scoreHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// A place is where in a record a term is.
type place struct {
	number uint32
	at     []uint32
}

// places gives where a term is, in those of the records that have all other terms, too.
func (v *View) places(f Field, term string, in map[uint32]bool) ([]place, error) {
	prefix := v.ix.termPrefix(keyPostings, f, term)
	v.it.SetBounds(prefix, above(prefix))
	type chunk struct{ key, postings []byte }
	var chunks []chunk
	for ok := v.it.First(); ok; ok = v.it.Next() {
		chunks = append(chunks, chunk{bytes.Clone(v.it.Key()[len(prefix):]), bytes.Clone(v.it.Value())})
	}
	if err := v.it.Error(); err != nil {
		return nil, err
	}
	var out []place
	var list []posting
	where := v.ix.termPrefix(keyPositions, f, term)
	v.it.SetBounds(where, above(where))
	for _, c := range chunks {
		if len(c.key) != 4 {
			return nil, errDamaged
		}
		var err error
		if list, err = readBlocks(list[:0], binary.BigEndian.Uint32(c.key)<<chunkBits, c.postings); err != nil {
			return nil, err
		}
		for len(list) > 0 && list[len(list)-1].number >= v.onDisk {
			list = list[:len(list)-1]
		}
		if !v.it.SeekGE(append(bytes.Clone(where), c.key...)) || !bytes.Equal(v.it.Key()[len(where):], c.key) {
			return nil, errDamaged
		}
		if out, err = v.take(out, list, v.it.Value(), in); err != nil {
			return nil, err
		}
	}
	for _, s := range v.segments {
		list, positions := s.of(f, term, v.next)
		var err error
		if out, err = v.take(out, list, positions, in); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// take appends the places of those records of a list that are seen and asked for.
func (v *View) take(out []place, list []posting, positions []byte, in map[uint32]bool) ([]place, error) {
	for _, p := range list {
		want := in[p.number] && v.sees(p.number)
		pl := place{number: p.number}
		at := uint32(0)
		for range p.count {
			d, n := binary.Uvarint(positions)
			if n <= 0 {
				return nil, errDamaged
			}
			positions = positions[n:]
			at += uint32(d)
			if want {
				pl.at = append(pl.at, at)
			}
		}
		if want {
			out = append(out, pl)
		}
	}
	return out, nil
}

// phrase gives who has terms at the places of a phrase.
func (v *View) phrase(dst []posting, l Leaf) ([]posting, error) {
	var in map[uint32]bool
	found := make([][]place, len(l.Terms))
	// Who has all of them is known from the postings, which are a fraction of the places.
	for _, t := range l.Terms {
		list, err := v.postings(nil, l.Field, t)
		if err != nil {
			return dst, err
		}
		both := make(map[uint32]bool, len(list))
		for _, p := range list {
			if in == nil || in[p.number] {
				both[p.number] = true
			}
		}
		if in = both; len(in) == 0 {
			return dst, nil
		}
	}
	for i, t := range l.Terms {
		var err error
		if found[i], err = v.places(l.Field, t, in); err != nil {
			return dst, err
		}
	}
	for i, first := range found[0] {
		n := uint32(0)
		for _, at := range first.at {
			if follows(found, i, at, l.Phrase) {
				n++
			}
		}
		if n > 0 {
			dst = append(dst, posting{first.number, n})
		}
	}
	return dst, nil
}

// follows says whether the other terms are behind the first one as the phrase has them. All lists are about the same records.
func follows(found [][]place, i int, at uint32, phrase []uint32) bool {
	for t := 1; t < len(found); t++ {
		if _, ok := slices.BinarySearch(found[t][i].at, at+phrase[t]); !ok {
			return false
		}
	}
	return true
}
