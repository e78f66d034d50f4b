package schedule

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/netresearch/go-cron"
)

// Schedule says when something runs. It is immutable and safe for concurrent use.
type Schedule interface {
	// Next gives the first time after t, in UTC; the zero time when there is none.
	Next(t time.Time) time.Time
	// String gives the text that was parsed.
	String() string
}

// minInterval keeps an interval from becoming a busy loop, maxInterval from overflowing.
const (
	minInterval = time.Second
	maxInterval = 366 * 24 * time.Hour
)

// maxSearchYears is how far ahead the next time is looked for: February 29 can be eight years away.
const maxSearchYears = 9

// Parse reads a schedule: five-field cron ("0 3 * * *"), with an optional zone in front ("CRON_TZ=Europe/Berlin …",
// else UTC); @yearly, @monthly, @weekly, @daily, @hourly; or an interval ("every 6h", also with d and w), counted from
// the Unix epoch so that restarts don't shift it. As in cron, when both the day of the month and the day of the week
// are restricted, either is enough. A schedule that never comes is an error. Errors are fit to be shown.
func Parse(text string) (Schedule, error) {
	text = strings.TrimSpace(text)
	interval, ok := strings.CutPrefix(text, "every ")
	if !ok {
		interval, ok = strings.CutPrefix(text, "@every ")
	}
	if ok {
		return parseInterval(text, strings.TrimSpace(interval))
	}
	return parseCron(text)
}

type every struct {
	text     string
	interval time.Duration
}

func (e every) String() string { return e.text }

func (e every) Next(t time.Time) time.Time {
	epoch := time.Unix(0, 0).UTC()
	since := t.Sub(epoch)
	past := since % e.interval // of the running period
	if past < 0 {
		past += e.interval
	}
	return epoch.Add(since - past + e.interval)
}

func parseInterval(text, interval string) (Schedule, error) {
	d, err := duration(interval)
	if err != nil {
		return nil, fmt.Errorf("%q is not an interval; write such as every 6h", text)
	}
	if d < minInterval || d > maxInterval {
		return nil, errors.New("an interval is between 1s and 366d")
	}
	return every{text, d}, nil
}

// duration is Go's form, and whole days or weeks.
func duration(s string) (time.Duration, error) {
	for suffix, day := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if digits, ok := strings.CutSuffix(s, suffix); ok {
			n, err := strconv.ParseUint(digits, 10, 12)
			return time.Duration(n) * day, err
		}
	}
	return time.ParseDuration(s)
}

// calendar is a cron expression.
type calendar struct {
	text string
	spec *cron.SpecSchedule
	zone *time.Location
	once bool // in the hour that a clock change repeats, run only the first time
}

func (c calendar) String() string { return c.text }

// Zone is that of a schedule's calendar: what CRON_TZ= in front of cron fields names, else UTC.
func Zone(s Schedule) *time.Location {
	if c, ok := s.(calendar); ok {
		return c.zone
	}
	return time.UTC
}

// Next leaves out the second of two equal wall-clock times when clocks are set back, unless the schedule runs in every
// hour anyway: 02:30 means once a day. A time that clocks jump over comes right after the jump.
func (c calendar) Next(t time.Time) time.Time {
	for {
		t = c.spec.Next(t.In(c.zone))
		if t.IsZero() {
			return time.Time{}
		}
		if !c.once || !repeated(t) {
			return t.UTC()
		}
	}
}

// repeated says that the wall clock has shown the time of t before on the same day. Clocks are set by an hour, and in
// one zone of the world by half an hour.
func repeated(t time.Time) bool {
	for _, shift := range []time.Duration{time.Hour, 30 * time.Minute} {
		before := t.Add(-shift)
		if before.Hour() == t.Hour() && before.Minute() == t.Minute() && before.Day() == t.Day() {
			return true
		}
	}
	return false
}

var errNever = errors.New("the schedule never comes")

// checkZone says in our words that there is no such zone.
func checkZone(text string) error {
	head, _, _ := strings.Cut(text, " ")
	zone, ok := strings.CutPrefix(strings.TrimPrefix(head, "CRON_"), "TZ=")
	if !ok {
		return nil
	}
	if _, err := time.LoadLocation(zone); err != nil || zone == "" {
		return fmt.Errorf("there is no time zone %q; write one such as CRON_TZ=Europe/Berlin in front of the cron fields", zone)
	}
	return nil
}

func parseCron(text string) (Schedule, error) {
	if err := checkZone(text); err != nil {
		return nil, err
	}
	parser, err := cron.TryNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.DowOrDom)
	if err != nil {
		return nil, fmt.Errorf("cron parser: %w", err)
	}
	parsed, err := parser.WithMaxSearchYears(maxSearchYears).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("not a schedule: %w; write five cron fields, \"@daily\", or every 6h", err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, errors.New("not a schedule: write five cron fields, \"@daily\", or every 6h")
	}
	c := calendar{text: text, spec: spec, zone: time.UTC}
	if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") {
		c.zone = spec.Location
	}
	spec.Location = c.zone
	const hoursOfDay = 24
	c.once = bits.OnesCount64(spec.Hour&(1<<hoursOfDay-1)) < hoursOfDay
	if c.Next(time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, errNever
	}
	return c, nil
}
