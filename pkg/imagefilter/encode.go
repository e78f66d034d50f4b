package imagefilter

import (
	"bytes"
	"image"
	"image/jpeg"
	"image/png"

	"github.com/HugoSmits86/nativewebp"

	"github.com/svcctl/svc/pkg/errs"
)

const (
	typeJPEG = "image/jpeg"
	typePNG  = "image/png"
	typeWebP = "image/webp"

	defaultQuality = 85

	// What WebP can hold, and what the lossless encoder can do with about 60 bytes of memory for each pixel.
	maxWebPSide       = 16383
	maxLosslessPixels = 16_000_000
)

// warningLossless is what Result.Warning says where lossy WebP was asked for and this build has none.
const warningLossless = "lossy WebP needs a build with cgo; the picture is lossless WebP"

// output is how the result is written.
type output struct {
	mediaType     string // empty: by the source
	quality       float64
	lossless      bool
	keepIfSmaller bool // the source, when the result has no fewer bytes
}

// typeFor gives the type of the result. Without one in the filter, it is that of the source where we can write it: GIF
// becomes PNG; BMP and TIFF become JPEG, or PNG where something is transparent.
func (o output) typeFor(source string, opaque bool) string {
	switch {
	case o.mediaType != "":
		return o.mediaType
	case source == typeJPEG || source == typePNG || source == typeWebP:
		return source
	case source == "image/gif" || !opaque:
		return typePNG
	}
	return typeJPEG
}

// losslessWebP says whether the result is written by the encoder that takes much memory.
func (o output) losslessWebP(mediaType string) bool {
	return mediaType == typeWebP && (o.lossless || !hasLossyWebP)
}

func (o output) encode(img *image.NRGBA, mediaType string) (data []byte, warning string, err error) {
	var buffer bytes.Buffer
	switch mediaType {
	case typeJPEG:
		err = jpeg.Encode(&buffer, onWhite(img), &jpeg.Options{Quality: max(int(o.quality+0.5), 1)})
	case typePNG:
		err = png.Encode(&buffer, img)
	default:
		return o.encodeWebP(img)
	}
	return buffer.Bytes(), "", err
}

func (o output) encodeWebP(img *image.NRGBA) (data []byte, warning string, err error) {
	size := img.Rect.Size()
	if size.X > maxWebPSide || size.Y > maxWebPSide {
		return nil, "", errs.New(errs.Limit, "image_too_large", "the result is %d×%d pixels; a side of a WebP may have %d", size.X, size.Y, maxWebPSide)
	}
	if !o.losslessWebP(typeWebP) {
		data, err = encodeLossyWebP(img, o.quality)
		return data, "", err
	}
	if size.X*size.Y > maxLosslessPixels {
		return nil, "", errs.New(errs.Limit, "image_too_large", "the result is %d×%d pixels; together these may be %d of a lossless WebP", size.X, size.Y, maxLosslessPixels)
	}
	if !o.lossless {
		warning = warningLossless
	}
	var buffer bytes.Buffer
	err = nativewebp.Encode(&buffer, img, nil)
	return buffer.Bytes(), warning, err
}

// onWhite puts a picture on white, for a format without transparency. It works in place.
func onWhite(img *image.NRGBA) image.Image {
	for i := 0; i < len(img.Pix); i += 4 {
		p := img.Pix[i : i+4 : i+4]
		if p[3] == 255 {
			continue
		}
		a := int(p[3])
		for c := range 3 {
			p[c] = uint8((int(p[c])*a + 255*(255-a) + 127) / 255)
		}
		p[3] = 255
	}
	// Of opaque pixels, RGBA and NRGBA are the same bytes, and the encoder has a quick way for RGBA.
	return &image.RGBA{Pix: img.Pix, Stride: img.Stride, Rect: img.Rect}
}
