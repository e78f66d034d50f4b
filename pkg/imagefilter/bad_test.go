package imagefilter_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/HugoSmits86/nativewebp"
	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/imagefilter"
	"github.com/svcctl/svc/pkg/schema"
)

// kinds gives the files of testdata/in by name.
func kinds(tb testing.TB) map[string][]byte {
	tb.Helper()
	names, err := filepath.Glob("testdata/in/*.*")
	if err != nil {
		tb.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		if filepath.Ext(name) != ".py" {
			files[filepath.Base(name)] = fileOf(tb, "in/"+filepath.Base(name))
		}
	}
	return files
}

// refused checks that an error is one that tells the client what is wrong with the picture, and nothing else.
func refused(t *testing.T, err error, kinds ...errs.Kind) {
	t.Helper()
	for _, kind := range kinds {
		if err != nil && errs.KindOf(err) == kind {
			for _, word := range []string{"panic", "runtime", "unexpected", "invalid format", ".go"} {
				if message := errs.From(err).Message; strings.Contains(message, word) {
					t.Errorf("the message %q has %q", message, word)
				}
			}
			return
		}
	}
	t.Errorf("the error is %v, of kind %v; want %v", err, errs.KindOf(err), kinds)
}

// TestCutOff cuts every kind of file at each sixteenth. What is left is refused, or the decoder finds all that it needs.
func TestCutOff(t *testing.T) {
	t.Parallel()
	thumb := compile(t, schema.ImageStep{Width: new(20.0), OutputType: "png"})
	for name, file := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := 0
			for i := range 16 {
				result, err := thumb.Apply(t.Context(), bytes.NewReader(file[:len(file)*i/16]), imagefilter.Limits{})
				if err == nil {
					pictureOf(t, result)
					continue
				}
				bad++
				refused(t, err, errs.Invalid, errs.MediaType)
			}
			// Of an animation, the first picture is in the first part; a progressive JPEG has all of it early, if not well.
			if few := map[string]int{"animated.gif": 5, "progressive.jpg": 6}; bad < 12 && few[name] == 0 || bad < few[name] {
				t.Errorf("only %d of the parts are refused", bad)
			}
		})
	}
}

// TestNoPicture has what is no picture that filters read.
func TestNoPicture(t *testing.T) {
	t.Parallel()
	f := compile(t, schema.ImageStep{Width: new(20.0)})
	for name, row := range map[string]struct {
		file string
		want errs.Kind
	}{
		"nothing":                  {"", errs.MediaType},
		"text":                     {"hello", errs.MediaType},
		"svg":                      {`<svg xmlns="http://www.w3.org/2000/svg"/>`, errs.MediaType},
		"pdf":                      {"%PDF-1.7\n", errs.MediaType},
		"avif":                     {"\x00\x00\x00\x1cftypavif\x00\x00\x00\x00", errs.MediaType},
		"sound":                    {"RIFF\x10\x00\x00\x00WAVEfmt ", errs.MediaType},
		"half a signature":         {"\x89PNG", errs.MediaType},
		"only jpeg's signature":    {"\xFF\xD8\xFF", errs.Invalid},
		"only png's signature":     {"\x89PNG\r\n\x1a\n", errs.Invalid},
		"only gif's signature":     {"GIF89a", errs.Invalid},
		"only bmp's signature":     {"BM", errs.Invalid},
		"only tiff's signature":    {"II*\x00", errs.Invalid},
		"only webp's signature":    {"RIFF\x10\x00\x00\x00WEBP", errs.Invalid},
		"a text that begins so":    {"BM is a town on the sea, with a harbor and a church of the tenth century.", errs.Invalid},
		"a jpeg without a picture": {"\xFF\xD8\xFF\xD9", errs.Invalid},
		"empty gif":                {"GIF89a\x00\x00\x00\x00\x00\x00\x00;", errs.Invalid},
		"gif without a picture":    {"GIF89a\x10\x00\x10\x00\x00\x00\x00;", errs.Invalid},
		"empty png":                {string(pngHeader(0, 0, 8, 2)), errs.Invalid},
		"png without height":       {string(pngHeader(10, 0, 8, 2)), errs.Invalid},
		"empty bmp":                {string(bmpHeader(0, 0)), errs.Invalid},
		"animated webp":            {string(fileOf(t, "in/bad/animated.webp")), errs.Invalid},
		"jpeg in tiff":             {string(fileOf(t, "in/bad/jpeg.tiff")), errs.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := f.Apply(t.Context(), strings.NewReader(row.file), imagefilter.Limits{})
			refused(t, err, row.want)
		})
	}
}

