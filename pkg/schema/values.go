package schema

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/schedule"
)

func (l *Label) decodeConfig(d *decoder, n *node, path string, _ *member) {
	switch n.kind {
	case kindString:
		l.Text = n.text
	case kindMap:
		l.Langs = make(map[string]string, len(n.entries))
		d.mapping(n, path, reflect.ValueOf(&l.Langs).Elem(), &member{keys: "language"})
	default:
		d.wrongType(n, path, "a string, or an object of language and text")
	}
}

func (x *Duration) decodeConfig(d *decoder, n *node, path string, m *member) {
	const want = "a duration such as 1m30s or 90d, or whole milliseconds"
	var out time.Duration
	switch n.kind {
	case kindInt:
		if n.integer > int64(maxDuration/time.Millisecond) || n.integer < 0 {
			d.problem(n.pos, path, CodeRange, "must be between 0 and 100 years")
			return
		}
		out = time.Duration(n.integer) * time.Millisecond
	case kindString:
		var ok bool
		if out, ok = parseDuration(n.text); !ok {
			d.problem(n.pos, path, CodePattern, "must be %s", want)
			return
		}
	default:
		d.wrongType(n, path, want)
		return
	}
	if m.min != nil && float64(out.Milliseconds()) < *m.min {
		d.problem(n.pos, path, CodeRange, "must be at least %gms", *m.min)
		return
	}
	*x = Duration(out)
}

const maxDuration = 100 * 365 * 24 * time.Hour

// parseDuration reads Go's form, with w and d in front for weeks and days.
func parseDuration(s string) (time.Duration, bool) {
	var total time.Duration
	rest := s
	for _, unit := range []struct {
		letter string
		length time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		digits, after, ok := strings.Cut(rest, unit.letter)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 16)
		if err != nil {
			return 0, false
		}
		total += time.Duration(n) * unit.length
		rest = after
	}
	if rest != "" || total == 0 && rest == s {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 || d > maxDuration {
			return 0, false
		}
		total += d
	}
	return total, total <= maxDuration
}

func (x *Size) decodeConfig(d *decoder, n *node, path string, _ *member) {
	const want = "a number of bytes, or a size such as 25MB or 32MiB"
	switch n.kind {
	case kindInt:
		if n.integer < 1 {
			d.problem(n.pos, path, CodeRange, "must be at least 1")
			return
		}
		if n.integer > maxSize {
			d.problem(n.pos, path, CodeRange, "must be at most %d", int64(maxSize))
			return
		}
		*x = Size(n.integer)
	case kindString:
		size, ok := parseSize(n.text)
		if !ok {
			d.problem(n.pos, path, CodePattern, "must be %s", want)
			return
		}
		*x = Size(size)
	default:
		d.wrongType(n, path, want)
	}
}

// maxSize is 1 PiB: more than anything here has room for, and a number that every reader of the JSON Schema can take.
const maxSize = 1 << 50

// sizeUnits are tried in this order, so that B does not hide the others.
var sizeUnits = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"KB", 1e3},
	{"kB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"B", 1},
	{"", 1},
}

func parseSize(s string) (int64, bool) {
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 1 || n > maxSize/u.bytes {
			return 0, false
		}
		return n * u.bytes, true
	}
	return 0, false
}

func (x *Schedule) decodeConfig(d *decoder, n *node, path string, _ *member) {
	if n.kind != kindString {
		d.wrongType(n, path, "a schedule such as \"0 3 * * *\", \"@daily\" or every 6h")
		return
	}
	if n.text == "" {
		return
	}
	if _, err := schedule.Parse(n.text); err != nil {
		d.problem(n.pos, path, CodePattern, "%s", err.Error())
		return
	}
	*x = Schedule(n.text)
}

func (x *Span) decodeConfig(d *decoder, n *node, path string, _ *member) {
	const want = "a stretch of time such as 1y5m7d2h, where m means months"
	if n.kind != kindString {
		d.wrongType(n, path, want)
		return
	}
	span, ok := parseSpan(n.text)
	if !ok {
		d.problem(n.pos, path, CodePattern, "must be %s", want)
		return
	}
	*x = span
}

