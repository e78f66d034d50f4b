package expr

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// dateNode is what the date operators with an object share: operands by their place, a zone among them.
type dateNode struct {
	name string
	operands
	zoneAt int
	run    func(env *Env, n *dateNode) (bson.RawValue, error)
}

func (n *dateNode) eval(env *Env) (bson.RawValue, error) { return n.run(env, n) }

func (n *dateNode) location(env *Env) (*time.Location, error) {
	z := zone{n.operands[n.zoneAt], 40517}
	return z.location(env)
}

// arg computes an operand; one that is not given is missing.
func (n *dateNode) arg(env *Env, i int) (bson.RawValue, error) {
	if n.operands[i] == nil {
		return missing, nil
	}
	return n.operands[i].eval(env)
}

func dateOperator(named named, zoneAt int, run func(env *Env, n *dateNode) (bson.RawValue, error)) operator {
	return operator{parse: func(c *compiler, name string, v bson.RawValue) (node, error) {
		args, err := c.named(name, v, named)
		if err != nil {
			return nil, err
		}
		return &dateNode{name: name, operands: args, zoneAt: zoneAt, run: run}, nil
	}}
}

// runDateToString computes $dateToString: date, format, timezone, onNull.
func runDateToString(env *Env, n *dateNode) (bson.RawValue, error) {
	v, err := n.arg(env, 0)
	if err != nil {
		return missing, err
	}
	format, err := n.arg(env, 1)
	if err != nil {
		return missing, err
	}
	if err := checkFormat(n.name, format, 18533, "dGHjLmMSwuUVYzZ%"); err != nil {
		return missing, err
	}
	loc, err := n.location(env)
	switch {
	case err != nil:
		return missing, err
	case isNull(v.Type) && n.operands[3] != nil:
		return n.operands[3].eval(env)
	case isNull(v.Type), loc == nil, n.operands[1] != nil && isNull(format.Type):
		return null, nil
	}
	ms, ok := millisOf(v)
	if !ok {
		return missing, noDate(v)
	}
	layout := "%Y-%m-%dT%H:%M:%S.%LZ"
	if n.operands[1] != nil {
		layout = string(bytesOf(format))
	}
	start := env.openText()
	if err := env.format(time.UnixMilli(ms).In(loc), layout); err != nil {
		return missing, err
	}
	return env.closeText(start), nil
}

// checkFormat checks a format if it is none that is null.
func checkFormat(name string, v bson.RawValue, code document.ServerCode, letters string) error {
	if isNull(v.Type) {
		return nil
	}
	if v.Type != bson.TypeString {
		return fail(code, "%s needs text as format, not %s", name, typeName(v.Type))
	}
	format := bytesOf(v)
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		if i++; i == len(format) {
			return fail(18535, "%s: the format ends with a single %%", name)
		}
		known := false
		for j := range len(letters) {
			known = known || letters[j] == format[i]
		}
		if !known {
			return fail(18536, "%s: the format has %%%c, which means nothing", name, format[i])
		}
	}
	return nil
}

// format appends a date.
func (env *Env) format(t time.Time, layout string) error {
	for i := 0; i < len(layout); i++ {
		if layout[i] != '%' {
			env.arena = append(env.arena, layout[i])
			continue
		}
		i++
		if layout[i] == 'Y' || layout[i] == 'G' {
			year := t.Year()
			if layout[i] == 'G' {
				year = isoYear(t)
			}
			if year < 0 || year > 9999 {
				return fail(18537, "a date outside of the years 0 to 9999 can't be written as text")
			}
			env.digits(year, 4)
			continue
		}
		env.formatPart(t, layout[i])
	}
	return nil
}

func (env *Env) formatPart(t time.Time, letter byte) {
	_, offset := t.Zone()
	minutes := offset / 60
	switch letter {
	case 'd':
		env.digits(t.Day(), 2)
	case 'H':
		env.digits(t.Hour(), 2)
	case 'j':
		env.digits(t.YearDay(), 3)
	case 'L':
		env.digits(t.Nanosecond()/1e6, 3)
	case 'm':
		env.digits(int(t.Month()), 2)
	case 'M':
		env.digits(t.Minute(), 2)
	case 'S':
		env.digits(t.Second(), 2)
	case 'w':
		env.digits(int(t.Weekday())+1, 1)
	case 'u':
		env.digits(isoDay(t), 1)
	case 'U':
		env.digits(sundays(t), 2)
	case 'V':
		env.digits(isoWeek(t), 2)
	case 'z':
		sign := byte('+')
		if minutes < 0 {
			sign, minutes = '-', -minutes
		}
		env.arena = append(env.arena, sign)
		env.digits(minutes/60, 2)
		env.digits(minutes%60, 2)
	case 'Z':
		if minutes < 0 {
			env.arena = append(env.arena, '-')
			minutes = -minutes
		}
		env.digits(minutes, 1)
	default:
		env.arena = append(env.arena, '%')
	}
}

// digits appends a number that is not negative with at least that many digits.
func (env *Env) digits(n, width int) {
	var b [20]byte
	i := len(b)
	for ; n > 0 || width > 0; n, width = n/10, width-1 {
		i--
		b[i] = byte('0' + n%10)
	}
	env.arena = append(env.arena, b[i:]...)
}

// runDateToParts computes $dateToParts: date, timezone, iso8601.
func runDateToParts(env *Env, n *dateNode) (bson.RawValue, error) {
	v, err := n.arg(env, 0)
	if err != nil {
		return missing, err
	}
	loc, err := n.location(env)
	if err != nil || loc == nil {
		return null, err
	}
	iso := falseValue
	if n.operands[2] != nil {
		if iso, err = n.operands[2].eval(env); err != nil || isNull(iso.Type) {
			return null, err
		}
	}
	switch {
	case iso.Type != bson.TypeBoolean:
		return missing, fail(40521, "$dateToParts needs true or false as iso8601, not %s", typeName(iso.Type))
	case isNull(v.Type):
		return null, nil
	}
	ms, ok := millisOf(v)
	if !ok {
		return missing, noDate(v)
	}
	t := time.UnixMilli(ms).In(loc)
	names, values := [3]string{"year", "month", "day"}, [3]int{t.Year(), int(t.Month()), t.Day()}
	if Truth(iso) {
		names, values = [3]string{"isoWeekYear", "isoWeek", "isoDayOfWeek"}, [3]int{isoYear(t), isoWeek(t), isoDay(t)}
	}
	start := env.open()
	for i := range names {
		env.part(names[i], values[i])
	}
	env.part("hour", t.Hour())
	env.part("minute", t.Minute())
	env.part("second", t.Second())
	env.part("millisecond", t.Nanosecond()/1e6)
	return env.close(bson.TypeEmbeddedDocument, start), nil
}

func (env *Env) part(name string, n int) {
	env.arena = append(append(append(env.arena, byte(bson.TypeInt32)), name...), 0)
	env.int32(int32(n)) //nolint:gosec // parts of a date are small
}
