package imagefilter

import (
	"context"
	"image"
)

// orientation is how a stored picture is to be shown: first its columns become rows, if swap, then it is mirrored.
type orientation struct{ swap, mirrorX, mirrorY bool }

// orientationOf gives what the number of EXIF's tag means; anything but 2 to 8 is the right way up.
func orientationOf(number int) orientation {
	switch number {
	case 2:
		return orientation{mirrorX: true}
	case 3:
		return orientation{mirrorX: true, mirrorY: true}
	case 4:
		return orientation{mirrorY: true}
	case 5:
		return orientation{swap: true}
	case 6:
		return orientation{swap: true, mirrorX: true}
	case 7:
		return orientation{swap: true, mirrorX: true, mirrorY: true}
	case 8:
		return orientation{swap: true, mirrorY: true}
	}
	return orientation{}
}

// stored gives the part of the stored picture that is shown as the part w of one of the shown size.
func (o orientation) stored(w window, width, height int) window {
	if o.mirrorX {
		w.x = float64(width) - w.x - w.width
	}
	if o.mirrorY {
		w.y = float64(height) - w.y - w.height
	}
	if o.swap {
		w = window{w.y, w.x, w.height, w.width}
	}
	return w
}

// shown turns width and height of the stored picture into those of the shown one, or back.
func (o orientation) shown(width, height int) (w, h int) {
	if o.swap {
		return height, width
	}
	return width, height
}

// turn gives the picture the right way up.
func (o orientation) turn(ctx context.Context, img *image.NRGBA) (*image.NRGBA, error) {
	if o == (orientation{}) {
		return img, nil
	}
	width, height := o.shown(img.Rect.Dx(), img.Rect.Dy())
	out := image.NewNRGBA(image.Rect(0, 0, width, height))
	err := inStrips(ctx, height, 1, func(ctx context.Context, from, to int) error {
		for y := from; y < to; y++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			o.turnRow(out.Pix[y*out.Stride:][:4*width], img, y, height)
		}
		return nil
	})
	return out, err
}

func (o orientation) turnRow(dst []uint8, img *image.NRGBA, y, height int) {
	if o.mirrorY {
		y = height - 1 - y
	}
	from, step := y*img.Stride, 4 // of the first pixel, and to the next one
	if o.swap {
		from, step = 4*y, img.Stride
	}
	if o.mirrorX {
		from += (len(dst)/4 - 1) * step
		step = -step
	}
	for x := 0; x < len(dst); x += 4 {
		copy(dst[x:x+4], img.Pix[from:from+4])
		from += step
	}
}
