package main

import (
	"image"
	"math"
	"math/rand/v2"
)

// Landscapes are 3:2.
const (
	landscapeWidth  = 1200
	landscapeHeight = 800
)

// sky is what is behind a landscape: its colors from top to horizon, and a sun or moon.
type sky struct {
	top, middle, horizon color3
	sun                  color3
	x, y, radius, glow   float64
}

func (s sky) at(x, y float64) color3 {
	c := s.top.mix(s.middle, y/0.35)
	if y > 0.35 {
		c = s.middle.mix(s.horizon, (y-0.35)/0.3)
	}
	d := math.Hypot(x-s.x, y-s.y)
	c = c.mix(s.sun, 0.75*math.Exp(-d/s.glow))
	return c.mix(s.sun, (s.radius-d)*400)
}

// ridges are lines of hills, the farthest first, which fade into the haze.
type ridges struct {
	count       int
	first, last float64 // heights of the lines, from the top of the picture
	rise        float64 // how far they go up and down
	far, near   color3
	mist        color3 // lies at the foot of each
	firs        bool   // on the nearer ones
}

// line gives the height of a line at each point.
func (r ridges) line(seed uint64, i int) func(x float64) float64 {
	n, t := newNoise(seed+uint64(i)*31), float64(i)/float64(max(r.count-1, 1))
	base, rise, fine := r.first+(r.last-r.first)*t, r.rise*(1-0.35*t), 1.6+1.7*t
	top := func(x float64) float64 { return base - rise*n.rough(x*fine+float64(i)*9, 5) }
	if !r.firs || i < r.count-3 {
		return top
	}
	return firs(seed+uint64(i), 0.02+0.03*t, top)
}

// firs stand on a line: the line of their tops.
func firs(seed uint64, size float64, ground func(float64) float64) func(float64) float64 {
	type fir struct{ x, width, height, foot float64 }
	r, all := rand.New(rand.NewPCG(seed, 0xf1)), []fir(nil)
	for x := -size; x < 1.6; x += size * (0.35 + 0.5*r.Float64()) {
		all = append(all, fir{x, size * (0.4 + 0.25*r.Float64()), size * (1.6 + 2.2*r.Float64()), ground(x)})
	}
	return func(x float64) float64 {
		y := ground(x)
		for _, f := range all {
			d := math.Abs(x-f.x) / f.width
			if d > 1 {
				continue
			}
			steps := math.Mod((1-d)*4, 1) * 0.12 // branches, in layers
			y = min(y, f.foot+0.01-f.height*(1-d-steps*d))
		}
		return y
	}
}

// hills paints ridges before a sky.
func hills(seed uint64, s sky, r ridges) *image.NRGBA {
	lines := make([]func(float64) float64, r.count)
	for i := range lines {
		lines[i] = r.line(seed, i)
	}
	return paint(landscapeWidth, landscapeHeight, columns(func(x float64) func(y float64) color3 {
		tops := make([]float64, r.count)
		for i, line := range lines {
			tops[i] = line(x)
		}
		return func(y float64) color3 {
			for i := r.count - 1; i >= 0; i-- {
				if y < tops[i] {
					continue
				}
				t := float64(i) / float64(max(r.count-1, 1))
				c := r.far.mix(r.near, math.Pow(t, 1.2))
				return c.mix(r.mist, (y-tops[i])*(1-t)*2.4)
			}
			return s.at(x, y)
		}
	}))
}

// columns keeps what is known of a column while its points are asked: those of a row of pixels come again in the next row.
func columns(of func(x float64) func(y float64) color3) func(x, y float64) color3 {
	known := map[float64]func(float64) color3{}
	return func(x, y float64) color3 {
		at, ok := known[x]
		if !ok {
			at = of(x)
			known[x] = at
		}
		return at(y)
	}
}

// sea paints water that has the sky in it, with a boat.
func sea(seed uint64, s sky, deep color3) image.Image {
	const horizon = 0.6
	coast, waves := newNoise(seed), newNoise(seed+1)
	boat := []*shape{
		{color: hex(0x2a2433), path: points(0.985, 0.668, 1.115, 0.668, 1.09, 0.698, 1.005, 0.698)},
		{color: hex(0xf3e6d2), path: points(1.052, 0.5, 1.052, 0.658, 1.118, 0.658)},
		{color: hex(0xd9b9a0), path: points(1.044, 0.53, 1.044, 0.658, 0.995, 0.658)},
	}
	return paint(landscapeWidth, landscapeHeight, func(x, y float64) color3 {
		if c, ok := topmost(boat, x, y); ok {
			return c
		}
		if y < horizon {
			land := horizon - 0.035*max(0, 1-x/0.62) - 0.012*coast.rough(x*9, 4)*max(0, 1-x/0.7)
			if y > land && x < 0.7 {
				return hex(0x4d4a63).mix(s.horizon, x*0.9)
			}
			return s.at(x, y)
		}
		depth := (y - horizon) / (1 - horizon)
		ripple := waves.rough(y*90/(0.35+depth)+0.8*waves.at(x*5+y*40), 3)
		mirror := s.at(x+0.03*ripple*depth, horizon-(y-horizon)*0.9)
		c := mirror.mix(deep, 0.25+0.5*depth+0.15*ripple)
		glitter := math.Exp(-math.Abs(x-s.x)/(0.03+0.12*depth)) * max(0, ripple+0.25)
		return c.mix(s.sun, min(0.9, 1.4*glitter))
	})
}

// night puts stars over a picture's upper part.
func night(seed uint64, s sky, r ridges) image.Image {
	out := hills(seed, s, r)
	rnd := rand.New(rand.NewPCG(seed, 0x57a5))
	for range 420 {
		x, y, light := rnd.IntN(landscapeWidth), int(rnd.Float64()*rnd.Float64()*0.55*landscapeHeight), 0.25+0.75*rnd.Float64()
		c := out.NRGBAAt(x, y)
		if int(c.R)+int(c.G)+int(c.B) > 330 { // the moon is before them
			continue
		}
		part := func(v uint8) uint8 { return v + uint8(float64(255-v)*light*0.85) }
		c.R, c.G, c.B = part(c.R), part(c.G), part(c.B)
		out.SetNRGBA(x, y, c)
	}
	return out
}
