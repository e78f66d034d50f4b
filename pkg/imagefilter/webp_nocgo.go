//go:build !cgo

package imagefilter

import (
	"errors"
	"image"
)

// hasLossyWebP says whether this build can write lossy WebP.
const hasLossyWebP = false

func encodeLossyWebP(*image.NRGBA, float64) ([]byte, error) {
	return nil, errors.New("this build has no lossy WebP")
}
