package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
)

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

// having gives who has all of some terms: that is known from the postings, which are a fraction of the places.
func (v *View) having(ctx context.Context, f Field, terms []string) (in map[uint32]bool, err error) {
	var list []posting
	for _, t := range terms {
		if err := step(ctx); err != nil {
			return nil, err
		}
		if list, err = v.postings(list[:0], f, t); err != nil {
			return nil, err
		}
		both := make(map[uint32]bool, len(list))
		for _, p := range list {
			if in == nil || in[p.number] {
				both[p.number] = true
			}
		}
		if in = both; len(in) == 0 {
			break
		}
	}
	return in, nil
}

// phrase gives who has terms at the places of a phrase. A term that is there more than once is read once: a phrase may be as long as
// callers write it.
func (v *View) phrase(ctx context.Context, dst []posting, l Leaf) ([]posting, error) {
	terms := slices.Compact(slices.Sorted(slices.Values(l.Terms)))
	in, err := v.having(ctx, l.Field, terms)
	if err != nil || len(in) == 0 {
		return dst, err
	}
	read := make(map[string][]place, len(terms))
	for _, t := range terms {
		if err := step(ctx); err != nil {
			return dst, err
		}
		if read[t], err = v.places(l.Field, t, in); err != nil {
			return dst, err
		}
	}
	found := make([][]place, len(l.Terms))
	for i, t := range l.Terms {
		found[i] = read[t]
	}
	looked := 0
	for i, first := range found[0] {
		n := uint32(0)
		for _, at := range first.at {
			if looked++; looked%1024 == 0 {
				if err := step(ctx); err != nil {
					return dst, err
				}
			}
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
