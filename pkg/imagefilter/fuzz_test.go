package imagefilter_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/imagefilter"
	"github.com/svcctl/svc/pkg/schema"
)

// fuzzLimits keep one run short.
var fuzzLimits = imagefilter.Limits{MaxPixels: 200_000, MaxBytes: 1 << 20}

func seed(f *testing.F) {
	f.Helper()
	for _, file := range kinds(f) {
		f.Add(file)
	}
	f.Add(fileOf(f, "exif/Landscape_6.jpg"))
	f.Add(fileOf(f, "in/bad/animated.webp"))
	f.Add(fileOf(f, "in/bad/jpeg.tiff"))
}

// theirs says whether an error is one of the picture.
func theirs(err error) bool {
	return slices.Contains([]errs.Kind{errs.Invalid, errs.MediaType, errs.Limit}, errs.KindOf(err))
}

// FuzzInspect has files that are no pictures, or nearly: each is refused or within the limits, and never our fault.
func FuzzInspect(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, file []byte) {
		info, err := imagefilter.Inspect(t.Context(), bytes.NewReader(file), fuzzLimits)
		switch {
		case err != nil && !theirs(err):
			t.Fatal(err)
		case err == nil && (info.Width < 1 || info.Height < 1 || int64(info.Width)*int64(info.Height) > fuzzLimits.MaxPixels || info.Type == ""):
			t.Fatalf("%+v", info)
		}
	})
}

// FuzzApply has them decoded, scaled and written: what comes out is a picture of the size that it says.
func FuzzApply(f *testing.F) {
	seed(f)
	filters := []*imagefilter.Filter{
		compile(f, schema.ImageStep{Width: new(31.0), Height: new(17.0), Fill: true, Anchor: "bottomRight", OutputType: "jpg"}),
		compile(f, schema.ImageStep{Width: new(9.0), Resampling: "nearestNeighbor"}, schema.ImageStep{Blur: new(2.0), Saturation: new(40.0), OutputType: "png"}),
		compile(f),
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		info, err := imagefilter.Inspect(t.Context(), bytes.NewReader(file), fuzzLimits)
		for _, filter := range filters {
			result, failed := filter.Apply(t.Context(), bytes.NewReader(file), fuzzLimits)
			switch {
			case failed != nil && !theirs(failed):
				t.Fatal(failed)
			case failed == nil && err != nil:
				t.Fatalf("a picture is made of a file that is refused: %v", err)
			case failed == nil:
				made, err := imagefilter.Inspect(t.Context(), bytes.NewReader(result.Data), imagefilter.Limits{})
				if err != nil || made.Width != result.Width || made.Height != result.Height || made.Type != result.Type {
					t.Fatalf("made of %+v: %v, %+v is %+v", info, err, result, made)
				}
			}
		}
	})
}
