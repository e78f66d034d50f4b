package index

import (
	"container/heap"
	"context"
	"encoding/binary"
	"math"
	"slices"
)

// matrix has the vectors of a field, in memory.
type matrix struct{ vectors }

// vectors are what a matrix had at a moment: rows are only ever appended.
type vectors struct {
	dimensions int
	numbers    []uint32  // of the rows' records
	rows       []float32 // one after the other
}

func (m *matrix) add(number uint32, v []float32) {
	if m.dimensions == 0 {
		m.dimensions = len(v)
	}
	if len(v) != m.dimensions {
		return // Apply has refused it
	}
	m.numbers = append(m.numbers, number)
	m.rows = append(m.rows, v...)
}

func (ix *Index) matrix(f Field) *matrix {
	m := ix.vectors[f]
	if m == nil {
		m = &matrix{}
		ix.vectors[f] = m
	}
	return m
}

// vectorFields lists the fields that have vectors.
func (ix *Index) vectorFields() (out []Field) {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	for f := range ix.vectors {
		out = append(out, f)
	}
	return out
}

func (ix *Index) readVectors() error {
	var row []float32
	return ix.db.each(ix.key(keyVector), func(key, v []byte) error {
		if len(key) != 6 || len(v)%4 != 0 {
			return errDamaged
		}
		row = row[:0]
		for ; len(v) > 0; v = v[4:] {
			row = append(row, math.Float32frombits(binary.LittleEndian.Uint32(v)))
		}
		ix.matrix(Field(binary.BigEndian.Uint16(key))).add(binary.BigEndian.Uint32(key[2:]), row)
		return nil
	})
}

// Nearest gives the records whose vectors of a field are nearest to one of length 1, by the cosine of their angle, which is
// their score. It compares with all that are seen: the result is exact.
func (v *View) Nearest(ctx context.Context, f Field, to []float32, limit int) ([]Hit, error) {
	m := v.vectors[f]
	if limit <= 0 || m.dimensions != len(to) {
		return nil, nil
	}
	var best nearest
	const look = 4096 // rows between two looks at ctx
	for i, number := range m.numbers {
		if i%look == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !v.sees(number) {
			continue
		}
		s := dot(to, m.rows[i*m.dimensions:(i+1)*m.dimensions])
		switch {
		case len(best) < limit:
			heap.Push(&best, Hit{Number: number, Score: s})
		case s > best[0].Score:
			best[0] = Hit{Number: number, Score: s}
			heap.Fix(&best, 0)
		}
	}
	hits := best[:0]
	for _, h := range best {
		id, err := v.ID(h.Number)
		if err != nil {
			return nil, err
		}
		if h.ID = id; id != nil {
			hits = append(hits, h)
		}
	}
	slices.SortFunc(hits, byScore)
	return hits, nil
}

// dot multiplies vectors of the same length, in four sums that a processor adds at the same time.
func dot(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

type nearest []Hit

func (h nearest) Len() int           { return len(h) }
func (h nearest) Less(i, j int) bool { return h[i].Score < h[j].Score }
func (h nearest) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *nearest) Push(x any)        { *h = append(*h, x.(Hit)) } //nolint:errcheck // nothing else is pushed
func (h *nearest) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
