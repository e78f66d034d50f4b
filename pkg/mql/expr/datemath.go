package expr

import (
	"math"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// unit is a unit of time.
type unit int

const (
	noUnit unit = iota
	years
	quarters
	months
	weeks
	days
	hours
	minutes
	seconds
	millis
)

const dayMillis = 24 * 60 * 60 * 1000

func unitOf(s []byte) unit {
	names := [...]string{
		years: "year", quarters: "quarter", months: "month", weeks: "week", days: "day", hours: "hour", minutes: "minute", seconds: "second",
		millis: "millisecond",
	}
	for u, name := range names {
		if name == string(s) && u > 0 {
			return unit(u)
		}
	}
	return noUnit
}

// UnitMillis says whether there is a unit of time of that name, and how many milliseconds it has; 0 of those that differ in
// length, a month and longer.
func UnitMillis(name string) (ms int64, ok bool) {
	u := unitOf([]byte(name))
	return u.length(), u != noUnit
}

// length is that of a unit that always has the same, in milliseconds; 0 of the others.
func (u unit) length() int64 {
	return [...]int64{weeks: 7 * dayMillis, days: dayMillis, hours: 3600_000, minutes: 60_000, seconds: 1000, millis: 1}[u]
}

// most is how many of a unit fit in the range of dates; milliseconds have no such limit.
func (u unit) most() int64 {
	return [...]int64{
		years: 584_942_417, quarters: 4 * 584_942_417, months: 12 * 584_942_417, weeks: 30_500_568_904, days: 213_503_982_334,
		hours: 5_124_095_576_030, minutes: 307_445_734_561_825, seconds: 18_446_744_073_709_551,
	}[u]
}

// check refuses to move a date by more than that.
func (u unit) check(amount int64) error {
	if u != millis && (amount > u.most() || amount < -u.most()) {
		return fail(5976500, "the amount %d is out of range", amount)
	}
	return nil
}

// dateArithmetic is $dateAdd and $dateSubtract: startDate, unit, amount, timezone.
func dateArithmetic(subtract bool) operator {
	names := named{
		names: []string{"startDate", "unit", "amount", "timezone"}, required: 3, noObject: 5166400, unknown: 5166401,
		lacking: []document.ServerCode{5166402, 5166402, 5166402},
	}
	return dateOperator(names, 3, func(env *Env, n *dateNode) (bson.RawValue, error) { return n.move(env, subtract) })
}

func (n *dateNode) move(env *Env, subtract bool) (bson.RawValue, error) {
	var v [3]bson.RawValue
	for i := range v {
		var err error
		if v[i], err = n.operands[i].eval(env); err != nil || isNull(v[i].Type) {
			return null, err
		}
	}
	loc, err := n.location(env)
	if err != nil || loc == nil {
		return null, err
	}
	ms, ok := millisOf(v[0])
	switch {
	case !ok:
		return missing, fail(5166403, "%s needs a date as startDate, not %s", n.name, typeName(v[0].Type))
	case v[1].Type != bson.TypeString:
		return missing, fail(5166404, "%s needs text as unit, not %s", n.name, typeName(v[1].Type))
	}
	u := unitOf(bytesOf(v[1]))
	switch {
	case u == noUnit:
		return missing, fail(codeFailedToParse, "there is no unit of time %q", document.Readable(bytesOf(v[1])))
	case !isLongValue(v[2]):
		return missing, fail(5166405, "%s needs a whole number as amount", n.name)
	}
	amount, err := toLong(v[2])
	switch {
	case err != nil:
		return missing, err
	case subtract && amount == math.MinInt64:
		return missing, fail(6045000, "%s can't take so large an amount", n.name)
	case subtract:
		amount = -amount
	}
	ms, err = addDate(ms, u, amount, loc)
	if err != nil {
		return missing, err
	}
	return env.date(ms), nil
}

func overflow() error { return fail(5166406, "the date is out of range") }

// addDate moves a date. Days and more move the calendar of the zone, less moves the time.
func addDate(ms int64, u unit, amount int64, loc *time.Location) (int64, error) {
	if err := u.check(amount); err != nil {
		return 0, err
	}
	switch u {
	case years:
		return addMonths(ms, 12*amount, loc)
	case quarters:
		return addMonths(ms, 3*amount, loc)
	case months:
		return addMonths(ms, amount, loc)
	default:
	}
	step, ok := times(amount, u.length())
	if !ok {
		return 0, overflow()
	}
	if (u == days || u == weeks) && loc != time.UTC {
		_, offset := time.UnixMilli(ms).In(loc).Zone()
		local, ok := plus(ms, int64(offset)*1000)
		if ok {
			local, ok = plus(local, step)
		}
		switch {
		case step == 0:
			return ms, nil
		case ok:
			return fromLocal(local, loc), nil
		}
	}
	if ms, ok = plus(ms, step); !ok && u == millis {
		return 0, fail(codeDuration, "the date is out of range")
	}
	if !ok {
		return 0, overflow()
	}
	return ms, nil
}

func plus(a, b int64) (int64, bool) {
	n := a + b
	return n, (n > a) == (b > 0)
}

func times(a, b int64) (n int64, ok bool) {
	n = a * b
	return n, a == 0 || n/a == b
}

// addMonths moves a date in the calendar; a day that a month does not have becomes its last.
func addMonths(ms, amount int64, loc *time.Location) (int64, error) {
	if amount == 0 {
		return ms, nil
	}
	t := time.UnixMilli(ms).In(loc)
	month := int64(t.Month()) - 1 + amount
	year := int64(t.Year()) + floorDiv(month, 12)
	month -= floorDiv(month, 12) * 12
	if year < -292_275_056 || year > 292_278_995 {
		return 0, overflow()
	}
	last := time.Date(int(year), time.Month(month+2), 0, 0, 0, 0, 0, time.UTC).Day()
	moved := time.Date(int(year), time.Month(month+1), min(t.Day(), last), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
	local, ok := millisOfTime(moved.Unix(), int64(t.Nanosecond()/1e6))
	if !ok {
		return 0, overflow()
	}
	return fromLocal(local, loc), nil
}

func millisOfTime(seconds, ms int64) (int64, bool) {
	n, ok := times(seconds, 1000)
	if !ok {
		return 0, false
	}
	return plus(n, ms)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// weekday reads a day of the week, also in short.
func weekday(s []byte) (time.Weekday, bool) {
	name := strings.ToLower(string(s))
	for d := range time.Weekday(7) {
		full := strings.ToLower(d.String())
		if name == full || name == full[:3] {
			return d, true
		}
	}
	return 0, false
}

// unitAndWeek reads unit and startOfWeek.
func (n *dateNode) unitAndWeek(v, week bson.RawValue) (unit, time.Weekday, error) {
	if v.Type != bson.TypeString {
		return 0, 0, fail(5439013, "%s needs text as unit, not %s", n.name, typeName(v.Type))
	}
	u := unitOf(bytesOf(v))
	switch {
	case u == noUnit:
		return 0, 0, fail(5439014, "%s: there is no unit of time %q", n.name, document.Readable(bytesOf(v)))
	case u != weeks || week.Type == 0:
		return u, time.Sunday, nil
	case week.Type != bson.TypeString:
		return 0, 0, fail(5439015, "%s needs text as startOfWeek, not %s", n.name, typeName(week.Type))
	}
	day, ok := weekday(bytesOf(week))
	if !ok {
		return 0, 0, fail(5439016, "%s: there is no day %q", n.name, document.Readable(bytesOf(week)))
	}
	return u, day, nil
}

func isWeek(v bson.RawValue) bool { return v.Type == bson.TypeString && string(bytesOf(v)) == "week" }

// runDateDiff computes $dateDiff: startDate, endDate, unit, timezone, startOfWeek.
func runDateDiff(env *Env, n *dateNode) (bson.RawValue, error) {
	var v [3]bson.RawValue
	for i := range v {
		var err error
		if v[i], err = n.operands[i].eval(env); err != nil || isNull(v[i].Type) {
			return null, err
		}
	}
	week := missing
	if isWeek(v[2]) && n.operands[4] != nil {
		var err error
		if week, err = n.operands[4].eval(env); err != nil || isNull(week.Type) {
			return null, err
		}
	}
	loc, err := n.location(env)
	if err != nil || loc == nil {
		return null, err
	}
	var ms [2]int64
	for i := range ms {
		var ok bool
		if ms[i], ok = millisOf(v[i]); !ok {
			return missing, fail(5166307, "$dateDiff takes dates, not %s", typeName(v[i].Type))
		}
	}
	u, day, err := n.unitAndWeek(v[2], week)
	if err != nil {
		return missing, err
	}
	d, ok := dateDiff(ms[0], ms[1], u, day, loc)
	if !ok {
		return missing, fail(5166308, "$dateDiff makes a number out of range")
	}
	return env.int64(d), nil
}

// dateDiff counts the beginnings of a unit between two dates.
func dateDiff(start, end int64, u unit, first time.Weekday, loc *time.Location) (int64, bool) {
	a, b := time.UnixMilli(start).In(loc), time.UnixMilli(end).In(loc)
	switch u {
	case years:
		return int64(b.Year() - a.Year()), true
	case quarters:
		return quarterOf(b) - quarterOf(a), true
	case months:
		return monthOf(b) - monthOf(a), true
	case weeks:
		return floorDiv(dayOf(b)-sinceFirst(b, first)-dayOf(a)+sinceFirst(a, first), 7), true
	case days:
		return dayOf(b) - dayOf(a), true
	case hours, minutes: // of the zone, whose offset may have seconds
		_, x := a.Zone()
		_, y := b.Zone()
		length := u.length() / 1000
		whole := func(ms int64, offset int) int64 { return floorDiv(floorDiv(ms, 1000)+int64(offset), length) }
		return whole(end, y) - whole(start, x) - int64(y-x)/length, true
	case millis:
		d := end - start
		return d, (d < end) == (start > 0)
	default:
		return floorDiv(end, u.length()) - floorDiv(start, u.length()), true
	}
}

func monthOf(t time.Time) int64 { return int64(t.Year())*12 + int64(t.Month()) - 1 }

func quarterOf(t time.Time) int64 { return floorDiv(monthOf(t), 3) }

// dayOf counts the days of the calendar.
func dayOf(t time.Time) int64 {
	_, offset := t.Zone()
	return floorDiv(t.Unix()+int64(offset), 24*60*60)
}

func sinceFirst(t time.Time, first time.Weekday) int64 { return int64((t.Weekday() - first + 7) % 7) }

// runDateTrunc computes $dateTrunc: date, unit, binSize, timezone, startOfWeek.
func runDateTrunc(env *Env, n *dateNode) (bson.RawValue, error) {
	v, err := n.operands[0].eval(env)
	if err != nil || isNull(v.Type) {
		return null, err
	}
	unitValue, err := n.operands[1].eval(env)
	if err != nil || isNull(unitValue.Type) {
		return null, err
	}
	size := bson.RawValue{Type: bson.TypeInt32, Value: []byte{1, 0, 0, 0}}
	if n.operands[2] != nil {
		if size, err = n.operands[2].eval(env); err != nil || isNull(size.Type) {
			return null, err
		}
	}
	week := missing
	if isWeek(unitValue) && n.operands[4] != nil {
		if week, err = n.operands[4].eval(env); err != nil || isNull(week.Type) {
			return null, err
		}
	}
	loc, err := n.location(env)
	if err != nil || loc == nil {
		return null, err
	}
	ms, ok := millisOf(v)
	if !ok {
		return missing, fail(5439012, "$dateTrunc takes a date, not %s", typeName(v.Type))
	}
	if _, _, err := n.unitAndWeek(unitValue, missing); err != nil {
		return missing, err
	}
	bin, err := binSize(size)
	if err != nil {
		return missing, err
	}
	u, day, err := n.unitAndWeek(unitValue, week)
	if err != nil {
		return missing, err
	}
	if bin > 100_000_000_000 && u <= days {
		return missing, fail(5439006, "$dateTrunc takes no binSize above 100000000000")
	}
	began, err := truncateDate(ms, u, bin, day, loc)
	switch {
	case err != nil:
		return missing, err
	case began > ms: // around the least date
		return missing, overflow()
	}
	return env.date(began), nil
}

func binSize(v bson.RawValue) (int64, error) {
	if !isLongValue(v) {
		return 0, fail(5439017, "$dateTrunc needs a whole number as binSize, not %s", typeName(v.Type))
	}
	n, err := toLong(v)
	if err == nil && n <= 0 {
		err = fail(5439018, "$dateTrunc needs a positive binSize")
	}
	return n, err
}

// truncateDate gives the beginning of the bin that a date is in. The bins are counted from the year 2000.
func truncateDate(ms int64, u unit, bin int64, first time.Weekday, loc *time.Location) (int64, error) {
	const reference, referenceDay = 946_684_800_000, 10957 // 2000-01-01, a Saturday
	t := time.UnixMilli(ms).In(loc)
	switch u {
	case years, quarters, months:
		perMonth := [...]int64{years: 12, quarters: 3, months: 1}[u]
		n := floorDiv(monthOf(t)-2000*12, perMonth*bin) * bin
		if err := u.check(n); err != nil {
			return 0, err
		}
		return addMonths(fromLocal(reference, loc), n*perMonth, loc)
	case weeks, days:
		start, length := int64(referenceDay), bin
		if u == weeks {
			start, length = start+int64((first-time.Saturday+7)%7), 7*bin
		}
		bins := floorDiv(dayOf(t)-start, length)
		if err := u.check(bins * bin); err != nil {
			return 0, err
		}
		day := start + bins*length
		local, ok := times(day, dayMillis)
		if !ok {
			return 0, overflow()
		}
		return fromLocal(local, loc), nil
	default:
	}
	origin := fromLocal(reference, loc)
	length, ok := times(bin, u.length())
	if !ok {
		return 0, fail(5439002, "the binSize of $dateTrunc is out of range")
	}
	since, ok := minus(ms, origin)
	if !ok {
		return 0, fail(5439000, "the date is out of range")
	}
	out, ok := plus(origin, floorDiv(since, length)*length)
	if !ok {
		return 0, overflow()
	}
	return out, nil
}
