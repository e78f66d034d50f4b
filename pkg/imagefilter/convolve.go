package imagefilter

import (
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"math"
	"runtime"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// window is a part of a picture, in pixels; its edges may be between two.
type window struct{ x, y, width, height float64 }

// scale makes a picture of width by height pixels of a part of another.
func (r *raster) scale(ctx context.Context, part window, width, height int, k kernel) (*image.NRGBA, error) {
	if k.support > 0 {
		kx, ky := reduction(part.width/float64(width)), reduction(part.height/float64(height))
		r = r.reduce(kx, ky)
		part = window{part.x / float64(kx), part.y / float64(ky), part.width / float64(kx), part.height / float64(ky)}
	}
	return r.convolve(ctx, scaling(k, width, r.width, part.x, part.width), scaling(k, height, r.height, part.y, part.height))
}

// reduction gives the side of the blocks that are averaged before a kernel scales by the rest of the ratio. The kernel still
// has a ratio of two or more to do, so that the result looks as if it had done it all.
func reduction(ratio float64) int { return max(int(ratio/2), 1) }

func blurred(ctx context.Context, img *image.NRGBA, sigma float64) (*image.NRGBA, error) {
	r := rasterOf(img)
	return r.convolve(ctx, blurring(sigma, r.width), blurring(sigma, r.height))
}

// blurMemory is how many bytes the rows take that blurring keeps.
func blurMemory(sigma float64, width, height int) int64 {
	if sigma == 0 {
		return 0
	}
	kept := runtime.GOMAXPROCS(0) * (2*int(math.Ceil(blurReach*sigma)) + 1)
	return 8 * int64(width) * int64(min(kept, height))
}

// convolve makes a picture of len(across) by len(down) pixels, each of which is a weighted sum of those that its taps name.
// Colors count by their alpha, so that what is invisible does not bleed.
func (r *raster) convolve(ctx context.Context, across, down []taps) (*image.NRGBA, error) {
	out := image.NewNRGBA(image.Rect(0, 0, len(across), len(down)))
	kept := 1 // source rows that one row of the result needs
	for _, t := range down {
		kept = max(kept, len(t.weights))
	}
	err := inStrips(ctx, len(down), kept, func(ctx context.Context, from, to int) error {
		s := newStrip(r, across, kept)
		for y := from; y < to; y++ {
			if err := s.row(ctx, out.Pix[y*out.Stride:][:4*len(across)], down[y]); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// A pixel that is worked on has its colors times its alpha, and its alpha times 255, in four lanes of 16 bits; red is the
// lowest. Sums of pixels times weights have two signed lanes of 32 bits each: red and blue, green and alpha. So one
// multiplication does two channels.
const (
	lanes = 0x0000FFFF0000FFFF
	full  = 255 * 255 // the most in a lane
)

// spread makes such pixels of NRGBA.
func spread(dst []uint64, source []uint8) {
	for x := range dst {
		v := uint64(binary.LittleEndian.Uint32(source[4*x:]))
		alpha := v >> 24
		v = (v | v<<16) & lanes
		v = (v | v<<8) & 0x000000FF00FF00FF
		dst[x] = (v | 255<<48) * alpha
	}
}

// weighted is a sum of pixels times weights.
type weighted [2]int64

func (w *weighted) add(weight int32, pixel uint64) {
	w[0] += int64(weight) * int64(pixel&lanes)
	w[1] += int64(weight) * int64(pixel>>16&lanes)
}

func (w *weighted) red() int64   { return int64(int32(w[0])) }
func (w *weighted) blue() int64  { return (w[0] - w.red()) >> 32 }
func (w *weighted) green() int64 { return int64(int32(w[1])) }
func (w *weighted) alpha() int64 { return (w[1] - w.green()) >> 32 }

// strip makes rows of a result from top to bottom. It keeps the source rows that the next ones need, scaled across.
type strip struct {
	read   rowReader
	across []taps
	opaque bool
	bytes  []uint8
	source []uint64
	rows   [][]uint64 // by number modulo len(rows)
	number []int      // of the source row in each of rows
	sums   []weighted
}

func newStrip(r *raster, across []taps, kept int) *strip {
	s := &strip{
		read: r.open(), across: across, opaque: r.opaque,
		bytes: make([]uint8, 4*r.width), source: make([]uint64, r.width), rows: make([][]uint64, kept), number: make([]int, kept), sums: make([]weighted, len(across)),
	}
	for i := range s.rows {
		s.rows[i], s.number[i] = make([]uint64, len(across)), -1
	}
	return s
}

func (s *strip) row(ctx context.Context, dst []uint8, down taps) error {
	clear(s.sums)
	for i, weight := range down.weights {
		row, err := s.scaledAcross(ctx, down.first+i)
		if err != nil {
			return err
		}
		sums := s.sums[:len(row)]
		for x, pixel := range row {
			sums[x].add(weight, pixel)
		}
	}
	for x := range s.sums {
		sum, p := &s.sums[x], dst[4*x:4*x+4:4*x+4]
		if s.opaque {
			p[0], p[1], p[2], p[3] = level(sum.red()), level(sum.green()), level(sum.blue()), 255
			continue
		}
		alpha := sum.alpha()
		if p[3] = level(alpha); p[3] == 0 {
			continue
		}
		p[0], p[1], p[2] = visible(sum.red(), alpha), visible(sum.green(), alpha), visible(sum.blue(), alpha)
	}
	return nil
}

// level turns a sum into a byte.
func level(sum int64) uint8 {
	return uint8(min(max((sum+255<<(weightBits-1))/(255<<weightBits), 0), 255))
}

// visible takes the alpha out of a color.
func visible(sum, alpha int64) uint8 { return uint8(min(max((sum*255+alpha/2)/alpha, 0), 255)) }

// scaledAcross gives a row of the source, as wide as the result.
func (s *strip) scaledAcross(ctx context.Context, y int) ([]uint64, error) {
	at := y % len(s.rows)
	row := s.rows[at]
	if s.number[at] == y {
		return row, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.read(ctx, s.bytes, y); err != nil {
		return nil, err
	}
	s.number[at] = y
	spread(s.source, s.bytes)
	for x, t := range s.across {
		var sum weighted
		pixels := s.source[t.first:t.end()]
		for i, weight := range t.weights[:len(pixels)] {
			sum.add(weight, pixels[i])
		}
		alpha := within(sum.alpha(), full)
		row[x] = within(sum.red(), alpha) | within(sum.green(), alpha)<<16 | within(sum.blue(), alpha)<<32 | alpha<<48
	}
	return row, nil
}

// within takes the weights' factor out of a sum and keeps what the negative weights of a kernel make of an edge in range: no
// color is more than its alpha.
func within(sum int64, most uint64) uint64 { return uint64(min(max(sum>>weightBits, 0), int64(most))) }

// leastRows is how many rows are worth a goroutine.
const leastRows = 16

// inStrips shares rows among goroutines, of which each gets least or more, and waits for them. A panic in one is an error, not
// the end of the process.
func inStrips(ctx context.Context, rows, least int, do func(ctx context.Context, from, to int) error) error {
	n := max(min(runtime.GOMAXPROCS(0), rows/max(least, leastRows)), 1)
	group, ctx := errgroup.WithContext(ctx)
	for i := range n {
		group.Go(func() (err error) {
			defer func() {
				if p := recover(); p != nil {
					err = fmt.Errorf("imagefilter: panic: %v\n%s", p, debug.Stack())
				}
			}()
			return do(ctx, rows*i/n, rows*(i+1)/n)
		})
	}
	return group.Wait()
}
