package imagefilter

import (
	"context"
	"fmt"
	"image"
	"io"

	"github.com/svcctl/svc/pkg/errs"
)

// Result is what a filter made.
type Result struct {
	Data          []byte
	Type          string // the media type
	Width, Height int
	Warning       string // what the result lacks of what the filter asks for; for a header of the answer
}

// Apply runs the filter on a picture. It gives a 4xx error for what is no picture, a damaged one, or one that is or would become
// larger than the limits, and the context's error when that ends; what it waits for then is one step of work on some rows.
func (f *Filter) Apply(ctx context.Context, src io.ReadSeeker, limits Limits) (Result, error) {
	limits = limits.orDefault()
	rows, info, err := decoded(ctx, src, limits)
	if err != nil {
		return Result{}, err
	}
	opaque := rows.opaque
	img, err := f.run(ctx, rows, info, limits)
	if err != nil {
		return Result{}, ours(ctx, err)
	}

	out := Result{Type: f.out.typeFor(info.Type, opaque), Width: img.Rect.Dx(), Height: img.Rect.Dy()}
	err = guarded(func() (err error) {
		out.Data, out.Warning, err = f.out.encode(img, out.Type)
		return err
	})
	if err != nil {
		return Result{}, ours(ctx, err)
	}
	if f.out.keepIfSmaller && int64(len(out.Data)) >= info.size {
		return original(src, info)
	}
	return out, nil
}

// ours makes an error of something that failed here an internal one.
func ours(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errs.From(fmt.Errorf("filter a picture: %w", err))
}

// original gives the file as it is.
func original(src io.ReadSeeker, info Info) (Result, error) {
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return Result{}, errs.Wrap(err, "read a picture")
	}
	data := make([]byte, info.size)
	if _, err := io.ReadFull(src, data); err != nil {
		return Result{}, errs.Wrap(err, "read a picture")
	}
	return Result{Data: data, Type: info.Type, Width: info.Width, Height: info.Height}, nil
}

// run does the steps.
func (f *Filter) run(ctx context.Context, rows *raster, info Info, limits Limits) (img *image.NRGBA, err error) {
	turn := info.orientation
	for _, s := range f.steps {
		if img != nil {
			rows, turn = rasterOf(img), orientation{}
		}
		scaled, err := s.scale(ctx, rows, turn, limits)
		if err != nil {
			return nil, err
		}
		if scaled != nil {
			img = scaled
		} else if img == nil {
			if img, err = upright(ctx, rows, turn); err != nil {
				return nil, err
			}
		}
		rows = nil
		if img, err = s.adjust(ctx, img); err != nil {
			return nil, err
		}
	}
	if img == nil {
		return upright(ctx, rows, turn)
	}
	return img, nil
}

func upright(ctx context.Context, rows *raster, turn orientation) (*image.NRGBA, error) {
	img, err := rows.image(ctx)
	if err != nil {
		return nil, err
	}
	return turn.turn(ctx, img)
}

// scale gives nil when the step leaves the size alone. Turning comes after scaling, when there is less to turn.
func (s step) scale(ctx context.Context, rows *raster, turn orientation, limits Limits) (*image.NRGBA, error) {
	width, height := turn.shown(rows.width, rows.height)
	part, w, h, ok := s.geometry(width, height)
	if !ok {
		return nil, nil
	}
	if err := limits.size("the result", w, h); err != nil {
		return nil, err
	}
	part = turn.stored(part, width, height)
	scaledWidth, scaledHeight := turn.shown(int(w), int(h))
	img, err := rows.scale(ctx, part, scaledWidth, scaledHeight, s.kernel)
	if err != nil {
		return nil, err
	}
	return turn.turn(ctx, img)
}

// adjust changes colors, in the order in which the config lists the members.
func (s step) adjust(ctx context.Context, img *image.NRGBA) (*image.NRGBA, error) {
	before, after := s.changes()
	if err := adjust(ctx, img, before); err != nil {
		return nil, err
	}
	if s.blur > 0 {
		var err error
		if img, err = blurred(ctx, img, s.blur); err != nil {
			return nil, err
		}
	}
	if s.sharpen > 0 {
		if err := sharpen(ctx, img, s.sharpen); err != nil {
			return nil, err
		}
	}
	return img, adjust(ctx, img, after)
}

// changes gives the changes of single pixels, before and after those that look at their surroundings.
func (s step) changes() (before, after []change) {
	if s.brightness != 0 {
		before = append(before, brightness(s.brightness))
	}
	if s.saturation != 0 {
		before = append(before, saturation(s.saturation))
	}
	if s.contrast != 0 {
		before = append(before, contrast(s.contrast))
	}
	if s.gamma != 1 {
		before = append(before, gamma(s.gamma))
	}
	if s.invert {
		after = append(after, invert)
	}
	if s.grayscale {
		after = append(after, grayscale)
	}
	return before, after
}

// Memory is about how many bytes Apply holds at its height: what the decoder makes, the pictures between steps, and what the
// encoder needs. Whoever runs several filters at once weighs them by it.
func (f *Filter) Memory(info Info) int64 {
	size := func(w, h int) int64 { return 4 * int64(w) * int64(h) }
	width, height := info.Width, info.Height
	held, highest := info.decoded, info.decoded
	for i, s := range f.steps {
		_, w, h, ok := s.geometry(width, height)
		if ok {
			width, height = int(min(w, maxSide)), int(min(h, maxSide))
		}
		if ok || i == 0 || s.blur > 0 || s.sharpen > 0 {
			highest = max(highest, held+size(width, height)+blurMemory(max(s.blur, s.sharpen), width, height))
		}
		if i == 0 && info.orientation != (orientation{}) {
			highest = max(highest, held+2*size(width, height))
		}
		held = size(width, height)
	}
	if len(f.steps) == 0 {
		held = size(width, height)
		highest += held
	}
	encoder := held / 2 // the bytes written, and what holds them while they grow
	if mediaType := f.out.typeFor(info.Type, true); f.out.losslessWebP(mediaType) {
		encoder = 15 * held
	}
	return max(highest, held+encoder)
}
