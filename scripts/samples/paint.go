package main

import (
	"image"
	"image/color"
	"math"
	"math/rand/v2"
)

// color3 is a color of a picture, each part from 0 to 1.
type color3 struct{ r, g, b float64 }

// hex makes a color of 0xRRGGBB.
func hex(v uint32) color3 {
	return color3{float64(v>>16) / 255, float64(v>>8&255) / 255, float64(v&255) / 255}
}

// mix goes from c to d, by 0 to 1.
func (c color3) mix(d color3, by float64) color3 {
	by = min(max(by, 0), 1)
	return color3{c.r + (d.r-c.r)*by, c.g + (d.g-c.g)*by, c.b + (d.b-c.b)*by}
}

// samples is how many points of a pixel are asked in each direction.
const samples = 2

// paint makes a picture of a function that gives the color at a point: y goes from 0 to 1, x as far as the picture is wider
// than high.
func paint(width, height int, at func(x, y float64) color3) *image.NRGBA {
	out := image.NewNRGBA(image.Rect(0, 0, width, height))
	part := func(v float64) uint8 { return uint8(math.Round(min(max(v/(samples*samples), 0), 1) * 255)) }
	for py := range height {
		for px := range width {
			var sum color3
			for s := range samples * samples {
				x, y := float64(px)+(float64(s%samples)+0.5)/samples, float64(py)+(float64(s/samples)+0.5)/samples
				c := at(x/float64(height), y/float64(height))
				sum = color3{sum.r + c.r, sum.g + c.g, sum.b + c.b}
			}
			out.SetNRGBA(px, py, color.NRGBA{part(sum.r), part(sum.g), part(sum.b), 255})
		}
	}
	return out
}

// noise is a smooth random line: values from -1 to 1 at whole numbers, and what goes through them.
type noise struct{ values [256]float64 }

func newNoise(seed uint64) *noise {
	r, n := rand.New(rand.NewPCG(seed, 0xa17)), &noise{}
	for i := range n.values {
		n.values[i] = r.Float64()*2 - 1
	}
	return n
}

func (n *noise) at(x float64) float64 {
	i := math.Floor(x)
	f := x - i
	f = f * f * (3 - 2*f)
	a, b := n.values[int(i)&255], n.values[int(i+1)&255]
	return a + (b-a)*f
}

// rough is the sum of lines that are each finer and weaker, from about -1 to 1.
func (n *noise) rough(x float64, octaves int) float64 {
	sum, weight := 0.0, 0.5
	for range octaves {
		sum += weight * n.at(x)
		x, weight = x*2.03+17, weight*0.5
	}
	return sum
}
