package imagefilter

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"io"
	"math"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"

	"github.com/svcctl/svc/pkg/errs"
)

// Limits bound what a picture may take. Zero is the default.
type Limits struct {
	MaxPixels int64 // of the picture, and of what a filter makes of it; 64 million
	MaxBytes  int64 // of the file; 256 MiB
}

const (
	defaultMaxPixels = 64_000_000
	defaultMaxBytes  = 256 << 20

	// maxSide is the longest side of a picture. JPEG has no longer one.
	maxSide = math.MaxUint16
)

func (l Limits) orDefault() Limits {
	if l.MaxPixels <= 0 {
		l.MaxPixels = defaultMaxPixels
	}
	if l.MaxBytes <= 0 {
		l.MaxBytes = defaultMaxBytes
	}
	return l
}

// size refuses a picture that is too large; what is its subject in the message.
func (l Limits) size(what string, width, height int64) error {
	if width > maxSide || height > maxSide {
		return errs.New(errs.Limit, "image_too_large", "%s is %d×%d pixels; a side may have %d", what, width, height, maxSide)
	}
	if width*height > l.MaxPixels {
		return errs.New(errs.Limit, "image_too_large", "%s is %d×%d pixels; together these may be %d", what, width, height, l.MaxPixels)
	}
	return nil
}

// Errors of pictures that can't be read. The cause is a decoder's and for the log.
var (
	ErrFormat  = errs.New(errs.MediaType, "image_format", "the file is no picture that filters read: jpg, png, gif, bmp, tiff or webp")
	ErrDamaged = errs.New(errs.Invalid, "image_damaged", "the picture is damaged, cut off, or of a kind of its format that filters don't read; save it anew and upload it again")
)

// Info is what the header of a picture says.
type Info struct {
	Type          string // the media type, such as image/jpeg
	Width, Height int    // as it is shown, after its orientation

	orientation orientation
	size        int64 // of the file
	decoded     int64 // bytes that the decoder holds at its height, about
}

// format is one that is read.
type format struct {
	mediaType string
	config    func(io.Reader) (image.Config, error)
	decode    func(io.Reader) (image.Image, error)
}

// sniffed is how many bytes of a file say its format.
const sniffed = 12

func formatOf(head []byte) (format, bool) {
	starts := func(with string) bool { return len(head) >= len(with) && string(head[:len(with)]) == with }
	switch {
	case starts("\xFF\xD8\xFF"):
		return format{"image/jpeg", jpeg.DecodeConfig, decodeJPEG}, true
	case starts("\x89PNG\r\n\x1a\n"):
		return format{"image/png", configPNG, decodePNG}, true
	case starts("GIF87a"), starts("GIF89a"):
		return format{"image/gif", gif.DecodeConfig, gif.Decode}, true
	case starts("BM"):
		return format{"image/bmp", bmp.DecodeConfig, bmp.Decode}, true
	case starts("II*\x00"), starts("MM\x00*"):
		return format{"image/tiff", tiff.DecodeConfig, tiff.Decode}, true
	case starts("RIFF") && len(head) >= sniffed && string(head[8:sniffed]) == "WEBP":
		return format{"image/webp", webp.DecodeConfig, decodeWebP}, true
	}
	return format{}, false
}

// Inspect reads the header of a picture. It refuses, with a 4xx error, what is no picture or a larger one than the limits
// allow. Nothing is decoded, so it is cheap; a picture that passes may still turn out to be damaged.
func Inspect(ctx context.Context, src io.ReadSeeker, limits Limits) (Info, error) {
	_, info, err := inspect(ctx, src, limits.orDefault())
	return info, err
}

