package expr

import (
	"time"
	_ "time/tzdata" // so that every machine knows the same zones

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// zone is the timezone operand of a date operator; without one it is UTC.
type zone struct {
	n    node
	code document.ServerCode // of what is no text
}

// location gives the zone, nil for null.
func (z *zone) location(env *Env) (*time.Location, error) {
	if z.n == nil {
		return time.UTC, nil
	}
	v, err := z.n.eval(env)
	if err != nil {
		return nil, err
	}
	switch {
	case isNull(v.Type):
		return nil, nil //nolint:nilnil // nil is the zone of null
	case v.Type != bson.TypeString:
		return nil, fail(z.code, "a time zone has to be text, not %s", typeName(v.Type))
	}
	name := string(bytesOf(v))
	if offset, ok := parseOffset(name); ok {
		return time.FixedZone("", offset*60), nil
	}
	if name != "" && name != "Local" {
		if loc, err := time.LoadLocation(name); err == nil {
			return loc, nil
		}
	}
	return nil, fail(40485, "there is no time zone %q: write it like Europe/Berlin or +01:00", document.Readable(name))
}

// parseOffset reads +hh, +hhmm and +hh:mm as minutes.
func parseOffset(s string) (minutes int, ok bool) {
	if len(s) < 3 || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	digits := s[1:]
	if len(digits) == 5 && digits[2] == ':' {
		digits = digits[:2] + digits[3:]
	}
	if len(digits) != 2 && len(digits) != 4 {
		return 0, false
	}
	n := 0
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
		n = n*10 + int(digits[i]-'0')
	}
	if len(digits) == 2 {
		n *= 100
	}
	minutes = n/100*60 + n%100
	if s[0] == '-' {
		minutes = -minutes
	}
	return minutes, true
}

// millisOf reads a date, a timestamp or the time of an ObjectID.
func millisOf(v bson.RawValue) (int64, bool) {
	switch v.Type {
	case bson.TypeDateTime:
		return int64Of(v), true
	case bson.TypeTimestamp:
		return int64(timestampSeconds(v)) * 1000, true
	case bson.TypeObjectID:
		return objectIDMillis(v), true
	default:
		return 0, false
	}
}

func noDate(v bson.RawValue) error {
	return fail(16006, "a date is needed here, not %s", typeName(v.Type))
}

// datePart is $year and the like.
type datePart struct {
	date node
	zone zone
	part func(env *Env, t time.Time) bson.RawValue
}

func partOperator(part func(t time.Time) int) operator {
	return partAs(func(env *Env, t time.Time) bson.RawValue { return env.integer(int64(part(t))) })
}

func partAs(part func(env *Env, t time.Time) bson.RawValue) operator {
	return operator{parse: func(c *compiler, name string, v bson.RawValue) (node, error) {
		n := &datePart{part: part, zone: zone{code: 40533}}
		if v.Type == bson.TypeEmbeddedDocument {
			if it := items(v); !it.Next() || it.Key()[0] != '$' {
				args, err := c.named(name, v, named{
					names: []string{"date", "timezone"}, required: 1, unknown: 40535, lacking: []document.ServerCode{40539},
				})
				if err != nil {
					return nil, err
				}
				n.date, n.zone.n = args[0], args[1]
				return n, nil
			}
		}
		if v.Type == bson.TypeArray && count(v) != 1 {
			return nil, bad(40536, "%s takes one operand, not %d", name, count(v))
		}
		args, err := c.operands(v)
		if err != nil {
			return nil, err
		}
		n.date = args[0]
		return n, nil
	}}
}

func (n *datePart) eval(env *Env) (bson.RawValue, error) {
	v, err := n.date.eval(env)
	switch {
	case err != nil:
		return missing, err
	case isNull(v.Type):
		return null, nil
	}
	ms, ok := millisOf(v)
	if !ok {
		return missing, noDate(v)
	}
	loc, err := n.zone.location(env)
	if err != nil {
		return missing, err
	}
	if loc == nil {
		return null, nil
	}
	return n.part(env, time.UnixMilli(ms).In(loc)), nil
}

func (n *datePart) each(fn func(*node) error) error {
	if err := fn(&n.date); err != nil || n.zone.n == nil {
		return err
	}
	return fn(&n.zone.n)
}

func isoDay(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 }

func isoWeek(t time.Time) int {
	_, week := t.ISOWeek()
	return week
}

func isoYear(t time.Time) int {
	year, _ := t.ISOWeek()
	return year
}

// sundays is the number of the week, which begins on Sunday; the days before the first are week 0.
func sundays(t time.Time) int { return (t.YearDay() + 6 - int(t.Weekday())) / 7 }

func tsPart(code document.ServerCode, shift uint) operator {
	return one(func(env *Env, name string, v bson.RawValue) (bson.RawValue, error) {
		switch {
		case isNull(v.Type):
			return null, nil
		case v.Type != bson.TypeTimestamp:
			return missing, fail(code, "%s takes a timestamp, not %s", name, typeName(v.Type))
		}
		return env.int64(int64(uint32(uint64(int64Of(v)) >> shift))), nil //nolint:gosec // bits
	})
}
