package expr

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// parseDate reads a date as $toDate does.
func parseDate(s string) (int64, error) { return readDate(s, nil) }

// appendISO writes a date as ISO 8601 text in UTC.
func (env *Env) appendISO(ms int64) error {
	return env.format(time.UnixMilli(ms).UTC(), "%Y-%m-%dT%H:%M:%S.%LZ")
}

// runDateFromString computes $dateFromString: dateString, timezone, format, onNull, onError.
func runDateFromString(env *Env, n *dateNode) (bson.RawValue, error) {
	v, err := n.arg(env, 0)
	if err != nil {
		return missing, err
	}
	format, err := n.arg(env, 2)
	if err != nil {
		return missing, err
	}
	if err := checkFormat(n.name, format, 40684, "dGHLmMSuVYzZ%"); err != nil {
		return missing, err
	}
	loc, err := n.location(env)
	switch {
	case err != nil:
		return missing, err
	case isNull(v.Type) && n.operands[3] != nil:
		return n.operands[3].eval(env)
	case isNull(v.Type), loc == nil && v.Type == bson.TypeString:
		return null, nil
	}
	if n.operands[1] == nil {
		loc = nil
	}
	var ms int64
	switch {
	case v.Type != bson.TypeString:
		err = fail(codeConversion, "$dateFromString takes text, not %s", typeName(v.Type))
	case n.operands[2] == nil:
		ms, err = readDate(string(bytesOf(v)), loc)
	case isNull(format.Type):
		return null, nil
	default:
		ms, err = readFormat(string(bytesOf(v)), string(bytesOf(format)), loc)
	}
	if err != nil && n.operands[4] != nil && document.ServerCodeOf(err) == codeConversion {
		return n.operands[4].eval(env)
	}
	if err != nil {
		return missing, err
	}
	return env.date(ms), nil
}

// dateParts is what has been read of a text; what has not is -1.
type dateParts struct {
	year, month, day, week, weekday int
	hour, minute, second, ms        int
	zoned                           bool
	offset                          int // minutes
}

func noDateText(s string) error {
	return fail(codeConversion, "%q can't be read as a date: write it like 2026-01-31T12:00:00Z", document.Readable(s))
}

// millis gives the time in a zone, or in that which the text names. A nil zone is UTC.
func (p *dateParts) millis(s string, loc *time.Location) (int64, error) {
	if p.zoned && loc != nil {
		return 0, fail(codeConversion, "the date %q has a time zone of its own", document.Readable(s))
	}
	var day time.Time
	switch {
	case p.week >= 0 || p.weekday >= 0:
		if p.year < 0 {
			return 0, noDateText(s)
		}
		january4 := time.Date(p.year, 1, 4, 0, 0, 0, 0, time.UTC)
		day = january4.AddDate(0, 0, (max(p.week, 1)-1)*7+max(p.weekday, 1)-isoDay(january4))
	case p.year < 0 || p.month < 1 || p.day < 1:
		return 0, noDateText(s)
	default:
		if day = time.Date(p.year, time.Month(p.month), p.day, 0, 0, 0, 0, time.UTC); day.Day() != p.day || p.month > 12 {
			return 0, noDateText(s)
		}
	}
	if p.hour > 24 || p.minute > 59 || p.second > 59 {
		return 0, noDateText(s)
	}
	ms := day.UnixMilli() + int64(p.hour)*3600_000 + int64(p.minute)*60_000 + int64(p.second)*1000 + int64(p.ms)
	switch {
	case p.zoned:
		return ms - int64(p.offset)*60_000, nil
	case loc == nil:
		return ms, nil
	default:
		return fromLocal(ms, loc), nil
	}
}

// dateReader reads a text from the left to the right.
type dateReader struct {
	rest string
	bad  bool
}

// number reads up to most digits, at least the given number of them.
func (r *dateReader) number(least, most int) int {
	n := 0
	for n < len(r.rest) && n < most && r.rest[n] >= '0' && r.rest[n] <= '9' {
		n++
	}
	if n < least {
		r.bad = true
		return 0
	}
	v, _ := strconv.Atoi(r.rest[:n]) // digits
	r.rest = r.rest[n:]
	return v
}

func (r *dateReader) skip(prefix string) bool {
	rest, ok := strings.CutPrefix(r.rest, prefix)
	if ok {
		r.rest = rest
	}
	return ok
}

func (r *dateReader) expect(prefix string) {
	if !r.skip(prefix) {
		r.bad = true
	}
}

// millis reads a fraction of a second.
func (r *dateReader) millis() int {
	n := r.shortMillis()
	for len(r.rest) > 0 && r.rest[0] >= '0' && r.rest[0] <= '9' {
		r.rest = r.rest[1:]
	}
	return n
}

// shortMillis reads up to three digits of it.
func (r *dateReader) shortMillis() int {
	before := len(r.rest)
	n := r.number(1, 3)
	for range 3 - (before - len(r.rest)) {
		n *= 10
	}
	return n
}