// pngChunk appends a chunk with its checksum.
func pngChunk(file []byte, name string, data []byte) []byte {
	file = binary.BigEndian.AppendUint32(file, uint32(len(data)))
	body := append([]byte(name), data...)
	return binary.BigEndian.AppendUint32(append(file, body...), crc32.ChecksumIEEE(body))
}

func pngHeader(width, height uint32, bits, colors byte) []byte {
	data := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	return pngChunk([]byte("\x89PNG\r\n\x1a\n"), "IHDR", append(data, bits, colors, 0, 0, 0))
}

// pngOfNothing is a whole PNG of one level, which packs a thousand to one.
func pngOfNothing(tb testing.TB, width, height int) []byte {
	tb.Helper()
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	row := make([]byte, 1+(width+7)/8)
	for range height {
		if _, err := w.Write(row); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	file := pngChunk(pngHeader(uint32(width), uint32(height), 1, 0), "IDAT", packed.Bytes())
	return pngChunk(file, "IEND", nil)
}

func bmpHeader(width, height uint32) []byte {
	file := append([]byte("BM"), make([]byte, 8)...)
	for _, v := range []uint32{54, 40, width, height, 1 | 24<<16, 0, 0, 0, 0, 0, 0} {
		file = binary.LittleEndian.AppendUint32(file, v)
	}
	return file
}

func tiffHeader(width, height, bytesOfStrip uint32) []byte {
	le := binary.LittleEndian
	file := le.AppendUint16(le.AppendUint32([]byte("II*\x00"), 8), 8)
	for _, entry := range [][2]uint32{{256, width}, {257, height}, {258, 8}, {259, 1}, {262, 1}, {273, 8}, {278, height}, {279, bytesOfStrip}} {
		file = le.AppendUint32(le.AppendUint32(le.AppendUint16(le.AppendUint16(file, uint16(entry[0])), 4), 1), entry[1])
	}
	return le.AppendUint32(file, 0)
}

// TestS49Bombs has pictures that are larger than they look. None of them gets more memory than it is accounted for.
func TestS49Bombs(t *testing.T) { // not parallel: it reads what the process allocates
	lyingJPEG := photo(t, 64, 64)
	at := bytes.Index(lyingJPEG, []byte("\xFF\xC0")) + 5
	lying := func(height, width uint16) string {
		file := bytes.Clone(lyingJPEG)
		binary.BigEndian.PutUint16(file[at:], height)
		binary.BigEndian.PutUint16(file[at+2:], width)
		return string(file)
	}
	for name, row := range map[string]struct {
		file string
		want errs.Kind
		most uint64 // bytes allocated
	}{
		"15 KB of png with 10^8 pixels": {string(pngOfNothing(t, 10_000, 10_000)), errs.Limit, 1 << 20},
		"png side":                      {string(pngHeader(1<<31-1, 1, 8, 2)), errs.Limit, 1 << 20},
		"png header alone":              {string(pngHeader(8000, 8000, 8, 6)), errs.Invalid, 320 << 20},
		"jpeg of 2^32 pixels":           {lying(65535, 65535), errs.Limit, 1 << 20},
		"jpeg that lies":                {lying(6000, 6000), errs.Invalid, 100 << 20},
		"gif canvas":                    {"GIF89a\xFF\xFF\xFF\xFF\x00\x00\x00;", errs.Limit, 1 << 20},
		"bmp of 2^32 pixels":            {string(bmpHeader(65535, 65535)), errs.Limit, 1 << 20},
		"bmp of 2^62 pixels":            {string(bmpHeader(1<<31-1, 1<<31-1)), errs.Invalid, 1 << 20},
		"bmp upside down":               {string(bmpHeader(1<<31-1, 1<<31)), errs.Invalid, 1 << 20},
		"bmp header alone":              {string(bmpHeader(8000, 8000)), errs.Invalid, 320 << 20},
		"tiff of 2^64 pixels":           {string(tiffHeader(1<<32-1, 1<<32-1, 10)), errs.Invalid, 1 << 20},
		"tiff that lies":                {string(tiffHeader(1000, 1000, 1<<31)), errs.Invalid, 20 << 20},
		"webp canvas":                   {"RIFF\xFF\x00\x00\x00WEBPVP8X\x0A\x00\x00\x00\x10\x00\x00\x00\xFF\xFF\xFF\xFF\xFF\xFF", errs.Invalid, 1 << 20},
		"webp of 2^30 pixels":           {"RIFF\xFF\x00\x00\x00WEBPVP8X\x0A\x00\x00\x00\x10\x00\x00\x00\xFF\x7F\x00\xFF\x7F\x00", errs.Limit, 1 << 20},
		"webp that lies":                {"RIFF\xFF\x00\x00\x00WEBPVP8L\x08\x00\x00\x00\x2F\xFF\xFF\xFF\x0F\x00\x00\x00", errs.Limit, 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			f := compile(t, schema.ImageStep{Width: new(20.0)})
			if len(row.file) > 20_000 {
				t.Errorf("%d bytes are no small file", len(row.file))
			}
			var err error
			if got := allocated(func() {
				_, err = f.Apply(t.Context(), strings.NewReader(row.file), imagefilter.Limits{})
			}); got > row.most {
				t.Errorf("%d bytes are allocated", got)
			}
			refused(t, err, row.want)
		})
	}
}

