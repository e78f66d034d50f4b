package retention

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/schema"
)

// Reasons of a Decision that name no time. The others are such as "daily 2026-03-29", "oldest daily snapshot (fewer than 7 days have one)" and "within 7d".
const (
	NoPolicy       = "no retention policy"
	Pinned         = "pinned"
	NewestVerified = "newest verified"
	NewestComplete = "newest verified that lacks no file" // where the newest verified lacks some
	InTheFuture    = "in the future"
	LastSnapshot   = "last snapshot"
	NoRule         = "no rule keeps it"

	Damaged       = "damaged"                        // in front of what keeps one that is
	NoneVerified  = "none that is newer is verified" // which keeps one that is damaged
	NewerVerified = "a newer one is verified"        // in front of NoRule for one that is damaged and removed
)

// Snapshot is what retention has to know of a snapshot. Those of one profile are given to Decide; what failed or is being made is none.
type Snapshot struct {
	ID       string    // unique; of two that are of one time, the greater id counts as newer
	Time     time.Time // its consistent-at time
	Pinned   bool
	Verified bool // it was verified and found whole
	Lacks    bool // files of its records were missing or damaged when it was taken, which is no damage of it
	Damaged  bool // it can't be read, or was found not to be what was written: Verified says nothing then
}

// Decision is what becomes of one snapshot.
type Decision struct {
	Snapshot
	Keep    bool
	Reasons []string // why it is kept, every rule that does; of one that is removed NoRule; first of one that is damaged is Damaged
}

// Decide says of each snapshot whether the policy keeps it, the newest first. A nil policy keeps all. A policy that would
// remove every snapshot (each rule zero) is an error, as is one with a negative number. The calendar is that of zone, which
// is not nil. The order of snapshots is of no matter, and the slice is left as it is.
func Decide(policy *schema.Retention, zone *time.Location, now time.Time, snapshots []Snapshot) ([]Decision, error) {
	if err := check(policy); err != nil {
		return nil, err
	}
	whole := slices.DeleteFunc(slices.Clone(snapshots), func(s Snapshot) bool { return s.Damaged })
	out := decide(policy, zone, now, whole)
	if len(whole) < len(snapshots) {
		out = append(out, damaged(policy, zone, now, snapshots, out)...)
		slices.SortFunc(out, newestFirst)
	}
	for i := range out {
		if !out[i].Keep {
			out[i].Reasons = append(out[i].Reasons, NoRule)
		}
	}
	return out, nil
}

func newestFirst(a, b Decision) int {
	return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.ID, a.ID))
}

// decide is Decide of snapshots that are whole, or taken to be.
func decide(policy *schema.Retention, zone *time.Location, now time.Time, snapshots []Snapshot) []Decision {
	all := make([]Decision, len(snapshots))
	for i, s := range snapshots {
		all[i].Snapshot = s
	}
	slices.SortFunc(all, newestFirst)
	future := 0
	for future < len(all) && all[future].Time.After(now) {
		all[future].keep(InTheFuture)
		future++
	}
	past := all[future:]
	protect(all, past)
	if policy == nil {
		for i := range all {
			all[i].keep(NoPolicy)
		}
	} else {
		apply(policy, zone, past)
	}
	return all
}

// damaged decides about those that are damaged: one stays as long as it would if it were whole, and longer where none that is newer was verified. whole
// is what was decided about the others, to which they are nothing.
func damaged(policy *schema.Retention, zone *time.Location, now time.Time, snapshots []Snapshot, whole []Decision) []Decision {
	as := slices.Clone(snapshots)
	is := map[string]bool{}
	for i := range as {
		if as[i].Damaged {
			is[as[i].ID], as[i].Verified = true, false
		}
	}
	verified := slices.IndexFunc(whole, func(d Decision) bool { return slices.Contains(d.Reasons, NewestVerified) })
	out := slices.DeleteFunc(decide(policy, zone, now, as), func(d Decision) bool { return !is[d.ID] })
	for i := range out {
		d := &out[i]
		switch d.Reasons = append([]string{Damaged}, d.Reasons...); {
		case d.Keep:
		case verified < 0 || newestFirst(whole[verified], *d) > 0:
			d.keep(NoneVerified)
		default:
			d.Reasons = append(d.Reasons, NewerVerified)
		}
	}
	return out
}

