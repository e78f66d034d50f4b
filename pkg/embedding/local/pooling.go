package local

// pooling is how one vector is made of those of the tokens of a text.
type pooling uint8

const (
	meanPooling pooling = iota // the mean of all, [CLS] and [SEP] with them
	clsPooling                 // that of [CLS]
)

// pool gives the vector of the tokens, which are the rows of m.
func (p pooling) pool(m matrix) []float32 {
	out := make([]float32, m.cols)
	if p == clsPooling {
		copy(out, m.row(0))
		return out
	}
	sums := make([]float64, m.cols)
	for i := range m.rows {
		for j, v := range m.row(i) {
			sums[j] += float64(v)
		}
	}
	for j, s := range sums {
		out[j] = float32(s / float64(m.rows))
	}
	return out
}