// allocated gives how many bytes are allocated, of which some may have been free again before others.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// jpegOfScans is a progressive JPEG of nothing with one scan of a few bytes for each frequency of all its pixels, again and again.
func jpegOfScans(side uint16, scans int, app []byte) []byte {
	be := binary.BigEndian
	var file []byte
	segment := func(marker byte, body ...byte) {
		file = append(be.AppendUint16(append(file, 0xFF, marker), uint16(2+len(body))), body...)
	}
	table := func(class, symbol byte) {
		segment(0xC4, append(append([]byte{class, 0, 1}, make([]byte, 14)...), symbol)...)
	}
	file = append(file, 0xFF, 0xD8)
	segment(0xE2, app...)
	segment(0xDB, append([]byte{0}, bytes.Repeat([]byte{1}, 64)...)...)
	segment(0xC2, append(be.AppendUint16(be.AppendUint16([]byte{8}, side), side), 1, 1, 0x11, 0)...)
	table(0x00, 0)
	table(0x10, 0xE0) // up to 2^15 blocks of nothing
	blocks := (int(side) + 7) / 8 * ((int(side) + 7) / 8)
	segment(0xDA, 1, 1, 0, 0, 0, 0)
	file = append(file, make([]byte, (2*blocks+7)/8)...)
	for range scans - 1 {
		segment(0xDA, 1, 1, 0, 1, 63, 0)
		for range (blocks + 1<<15 - 1) / (1 << 15) {
			file = append(file, 0x3F, 0xFF, 0x00)
		}
	}
	return append(file, 0xFF, 0xD9)
}

