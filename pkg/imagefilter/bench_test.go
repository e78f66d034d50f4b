package imagefilter_test

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"testing"

	"github.com/svcctl/svc/pkg/imagefilter"
	"github.com/svcctl/svc/pkg/schema"
)

// photo is a JPEG of 4:2:0 with as much detail as a photograph has.
func photo(tb testing.TB, width, height int) []byte {
	tb.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	noise := uint32(1)
	for y := range height {
		for x := range width {
			noise = noise*1664525 + 1013904223
			n := int(noise>>28) - 8
			img.SetNRGBA(x, y, color.NRGBA{uint8(128 + 100*x/width + n), uint8(40 + 150*y/height + n), uint8((x/37+y/29)%2*60 + 90 + n), 255})
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 88}); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func BenchmarkJPEGTo800(b *testing.B) {
	file := photo(b, 4000, 3000)
	for _, resampling := range []string{"lanczos", "catmullRom", "linear", "nearestNeighbor"} {
		f := compile(b, schema.ImageStep{Width: new(800.0), Resampling: resampling, OutputType: "jpg"})
		b.Run(resampling, func(b *testing.B) {
			for b.Loop() {
				if _, err := f.Apply(b.Context(), bytes.NewReader(file), imagefilter.Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("only decoded", func(b *testing.B) {
		for b.Loop() {
			if _, err := jpeg.Decode(bytes.NewReader(file)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
