package expr

import (
	"math"
	"slices"
	"time"

	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// The operands of $dateFromParts by their place, which is the order in which they are parsed and computed.
const (
	partYear = iota
	partMonth
	partDay
	partHour
	partMinute
	partSecond
	partMillisecond
	partISOYear
	partISOWeek
	partISODay
	partZone
)

func parseDateFromParts(c *compiler, name string, v bson.RawValue) (node, error) {
	args, err := c.named(name, v, named{
		names: []string{
			"year", "month", "day", "hour", "minute", "second", "millisecond", "isoWeekYear", "isoWeek", "isoDayOfWeek", "timezone",
		},
		late: true, noObject: 40519, unknown: 40518, given: func(v []bson.RawValue) error { return checkParts(name, v) },
	})
	if err != nil {
		return nil, err
	}
	return &dateNode{name: name, operands: args, zoneAt: partZone, run: runDateFromParts}, nil
}

// checkParts refuses parts of two calendars: year, month and day come first, then those of ISO weeks.
func checkParts(name string, v []bson.RawValue) error {
	isGiven := func(v []bson.RawValue) bool {
		return slices.ContainsFunc(v, func(v bson.RawValue) bool { return v.Type != 0 })
	}
	natural, iso := isGiven(v[:partHour]), isGiven(v[partISOYear:partZone])
	hasYear, hasISOYear := v[partYear].Type != 0, v[partISOYear].Type != 0
	switch {
	case !hasYear && !hasISOYear:
		return bad(40516, "%s needs year or isoWeekYear", name)
	case hasYear && iso:
		return bad(40489, "%s takes either year, month and day or isoWeekYear, isoWeek and isoDayOfWeek", name)
	case hasISOYear && natural:
		return bad(40525, "%s takes either year, month and day or isoWeekYear, isoWeek and isoDayOfWeek", name)
	}
	return nil
}

func runDateFromParts(env *Env, n *dateNode) (bson.RawValue, error) {
	var parts [partZone]int64
	ok, err := n.parts(env, &parts, partHour, partMinute, partSecond, partMillisecond)
	if err != nil || !ok {
		return null, err
	}
	loc, err := n.location(env)
	if err != nil || loc == nil {
		return null, err
	}
	first := partYear
	if n.operands[partYear] == nil {
		first = partISOYear
	}
	if ok, err = n.parts(env, &parts, first, first+1, first+2); err != nil || !ok {
		return null, err
	}
	if year := parts[first]; year < 1 || year > 9999 {
		return missing, fail([...]document.ServerCode{partYear: 40523, partISOYear: 31095}[first], "$dateFromParts takes the years 1 to 9999")
	}
	month, day := parts[partMonth], parts[partDay]
	if first == partISOYear { // the day of the year; the first week has January 4th
		january4 := time.Date(int(parts[first]), 1, 4, 0, 0, 0, 0, time.UTC)
		month, day = 1, 4-int64(isoDay(january4))+(parts[partISOWeek]-1)*7+parts[partISODay]
	}
	t := time.Date(int(parts[first]), time.Month(month), int(day), int(parts[partHour]), int(parts[partMinute]), 0, 0, time.UTC)
	_, fits := times(parts[partMillisecond], 1000) // servers count microseconds on the way
	ms, ok := times(parts[partSecond], 1000)
	if ok = ok && fits; ok {
		ms, ok = plus(ms, parts[partMillisecond])
	}
	if ok {
		ms, ok = plus(ms, t.UnixMilli())
	}
	if !ok {
		return missing, fail(codeDuration, "$dateFromParts makes a date out of range")
	}
	return env.date(fromLocal(ms, loc)), nil
}

// parts computes numbers; not ok where one is null.
func (n *dateNode) parts(env *Env, parts *[partZone]int64, which ...int) (ok bool, err error) {
	for _, i := range which {
		parts[i] = 1
		if i >= partHour && i <= partMillisecond {
			parts[i] = 0
		}
		if n.operands[i] == nil {
			continue
		}
		v, err := n.operands[i].eval(env)
		switch {
		case err != nil:
			return false, err
		case isNull(v.Type):
			return false, nil
		case !isLongValue(v):
			return false, fail(40515, "$dateFromParts takes whole numbers, not %s", typeName(v.Type))
		}
		if parts[i], err = toLong(v); err != nil {
			return false, err
		}
		free := i == partSecond || i == partMillisecond || i == partYear || i == partISOYear
		if !free && (parts[i] < math.MinInt16 || parts[i] > math.MaxInt16) {
			return false, fail(31034, "$dateFromParts takes numbers from -32768 to 32767")
		}
	}
	return true, nil
}

// isLongValue says whether a number is an int64 in value.
func isLongValue(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeInt64:
		return true
	case bson.TypeDouble:
		f := doubleOf(v)
		return f == math.Trunc(f) && f >= -1<<63 && f < 1<<63
	case bson.TypeDecimal128:
		_, exact, ok := decimalLong(decimalOf(v), apd.RoundHalfEven)
		return ok && exact
	default:
		return isIntegral(v)
	}
}

// fromLocal gives the time at which clocks in a zone show what ms would be in UTC. Of two such times it is the first; a
// time that is skipped counts from before the gap.
func fromLocal(ms int64, loc *time.Location) int64 {
	if loc == time.UTC {
		return ms
	}
	offset := func(at int64) int64 {
		_, seconds := time.UnixMilli(at).In(loc).Zone()
		return int64(seconds) * 1000
	}
	before := ms - offset(ms-dayMillis)
	if offset(before) == ms-before {
		return before
	}
	after := ms - offset(ms+dayMillis)
	if offset(after) == ms-after {
		return after
	}
	return before
}