func inspect(ctx context.Context, src io.ReadSeeker, limits Limits) (format, Info, error) {
	size, err := src.Seek(0, io.SeekEnd)
	if err != nil {
		return format{}, Info{}, errs.Wrap(err, "find the size of a picture")
	}
	if size > limits.MaxBytes {
		return format{}, Info{}, errs.New(errs.Limit, "image_too_large", "the file has %d bytes; filters read pictures of up to %d", size, limits.MaxBytes)
	}
	in := &input{ctx: ctx, src: src}
	head := make([]byte, sniffed)
	n, _ := in.rewound().Read(head)
	if in.failed != nil {
		return format{}, Info{}, in.problem(in.failed)
	}
	f, ok := formatOf(head[:n])
	if !ok {
		return format{}, Info{}, ErrFormat
	}
	var config image.Config
	if err := guarded(func() (err error) {
		config, err = f.config(in.rewound())
		return err
	}); err != nil {
		return format{}, Info{}, in.problem(err)
	}
	if config.Width <= 0 || config.Height <= 0 {
		return format{}, Info{}, ErrDamaged.With(fmt.Errorf("%d×%d pixels", config.Width, config.Height))
	}
	if err := limits.size("the picture", int64(config.Width), int64(config.Height)); err != nil {
		return format{}, Info{}, err
	}
	info := Info{Type: f.mediaType, size: size}
	info.metadata(in, config)
	info.Width, info.Height = info.orientation.shown(config.Width, config.Height)
	if in.failed != nil {
		return format{}, Info{}, in.problem(in.failed)
	}
	return f, info, nil
}

// metadata finds the orientation, and how much memory the decoder will take: its picture, and what it works with.
func (i *Info) metadata(in *input, config image.Config) {
	pixels, number := int64(config.Width)*int64(config.Height), 1
	i.decoded = pixels * bytesPerPixel(config.ColorModel)
	switch i.Type {
	case "image/jpeg":
		head := readJPEGHeader(in.rewound())
		number, i.decoded = head.orientation, pixels*int64(head.components)
		if head.progressive { // it keeps 32 bits of each coefficient
			i.decoded *= 5
		}
		if head.converted {
			i.decoded += 4 * pixels
		}
	case "image/png":
		number = pngChunks().orientation(in)
		if interlace := make([]byte, 1); readAt(seekerAt{in}, interlace, 28) && interlace[0] != 0 {
			i.decoded *= 2
		}
	case "image/webp":
		number = webpChunks().orientation(in)
		i.decoded = pixels * 8
	case "image/tiff":
		number = exifOrientation(seekerAt{in})
		i.decoded += i.size + pixels*8
	}
	i.orientation = orientationOf(number)
}

// bytesPerPixel is of a decoded picture. A gray one may turn out to have a transparent level, and then has colors.
func bytesPerPixel(model color.Model) int64 {
	switch model {
	case color.Gray16Model, color.RGBA64Model, color.NRGBA64Model:
		return 8
	}
	if _, ok := model.(color.Palette); ok {
		return 1
	}
	return 4
}

// input reads a file for a decoder: no further than the context lets it, and it remembers what went wrong with the file, so
// that a broken disk is not taken for a broken picture.
type input struct {
	ctx    context.Context //nolint:containedctx // a reader for the length of one call
	src    io.ReadSeeker
	failed error
}

// Read is io.Reader's.
func (i *input) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		i.failed = err
		return 0, err
	}
	n, err := i.src.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		i.failed = err
	}
	return n, err
}

// Seek is io.Seeker's.
func (i *input) Seek(offset int64, whence int) (int64, error) {
	at, err := i.src.Seek(offset, whence)
	if err != nil {
		i.failed = err
	}
	return at, err
}

// rewound gives the file from its beginning. Decoders get no more than a reader: what can be read at any offset makes that
// of TIFF believe the lengths in the file before it has read the bytes.
func (i *input) rewound() io.Reader {
	_, _ = i.Seek(0, io.SeekStart)
	return paced{i, bufio.NewReaderSize(i, 1<<16)}
}

// paced ends with the context at each read, which decoders do about every 4 KiB: of some formats these keep them busy for long.
type paced struct {
	in  *input
	src io.Reader
}

// Read is io.Reader's.
func (p paced) Read(b []byte) (int, error) {
	if err := p.in.ctx.Err(); err != nil {
		return 0, err
	}
	return p.src.Read(b)
}

// problem says whose fault an error of a decoder is.
func (i *input) problem(err error) error {
	switch {
	case i.ctx.Err() != nil:
		return i.ctx.Err()
	case i.failed != nil:
		return errs.Wrap(i.failed, "read a picture")
	}
	return ErrDamaged.With(err)
}

// guarded is the last line of defense: a panic of a decoder or an encoder is an error of the picture.
func guarded(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return do()
}
