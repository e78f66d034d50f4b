package index

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// blockRows is how many vectors are in one piece of memory.
const blockRows = 256

// A matrix has the vectors of a field in memory. Rows are only ever appended, so that a copy of it is what it was at that moment.
type matrix struct{ vectors }

type vectors struct {
	dimensions int
	small      bool
	numbers    []uint32 // of the rows' records
	blocks     []block
}

// block has blockRows rows, one after the other.
type block struct {
	rows   []float32
	small  []int8    // instead of rows
	scales []float32 // of small: what its bytes are multiplied with
}

func (m *matrix) add(number uint32, v []float32) {
	i := len(m.numbers) % blockRows
	if i == 0 {
		if m.small {
			m.blocks = append(m.blocks, block{small: make([]int8, blockRows*m.dimensions), scales: make([]float32, blockRows)})
		} else {
			m.blocks = append(m.blocks, block{rows: make([]float32, blockRows*m.dimensions)})
		}
	}
	m.numbers = append(m.numbers, number)
	last := m.blocks[len(m.blocks)-1]
	if m.small {
		last.scales[i] = shrink(last.small[i*m.dimensions:(i+1)*m.dimensions], v)
	} else {
		copy(last.rows[i*m.dimensions:], v)
	}
}

// shrink makes bytes of a vector, and gives what they are to be multiplied with.
func shrink(dst []int8, v []float32) (scale float32) {
	most := float32(0)
	for _, x := range v {
		most = max(most, x, -x)
	}
	if most == 0 {
		return 0
	}
	scale = most / 127
	for i, x := range v {
		dst[i] = int8(math.RoundToEven(float64(x / scale)))
	}
	return scale
}

func (m *matrix) bytes() int {
	size := 4
	if m.small {
		size = 1
	}
	return len(m.blocks)*blockRows*m.dimensions*size + 4*len(m.numbers)
}

func (ix *Index) matrix(f Field, dimensions int) *matrix {
	m := ix.vectors[f]
	if m == nil {
		m = &matrix{vectors{dimensions: dimensions, small: ix.db.o.SmallVectors}}
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
	return ix.disk.each(ix.key(keyVector), func(key, v []byte) error {
		if len(key) != 6 {
			return errDamaged
		}
		f, number := Field(binary.BigEndian.Uint16(key)), binary.BigEndian.Uint32(key[2:])
		var ok bool
		if row, ok = readVector(row[:0], v); !ok || number >= ix.next {
			return errDamaged
		}
		m := ix.matrix(f, len(row))
		if m.dimensions != len(row) {
			return errDamaged
		}
		m.add(number, row)
		return nil
	})
}

func readVector(dst []float32, b []byte) (_ []float32, ok bool) {
	if len(b) == 0 || len(b)%4 != 0 {
		return dst, false
	}
	for ; len(b) > 0; b = b[4:] {
		dst = append(dst, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return dst, true
}

// Nearest gives the records whose vectors of a field are nearest to one of length 1, by the cosine of their angle, which is
// their score. It compares with all that are seen: the result is exact, but for SmallVectors.
func (v *View) Nearest(ctx context.Context, f Field, to []float32, limit int) ([]Hit, error) {
	m := v.vectors[f]
	if limit <= 0 || len(m.numbers) == 0 {
		return nil, nil
	}
	if m.dimensions != len(to) {
		return nil, errors.New("the vector that is looked for has other dimensions than those of the index")
	}
	many := limit
	if m.small {
		many = max(4*limit, 64) // to be compared exactly
	}
	best := make(worstFirst, 0, many)
	compare := m.compare(to)
	for from := 0; from < len(m.numbers); from += blockRows {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		for i, number := range m.numbers[from:min(from+blockRows, len(m.numbers))] {
			if !v.sees(number) {
				continue
			}
			if s := compare(&m.blocks[from/blockRows], i); len(best) < many || s >= best[0].Score {
				best.offer(Hit{number, v.ids.of(number), s}, many)
			}
		}
	}
	if m.small {
		for i := range best {
			exact, err := v.vector(f, best[i].Number)
			if err != nil {
				return nil, v.ix.disk.fail(err)
			}
			if len(exact) == len(to) { // else the record has a newer version by now
				best[i].Score = dot(to, exact)
			}
		}
	}
	slices.SortFunc(best, byScore)
	return best[:min(limit, len(best))], nil
}

// compare gives a func for the cosine of a vector and a row of a block.
func (m *vectors) compare(to []float32) func(b *block, i int) float32 {
	n := m.dimensions
	if !m.small {
		return func(b *block, i int) float32 { return dot(to, b.rows[i*n:(i+1)*n]) }
	}
	small := make([]int8, n)
	scale := shrink(small, to)
	wide := make([]int16, n)
	for i, x := range small {
		wide[i] = int16(x)
	}
	return func(b *block, i int) float32 {
		return scale * b.scales[i] * float32(dotSmall(wide, b.small[i*n:(i+1)*n]))
	}
}

// vector gives the vector of a record as it was given; nil if it is not there any more.
func (v *View) vector(f Field, number uint32) ([]float32, error) {
	for _, s := range slices.Backward(v.segments) {
		if number >= s.first {
			return s.record(number).vectors[f], nil
		}
	}
	b, closer, err := v.ix.disk.kv.Get(v.ix.vectorKey(f, number))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out, ok := readVector(nil, b)
	if err := closer.Close(); err != nil {
		return nil, err
	}
	if !ok {
		return nil, errDamaged
	}
	return out, nil
}
