package local

import (
	"bytes"
	"io/fs"
)

// What tests see of the inside.
var (
	LoadFS = load
	Erf    = erf
	Exp    = exp
)

// Tensor reads one tensor of a safetensors file.
func Tensor(file []byte, name string, shape ...int) ([]float32, error) {
	t, err := openTensors(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	return t.read(name, shape...)
}

// ReadTensors reads all that is float in a file, and gives how many values that is.
func ReadTensors(file []byte) (int, error) {
	t, err := openTensors(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return 0, err
	}
	n := 0
	for name, one := range t.all {
		shape := make([]int, len(one.Shape))
		for i, d := range one.Shape {
			shape[i] = int(d)
		}
		values, err := t.read(name, shape...)
		if err == nil {
			n += len(values)
		}
	}
	return n, nil
}

// MulT multiplies a of n×k by the transpose of b of m×k.
func MulT(a, b []float32, n, m, k int, bias []float32) []float32 {
	out := newMatrix(n, m)
	mulT(out, matrix{data: a, rows: n, cols: k, stride: k}, matrix{data: b, rows: m, cols: k, stride: k}, bias)
	return out.data
}

// DotTile multiplies the rows of a and b by what this processor has, and by plain Go.
func DotTile(a, b []float32, k int) (fast, plain [tileA * tileB]float32) {
	at, bt := [tileA]int{0, k, 2 * k, 3 * k}, [tileB]int{0, k, 2 * k}
	dotTile(a, &at, b, &bt, k, &fast)
	dotTileGo(a, &at, b, &bt, k, &plain)
	return fast, plain
}

// Softmax and LayerNorm change xs.
func Softmax(xs []float32, scale float32)               { softmax(xs, scale) }
func LayerNorm(xs, weight, bias []float32, eps float64) { layerNorm(xs, weight, bias, eps) }

// Pool gives the vector of rows of width values, by mean or by the first.
func Pool(first bool, rows []float32, width int) []float32 {
	p := meanPooling
	if first {
		p = clsPooling
	}
	n := len(rows) / width
	return p.pool(matrix{data: rows, rows: n, cols: width, stride: width})
}

// Hold takes one of the places for encoding, until it is given back.
func (m *Model) Hold() (giveBack func()) {
	s := <-m.free
	return func() { m.free <- s }
}

// TokenizerOf reads the tokenizer of a folder alone, and gives what makes tokens.
func TokenizerOf(dir fs.FS, limit int) (func(string) []int32, error) {
	t, err := readTokenizer(dir)
	if err != nil {
		return nil, err
	}
	t.limit = limit
	return t.tokens, nil
}
