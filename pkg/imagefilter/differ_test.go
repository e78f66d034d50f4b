package imagefilter_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"testing"

	"github.com/disintegration/imaging"

	"github.com/svcctl/svc/pkg/imagefilter"
	"github.com/svcctl/svc/pkg/schema"
)

// compile gives the filter of some steps.
func compile(tb testing.TB, steps ...schema.ImageStep) *imagefilter.Filter {
	tb.Helper()
	filters, problems := imagefilter.Compile(schema.ImageFilter{"f": steps})
	if len(problems) > 0 {
		tb.Fatal(problems)
	}
	return filters["f"]
}

// apply runs a filter on a file.
func apply(tb testing.TB, f *imagefilter.Filter, file []byte) imagefilter.Result {
	tb.Helper()
	result, err := f.Apply(tb.Context(), bytes.NewReader(file), imagefilter.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return result
}

func pngOf(tb testing.TB, img image.Image) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// nrgbaOf decodes a PNG.
func nrgbaOf(tb testing.TB, file []byte) *image.NRGBA {
	tb.Helper()
	img, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		tb.Fatal(err)
	}
	return imaging.Clone(img)
}

// drawn is a picture with what shows mistakes: edges, thin lines, a slow gradient, strong colors, and a corner that differs
// from the others.
func drawn(width, height int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			c := color.NRGBA{uint8(255 * x / width), uint8(255 * y / height), 128, 255}
			dx, dy := 2*x-width, 2*y-height
			switch {
			case x < width/6 && y < height/6:
				c = color.NRGBA{255, 0, 0, 255}
			case dx*dx+dy*dy < height*height/4:
				c = color.NRGBA{250, 210, 40, 255}
			case (x/2+y/2)%16 == 0:
				c = color.NRGBA{20, 30, 60, 255}
			case y > height*5/6:
				v := uint8(255 * (x / 4 % 2))
				c = color.NRGBA{v, v, v, 255}
			}
			img.SetNRGBA(x, y, c)
		}
	}
	return img
}

// holed makes the lower right of a picture fade out.
func holed(img *image.NRGBA) *image.NRGBA {
	b := img.Bounds()
	for y := range b.Dy() {
		for x := range b.Dx() {
			img.Pix[img.PixOffset(x, y)+3] = uint8(max(0, min(255, 600-600*x/b.Dx()-300*y/b.Dy())))
		}
	}
	return img
}

// distance gives the largest and the mean difference of two pictures, where colors count as they are seen on black.
func distance(tb testing.TB, a, b *image.NRGBA) (largest int, mean float64) {
	tb.Helper()
	if a.Rect.Size() != b.Rect.Size() {
		tb.Fatalf("sizes differ: %v and %v", a.Rect.Size(), b.Rect.Size())
	}
	sum := 0
	for i := range a.Pix {
		va, vb := int(a.Pix[i]), int(b.Pix[i])
		if i%4 != 3 {
			va, vb = va*int(a.Pix[i|3])/255, vb*int(b.Pix[i|3])/255
		}
		d := max(va-vb, vb-va)
		largest, sum = max(largest, d), sum+d
	}
	return largest, float64(sum) / float64(len(a.Pix))
}

var resamplings = map[string]imaging.ResampleFilter{
	"nearestNeighbor": imaging.NearestNeighbor, "hermite": imaging.Hermite, "linear": imaging.Linear, "catmullRom": imaging.CatmullRom,
	"lanczos": imaging.Lanczos, "box": imaging.Box, "mitchellNetravili": imaging.MitchellNetravali, "bSpline": imaging.BSpline,
	"gaussian": imaging.Gaussian, "bartlett": imaging.Bartlett, "hann": imaging.Hann, "hamming": imaging.Hamming,
	"blackman": imaging.Blackman, "welch": imaging.Welch, "cosine": imaging.Cosine,
}

