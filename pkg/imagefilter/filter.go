package imagefilter

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/schema"
)

// version is part of every filter's hash: raise it when the code makes other bytes of the same picture.
const version = 2

// Filter is a compiled image filter. It is immutable and safe for concurrent use.
type Filter struct {
	steps []step
	out   output
	hash  string
}

// Compile makes the filters of a collection. Problems have paths such as thumb[0].fill, from the filters on; a filter with
// problems is left out.
func Compile(def schema.ImageFilter) (map[string]*Filter, []errs.FieldError) {
	filters := map[string]*Filter{}
	var problems []errs.FieldError
	for name, steps := range def {
		f, found := compile(name, steps)
		if len(found) == 0 {
			filters[name] = f
		}
		problems = append(problems, found...)
	}
	return filters, problems
}

func compile(name string, steps []schema.ImageStep) (*Filter, []errs.FieldError) {
	f := &Filter{out: output{quality: defaultQuality}}
	var problems []errs.FieldError
	for i, def := range steps {
		fail := func(member, rule, message string) {
			path := fmt.Sprintf("%s[%d].%s", name, i, member)
			problems = append(problems, errs.FieldError{Path: path, Rule: rule, Message: message})
		}
		f.steps = append(f.steps, compileStep(def, fail))
		f.out = f.out.with(def)
	}
	f.hash = hashOf(steps)
	return f, problems
}

// hashOf is over the definition, and what else decides on the bytes of the result.
func hashOf(steps []schema.ImageStep) string {
	text, err := json.Marshal(map[string]any{"steps": steps, "version": version, "lossyWebP": hasLossyWebP})
	if err != nil { // the numbers of a config are finite
		panic(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Hash names what the filter does: two filters with one hash make the same bytes of the same file.
func (f *Filter) Hash() string { return f.hash }

// step is one step of a filter. What has no effect is zero.
type step struct {
	width, height        int // zero: by the ratio
	fit, fill, onlyDown  bool
	kernel               kernel
	anchorX, anchorY     float64 // 0 is left and top, 1 right and bottom
	brightness, contrast float64
	saturation, gamma    float64
	blur, sharpen        float64
	invert, grayscale    bool
}

// with takes over what a later step says of the output.
func (o output) with(def schema.ImageStep) output {
	switch def.OutputType {
	case "jpg", "jpeg":
		o.mediaType = typeJPEG
	case "png":
		o.mediaType = typePNG
	case "webp":
		o.mediaType = typeWebP
	}
	if def.Quality != nil {
		o.quality = *def.Quality
	}
	o.lossless = o.lossless || def.Lossless
	o.keepIfSmaller = o.keepIfSmaller || def.SkipLargerFilesize
	return o
}

func compileStep(def schema.ImageStep, fail func(member, rule, message string)) step {
	number := func(v *float64, otherwise float64) float64 {
		if v == nil {
			return otherwise
		}
		return *v
	}
	s := step{
		width: pixels(def.Width), height: pixels(def.Height), fit: def.Fit, fill: def.Fill, onlyDown: def.SkipLargerDimension,
		brightness: number(def.Brightness, 0), contrast: number(def.Contrast, 0), saturation: number(def.Saturation, 0), gamma: number(def.Gamma, 1),
		blur: number(def.Blur, 0), sharpen: number(def.Sharpen, 0), invert: def.Invert, grayscale: def.Grayscale,
	}
	switch {
	case s.fit && s.fill:
		fail("fit", "conflict", "a step either fits or fills; leave one of them out")
	case s.fill && (s.width == 0 || s.height == 0):
		fail("fill", "required", "fill needs width and height")
	case s.fit && s.width == 0 && s.height == 0:
		fail("fit", "required", "fit needs width or height, or both")
	}
	var ok bool
	resampling := def.Resampling
	if resampling == "" {
		resampling = defaultResampling
	}
	if s.kernel, ok = kernelOf(resampling); !ok {
		fail("resampling", "enum", "is not a resampling")
	}
	if s.anchorX, s.anchorY, ok = anchorOf(def.Anchor); !ok {
		fail("anchor", "enum", "is not an anchor")
	}
	return s
}

// pixels rounds; a side that is given has at least one pixel.
func pixels(v *float64) int {
	if v == nil || *v == 0 {
		return 0
	}
	return max(int(math.Round(*v)), 1)
}

// anchorOf gives where an anchor is: 0 is left and top, 1 right and bottom.
func anchorOf(name string) (x, y float64, ok bool) {
	switch name {
	case "", "center":
		return 0.5, 0.5, true
	case "topLeft":
		return 0, 0, true
	case "top":
		return 0.5, 0, true
	case "topRight":
		return 1, 0, true
	case "left":
		return 0, 0.5, true
	case "right":
		return 1, 0.5, true
	case "bottomLeft":
		return 0, 1, true
	case "bottom":
		return 0.5, 1, true
	case "bottomRight":
		return 1, 1, true
	}
	return 0, 0, false
}

// geometry says which part of a picture a step scales to which size; ok is false when it leaves the size alone.
func (s step) geometry(width, height int) (part window, w, h int64, ok bool) {
	w, h = int64(s.width), int64(s.height)
	wide, high := float64(width), float64(height)
	part = window{0, 0, wide, high}
	switch {
	case w == 0 && h == 0:
		return part, 0, 0, false
	case s.fill:
		by := max(float64(w)/wide, float64(h)/high)
		part.width, part.height = min(float64(w)/by, wide), min(float64(h)/by, high)
		part.x, part.y = s.anchorX*(wide-part.width), s.anchorY*(high-part.height)
	case s.fit && (w == 0 || w >= int64(width)) && (h == 0 || h >= int64(height)):
		return part, 0, 0, false
	case w == 0 || s.fit && h > 0 && float64(h)/high < float64(w)/wide:
		w = max(int64(math.Round(float64(h)*wide/high)), 1)
	case h == 0 || s.fit:
		h = max(int64(math.Round(float64(w)*high/wide)), 1)
	}
	if s.onlyDown && (w > int64(width) || h > int64(height)) {
		return part, 0, 0, false
	}
	return part, w, h, w != int64(width) || h != int64(height) || part.width != wide || part.height != high
}
