//go:build cgo

package imagefilter

import (
	"image"

	"github.com/chai2010/webp"
)

// hasLossyWebP says whether this build can write lossy WebP.
const hasLossyWebP = true

func encodeLossyWebP(img *image.NRGBA, quality float64) ([]byte, error) {
	// libwebp takes colors that are not multiplied by their alpha, so the type has the wrong name here.
	return webp.EncodeRGBA(&image.RGBA{Pix: img.Pix, Stride: img.Stride, Rect: img.Rect}, float32(quality))
}
