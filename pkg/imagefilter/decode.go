package imagefilter

import (
	"context"
	"fmt"
	"image"
	"io"

	"golang.org/x/image/webp"
)

// decoded reads a picture: its rows as they are stored, and what its header says. Of an animation it reads the first frame.
func decoded(ctx context.Context, src io.ReadSeeker, limits Limits) (*raster, Info, error) {
	f, info, err := inspect(ctx, src, limits)
	if err != nil {
		return nil, Info{}, err
	}
	in := &input{ctx: ctx, src: src}
	var r *raster
	if err := guarded(func() error {
		img, err := f.decode(in.rewound())
		if err != nil {
			return err
		}
		width, height := info.orientation.shown(info.Width, info.Height)
		r, err = checked(img, image.Rect(0, 0, width, height))
		return err
	}); err != nil {
		return nil, Info{}, in.problem(err)
	}
	return r, info, nil
}

// checked makes sure that a decoded picture is what its header promised and that its pixels have colors.
func checked(img image.Image, canvas image.Rectangle) (*raster, error) {
	frame, ok := img.(*image.Paletted)
	if !ok {
		if !img.Bounds().Eq(canvas) {
			return nil, fmt.Errorf("decoded to %v, not %v", img.Bounds(), canvas)
		}
		return rasterOf(img), nil
	}
	if !frame.Rect.In(canvas) {
		return nil, fmt.Errorf("a frame at %v is outside %v", frame.Rect, canvas)
	}
	var used [256]bool
	for y := range frame.Rect.Dy() {
		for _, index := range frame.Pix[y*frame.Stride:][:frame.Rect.Dx()] {
			used[index] = true
		}
	}
	for index, is := range used {
		if is && index >= len(frame.Palette) {
			return nil, fmt.Errorf("color %d of a palette of %d", index, len(frame.Palette))
		}
	}
	return palettedRaster(frame, canvas), nil
}

// decodeWebP has the levels of a lossy picture over the whole range of a byte: WebP keeps light from 16 to 235 and colors from
// 16 to 240, as video does, and the decoder leaves that to us.
func decodeWebP(r io.Reader) (image.Image, error) {
	img, err := webp.Decode(r)
	switch img := img.(type) {
	case *image.YCbCr:
		widen(img)
	case *image.NYCbCrA:
		widen(&img.YCbCr)
	}
	return img, err
}

func widen(img *image.YCbCr) {
	var light, tint [256]uint8
	for i := range light {
		light[i] = toByte(float64(i-16) * 255 / 219)
		tint[i] = toByte(128 + float64(i-128)*255/224)
	}
	for _, plane := range []struct {
		pix   []uint8
		table *[256]uint8
	}{{img.Y, &light}, {img.Cb, &tint}, {img.Cr, &tint}} {
		for i, v := range plane.pix {
			plane.pix[i] = plane.table[v]
		}
	}
}
