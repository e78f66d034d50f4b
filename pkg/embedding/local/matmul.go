package local

// A tile is four rows of one matrix against three of another: so many sums fit into the registers of a core.
const (
	tileA = 4
	tileB = 3

	lanes = 8 // values in one step of the fast kernel; lengths of rows are multiples of it

	blockK = 384 // columns that are multiplied at once; tileA·blockA rows of them stay in the first-level cache
	blockA = 4   // tiles of the first matrix for each pass over the second
)

// matrix is rows of float32, each cols long and stride after the one before.
type matrix struct {
	data         []float32
	rows, cols   int
	stride, from int // from is where the first row begins
}

func newMatrix(rows, cols int) matrix {
	return matrix{data: make([]float32, rows*cols), rows: rows, cols: cols, stride: cols}
}

// row gives one row; what is written to it is written to the matrix.
func (m matrix) row(i int) []float32 {
	at := m.from + i*m.stride
	return m.data[at : at+m.cols : at+m.cols]
}

// part gives a matrix inside this one.
func (m matrix) part(row, rows, col, cols int) matrix {
	m.from += row*m.stride + col
	m.rows, m.cols = rows, cols
	return m
}

// mulT sets out to a·bᵀ, plus bias in each row where there is one. The columns of a and b are a multiple of lanes. Each
// value of out depends on its row of a and its row of b alone, to the last bit: not on what else is in the matrices.
func mulT(out, a, b matrix, bias []float32) {
	for k := 0; k < a.cols; k += blockK {
		width := min(blockK, a.cols-k)
		for i := 0; i < a.rows; i += tileA * blockA {
			end := min(i+tileA*blockA, a.rows)
			for j := 0; j < b.rows; j += tileB {
				for ii := i; ii < end; ii += tileA {
					mulTile(out, a, b, ii, j, k, width)
				}
			}
		}
	}
	if bias == nil {
		return
	}
	for i := range out.rows {
		addTo(out.row(i), bias)
	}
}

// mulTile adds to one tile of out, or sets it when k is 0. Where a tile is cut off by the end of a matrix the last row
// stands in for those that are not there.
func mulTile(out, a, b matrix, i, j, k, width int) {
	var sums [tileA * tileB]float32
	rowsA, rowsB := min(tileA, a.rows-i), min(tileB, b.rows-j)
	var at [tileA]int
	for r := range at {
		at[r] = a.from + (i+min(r, rowsA-1))*a.stride + k
	}
	var bt [tileB]int
	for r := range bt {
		bt[r] = b.from + (j+min(r, rowsB-1))*b.stride + k
	}
	dotTile(a.data, &at, b.data, &bt, width, &sums)
	for r := range rowsA {
		o := out.from + (i+r)*out.stride + j
		to := out.data[o : o+rowsB]
		for c := range to {
			if k > 0 {
				to[c] += sums[r*tileB+c]
			} else {
				to[c] = sums[r*tileB+c]
			}
		}
	}
}

// dotTileGo sets sums to the products of the rows of a and b that begin at at and bt.
func dotTileGo(a []float32, at *[tileA]int, b []float32, bt *[tileB]int, n int, sums *[tileA * tileB]float32) {
	b0, b1, b2 := b[bt[0]:][:n], b[bt[1]:][:n], b[bt[2]:][:n]
	for r, from := range at {
		var s0, s1, s2 float32
		for i, v := range a[from:][:n] {
			s0 += v * b0[i]
			s1 += v * b1[i]
			s2 += v * b2[i]
		}
		sums[r*tileB], sums[r*tileB+1], sums[r*tileB+2] = s0, s1, s2
	}
}

func addTo(to, from []float32) {
	from = from[:len(to)]
	for i := range to {
		to[i] += from[i]
	}
}