// zone reads Z or an offset.
func (r *dateReader) zone(p *dateParts) {
	if slices.ContainsFunc([]string{"Z", "z", "UTC", "GMT"}, r.skip) {
		p.zoned = true
		return
	}
	for _, n := range []int{6, 5, 3} {
		if len(r.rest) >= n {
			if offset, ok := parseOffset(r.rest[:n]); ok {
				p.zoned, p.offset, r.rest = true, offset, r.rest[n:]
				return
			}
		}
	}
}

// readFormat reads a text of a format.
func readFormat(s, format string, loc *time.Location) (int64, error) {
	p := dateParts{year: -1, month: -1, day: -1, week: -1, weekday: -1}
	r := dateReader{rest: s}
	for i := 0; i < len(format) && !r.bad; i++ {
		if format[i] != '%' {
			r.expect(format[i : i+1])
			continue
		}
		i++
		switch format[i] {
		case 'Y', 'G':
			p.year = r.number(4, 4)
		case 'm':
			p.month = r.number(1, 2)
		case 'd':
			p.day = r.number(1, 2)
		case 'H':
			p.hour = r.number(1, 2)
		case 'M':
			p.minute = r.number(2, 2)
		case 'S':
			p.second = r.number(2, 2)
		case 'L':
			p.ms = r.shortMillis()
		case 'V':
			p.week = r.number(1, 2)
		case 'u':
			p.weekday = r.number(1, 1)
		case 'z':
			if r.zone(&p); !p.zoned {
				r.bad = true
			}
		case 'Z':
			sign := 1
			if r.skip("-") {
				sign = -1
			} else {
				r.skip("+")
			}
			p.zoned, p.offset = true, sign*r.number(1, 4)
		default:
			r.expect("%")
		}
	}
	if r.bad || r.rest != "" {
		return 0, noDateText(s)
	}
	return p.millis(s, loc)
}

// readDate reads the forms of a date that are in use: ISO 8601, 02/03/2020, Feb 3, 2020, and 3 February 2020, each with a
// time or without.
func readDate(s string, loc *time.Location) (int64, error) {
	p := dateParts{week: -1, weekday: -1}
	r := dateReader{rest: strings.TrimSpace(s)}
	if !r.day(&p) {
		return 0, noDateText(s)
	}
	if r.skip("T") || r.skip("t") || r.skip(" ") {
		p.hour = r.number(1, 2)
		r.expect(":")
		p.minute = r.number(2, 2)
		if r.skip(":") {
			p.second = r.number(2, 2)
			if r.skip(".") {
				p.ms = r.millis()
			}
		}
		r.skip(" ")
		r.zone(&p)
	} else {
		r.zone(&p)
	}
	if r.bad || r.rest != "" {
		return 0, noDateText(s)
	}
	return p.millis(s, loc)
}

// day reads the day in one of its forms.
func (r *dateReader) day(p *dateParts) bool {
	for _, form := range []func(r *dateReader, p *dateParts){isoForm, plainForm, slashForm, dotForm, monthFirst, dayFirst} {
		try := *r
		if form(&try, p); !try.bad {
			*r = try
			return true
		}
	}
	return false
}

func isoForm(r *dateReader, p *dateParts) {
	p.year = r.number(4, 4)
	r.expect("-")
	p.month, p.day = r.number(1, 2), 1
	if r.skip("-") {
		p.day = r.number(1, 2)
	}
}

func plainForm(r *dateReader, p *dateParts) {
	p.year, p.month, p.day = r.number(4, 4), r.number(2, 2), r.number(2, 2)
}

func slashForm(r *dateReader, p *dateParts) {
	p.month = r.number(1, 2)
	r.expect("/")
	p.day = r.number(1, 2)
	r.expect("/")
	p.year = r.number(4, 4)
}

func dotForm(r *dateReader, p *dateParts) {
	p.day = r.number(1, 2)
	r.expect(".")
	p.month = r.number(1, 2)
	r.expect(".")
	p.year = r.number(4, 4)
}

func monthFirst(r *dateReader, p *dateParts) {
	r.month(p)
	r.expect(" ")
	p.day = r.number(1, 2)
	for _, suffix := range []string{"st", "nd", "rd", "th"} {
		r.skip(suffix)
	}
	r.skip(",")
	r.expect(" ")
	p.year = r.number(4, 4)
}

func dayFirst(r *dateReader, p *dateParts) {
	p.day = r.number(1, 2)
	r.expect(" ")
	r.month(p)
	r.expect(" ")
	p.year = r.number(4, 4)
}

// month reads the name of a month, also in short.
func (r *dateReader) month(p *dateParts) {
	for m := time.January; m <= time.December; m++ {
		for _, name := range []string{m.String(), m.String()[:3]} {
			if len(r.rest) >= len(name) && strings.EqualFold(r.rest[:len(name)], name) {
				p.month, r.rest = int(m), r.rest[len(name):]
				return
			}
		}
	}
	r.bad = true
}
