package local

import "math"

// gelu replaces each x by x·Φ(x), Φ being the normal distribution.
func gelu(xs []float32) {
	for i, x := range xs {
		xs[i] = 0.5 * x * (1 + erf(x*(1/math.Sqrt2)))
	}
}

// erf is the error function, to within 1e-6: a quotient of polynomials, which takes a fraction of the time of math.Erf.
func erf(x float32) float32 {
	x = min(max(x, -4), 4)
	z := x * x
	p := float32(-2.72614225801306e-10)
	p = p*z + 2.77068142495902e-08
	p = p*z - 2.10102402082508e-06
	p = p*z - 5.69250639462346e-05
	p = p*z - 7.34990630326855e-04
	p = p*z - 2.95459980854025e-03
	p = p*z - 1.60960333262415e-02
	q := float32(-1.45660718464996e-05)
	q = q*z - 2.13374055278905e-04
	q = q*z - 1.68282697438203e-03
	q = q*z - 7.37332916720468e-03
	q = q*z - 1.42647390514189e-02
	return x * p / q
}

// exp is e to the power of x, for x of at most 0, to within a few units of the last bit; 0 below -87.
func exp(x float32) float32 {
	if !(x >= -87) { // NaN too: it comes from damaged weights, and what is made of it is refused in the end
		return 0
	}
	n := float32(int32(x*math.Log2E - 0.5))
	r := x - n*0.693359375 + n*2.12194440e-4
	p := float32(1.9875691500e-4)
	p = p*r + 1.3981999507e-3
	p = p*r + 8.3334519073e-3
	p = p*r + 4.1665795894e-2
	p = p*r + 1.6666665459e-1
	p = p*r + 5.0000001201e-1
	p = p*r*r + r + 1
	return p * math.Float32frombits(uint32(int32(n)+127)<<23) //nolint:gosec // between 1 and 127
}

// softmax replaces scores by the shares that each has, after a multiplication by scale.
func softmax(scores []float32, scale float32) {
	top := scores[0]
	for _, s := range scores {
		top = max(top, s)
	}
	var sum float32
	for i, s := range scores {
		e := exp((s - top) * scale)
		scores[i] = e
		sum += e
	}
	share := 1 / sum
	for i := range scores {
		scores[i] *= share
	}
}

// layerNorm brings xs to mean 0 and variance 1, then scales it by weight and shifts it by bias.
func layerNorm(xs, weight, bias []float32, eps float64) {
	var sum float64
	for _, x := range xs {
		sum += float64(x)
	}
	mean := sum / float64(len(xs))
	var squares float64
	for _, x := range xs {
		d := float64(x) - mean
		squares += d * d
	}
	scale := float32(1 / math.Sqrt(squares/float64(len(xs))+eps))
	m := float32(mean)
	weight, bias = weight[:len(xs)], bias[:len(xs)]
	for i, x := range xs {
		xs[i] = (x-m)*scale*weight[i] + bias[i]
	}
}

// normalize gives xs the length 1; zeros stay.
func normalize(xs []float32) {
	var squares float64
	for _, x := range xs {
		squares += float64(x) * float64(x)
	}
	length := max(math.Sqrt(squares), 1e-12)
	for i, x := range xs {
		xs[i] = float32(float64(x) / length)
	}
}