// parseSpan reads years, months, days and hours in this order, each at most once.
func parseSpan(s string) (span Span, ok bool) {
	if s == "" {
		return span, false
	}
	for _, part := range []struct {
		letter string
		out    *int
	}{{"y", &span.Years}, {"m", &span.Months}, {"d", &span.Days}, {"h", &span.Hours}} {
		digits, rest, found := strings.Cut(s, part.letter)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 16)
		if err != nil {
			return span, false
		}
		*part.out, s = int(n), rest
	}
	return span, s == ""
}

func (x *FieldType) decodeConfig(d *decoder, n *node, path string, m *member) {
	if n.kind != kindString {
		d.wrongType(n, path, "a string")
		return
	}
	own := *m
	own.enum = fieldtype.Names()
	if d.text(n, path, &own) {
		*x = FieldType(n.text)
	}
}

func (x *Validator) decodeConfig(d *decoder, n *node, path string, _ *member) {
	if n.kind != kindString && n.kind != kindMap {
		d.wrongType(n, path, "an object of rules, or a tag string such as required,min=3")
		return
	}
	d.free(n, path, reflect.ValueOf(&x.Value).Elem(), &member{})
}

func (x *BoolOrEval) decodeConfig(d *decoder, n *node, path string, _ *member) {
	switch n.kind {
	case kindBool:
		x.Value = n.boolean
	case kindMap:
		var o evalObject
		d.object(n, path, reflect.ValueOf(&o).Elem())
		x.Eval = o.Eval
	default:
		d.wrongType(n, path, "a boolean, or an object with eval")
	}
}

// evalObject is the object form of BoolOrEval.
type evalObject struct {
	Eval string `cfg:"eval,required" doc:"An expression, or the path of a .js or .ts file."`
}

func (x *I18n) decodeConfig(d *decoder, n *node, path string, m *member) {
	switch n.kind {
	case kindBool:
		if n.boolean {
			d.problem(n.pos, path, CodeEnum, "must be false, or an object with languages")
			return
		}
		x.Off = true
	case kindMap:
		d.object(n, path, reflect.ValueOf(x).Elem())
	case kindString:
		d.reference(n, path, reflect.ValueOf(x).Elem(), m)
	default:
		d.wrongType(n, path, "false, or an object with languages")
	}
}

func (x *AdminToken) decodeConfig(d *decoder, n *node, path string, _ *member) {
	switch n.kind {
	case kindString:
		n.hide()
		x.Value = n.text
		if n.text == "" {
			d.problem(n.pos, path, CodeRange, "must not be empty")
		}
	case kindMap:
		n.hide("name", "value", "sha256", "rights", "expiresAt")
		d.object(n, path, reflect.ValueOf(x).Elem())
		x.SHA256 = strings.ToLower(x.SHA256)
		if (x.Value == "") == (x.SHA256 == "") && !d.isBroken(path) {
			d.problem(n.pos, path, CodeRequired, "exactly one of value and sha256 is required")
		}
	default:
		d.wrongType(n, path, "a string, or an object with value or sha256")
		return
	}
	if len(x.Rights) == 0 {
		x.Rights = []string{"collections", "reload", "snapshot"}
	}
}

// hide keeps the texts below an object, and the keys that are not known, out of problems: a secret may have come to the
// wrong place.
func (n *node) hide(known ...string) {
	if n.secret && (n.kind == kindMap || n.kind == kindList) { // by another alias: they can be more than anybody could go through
		return
	}
	n.secret = true
	for i := range n.entries {
		e := &n.entries[i]
		e.hidden = !slices.Contains(known, e.key)
		e.value.hide()
	}
	for _, item := range n.items {
		item.hide()
	}
}

func (x *SnapshotCollection) decodeConfig(d *decoder, n *node, path string, _ *member) {
	switch n.kind {
	case kindString:
		x.Name, x.Mode = n.text, "include"
	case kindMap:
		d.object(n, path, reflect.ValueOf(x).Elem())
	default:
		d.wrongType(n, path, "the name of a collection, or an object with name")
	}
}