// TestAsImaging compares every resampling with an independent implementation of the same kernels.
func TestAsImaging(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]*image.NRGBA{"opaque": drawn(120, 90), "fading": holed(drawn(120, 90))} {
		for _, size := range []image.Point{{80, 60}, {37, 81}, {240, 200}, {120, 45}, {50, 40}} {
			for resampling, reference := range resamplings {
				t.Run(fmt.Sprint(name, size, resampling), func(t *testing.T) {
					t.Parallel()
					f := compile(t, schema.ImageStep{Width: new(float64(size.X)), Height: new(float64(size.Y)), Resampling: resampling})
					got := nrgbaOf(t, apply(t, f, pngOf(t, source)).Data)
					largest, mean := distance(t, imaging.Resize(source, size.X, size.Y, reference), got)
					if largest > 3 || mean > 0.5 {
						t.Errorf("differs by up to %d, %.2f in the mean", largest, mean)
					}
				})
			}
		}
	}
}

// TestAdjustmentsAsImaging compares every adjustment with an independent implementation.
func TestAdjustmentsAsImaging(t *testing.T) {
	t.Parallel()
	source := drawn(120, 90)
	type row struct {
		step schema.ImageStep
		want *image.NRGBA
	}
	rows := map[string]row{
		"invert":    {schema.ImageStep{Invert: true}, imaging.Invert(source)},
		"grayscale": {schema.ImageStep{Grayscale: true}, imaging.Grayscale(source)},
	}
	for _, v := range []float64{-100, -60, -10, 0, 25, 99, 100} {
		rows[fmt.Sprint("brightness", v)] = row{schema.ImageStep{Brightness: new(v)}, imaging.AdjustBrightness(source, v)}
		rows[fmt.Sprint("contrast", v)] = row{schema.ImageStep{Contrast: new(v)}, imaging.AdjustContrast(source, v)}
		rows[fmt.Sprint("saturation", v)] = row{schema.ImageStep{Saturation: new(v)}, imaging.AdjustSaturation(source, v)}
	}
	for _, v := range []float64{0.1, 0.5, 1, 2.2, 10} {
		rows[fmt.Sprint("gamma", v)] = row{schema.ImageStep{Gamma: new(v)}, imaging.AdjustGamma(source, v)}
	}
	for _, v := range []float64{0.3, 1, 3.5, 20} {
		rows[fmt.Sprint("blur", v)] = row{schema.ImageStep{Blur: new(v)}, imaging.Blur(source, v)}
		rows[fmt.Sprint("sharpen", v)] = row{schema.ImageStep{Sharpen: new(v)}, imaging.Sharpen(source, v)}
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := nrgbaOf(t, apply(t, compile(t, row.step), pngOf(t, source)).Data)
			if largest, mean := distance(t, row.want, got); largest > 2 || mean > 0.5 {
				t.Errorf("differs by up to %d, %.2f in the mean", largest, mean)
			}
		})
	}
}

var anchors = map[string]imaging.Anchor{
	"center": imaging.Center, "topLeft": imaging.TopLeft, "top": imaging.Top, "topRight": imaging.TopRight, "left": imaging.Left,
	"right": imaging.Right, "bottomLeft": imaging.BottomLeft, "bottom": imaging.Bottom, "bottomRight": imaging.BottomRight,
}

// TestFillAndFitAsImaging compares what is cut off and what is fitted, in sizes that both round alike; the other one cuts
// between whole pixels.
func TestFillAndFitAsImaging(t *testing.T) {
	t.Parallel()
	for _, source := range []*image.NRGBA{drawn(240, 80), drawn(80, 240)} {
		for _, size := range []image.Point{{60, 40}, {40, 60}, {24, 24}} {
			step := schema.ImageStep{Width: new(float64(size.X)), Height: new(float64(size.Y)), Fill: true}
			for anchor, reference := range anchors {
				step.Anchor = anchor
				want := imaging.Fill(source, size.X, size.Y, reference, imaging.Lanczos)
				if _, mean := distance(t, want, filtered(t, source, step)); mean > 4 {
					t.Errorf("%v to %v, %s: differs by %.2f in the mean", source.Rect.Size(), size, anchor, mean)
				}
			}
			step.Fill, step.Fit, step.Anchor = false, true, ""
			want := imaging.Fit(source, size.X, size.Y, imaging.Lanczos)
			if _, mean := distance(t, want, filtered(t, source, step)); mean > 2 {
				t.Errorf("%v within %v: differs by %.2f in the mean", source.Rect.Size(), size, mean)
			}
		}
	}
}
