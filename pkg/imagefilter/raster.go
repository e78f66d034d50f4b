package imagefilter

import (
	"context"
	"fmt"
	"image"
	"image/color"
)

// raster is a picture as rows of NRGBA, which are made one by one when they are asked for. So a large picture is never held
// twice: scaling takes rows of what the decoder made.
type raster struct {
	width, height int
	opaque        bool // every alpha is 255

	// open gives a reader of rows with a scratch of its own: each goroutine opens one. A reader fills dst, of 4*width bytes.
	open func() rowReader

	planes *image.YCbCr // what rows come from, when it is that
}

type rowReader func(ctx context.Context, dst []uint8, y int) error

// plain makes a raster whose reader needs no scratch and can't fail.
func plain(size image.Point, opaque bool, row func(dst []uint8, y int)) *raster {
	read := func(ctx context.Context, dst []uint8, y int) error {
		row(dst, y)
		return ctx.Err()
	}
	return &raster{width: size.X, height: size.Y, opaque: opaque, open: func() rowReader { return read }}
}

// rasterOf gives the rows of a picture, whose palette indexes have been checked.
func rasterOf(img image.Image) *raster {
	size, at := img.Bounds().Size(), img.Bounds().Min
	switch img := img.(type) {
	case *image.NRGBA:
		return plain(size, img.Opaque(), func(dst []uint8, y int) {
			copy(dst, img.Pix[img.PixOffset(at.X, at.Y+y):][:4*size.X])
		})
	case *image.YCbCr:
		r := plain(size, true, func(dst []uint8, y int) { yCbCrRow(dst, img, y) })
		r.planes = img
		return r
	case *image.NYCbCrA:
		return plain(size, img.Opaque(), func(dst []uint8, y int) {
			yCbCrRow(dst, &img.YCbCr, y)
			for x, v := range img.A[y*img.AStride:][:size.X] {
				dst[4*x+3] = v
			}
		})
	case *image.Gray:
		return plain(size, true, func(dst []uint8, y int) {
			for x, v := range img.Pix[img.PixOffset(at.X, at.Y+y):][:size.X] {
				dst[4*x], dst[4*x+1], dst[4*x+2], dst[4*x+3] = v, v, v, 255
			}
		})
	case *image.RGBA:
		return rgbaRaster(img)
	case *image.CMYK:
		return plain(size, true, func(dst []uint8, y int) {
			for x := range size.X {
				p := img.Pix[img.PixOffset(at.X+x, at.Y+y):][:4]
				dst[4*x], dst[4*x+1], dst[4*x+2] = color.CMYKToRGB(p[0], p[1], p[2], p[3])
				dst[4*x+3] = 255
			}
		})
	case *image.Paletted:
		return palettedRaster(img, img.Rect)
	}
	return anyRaster(img)
}

func rgbaRaster(img *image.RGBA) *raster {
	size, at, opaque := img.Rect.Size(), img.Rect.Min, img.Opaque()
	return plain(size, opaque, func(dst []uint8, y int) {
		copy(dst, img.Pix[img.PixOffset(at.X, at.Y+y):][:4*size.X])
		if opaque {
			return
		}
		for i := 0; i < len(dst); i += 4 {
			p := dst[i : i+4 : i+4]
			if a := uint32(p[3]); a != 0 && a != 255 {
				for c := range 3 {
					p[c] = uint8(min((uint32(p[c])*255+a/2)/a, 255))
				}
			}
		}
	})
}

// palettedRaster gives the rows of a picture that covers a part of a canvas, as the first of an animation may. The rest is
// transparent.
func palettedRaster(img *image.Paletted, canvas image.Rectangle) *raster {
	table, opaque := make([]color.NRGBA, len(img.Palette)), img.Rect.Eq(canvas)
	for i, c := range img.Palette {
		table[i], _ = color.NRGBAModel.Convert(c).(color.NRGBA)
		opaque = opaque && table[i].A == 255
	}
	return plain(canvas.Size(), opaque, func(dst []uint8, y int) {
		clear(dst)
		y += canvas.Min.Y
		if y < img.Rect.Min.Y || y >= img.Rect.Max.Y {
			return
		}
		dst = dst[4*(img.Rect.Min.X-canvas.Min.X):]
		for x, index := range img.Pix[img.PixOffset(img.Rect.Min.X, y):][:img.Rect.Dx()] {
			c := table[index]
			dst[4*x], dst[4*x+1], dst[4*x+2], dst[4*x+3] = c.R, c.G, c.B, c.A
		}
	})
}

// anyRaster reads pixel by pixel: pictures of 16 bits.
func anyRaster(img image.Image) *raster {
	deep, ok := img.(interface {
		image.RGBA64Image
		Opaque() bool
	})
	if !ok { // no decoder makes such a picture
		panic(fmt.Sprintf("imagefilter: a picture of type %T", img))
	}
	at := img.Bounds().Min
	return plain(img.Bounds().Size(), deep.Opaque(), func(dst []uint8, y int) {
		for x := range len(dst) / 4 {
			c, p := deep.RGBA64At(at.X+x, at.Y+y), dst[4*x:4*x+4:4*x+4]
			p[0], p[1], p[2], p[3] = 0, 0, 0, uint8(c.A>>8)
			if c.A != 0 {
				p[0], p[1], p[2] = shallow(c.R, c.A), shallow(c.G, c.A), shallow(c.B, c.A)
			}
		}
	})
}

// shallow makes a byte of a color of 16 bits, which is at most its alpha.
func shallow(v, alpha uint16) uint8 { return uint8(uint32(v) * 0xFFFF / uint32(alpha) >> 8) }

// yCbCrRow converts a row of planes that begin at the origin, as those of decoders do.
func yCbCrRow(dst []uint8, img *image.YCbCr, y int) {
	stepX, stepY := subsampling(img.SubsampleRatio)
	light := img.Y[y*img.YStride:]
	blue, red := img.Cb[y/stepY*img.CStride:], img.Cr[y/stepY*img.CStride:]
	n := len(dst) / 4
	for x := 0; x < n; {
		cb, cr := blue[x/stepX], red[x/stepX]
		for end := min(x+stepX, n); x < end; x++ {
			p := dst[4*x : 4*x+4 : 4*x+4]
			p[0], p[1], p[2] = color.YCbCrToRGB(light[x], cb, cr)
			p[3] = 255
		}
	}
}

// subsampling gives how many pixels share a sample of color, across and down.
func subsampling(ratio image.YCbCrSubsampleRatio) (x, y int) {
	switch ratio {
	case image.YCbCrSubsampleRatio422:
		return 2, 1
	case image.YCbCrSubsampleRatio420:
		return 2, 2
	case image.YCbCrSubsampleRatio440:
		return 1, 2
	case image.YCbCrSubsampleRatio411:
		return 4, 1
	case image.YCbCrSubsampleRatio410:
		return 4, 2
	default:
		return 1, 1
	}
}

// image makes the whole picture.
func (r *raster) image(ctx context.Context) (*image.NRGBA, error) {
	out := image.NewNRGBA(image.Rect(0, 0, r.width, r.height))
	err := inStrips(ctx, r.height, 1, func(ctx context.Context, from, to int) error {
		read := r.open()
		for y := from; y < to; y++ {
			if err := read(ctx, out.Pix[y*out.Stride:][:4*r.width], y); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}