func (d *Decision) keep(reason string) {
	d.Keep = true
	d.Reasons = append(d.Reasons, reason)
}

func check(p *schema.Retention) error {
	switch {
	case p == nil:
		return nil
	case min(p.KeepLast, p.KeepHourly, p.KeepDaily, p.KeepWeekly, p.KeepMonthly, p.KeepYearly) < 0,
		min(p.KeepWithin.Years, p.KeepWithin.Months, p.KeepWithin.Days, p.KeepWithin.Hours) < 0:
		return errs.New(errs.Limit, "bad_retention", "the retention has a negative number: nothing is pruned; give counts and spans of at least 0")
	case *p == schema.Retention{}:
		return errs.New(errs.Limit, "bad_retention", "the retention keeps nothing, so every snapshot would be deleted: nothing is pruned; set one of its members, or leave it out to keep all")
	}
	return nil
}

// protect keeps what no policy removes.
func protect(all, past []Decision) {
	for i := range all {
		if all[i].Pinned {
			all[i].keep(Pinned)
		}
	}
	if i := slices.IndexFunc(past, func(d Decision) bool { return d.Verified }); i >= 0 {
		past[i].keep(NewestVerified)
		if !past[i].Lacks {
			return
		}
	}
	if i := slices.IndexFunc(past, func(d Decision) bool { return d.Verified && !d.Lacks }); i >= 0 {
		past[i].keep(NewestComplete)
	}
}

// apply runs each rule over the snapshots that are not in the future, the newest first.
func apply(p *schema.Retention, zone *time.Location, past []Decision) {
	if len(past) == 0 {
		return
	}
	for i := range past[:min(p.KeepLast, len(past))] {
		past[i].keep(LastSnapshot)
	}
	for _, r := range []struct {
		name   string
		units  string
		count  int
		bucket func(time.Time) string
	}{
		{"hourly", "hours", p.KeepHourly, layout("2006-01-02 15:00")},
		{"daily", "days", p.KeepDaily, layout(time.DateOnly)},
		{"weekly", "weeks", p.KeepWeekly, isoWeek},
		{"monthly", "months", p.KeepMonthly, layout("2006-01")},
		{"yearly", "years", p.KeepYearly, layout("2006")},
	} {
		keepNewestOfEach(r.name, r.units, r.count, func(d *Decision) string { return r.bucket(d.Time.In(zone)) }, past)
	}
	if p.KeepWithin != (schema.Span{}) {
		keepWithin(p.KeepWithin, zone, past)
	}
}

// keepNewestOfEach keeps the newest of each of the first count buckets. A bucket can come again after another one, where
// clocks are set back over midnight; its newest is kept then, once.
func keepNewestOfEach(rule, units string, count int, bucket func(*Decision) string, past []Decision) {
	if count == 0 {
		return
	}
	seen := map[string]bool{}
	for i := range past {
		if key := bucket(&past[i]); !seen[key] {
			seen[key] = true
			past[i].keep(rule + " " + key)
			if len(seen) == count {
				return
			}
		} else if i == len(past)-1 {
			past[i].keep(fmt.Sprintf("oldest %s snapshot (fewer than %d %s have one)", rule, count, units))
		}
	}
}

// keepWithin counts back from the newest snapshot, not from now: when none are made any more, none go.
func keepWithin(span schema.Span, zone *time.Location, past []Decision) {
	after := past[0].Time.In(zone).AddDate(-span.Years, -span.Months, -span.Days).Add(-time.Duration(span.Hours) * time.Hour)
	for i := range past {
		if past[i].Time.After(after) {
			past[i].keep("within " + span.String())
		}
	}
}

func layout(l string) func(time.Time) string {
	return func(t time.Time) string { return t.Format(l) }
}

func isoWeek(t time.Time) string {
	year, week := t.ISOWeek()
	return fmt.Sprintf("%d-W%02d", year, week)
}
