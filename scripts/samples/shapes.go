package main

import (
	"image"
	"math"
	"slices"
)

// point is a place in a picture, as in paint.
type point struct{ x, y float64 }

// shape is a closed line of one color, or of two from its top to its bottom.
type shape struct {
	path  []point
	color color3
	foot  color3 // of the bottom; black is color
	box   [4]float64
}

// points makes a path of x and y by turns.
func points(xy ...float64) []point {
	out := make([]point, len(xy)/2)
	for i := range out {
		out[i] = point{xy[2*i], xy[2*i+1]}
	}
	return out
}

// smooth makes a path that goes through points without corners.
func smooth(xy ...float64) []point {
	corners, out := points(xy...), []point(nil)
	n := len(corners)
	for i := range corners {
		a, b, c, d := corners[(i+n-1)%n], corners[i], corners[(i+1)%n], corners[(i+2)%n]
		for step := range 10 {
			t := float64(step) / 10
			out = append(out, point{between(a.x, b.x, c.x, d.x, t), between(a.y, b.y, c.y, d.y, t)})
		}
	}
	return out
}

// between is a spline from b to c (Catmull-Rom).
func between(a, b, c, d, t float64) float64 {
	return 0.5 * (2*b + (c-a)*t + (2*a-5*b+4*c-d)*t*t + (3*b-a-3*c+d)*t*t*t)
}

// oval is a path around a point.
func oval(x, y, rx, ry float64) []point {
	out := make([]point, 64)
	for i := range out {
		a := float64(i) / float64(len(out)) * 2 * math.Pi
		out[i] = point{x + rx*math.Cos(a), y + ry*math.Sin(a)}
	}
	return out
}

// stroke is a path around a line of some width.
func stroke(width float64, xy ...float64) []point {
	line := points(xy...)
	var there, back []point
	for i, p := range line {
		a, b := line[max(i-1, 0)], line[min(i+1, len(line)-1)]
		dx, dy := b.x-a.x, b.y-a.y
		l := math.Hypot(dx, dy) / (width / 2)
		there = append(there, point{p.x - dy/l, p.y + dx/l})
		back = append([]point{{p.x + dy/l, p.y - dx/l}}, back...)
	}
	return append(there, back...)
}

// arc is a stroke along a part of an oval, in turns from 0 to 1, clockwise from the right.
func arc(width, x, y, rx, ry, from, to float64) []point {
	var xy []float64
	for i := range 41 {
		a := (from + (to-from)*float64(i)/40) * 2 * math.Pi
		xy = append(xy, x+rx*math.Cos(a), y+ry*math.Sin(a))
	}
	return stroke(width, xy...)
}

// holds says whether a point is inside.
func (s *shape) holds(x, y float64) bool {
	if s.box == [4]float64{} {
		s.box = [4]float64{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
		for _, p := range s.path {
			s.box = [4]float64{min(s.box[0], p.x), min(s.box[1], p.y), max(s.box[2], p.x), max(s.box[3], p.y)}
		}
	}
	if x < s.box[0] || y < s.box[1] || x > s.box[2] || y > s.box[3] {
		return false
	}
	inside := false
	for i, a := range s.path {
		b := s.path[(i+1)%len(s.path)]
		if (a.y > y) != (b.y > y) && x < (b.x-a.x)*(y-a.y)/(b.y-a.y)+a.x {
			inside = !inside
		}
	}
	return inside
}

// topmost is the color of the last shape that holds a point.
func topmost(shapes []*shape, x, y float64) (color3, bool) {
	for _, s := range slices.Backward(shapes) {
		if !s.holds(x, y) {
			continue
		}
		if s.foot == (color3{}) {
			return s.color, true
		}
		return s.color.mix(s.foot, (y-s.box[1])/(s.box[3]-s.box[1])), true
	}
	return color3{}, false
}

// still paints shapes on a table: a wall, and their shadow below.
func still(width, height int, wall, table color3, edge, shadowX, shadowY, shadowWidth float64, shapes []*shape) image.Image {
	return paint(width, height, func(x, y float64) color3 {
		if c, ok := topmost(shapes, x, y); ok {
			return c
		}
		c := wall
		if y > edge {
			c = table
		}
		d := math.Hypot((x-shadowX)/shadowWidth, (y-shadowY)/(shadowWidth*0.13))
		return c.mix(color3{}, 0.28*max(0, 1-d))
	})
}