// TestS49Scans refuses a JPEG that has the decoder go through all its pixels more often than any picture needs.
func TestS49Scans(t *testing.T) {
	t.Parallel()
	f := compile(t, schema.ImageStep{Width: new(20.0)})
	marks := bytes.Repeat([]byte{0xFF, 0xDA, 0, 2}, 1000)
	for name, file := range map[string][]byte{
		"a usual one": jpegOfScans(500, 10, nil), "as many as may be": jpegOfScans(500, 100, nil), "a thumbnail in it": jpegOfScans(500, 10, marks),
		"and something behind it": append(jpegOfScans(500, 10, nil), marks...),
	} {
		if got := apply(t, f, file); got.Width != 20 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for name, file := range map[string][]byte{
		"one more": jpegOfScans(500, 101, nil), "a million in 10 MB": jpegOfScans(8, 1_000_000, nil), "8000 pixels on a side": jpegOfScans(8000, 10_000, nil),
		"between fill": bytes.ReplaceAll(jpegOfScans(500, 101, nil), []byte{0xFF, 0xDA}, []byte{0xFF, 0xFF, 0xFF, 0xDA}),
	} {
		_, err := f.Apply(t.Context(), bytes.NewReader(file), imagefilter.Limits{})
		if refused(t, err, errs.Invalid); err == nil || !strings.Contains(fmt.Sprint(errors.Unwrap(err)), "scans") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestS49Chunks refuses a PNG that is in more pieces than any picture needs.
func TestS49Chunks(t *testing.T) {
	t.Parallel()
	f := compile(t, schema.ImageStep{Width: new(20.0)})
	var file bytes.Buffer
	if err := png.Encode(&file, image.NewNRGBA(image.Rect(0, 0, 40, 40))); err != nil {
		t.Fatal(err)
	}
	empty := binary.BigEndian.AppendUint32([]byte("\x00\x00\x00\x00tEXt"), crc32.ChecksumIEEE([]byte("tEXt")))
	const header = 8 + 25 // the signature, and the chunk of the size
	with := func(n, at int) []byte { return slices.Insert(file.Bytes(), at, bytes.Repeat(empty, n)...) }
	end := file.Len() - len(empty)
	if got := apply(t, f, with(90_000, header)); got.Width != 20 {
		t.Errorf("many: %+v", got)
	}
	for name, data := range map[string][]byte{"before the picture": with(100_001, header), "behind it": with(1_000_000, end)} {
		_, err := f.Apply(t.Context(), bytes.NewReader(data), imagefilter.Limits{})
		if refused(t, err, errs.Invalid); err == nil || !strings.Contains(fmt.Sprint(errors.Unwrap(err)), "chunks") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestS49Animation gives the first of a thousand pictures, and doesn't decode the others.
func TestS49Animation(t *testing.T) { // not parallel: it reads what the process allocates
	frame := image.NewPaletted(image.Rect(0, 0, 200, 150), color.Palette{color.NRGBA{200, 30, 30, 255}, color.White})
	var all gif.GIF
	for range 1000 {
		all.Image, all.Delay = append(all.Image, frame), append(all.Delay, 1)
	}
	var file bytes.Buffer
	if err := gif.EncodeAll(&file, &all); err != nil {
		t.Fatal(err)
	}
	f := compile(t, schema.ImageStep{Width: new(40.0)})
	var result imagefilter.Result
	if got := allocated(func() { result = apply(t, f, file.Bytes()) }); got > 2<<20 {
		t.Errorf("%d bytes are allocated", got)
	}
	if img := pictureOf(t, result); img.NRGBAAt(20, 15) != (color.NRGBA{200, 30, 30, 255}) {
		t.Errorf("the picture has %v", img.NRGBAAt(20, 15))
	}
}

// TestS49Memory compares what Memory says with what is allocated on the way, for every kind of file that Go can write.
func TestS49Memory(t *testing.T) { // not parallel: it reads what the process allocates
	const width, height = 800, 600
	source := drawn(width, height)
	files := map[string]func(w io.Writer) error{
		"jpeg": func(w io.Writer) error { return jpeg.Encode(w, source, nil) },
		"gray jpeg": func(w io.Writer) error {
			return jpeg.Encode(w, image.NewGray(source.Rect), nil)
		},
		"png":             func(w io.Writer) error { return png.Encode(w, source) },
		"png with alpha":  func(w io.Writer) error { return png.Encode(w, holed(drawn(width, height))) },
		"png of 16 bits":  func(w io.Writer) error { return png.Encode(w, image.NewNRGBA64(source.Rect)) },
		"gray png":        func(w io.Writer) error { return png.Encode(w, image.NewGray(source.Rect)) },
		"png of 16 grays": func(w io.Writer) error { return png.Encode(w, image.NewGray16(source.Rect)) },
		"gif":             func(w io.Writer) error { return gif.Encode(w, source, &gif.Options{NumColors: 64}) },
		"bmp":             func(w io.Writer) error { return bmp.Encode(w, source) },
		"tiff":            func(w io.Writer) error { return tiff.Encode(w, source, &tiff.Options{Compression: tiff.Deflate}) },
		"webp":            func(w io.Writer) error { return nativewebp.Encode(w, source, nil) },
	}
	for kind, write := range files {
		var file bytes.Buffer
		if err := write(&file); err != nil {
			t.Fatal(err)
		}
		filters := map[string]schema.ImageStep{"thumb": {Width: new(200.0)}}
		if kind == "png" {
			filters["larger"] = schema.ImageStep{Width: new(1000.0)}
			filters["lossless"] = schema.ImageStep{OutputType: "webp", Lossless: true}
			filters["blurred"] = schema.ImageStep{Blur: new(8.0)}
		}
		for name, step := range filters {
			t.Run(kind+" "+name, func(t *testing.T) {
				f := compile(t, step)
				info, err := imagefilter.Inspect(t.Context(), bytes.NewReader(file.Bytes()), imagefilter.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				// What is allocated is more than what is held at once: decoders and encoders leave buffers behind that grew.
				said, got := uint64(f.Memory(info)), allocated(func() { apply(t, f, file.Bytes()) })
				if got > 2*said+2<<20 {
					t.Errorf("%d KiB are allocated, Memory says %d", got>>10, said>>10)
				}
			})
		}
	}
}

// TestSides has pictures of one pixel's width or height, and filters that make such ones.
func TestSides(t *testing.T) {
	t.Parallel()
	for _, size := range []image.Point{{1, 1}, {1, 3000}, {3000, 1}, {2, 3}} {
		file := pngOf(t, drawn(size.X, size.Y))
		for name, row := range map[string]struct {
			step schema.ImageStep
			want image.Point // zero: as the picture
		}{
			"width":  {schema.ImageStep{Width: new(7.0)}, image.Pt(7, max(1, (7*size.Y*2+size.X)/(2*size.X)))},
			"both":   {schema.ImageStep{Width: new(7.0), Height: new(5.0)}, image.Pt(7, 5)},
			"fill":   {schema.ImageStep{Width: new(7.0), Height: new(5.0), Fill: true}, image.Pt(7, 5)},
			"one":    {schema.ImageStep{Width: new(1.0), Height: new(1.0), Resampling: "nearestNeighbor"}, image.Pt(1, 1)},
			"tiny":   {schema.ImageStep{Width: new(0.2), Height: new(0.2)}, image.Pt(1, 1)},
			"blur":   {schema.ImageStep{Blur: new(30.0), Sharpen: new(30.0)}, image.Point{}},
			"nought": {schema.ImageStep{Width: new(0.0)}, image.Point{}},
		} {
			t.Run(name+size.String(), func(t *testing.T) {
				t.Parallel()
				if row.want == (image.Point{}) {
					row.want = size
				}
				img := pictureOf(t, apply(t, compile(t, row.step), file))
				if img.Rect.Size() != row.want {
					t.Errorf("the result is of %v, want %v", img.Rect.Size(), row.want)
				}
			})
		}
	}
}

// TestTooLarge has results that are larger than the limits, and what WebP can't hold.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		step   schema.ImageStep
		source image.Point
		limits imagefilter.Limits
	}{
		"pixels":               {schema.ImageStep{Width: new(1001.0), Height: new(1000.0)}, image.Pt(8, 8), imagefilter.Limits{MaxPixels: 1_000_000}},
		"by the ratio":         {schema.ImageStep{Width: new(16384.0)}, image.Pt(1, 8), imagefilter.Limits{}},
		"file":                 {schema.ImageStep{}, image.Pt(8, 8), imagefilter.Limits{MaxBytes: 10}},
		"side of webp":         {schema.ImageStep{Width: new(16384.0), Height: new(1.0), OutputType: "webp"}, image.Pt(8, 8), imagefilter.Limits{}},
		"pixels of whole webp": {schema.ImageStep{Width: new(4001.0), Height: new(4000.0), OutputType: "webp", Lossless: true}, image.Pt(8, 8), imagefilter.Limits{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := pngOf(t, drawn(row.source.X, row.source.Y))
			_, err := compile(t, row.step).Apply(t.Context(), bytes.NewReader(file), row.limits)
			refused(t, err, errs.Limit)
		})
	}
}

// TestPaletteIndexes has pictures whose pixels have colors that aren't in the palette.
func TestPaletteIndexes(t *testing.T) {
	t.Parallel()
	img := image.NewPaletted(image.Rect(0, 0, 16, 16), color.Palette{color.Black, color.White, color.Gray{9}})
	img.SetColorIndex(3, 3, 2)
	var small bytes.Buffer
	if err := bmp.Encode(&small, img); err != nil {
		t.Fatal(err)
	}
	shortBMP := small.Bytes()
	for i := 54 + 4*256; i < len(shortBMP); i++ { // the pixels, behind 256 colors
		shortBMP[i] = 200
	}
	binary.LittleEndian.PutUint32(shortBMP[46:], 3) // colors
	small = bytes.Buffer{}
	if err := gif.Encode(&small, img, &gif.Options{NumColors: 4}); err != nil {
		t.Fatal(err)
	}
	shortGIF := small.Bytes()
	shortGIF[10] &^= 7 // a palette of two colors
	for name, file := range map[string][]byte{"bmp": shortBMP, "gif": shortGIF} {
		_, err := compile(t, schema.ImageStep{Width: new(4.0)}).Apply(t.Context(), bytes.NewReader(file), imagefilter.Limits{})
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		refused(t, err, errs.Invalid)
	}
}

// stopping is a file during whose reading the context ends.
type stopping struct {
	*bytes.Reader
	stop  context.CancelFunc
	left  int // reads until then
	after int // reads since
}

func (s *stopping) Read(p []byte) (int, error) {
	if s.left--; s.left == 0 {
		s.stop()
	}
	if s.left < 0 {
		s.after++
	}
	return s.Reader.Read(p)
}

// TestContextEnds stops at every read of a file.
func TestContextEnds(t *testing.T) {
	t.Parallel()
	file := photo(t, 900, 700)
	f := compile(t, schema.ImageStep{Width: new(20.0)})
	for reads := 1; ; reads++ {
		ctx, stop := context.WithCancel(t.Context())
		src := &stopping{Reader: bytes.NewReader(file), stop: stop, left: reads}
		_, err := f.Apply(ctx, src, imagefilter.Limits{})
		ended := src.left <= 0
		stop()
		if !ended {
			if err != nil || reads < 4 {
				t.Errorf("after %d reads: %v", reads, err)
			}
			return
		}
		if !errors.Is(err, context.Canceled) || src.after > 0 {
			t.Errorf("stopped at read %d: %v, and %d reads more", reads, err, src.after)
		}
	}
}

// broken is a file of a disk that fails.
type broken struct{ *bytes.Reader }

func (broken) Read([]byte) (int, error) { return 0, errors.New("input/output error of disk sdb") }

// TestBrokenDisk is no fault of the picture.
func TestBrokenDisk(t *testing.T) {
	t.Parallel()
	_, err := compile(t, schema.ImageStep{}).Apply(t.Context(), broken{bytes.NewReader(photo(t, 9, 9))}, imagefilter.Limits{})
	if errs.KindOf(err) != errs.Internal || strings.Contains(errs.From(err).Message, "sdb") {
		t.Errorf("the error is %v", err)
	}
}
