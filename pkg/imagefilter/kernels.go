package imagefilter

import "math"

// kernel is a resampling: the weight of a source pixel by its distance from the wanted point, and the distance beyond which
// it is zero. A support of zero takes the nearest pixel.
type kernel struct {
	support float64
	at      func(x float64) float64 // of x from 0 to support
}

// defaultResampling is what a step without resampling scales by.
const defaultResampling = "lanczos"

// kernelOf gives the kernel of a resampling of the config.
func kernelOf(resampling string) (kernel, bool) {
	switch resampling {
	case "nearestNeighbor":
		return kernel{}, true
	case "box":
		return kernel{0.5, func(float64) float64 { return 1 }}, true
	case "linear":
		return kernel{1, func(x float64) float64 { return 1 - x }}, true
	case "hermite":
		return kernel{1, cubic(0, 0)}, true
	case "catmullRom":
		return kernel{2, cubic(0, 0.5)}, true
	case "mitchellNetravili":
		return kernel{2, cubic(1.0/3, 1.0/3)}, true
	case "bSpline":
		return kernel{2, cubic(1, 0)}, true
	case "gaussian":
		return kernel{2, func(x float64) float64 { return math.Exp(-2 * x * x) }}, true
	}
	window, ok := windowOf(resampling)
	return kernel{3, func(x float64) float64 { return sinc(x) * window(x/3) }}, ok
}

// windowOf gives the window of the resamplings that are a sinc of three lobes; x goes from 0 in the middle to 1 at the edge.
func windowOf(resampling string) (window func(x float64) float64, ok bool) {
	switch resampling {
	case "lanczos":
		return sinc, true
	case "bartlett":
		return func(x float64) float64 { return 1 - x }, true
	case "welch":
		return func(x float64) float64 { return 1 - x*x }, true
	case "cosine":
		return func(x float64) float64 { return math.Cos(math.Pi / 2 * x) }, true
	case "hann":
		return func(x float64) float64 { return 0.5 + 0.5*math.Cos(math.Pi*x) }, true
	case "hamming":
		return func(x float64) float64 { return 0.54 + 0.46*math.Cos(math.Pi*x) }, true
	case "blackman":
		return func(x float64) float64 { return 0.42 + 0.5*math.Cos(math.Pi*x) + 0.08*math.Cos(2*math.Pi*x) }, true
	}
	return nil, false
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

// cubic gives a cubic filter of Mitchell and Netravali's family: b blurs, c rings.
func cubic(b, c float64) func(x float64) float64 {
	return func(x float64) float64 {
		if x < 1 {
			return ((12-9*b-6*c)*x*x*x + (-18+12*b+6*c)*x*x + (6 - 2*b)) / 6
		}
		return ((-b-6*c)*x*x*x + (6*b+30*c)*x*x + (-12*b-48*c)*x + (8*b + 24*c)) / 6
	}
}

// weightBits is how many bits of a fixed-point weight are behind the point.
const weightBits = 14

// taps is what one pixel of the result takes along one axis: pixels from the first on, each with its weight. The weights
// add up to 1<<weightBits, so a plain area stays exactly as it is.
type taps struct {
	first   int
	weights []int32
}

func (t taps) end() int { return t.first + len(t.weights) }

// scaling gives the taps that make n pixels of the part [from, from+length) of a line of size pixels. Pixels that are just
// taken over are not blurred, as some kernels would do.
func scaling(k kernel, n, size int, from, length float64) []taps {
	out := make([]taps, n)
	ratio := length / float64(n)
	stretch := max(ratio, 1) // a smaller result looks at more pixels
	same := ratio == 1 && from == math.Floor(from)
	for i := range out {
		if k.support == 0 || same {
			at := int(from + (float64(i)+0.5)*ratio)
			out[i] = taps{min(max(at, 0), size-1), []int32{1 << weightBits}}
			continue
		}
		out[i] = tapsAround(k, from+(float64(i)+0.5)*ratio-0.5, stretch, size)
	}
	return out
}

// blurReach is how many standard deviations away a blur looks.
const blurReach = 3

// blurring gives the taps that blur a line of size pixels by a normal distribution. Those away from the edges share one slice
// of weights.
func blurring(sigma float64, size int) []taps {
	k := kernel{blurReach * sigma, func(x float64) float64 { return math.Exp(-x * x / (2 * sigma * sigma)) }}
	reach := int(math.Ceil(k.support))
	out := make([]taps, size)
	var inner []int32
	for i := range out {
		if i < reach || i >= size-reach {
			out[i] = tapsAround(k, float64(i), 1, size)
			continue
		}
		if inner == nil {
			t := tapsAround(k, float64(i), 1, size)
			inner, reach = t.weights, i-t.first
		}
		out[i] = taps{i - reach, inner}
	}
	return out
}

func tapsAround(k kernel, center, stretch float64, size int) taps {
	reach := k.support * stretch
	first := min(max(int(math.Ceil(center-reach)), 0), size-1)
	last := max(min(int(math.Floor(center+reach)), size-1), first)
	exact := make([]float64, last-first+1)
	sum := 0.0
	for i := range exact {
		if x := math.Abs(float64(first+i)-center) / stretch; x <= k.support {
			exact[i] = k.at(x)
			sum += exact[i]
		}
	}
	if sum == 0 { // the edge of a kernel falls on the only pixel
		exact[0], sum = 1, 1
	}
	return taps{first, fixed(exact, sum)}
}

// fixed turns weights into fixed point. What rounding loses goes to the largest.
func fixed(exact []float64, sum float64) []int32 {
	out := make([]int32, len(exact))
	rest, largest := int32(1<<weightBits), 0
	for i, w := range exact {
		out[i] = int32(math.Round(w / sum * (1 << weightBits)))
		rest -= out[i]
		if out[i] > out[largest] {
			largest = i
		}
	}
	out[largest] += rest
	return out
}
