package index

import (
	"encoding/binary"
	"math"
	"strings"
	"sync"
)

// A segment has the newest records in memory. One goroutine adds; others read at the same time.
type segment struct {
	first uint32 // number of the first record
	at    []byte // the position of the last Apply; guarded as Index.fresh is

	mu      sync.RWMutex
	terms   map[Field]map[string]*list
	numbers map[string]uint32 // of records by id; removed: it went
	records []record          // by number, from first on
	dead    []uint32          // numbers of older segments whose records went or changed
	size    int               // bytes, about
	changed bool              // it has something to write; guarded as at is
}

const removed = math.MaxUint32

// record is one version of a record.
type record struct {
	id      []byte
	rev     int64
	lengths []fieldLength
	values  map[Field]int64
	vectors map[Field][]float32
}

type fieldLength struct {
	field Field
	terms uint32
}

// list has who has a term. It only grows.
type list struct {
	postings  []posting
	positions []byte // of each posting, one after the other: uvarint distances
	last      uint32 // position of the last token
}

func newSegment(first uint32) *segment {
	return &segment{first: first, terms: map[Field]map[string]*list{}, numbers: map[string]uint32{}}
}

func (s *segment) add(number uint32, c *Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := record{id: c.ID, rev: c.Rev, values: c.Values, vectors: c.Vectors}
	for f, tokens := range c.Fields {
		if len(tokens) == 0 {
			continue
		}
		r.lengths = append(r.lengths, fieldLength{f, uint32(len(tokens))})
		terms := s.terms[f]
		if terms == nil {
			terms = map[string]*list{}
			s.terms[f] = terms
		}
		for _, t := range tokens {
			l := terms[t.Term]
			if l == nil {
				l = &list{}
				terms[strings.Clone(t.Term)] = l // else the text that it is a part of would stay
				s.size += 128 + len(t.Term)
			}
			if last := len(l.postings) - 1; last >= 0 && l.postings[last].number == number {
				l.postings[last].count += max(1, t.Count)
			} else {
				l.postings = append(l.postings, posting{number, max(1, t.Count)})
				l.last = 0
				s.size += 12
			}
			if t.Count > 0 {
				continue
			}
			l.positions = binary.AppendUvarint(l.positions, uint64(t.Position-l.last))
			l.last = t.Position
			s.size++
		}
	}
	for _, v := range c.Vectors {
		s.size += 4 * len(v)
	}
	s.records = append(s.records, r)
	s.numbers[string(c.ID)] = number
	s.size += 128 + 2*len(c.ID) + 32*len(c.Values)
}

// kill notes that a record of another segment, or of this one, went or has a newer version.
func (s *segment) kill(number uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number < s.first {
		s.dead = append(s.dead, number)
		s.size += 4
	}
}

func (s *segment) remove(id []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numbers[string(id)] = removed
	s.size += 64 + len(id)
}

// of gives who has a term, numbers below end only, and where.
func (s *segment) of(f Field, term string, end uint32) (postings []posting, positions []byte) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	l := s.terms[f][term]
	if l == nil {
		return nil, nil
	}
	n := len(l.postings)
	for n > 0 && l.postings[n-1].number >= end { // of a record that is being added, whose posting may change
		n--
	}
	return l.postings[:n:n], l.positions
}

// bytes is what it has in memory, about.
func (s *segment) bytes() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.size
}

// record gives a record by its number.
func (s *segment) record(number uint32) record {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.records[number-s.first]
}
