package imagefilter

import (
	"context"
	"image"
	"image/color"
)

// reduce averages blocks of kx by ky pixels. It is what makes a small picture of a large one quickly: it touches each source
// pixel once, and of a JPEG's planes only the averages are turned into colors.
func (r *raster) reduce(kx, ky int) *raster {
	if kx == 1 && ky == 1 {
		return r
	}
	out := &raster{width: (r.width + kx - 1) / kx, height: (r.height + ky - 1) / ky, opaque: r.opaque}
	if r.planes != nil {
		out.open = func() rowReader { return planesReducer(r.planes, kx, ky) }
	} else {
		out.open = func() rowReader { return r.reducer(kx, ky) }
	}
	return out
}

// reducer sums colors times their alpha.
func (r *raster) reducer(kx, ky int) rowReader {
	read, row, sums := r.open(), make([]uint8, 4*r.width), make([]uint64, 4*((r.width+kx-1)/kx))
	return func(ctx context.Context, dst []uint8, y int) error {
		clear(sums)
		from, to := y*ky, min(y*ky+ky, r.height)
		for ; from < to; from++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := read(ctx, row, from); err != nil {
				return err
			}
			sumBlocks(sums, row, kx)
		}
		rows := uint64(to - y*ky)
		for x := range len(dst) / 4 {
			n := rows * uint64(min(kx, r.width-x*kx))
			average(dst[4*x:4*x+4:4*x+4], sums[4*x:4*x+4:4*x+4], n)
		}
		return nil
	}
}

func sumBlocks(sums []uint64, row []uint8, kx int) {
	for to := 0; len(row) > 0; to += 4 {
		block := row[:min(4*kx, len(row))]
		row = row[len(block):]
		s := sums[to : to+4 : to+4]
		for i := 0; i < len(block); i += 4 {
			p := block[i : i+4 : i+4]
			a := uint64(p[3])
			s[0] += uint64(p[0]) * a
			s[1] += uint64(p[1]) * a
			s[2] += uint64(p[2]) * a
			s[3] += a
		}
	}
}

func average(dst []uint8, sums []uint64, n uint64) {
	a := sums[3]
	if a == 0 {
		clear(dst)
		return
	}
	for c := range 3 {
		dst[c] = uint8((sums[c] + a/2) / a)
	}
	dst[3] = uint8((a + n/2) / n)
}

// planesReducer averages light and colors each in its plane, then turns the averages into pixels.
func planesReducer(img *image.YCbCr, kx, ky int) rowReader {
	width, height := img.Rect.Dx(), img.Rect.Dy()
	stepX, stepY := subsampling(img.SubsampleRatio)
	light := newPlaneReducer(img.Y, img.YStride, 1, 1, width, kx)
	blue := newPlaneReducer(img.Cb, img.CStride, stepX, stepY, width, kx)
	red := newPlaneReducer(img.Cr, img.CStride, stepX, stepY, width, kx)
	return func(ctx context.Context, dst []uint8, y int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		from, to := y*ky, min(y*ky+ky, height)
		ys, cbs, crs := light.row(from, to), blue.row(from, to), red.row(from, to)
		for x := range len(dst) / 4 {
			p := dst[4*x : 4*x+4 : 4*x+4]
			p[0], p[1], p[2] = color.YCbCrToRGB(ys[x], cbs[x], crs[x])
			p[3] = 255
		}
		return nil
	}
}

// planeReducer averages blocks of a plane, of which one sample stands for stepY pixels down, and for a whole part of a block
// or for repeat pixels across.
type planeReducer struct {
	pix           []uint8
	stride, stepY int
	repeat        int
	block         int      // how many sums make an average
	sums          []uint32 // of at most 65535 rows
	averages      []uint8
}

func newPlaneReducer(pix []uint8, stride, stepX, stepY, width, kx int) *planeReducer {
	p := &planeReducer{pix: pix, stride: stride, stepY: stepY, repeat: stepX, block: kx, sums: make([]uint32, width), averages: make([]uint8, (width+kx-1)/kx)}
	if kx%stepX == 0 {
		p.repeat, p.block, p.sums = 1, kx/stepX, p.sums[:(width+stepX-1)/stepX]
	}
	return p
}

// row averages the pixel rows [from, to). What it gives is good until it is called again.
func (p *planeReducer) row(from, to int) []uint8 {
	p.add(from, to)
	by, sums := reciprocalOf((to-from)*p.block), p.sums
	whole := p.averages[:len(sums)/p.block]
	switch p.block {
	case 1:
		for x := range whole {
			whole[x] = by.times(uint64(sums[x]))
		}
	case 2:
		for x := range whole {
			pair := sums[2*x : 2*x+2 : 2*x+2]
			whole[x] = by.times(uint64(pair[0] + pair[1]))
		}
	default:
		for x := range whole {
			whole[x] = by.times(total(sums[x*p.block:][:p.block]))
		}
	}
	if rest := sums[len(whole)*p.block:]; len(rest) > 0 { // at the right edge
		p.averages[len(whole)] = reciprocalOf((to - from) * len(rest)).times(total(rest))
	}
	return p.averages
}

func total(sums []uint32) uint64 {
	all := uint64(0)
	for _, v := range sums {
		all += uint64(v)
	}
	return all
}

// add sums the rows that the pixel rows [from, to) are in, each as often as they are in it.
func (p *planeReducer) add(from, to int) {
	clear(p.sums)
	for from < to {
		row := from / p.stepY
		next := min((row+1)*p.stepY, to)
		times, samples := uint32(next-from), p.pix[row*p.stride:]
		from = next
		if p.repeat == 1 {
			sums := p.sums
			for x, v := range samples[:len(sums)] {
				sums[x] += uint32(v) * times
			}
			continue
		}
		for x := range p.sums {
			p.sums[x] += uint32(samples[x/p.repeat]) * times
		}
	}
}

// reciprocal divides by a number of at most 32 bits: it multiplies, which is quicker.
type reciprocal struct{ half, factor uint64 }

const reciprocalBits = 48

func reciprocalOf(n int) reciprocal {
	return reciprocal{uint64(n) / 2, 1<<reciprocalBits/uint64(n) + 1}
}

// times divides a sum, which is at most the number times 255, and rounds.
func (r reciprocal) times(sum uint64) uint8 {
	return uint8((sum + r.half) * r.factor >> reciprocalBits)
}
