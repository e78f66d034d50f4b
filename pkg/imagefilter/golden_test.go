package imagefilter_test

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disintegration/imaging"

	"github.com/svcctl/svc/pkg/imagefilter"
	"github.com/svcctl/svc/pkg/schema"
)

var update = flag.Bool("update", false, "write the golden files")

// The golden files are sheets of tiles, to be looked at after each -update: tiles of what one test makes, side by side.
const (
	tileWidth, tileHeight = 96, 64
	sheetColumns          = 6

	// rounding is how far a level may be from the golden one: processors don't round floating-point numbers alike.
	rounding = 1
)

// sheet collects tiles.
type sheet struct{ tiles []*image.NRGBA }

func (s *sheet) add(tile *image.NRGBA) { s.tiles = append(s.tiles, tile) }

// bounds gives where the tiles are on the sheet, each with a line of gray around it.
func (s *sheet) bounds(i int) image.Rectangle {
	at := image.Pt(1+i%sheetColumns*(tileWidth+1), 1+i/sheetColumns*(tileHeight+1))
	return image.Rectangle{Min: at, Max: at.Add(s.tiles[i].Rect.Size())}
}

func (s *sheet) image() *image.NRGBA {
	rows := (len(s.tiles) + sheetColumns - 1) / sheetColumns
	img := image.NewNRGBA(image.Rect(0, 0, sheetColumns*(tileWidth+1)+1, rows*(tileHeight+1)+1))
	draw.Draw(img, img.Rect, image.NewUniform(color.NRGBA{128, 128, 128, 255}), image.Point{}, draw.Src)
	for i, tile := range s.tiles {
		draw.Draw(img, s.bounds(i), tile, image.Point{}, draw.Src)
	}
	return img
}

