package local

import (
	"context"
	"fmt"
	"math"
)

// encoder is the network: embeddings, and layers of attention and of a hidden one.
type encoder struct {
	config
	words, positions, kinds matrix
	norm                    affine
	layers                  []layer
}

type layer struct {
	query, key, value, out linear
	attended               affine // the normalization after attention
	hidden, back           linear
	norm                   affine
}

// linear is x·weightᵀ + bias.
type linear struct {
	weight matrix
	bias   []float32
}

// affine is what a layer normalization scales and shifts by.
type affine struct{ weight, bias []float32 }

// weights reads tensors by name, and keeps the first error.
type weights struct {
	*tensors
	prefix string
	err    error
}

func (w *weights) vector(name string, n int) []float32 {
	return w.get(name, n)
}

func (w *weights) matrix(name string, rows, cols int) matrix {
	return matrix{data: w.get(name, rows, cols), rows: rows, cols: cols, stride: cols}
}

func (w *weights) linear(name string, out, in int) linear {
	return linear{w.matrix(name+".weight", out, in), w.vector(name+".bias", out)}
}

func (w *weights) affine(name string, n int) affine {
	return affine{w.vector(name+".weight", n), w.vector(name+".bias", n)}
}

func (w *weights) get(name string, shape ...int) []float32 {
	if w.err != nil {
		return nil
	}
	var values []float32
	values, w.err = w.read(w.prefix+name, shape...)
	return values
}

// newEncoder reads the weights that c asks for. What else is in the file is left alone.
func newEncoder(c config, file *tensors) (*encoder, error) {
	w := &weights{tensors: file}
	if _, ok := file.all["bert.embeddings.LayerNorm.weight"]; ok { // saved with a head for some task
		w.prefix = "bert."
	}
	e := &encoder{
		config:    c,
		words:     w.matrix("embeddings.word_embeddings.weight", c.Vocab, c.Hidden),
		positions: w.matrix("embeddings.position_embeddings.weight", c.Positions, c.Hidden),
		kinds:     w.matrix("embeddings.token_type_embeddings.weight", c.TypeVocab, c.Hidden),
		norm:      w.affine("embeddings.LayerNorm", c.Hidden),
	}
	for i := 0; i < c.Layers && w.err == nil; i++ {
		name := fmt.Sprintf("encoder.layer.%d.", i)
		e.layers = append(e.layers, layer{
			query:    w.linear(name+"attention.self.query", c.Hidden, c.Hidden),
			key:      w.linear(name+"attention.self.key", c.Hidden, c.Hidden),
			value:    w.linear(name+"attention.self.value", c.Hidden, c.Hidden),
			out:      w.linear(name+"attention.output.dense", c.Hidden, c.Hidden),
			attended: w.affine(name+"attention.output.LayerNorm", c.Hidden),
			hidden:   w.linear(name+"intermediate.dense", c.Intermediate, c.Hidden),
			back:     w.linear(name+"output.dense", c.Hidden, c.Intermediate),
			norm:     w.affine(name+"output.LayerNorm", c.Hidden),
		})
	}
	return e, w.err
}

// scratch is what one run of the network writes to: rows tokens at most, longest of them in one sequence.
type scratch struct {
	x, y, query, key, value, context matrix // a row for each token
	hidden                           matrix
	scores                           []float32 // of one head and one sequence
	valueT                           []float32 // values of the same, turned
}

func newScratch(c config, rows, longest int) *scratch {
	wide := roundUp(longest)
	return &scratch{
		x: newMatrix(rows, c.Hidden), y: newMatrix(rows, c.Hidden), context: newMatrix(rows, c.Hidden),
		query: newMatrix(rows, c.Hidden), key: newMatrix(rows, c.Hidden), value: newMatrix(rows, c.Hidden),
		hidden: newMatrix(rows, c.Intermediate),
		scores: make([]float32, longest*wide),
		valueT: make([]float32, c.Hidden/c.Heads*wide),
	}
}

// roundUp gives the first multiple of lanes that is not below n.
func roundUp(n int) int { return (n + lanes - 1) / lanes * lanes }

// run gives the vectors of tokens, a row for each token of each sequence, one sequence after the other. They are in s,
// and stay true until s is used again. The context is asked between layers.
func (e *encoder) run(ctx context.Context, s *scratch, sequences [][]int32) (matrix, error) {
	n := 0
	for _, ids := range sequences {
		for at, id := range ids {
			row := s.x.row(n)
			copy(row, e.words.row(int(id)))
			addTo(row, e.positions.row(at))
			addTo(row, e.kinds.row(0))
			layerNorm(row, e.norm.weight, e.norm.bias, e.Epsilon)
			n++
		}
	}
	x := s.x.part(0, n, 0, e.Hidden)
	for i := range e.layers {
		if err := ctx.Err(); err != nil {
			return matrix{}, err
		}
		e.layer(&e.layers[i], s, x, sequences)
	}
	return x, ctx.Err()
}

// layer replaces x by what the layer makes of it.
func (e *encoder) layer(l *layer, s *scratch, x matrix, sequences [][]int32) {
	all := func(m matrix) matrix { return m.part(0, x.rows, 0, m.cols) }
	query, key, value, context, hidden, y := all(s.query), all(s.key), all(s.value), all(s.context), all(s.hidden), all(s.y)
	l.query.apply(query, x)
	l.key.apply(key, x)
	l.value.apply(value, x)
	width := e.Hidden / e.Heads
	from := 0
	for _, ids := range sequences {
		for head := range e.Heads {
			part := func(m matrix) matrix { return m.part(from, len(ids), head*width, width) }
			s.attend(part(context), part(query), part(key), part(value))
		}
		from += len(ids)
	}
	l.out.apply(y, context)
	l.attended.addNorm(x, y, e.Epsilon)
	l.hidden.apply(hidden, x)
	gelu(hidden.data[:x.rows*hidden.stride])
	l.back.apply(y, hidden)
	l.norm.addNorm(x, y, e.Epsilon)
}

// attend sets out to the mean of the values, weighted by how well the keys fit the queries, for one head of a sequence.
func (s *scratch) attend(out, query, key, value matrix) {
	n, wide := query.rows, roundUp(query.rows)
	scores := matrix{data: s.scores, rows: n, cols: n, stride: wide}
	mulT(scores, query, key, nil)
	scale := float32(1 / math.Sqrt(float64(query.cols)))
	for i := range n {
		softmax(scores.row(i), scale)
		clear(s.scores[i*wide+n : (i+1)*wide])
	}
	scores.cols = wide
	turned := matrix{data: s.valueT, rows: value.cols, cols: wide, stride: wide}
	for i := range n {
		for j, v := range value.row(i) {
			s.valueT[j*wide+i] = v
		}
	}
	for j := range turned.rows {
		clear(s.valueT[j*wide+n : (j+1)*wide])
	}
	mulT(out, scores, turned, nil)
}

func (l *linear) apply(out, x matrix) { mulT(out, x, l.weight, l.bias) }

// addNorm adds y to x and normalizes each row.
func (a *affine) addNorm(x, y matrix, eps float64) {
	for i := range x.rows {
		row := x.row(i)
		addTo(row, y.row(i))
		layerNorm(row, a.weight, a.bias, eps)
	}
}
