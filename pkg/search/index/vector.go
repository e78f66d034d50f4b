package index

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// blockRows is how many vectors are in one piece of memory.
const blockRows = 256

// A matrix has the vectors of a field in memory. Rows are only ever appended, so that a copy of it is what it
// was at that moment.
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
	to, i := m.grow(number)
	if m.small {
		to.scales[i] = shrink(to.small[i*m.dimensions:(i+1)*m.dimensions], v)
	} else {
		copy(to.rows[i*m.dimensions:], v)
	}
}

// grow makes room for one more row, and gives its block and its place there.
func (m *matrix) grow(number uint32) (to *block, i int) {
	i = len(m.numbers) % blockRows
	if i == 0 {
		if m.small {
			m.blocks = append(m.blocks, block{small: make([]int8, blockRows*m.dimensions), scales: make([]float32, blockRows)})
		} else {
			m.blocks = append(m.blocks, block{rows: make([]float32, blockRows*m.dimensions)})
		}
	}
	m.numbers = append(m.numbers, number)
	return &m.blocks[len(m.blocks)-1], i
}

// compact gives a matrix of those rows that have not died: views that there are keep theirs.
func (m *matrix) compact(died []uint32) *matrix {
	out, n := &matrix{vectors{dimensions: m.dimensions, small: m.small}}, m.dimensions
	for row, number := range m.numbers {
		if died[number] != 0 {
			continue
		}
		from, j := &m.blocks[row/blockRows], row%blockRows
		to, i := out.grow(number)
		if m.small {
			copy(to.small[i*n:], from.small[j*n:(j+1)*n])
			to.scales[i] = from.scales[j]
		} else {
			copy(to.rows[i*n:], from.rows[j*n:(j+1)*n])
		}
	}
	return out
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

// setVectors keeps the vectors of a record in memory. The caller holds ix.mu.
func (ix *Index) setVectors(number uint32, vectors map[Field][]float32) {
	for f, v := range vectors {
		m := ix.matrix(f, len(v))
		m.add(number, v)
		if len(m.numbers) > 2*ix.all.records+4*blockRows { // more than half of them are of versions before
			ix.vectors[f] = m.compact(ix.died)
		}
	}
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

// Dimensions is how long the vectors of records are; 0 as long as there are none.
func (ix *Index) Dimensions() int {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	for _, m := range ix.vectors {
		return m.dimensions
	}
	return 0
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

// Near says what records are to be near to.
type Near struct {
	// Fields are where their vectors are: a record counts by the first of these that it has one in.
	Fields []Field
	To     []float32          // of length 1, for dense vectors
	Tokens map[string]float32 // for sparse ones: the weights that those of records are multiplied with
	// As of a Query.
	Recency  *Recency
	MinScore float32 // 0: any
}

// Near finds the records with a vector that is near: of dense vectors all records that have one, by the cosine of the angle; of sparse
// ones those that have one of the tokens, by the sum of the products of the weights. It compares with all that are seen: the
// result is exact, but for SmallVectors, of which the best few hundred are.
func (v *View) Near(ctx context.Context, q Near) (*Matches, error) {
	m := v.matches()
	for i, f := range q.Fields {
		var err error
		if q.To != nil {
			err = m.dense(ctx, f, q.To)
		} else {
			err = m.sparse(ctx, q.Fields[:i], f, q.Tokens)
		}
		if err != nil {
			m.Release()
			return nil, v.ix.disk.fail(err)
		}
	}
	if q.Recency == nil && q.MinScore <= 0 {
		return m, nil
	}
	m.keep(func(number uint32) bool {
		if q.Recency != nil {
			m.sc.scores[number] *= q.Recency.of(v.values[q.Recency.Field], number)
		}
		return q.MinScore <= 0 || m.sc.scores[number] >= q.MinScore
	})
	return m, nil
}

// dense adds the records that have a vector of a field, unless they are there.
func (m *Matches) dense(ctx context.Context, f Field, to []float32) error {
	rows, sc, from := m.v.vectors[f], m.sc, len(m.sc.touched)
	if len(rows.numbers) == 0 {
		return nil
	}
	if rows.dimensions != len(to) {
		return errors.New("the vector that is looked for has other dimensions than those of the index")
	}
	compare := rows.compare(to)
	for begin := 0; begin < len(rows.numbers); begin += blockRows {
		if err := step(ctx); err != nil {
			return err
		}
		for i, number := range rows.numbers[begin:min(begin+blockRows, len(rows.numbers))] {
			if m.v.sees(number) && sc.groups[number] == 0 {
				sc.groups[number], sc.scores[number] = 1, compare(&rows.blocks[begin/blockRows], i)
				sc.touched = append(sc.touched, number)
			}
		}
	}
	if !rows.small {
		return nil
	}
	part := Matches{v: m.v, sc: &scratch{touched: sc.touched[from:], scores: sc.scores}}
	for _, h := range part.Top(exactly) {
		exact, err := m.v.vector(f, h.Number)
		if err != nil {
			return err
		}
		if len(exact) == len(to) { // else the record has a newer version by now
			sc.scores[h.Number] = dot(to, exact)
		}
	}
	return nil
}

// exactly is how many of those that are nearest by small vectors are compared by their own.
const exactly = 256

// sparse adds the records that have some tokens in a field, but those that have any in one of the fields before.
func (m *Matches) sparse(ctx context.Context, before []Field, f Field, tokens map[string]float32) (err error) {
	sc := m.sc
	for _, token := range slices.Sorted(maps.Keys(tokens)) { // so that sums are the same each time
		weight := tokens[token]
		if err := step(ctx); err != nil {
			return err
		}
		if sc.list, err = m.v.postings(sc.list[:0], f, token); err != nil {
			return err
		}
	each:
		for _, p := range sc.list {
			for _, other := range before {
				if l := m.v.lengths[other]; int(p.number) < len(l) && l[p.number] > 0 {
					continue each
				}
			}
			if sc.groups[p.number] == 0 {
				sc.groups[p.number] = 1
				sc.touched = append(sc.touched, p.number)
			}
			sc.scores[p.number] += weight * float32(p.count) / weightUnit
		}
	}
	return nil
}

// weightUnit is what the weight 1 of a token is as a count: postings have whole numbers.
const weightUnit = 4096

// Weights makes of a sparse vector what a record has in a field. Tokens that weigh nothing, or less, are left out.
func Weights(v map[string]float32) []Token {
	out := make([]Token, 0, len(v))
	for token, weight := range v {
		if n := math.RoundToEven(float64(weight) * weightUnit); n >= 1 {
			out = append(out, Token{Term: token, Count: uint32(min(n, math.MaxUint32))})
		}
	}
	slices.SortFunc(out, func(a, b Token) int { return strings.Compare(a.Term, b.Term) })
	return out
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