// golden compares the tiles with those of the golden file; tolerance gives by how much the levels of a tile may differ.
func (s *sheet) golden(t *testing.T, tolerance func(tile int) int) {
	t.Helper()
	name, got := filepath.Join("testdata", t.Name()+".png"), s.image()
	if *update {
		if err := os.WriteFile(name, small(t, got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want := nrgbaOf(t, file)
	if want.Rect != got.Rect {
		t.Fatalf("the golden file has %v, the result %v; look at it after -update", want.Rect, got.Rect)
	}
	for i := range s.tiles {
		at := s.bounds(i)
		if largest, mean := distance(t, imaging.Crop(want, at), imaging.Crop(got, at)); largest > tolerance(i) {
			t.Errorf("tile %d at %v differs from %s by up to %d, %.2f in the mean", i, at.Min, name, largest, mean)
		}
	}
}

func exactly(int) int { return rounding }

// filtered gives what a filter makes of a picture.
func filtered(tb testing.TB, source image.Image, steps ...schema.ImageStep) *image.NRGBA {
	tb.Helper()
	return pictureOf(tb, apply(tb, compile(tb, steps...), pngOf(tb, source)))
}

// pictureOf decodes a result, whose type and size must be those that it says.
func pictureOf(tb testing.TB, result imagefilter.Result) *image.NRGBA {
	tb.Helper()
	if result.Type == "image/webp" { // the levels of lossy ones are not those that the decoder gives
		again := apply(tb, compile(tb, schema.ImageStep{OutputType: "png"}), result.Data)
		if again.Width != result.Width || again.Height != result.Height {
			tb.Fatalf("the result is of %d×%d, and says %d×%d", again.Width, again.Height, result.Width, result.Height)
		}
		result = again
	}
	img, kind, err := image.Decode(bytes.NewReader(result.Data)) // jpeg and png are all that is imported here
	if err != nil || "image/"+kind != result.Type {
		tb.Fatalf("the result is a %s and says %s (%v)", kind, result.Type, err)
	}
	if size := image.Pt(result.Width, result.Height); img.Bounds().Size() != size {
		tb.Fatalf("the result is of %v, and says %v", img.Bounds().Size(), size)
	}
	return imaging.Clone(img)
}

func tile() schema.ImageStep {
	return schema.ImageStep{Width: new(float64(tileWidth)), Height: new(float64(tileHeight))}
}

// TestResamplings has two tiles for each resampling: a picture made three times smaller, and a corner of it four times larger.
func TestResamplings(t *testing.T) {
	t.Parallel()
	large := drawn(3*tileWidth, 3*tileHeight)
	corner := imaging.Crop(large, image.Rect(36, 20, 36+tileWidth/4, 20+tileHeight/4))
	var s sheet
	for _, resampling := range []string{
		"nearestNeighbor", "hermite", "linear", "catmullRom", "lanczos", "box", "mitchellNetravili", "bSpline",
		"gaussian", "bartlett", "hann", "hamming", "blackman", "welch", "cosine",
	} {
		step := tile()
		step.Resampling = resampling
		s.add(filtered(t, large, step))
		s.add(filtered(t, corner, step))
	}
	s.golden(t, exactly)
}

// TestAnchors has four tiles for each anchor: a wide and a high picture that fill, and both fitted, for which the anchor means
// nothing.
func TestAnchors(t *testing.T) {
	t.Parallel()
	var s sheet
	for _, anchor := range []string{"topLeft", "top", "topRight", "left", "center", "right", "bottomLeft", "bottom", "bottomRight"} {
		for _, source := range []*image.NRGBA{numbered(240, 80), numbered(80, 240)} {
			step := tile()
			step.Anchor, step.Fill = anchor, true
			s.add(filtered(t, source, step))
			step.Fill, step.Fit = false, true
			fitted := filtered(t, source, step)
			if whole := filtered(t, source, schema.ImageStep{Width: step.Width, Height: step.Height, Fit: true}); !bytes.Equal(whole.Pix, fitted.Pix) {
				t.Errorf("the anchor %s changes a picture that is fitted", anchor)
			}
			s.add(fitted)
		}
	}
	s.golden(t, exactly)
}

// numbered is a picture of nine fields of different colors, so that one sees which part of it is there.
func numbered(width, height int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			column, row := 3*x/width, 3*y/height
			c := color.NRGBA{uint8(60 + 90*column), uint8(60 + 90*row), uint8(40 * ((column + row) % 3)), 255}
			if u, v := x*9/width%3, y*9/height%3; u == 1 && v == 1 && column+row < 4 {
				c = color.NRGBA{255, 255, 255, 255}
			}
			img.SetNRGBA(x, y, c)
		}
	}
	return img
}

// TestAdjustments has a tile for each adjustment at several values, the first of them unchanged.
func TestAdjustments(t *testing.T) {
	t.Parallel()
	source := drawn(tileWidth, tileHeight)
	s := sheet{tiles: []*image.NRGBA{source}}
	for _, v := range []float64{-100, -40, 40, 100} {
		s.add(filtered(t, source, schema.ImageStep{Brightness: &v}))
	}
	for _, v := range []float64{-100, -50, 50, 500} {
		s.add(filtered(t, source, schema.ImageStep{Saturation: &v}))
	}
	for _, v := range []float64{-100, -50, 50, 100} {
		s.add(filtered(t, source, schema.ImageStep{Contrast: &v}))
	}
	for _, v := range []float64{0.01, 0.5, 2, 10} {
		s.add(filtered(t, source, schema.ImageStep{Gamma: &v}))
	}
	for _, v := range []float64{0.5, 2, 100} {
		s.add(filtered(t, source, schema.ImageStep{Blur: &v}))
		s.add(filtered(t, source, schema.ImageStep{Sharpen: &v}))
	}
	s.add(filtered(t, source, schema.ImageStep{Invert: true}))
	s.add(filtered(t, source, schema.ImageStep{Grayscale: true}))
	s.add(filtered(t, source, schema.ImageStep{Invert: true, Grayscale: true, Blur: new(1.0), Contrast: new(50.0)}))
	s.add(filtered(t, holed(drawn(tileWidth, tileHeight)), schema.ImageStep{Blur: new(4.0), Brightness: new(20.0)}))
	s.golden(t, exactly)
}

// TestOutputs has a tile for each type and quality, of a picture and of one that fades out.
func TestOutputs(t *testing.T) {
	t.Parallel()
	const codec = 6 // what an encoder of another version may make of a level
	var s sheet
	var lossy []bool
	for _, source := range []*image.NRGBA{drawn(64, 48), holed(drawn(64, 48))} {
		for _, step := range []schema.ImageStep{
			{OutputType: "jpg", Quality: new(0.0)},
			{OutputType: "jpeg", Quality: new(50.0)},
			{OutputType: "jpg"},
			{OutputType: "jpg", Quality: new(100.0)},
			{OutputType: "png"},
			{OutputType: "png", Quality: new(1.0)},
			{OutputType: "webp", Lossless: true},
			{OutputType: "webp", Lossless: true, Quality: new(1.0)},
			{OutputType: "webp", Quality: new(0.0)},
			{OutputType: "webp", Quality: new(50.0)},
			{OutputType: "webp"},
			{OutputType: "webp", Quality: new(100.0)},
		} {
			result := apply(t, compile(t, step), pngOf(t, source))
			s.add(pictureOf(t, result))
			asked := step.OutputType == "webp" && !step.Lossless
			if without := imagefilter.WarningLossless; asked && !imagefilter.HasLossyWebP != (result.Warning == without) || !asked && result.Warning != "" {
				t.Errorf("%+v: the warning is %q", step, result.Warning)
			}
			lossy = append(lossy, asked && !imagefilter.HasLossyWebP)
		}
	}
	s.golden(t, func(i int) int {
		if lossy[i] { // this build makes a lossless one of it
			return 255
		}
		return codec
	})
}

// TestInputs has a tile for each kind of file: those of testdata/in, which show one motif.
func TestInputs(t *testing.T) {
	t.Parallel()
	const codec = 6 // what a decoder of another version may make of a level
	motifs := map[string]*image.NRGBA{}
	for _, name := range []string{"rgb", "alpha", "gray", "palette"} {
		motifs[name] = nrgbaOf(t, fileOf(t, "in/"+name+".png"))
	}
	names, err := filepath.Glob("testdata/in/*.*")
	if err != nil {
		t.Fatal(err)
	}
	f := compile(t, schema.ImageStep{OutputType: "png"})
	var s sheet
	for _, name := range names {
		name = filepath.Base(name)
		if filepath.Ext(name) == ".py" {
			continue
		}
		got := pictureOf(t, apply(t, f, fileOf(t, "in/"+name)))
		s.add(got)
		if motif, tolerance := motifs[motifOf(name)], meanOf(name); motif != nil {
			if _, mean := distance(t, motif, got); mean > tolerance {
				t.Errorf("%s differs from the motif by %.2f in the mean", name, mean)
			}
		}
	}
	s.golden(t, func(int) int { return codec })
}

// motifOf gives what a file of testdata/in shows.
func motifOf(name string) string {
	switch name {
	case "bits.png", "palettetransparent.png", "graytransparent.png", "grayalpha.png":
		return "" // to be looked at
	case "alpha.bmp":
		return "rgb" // BMP's fourth byte is nothing in this version of the format
	case "deflate.tiff":
		return "alpha"
	}
	for _, kind := range []string{"gray", "palette"} {
		if strings.HasPrefix(name, kind) {
			return kind
		}
	}
	if strings.Contains(name, "alpha") {
		return "alpha"
	}
	return "rgb"
}

// meanOf is by how much a file of testdata/in may differ from the motif in the mean.
func meanOf(name string) float64 {
	switch filepath.Ext(name) {
	case ".jpg":
		return 4.5
	case ".gif":
		return 2
	case ".webp":
		return 3.5
	}
	return 0.01
}

func fileOf(tb testing.TB, name string) []byte {
	tb.Helper()
	file, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return file
}

// TestOrientations has a tile for each number of EXIF's tag, of pictures that are stored so that all come out the same way up.
func TestOrientations(t *testing.T) {
	t.Parallel()
	var s sheet
	for _, step := range []schema.ImageStep{
		{Width: new(96.0)},
		{Width: new(60.0)},
		{Height: new(64.0), Width: new(96.0), Fill: true, Anchor: "topLeft"},
		{Width: new(30.0), Height: new(50.0), Fill: true, Anchor: "bottomRight"},
		{Width: new(48.0), Blur: new(1.0)},
		{Width: new(40.0), Height: new(40.0), Fit: true},
		{Width: new(10.0)},
	} {
		step.OutputType = "png"
		f := compile(t, step)
		upright := pictureOf(t, apply(t, f, fileOf(t, "exif/Landscape_1.jpg")))
		for number := range 9 {
			got := pictureOf(t, apply(t, f, fileOf(t, fmt.Sprintf("exif/Landscape_%d.jpg", number))))
			if *step.Width == 60 {
				s.add(got)
			}
			if largest, mean := distance(t, upright, got); mean > 2.5 {
				t.Errorf("orientation %d, %+v: differs from upright by up to %d, %.2f in the mean", number, step, largest, mean)
			}
		}
	}
	s.golden(t, exactly)
}

// small writes a PNG of as few bytes as Go can make it.
func small(tb testing.TB, img image.Image) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, img); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}
