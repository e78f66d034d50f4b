package imagefilter

import (
	"context"
	"image"
	"math"
)

// change is a change of the three colors of one pixel.
type change func(p []uint8)

// adjust makes changes in place, one after the other for each pixel.
func adjust(ctx context.Context, img *image.NRGBA, changes []change) error {
	if len(changes) == 0 {
		return nil
	}
	width := 4 * img.Rect.Dx()
	return inStrips(ctx, img.Rect.Dy(), 1, func(ctx context.Context, from, to int) error {
		for y := from; y < to; y++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			row := img.Pix[y*img.Stride:][:width]
			for i := 0; i < width; i += 4 {
				for _, do := range changes {
					do(row[i : i+3 : i+3])
				}
			}
		}
		return nil
	})
}

// levels changes each color by a function from 0…1 to 0…1.
func levels(of func(v float64) float64) change {
	var table [256]uint8
	for i := range table {
		table[i] = toByte(of(float64(i)/255) * 255)
	}
	return func(p []uint8) { p[0], p[1], p[2] = table[p[0]], table[p[1]], table[p[2]] }
}

func toByte(v float64) uint8 { return uint8(min(max(v+0.5, 0), 255)) }

func brightness(percent float64) change {
	return levels(func(v float64) float64 { return v + percent/100 })
}

// contrast goes from gray at -100 to black and white at 100.
func contrast(percent float64) change {
	slope := 1 + percent/100
	if percent > 0 {
		slope = 1 / (1 - percent/100) // infinite at 100
	}
	return levels(func(v float64) float64 {
		if math.IsInf(slope, 1) {
			return math.Round(v)
		}
		return 0.5 + (v-0.5)*slope
	})
}

func gamma(value float64) change {
	return levels(func(v float64) float64 { return math.Pow(v, 1/value) })
}

// saturation scales how far colors are from gray, and keeps their lightness (the mean of the strongest and the weakest) and
// hue. A color is at most as saturated as its lightness lets it be.
func saturation(percent float64) change {
	factor := 1 + percent/100
	return func(p []uint8) {
		low, high := min(p[0], p[1], p[2]), max(p[0], p[1], p[2])
		if low == high {
			return
		}
		middle, spread := (float64(low)+float64(high))/2, float64(high)-float64(low)
		widest := 255 - math.Abs(2*middle-255)
		by := min(factor, widest/spread)
		for c, v := range p {
			p[c] = toByte(middle + (float64(v)-middle)*by)
		}
	}
}

func invert(p []uint8) { p[0], p[1], p[2] = 255-p[0], 255-p[1], 255-p[2] }

// grayscale weighs colors as television did.
func grayscale(p []uint8) {
	v := toByte(0.299*float64(p[0]) + 0.587*float64(p[1]) + 0.114*float64(p[2]))
	p[0], p[1], p[2] = v, v, v
}

// sharpen adds to each pixel what sets it apart from its blurred surroundings.
func sharpen(ctx context.Context, img *image.NRGBA, sigma float64) error {
	soft, err := blurred(ctx, img, sigma)
	if err != nil {
		return err
	}
	for i := 0; i < len(img.Pix); i += 4 {
		p, s := img.Pix[i:i+3:i+3], soft.Pix[i:i+3:i+3]
		for c, v := range p {
			p[c] = uint8(min(max(2*int(v)-int(s[c]), 0), 255))
		}
	}
	return nil
}
