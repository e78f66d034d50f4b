package retention_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/randtest"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/snapshot/retention"
)

const timelines = 10_000

// model says of one snapshot whether it is kept. To those that are whole the others are not there; one that is damaged is kept by what keeps it if all are as
// good as new, and where none that is newer is verified.
func model(p *schema.Retention, zone *time.Location, now time.Time, s retention.Snapshot, all []retention.Snapshot) bool {
	var whole, asNew []retention.Snapshot
	verified := false
	for _, o := range all {
		if !o.Damaged {
			whole = append(whole, o)
			newer := o.Time.After(s.Time) || o.Time.Equal(s.Time) && o.ID > s.ID
			verified = verified || newer && o.Verified && !o.Time.After(now)
		}
		o.Damaged = false
		asNew = append(asNew, o)
	}
	if !s.Damaged {
		return modelOfWhole(p, zone, now, s, whole)
	}
	s.Damaged, s.Verified = false, false
	return !verified || modelOfWhole(p, zone, now, s, asNew)
}

// modelOfWhole says it of one among whole ones, by counting those that are newer: another way to the same. It asks for nothing but years, months, days and
// hours of local times.
func modelOfWhole(p *schema.Retention, zone *time.Location, now time.Time, s retention.Snapshot, all []retention.Snapshot) bool {
	var before []retention.Snapshot // newer than s, and not in the future
	oldest, newestVerified, newestComplete, newest := true, s.Verified, s.Verified && !s.Lacks, s
	for _, o := range all {
		older := o.Time.Before(s.Time) || o.Time.Equal(s.Time) && o.ID < s.ID
		oldest = oldest && !older
		if older || o.ID == s.ID || o.Time.After(now) {
			continue
		}
		before = append(before, o)
		newestVerified = newestVerified && !o.Verified
		newestComplete = newestComplete && (!o.Verified || o.Lacks)
		if o.Time.After(newest.Time) {
			newest = o
		}
	}
	if s.Time.After(now) || s.Pinned || newestVerified || newestComplete || len(before) < p.KeepLast {
		return true
	}
	for i, count := range []int{p.KeepYearly, p.KeepMonthly, p.KeepDaily, p.KeepHourly, p.KeepWeekly} {
		newer, mine := map[[5]int]bool{}, bucket(i, s.Time.In(zone))
		for _, o := range before {
			newer[bucket(i, o.Time.In(zone))] = true
		}
		if len(newer) < count && (oldest || !newer[mine]) {
			return true
		}
	}
	n, within := newest.Time.In(zone), p.KeepWithin
	edge := time.Date(n.Year()-within.Years, n.Month()-time.Month(within.Months), n.Day()-within.Days, n.Hour(), n.Minute(), n.Second(), n.Nanosecond(), zone)
	return within != schema.Span{} && s.Time.Sub(edge) > -time.Duration(within.Hours)*time.Hour
}

// bucket is year, month, day and hour, cut off behind the unit; of a week it is the day of its Monday.
func bucket(unit int, t time.Time) [5]int {
	if unit == 4 {
		days := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC).Unix() / (24 * 60 * 60)
		return [5]int{int((days + 3 + 7_000_000) / 7), 0, 0, 0, 1} // 1970 began on a Thursday
	}
	parts := [5]int{t.Year(), int(t.Month()), t.Day(), t.Hour()}
	clear(parts[unit+1:])
	return parts
}

// zones have their clocks set in all ways that there are, and when it was most unusual.
var zones = []struct {
	name string
	at   string // somewhere before
}{
	{"UTC", "1999-12-31"},
	{"Europe/Berlin", "2026-03-29"},
	{"Europe/Dublin", "2025-10-25"}, // winter time is the one that is set
	{"America/New_York", "2024-03-09"},
	{"America/St_Johns", "2009-10-31"},    // at 00:01, over midnight
	{"America/Sao_Paulo", "2017-10-14"},   // midnight is left out
	{"America/Havana", "2021-03-13"},      // midnight is left out, and comes twice
	{"Australia/Lord_Howe", "2026-04-04"}, // half an hour
	{"Antarctica/Troll", "2022-03-26"},    // two hours
	{"Africa/Casablanca", "2023-03-18"},   // four times a year
	{"Asia/Kathmandu", "1985-12-31"},      // a quarter of an hour, for good
	{"Pacific/Apia", "2011-12-29"},        // a day is left out
	{"Pacific/Kwajalein", "1993-08-20"},   // a day is left out
	{"America/Sitka", "1867-10-17"},       // a day comes twice
	{"Asia/Pyongyang", "2015-08-14"},
}

// when is the time in a reason.
var when = regexp.MustCompile(` [0-9].*`)

// timeline is a random zone, policy and list of snapshots.
type timeline struct {
	zone      *time.Location
	policy    schema.Retention
	now       time.Time
	snapshots []retention.Snapshot
}

func (l timeline) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %+v, now %s\n", l.zone, l.policy, l.now.In(l.zone).Format(time.RFC3339Nano))
	for _, s := range l.snapshots {
		fmt.Fprintf(&b, "%s %s pinned %t verified %t lacks %t damaged %t\n", s.ID, s.Time.In(l.zone).Format(time.RFC3339Nano), s.Pinned, s.Verified, s.Lacks, s.Damaged)
	}
	return b.String()
}

// random makes snapshots around a change of the clocks, or a leap day, in steps of one kind or of many.
func random(t *testing.T, r *rand.Rand) timeline {
	t.Helper()
	place := zones[r.IntN(len(zones))]
	l := timeline{zone: location(t, place.name)}
	at, err := time.ParseInLocation(time.DateOnly, place.at, l.zone)
	if err != nil {
		t.Fatal(err)
	}
	for range r.IntN(5) { // changes of the clocks
		if _, end := at.ZoneBounds(); !end.IsZero() {
			at = end
		}
	}
	if r.IntN(8) == 0 {
		at = time.Date(2020+4*r.IntN(3), 2, 28, 12, 0, 0, 0, l.zone)
	}
	steps := []time.Duration{0, time.Nanosecond, 5 * time.Minute, 30 * time.Minute, time.Hour, 5 * time.Hour, 24 * time.Hour, 3 * 24 * time.Hour, 25 * 24 * time.Hour, 200 * 24 * time.Hour}
	few := steps[r.IntN(len(steps)):]
	few = few[:1+r.IntN(min(3, len(few)))]
	ids := r.Perm(1 + r.IntN(30))
	offset := r.IntN(len(ids))
	damaged := max(0, r.IntN(8)-4) // of ten
	for i, id := range ids {
		step := few[r.IntN(len(few))]
		if i == 0 {
			at = at.Add(-time.Duration(offset) * few[len(few)-1])
		}
		if r.IntN(3) == 0 {
			step += time.Duration(r.Int64N(int64(step) + 1))
		}
		at = at.Add(step)
		l.snapshots = append(l.snapshots, retention.Snapshot{
			ID: fmt.Sprintf("%02d", id), Time: at.UTC(), Pinned: r.IntN(15) == 0, Verified: r.IntN(6) == 0, Lacks: r.IntN(3) == 0, Damaged: r.IntN(10) < damaged,
		})
	}
	l.now = at.Add(time.Hour)
	if r.IntN(4) == 0 {
		l.now = l.snapshots[r.IntN(len(l.snapshots))].Time
	}
	r.Shuffle(len(l.snapshots), func(i, j int) { l.snapshots[i], l.snapshots[j] = l.snapshots[j], l.snapshots[i] })
	l.policy = more(r, schema.Retention{})
	if (l.policy == schema.Retention{}) {
		l.policy.KeepLast = 1
	}
	return l
}

// more gives a policy that keeps the same or more.
func more(r *rand.Rand, p schema.Retention) schema.Retention {
	for _, n := range []*int{&p.KeepLast, &p.KeepHourly, &p.KeepDaily, &p.KeepWeekly, &p.KeepMonthly, &p.KeepYearly} {
		if r.IntN(3) == 0 {
			*n += r.IntN(7)
		}
	}
	if r.IntN(3) == 0 {
		w := &p.KeepWithin
		for i, n := range []*int{&w.Years, &w.Months, &w.Days, &w.Hours} {
			if r.IntN(3) == 0 {
				*n += r.IntN([]int{2, 14, 40, 50}[i])
			}
		}
	}
	return p
}

// ids of those that are kept.
func (l timeline) ids(t *testing.T) []string {
	t.Helper()
	decisions, err := retention.Decide(&l.policy, l.zone, l.now, l.snapshots)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range decisions {
		if d.Keep {
			out = append(out, d.ID)
		}
	}
	slices.Sort(out)
	return out
}

// only gives the timeline with the snapshots that have these ids.
func (l timeline) only(ids []string) timeline {
	l.snapshots = slices.DeleteFunc(slices.Clone(l.snapshots), func(s retention.Snapshot) bool { return !slices.Contains(ids, s.ID) })
	return l
}

func TestTimelines(t *testing.T) {
	t.Parallel()
	r := randtest.Of(t)
	reasons, removed := map[string]int{}, 0
	for i := range timelines {
		l := random(t, r)
		given := slices.Clone(l.snapshots)
		decisions, err := retention.Decide(&l.policy, l.zone, l.now, l.snapshots)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(given, l.snapshots) {
			t.Fatalf("timeline %d: the snapshots were touched: %s", i, cmp.Diff(given, l.snapshots))
		}
		var left []string
		for _, d := range decisions {
			if d.Keep != model(&l.policy, l.zone, l.now, d.Snapshot, l.snapshots) {
				t.Fatalf("timeline %d: keep is %t (%v) of %s, and the model says otherwise:\n%v", i, d.Keep, d.Reasons, d.ID, l)
			}
			for _, reason := range d.Reasons {
				reasons[when.ReplaceAllString(reason, "")]++
			}
			if d.Keep {
				left = append(left, d.ID)
			} else {
				removed++
			}
		}
		slices.Sort(left)
		checkProperties(t, r, i, l, left)
	}
	// a generator that never comes to a rule would make this test say nothing
	for _, reason := range []string{
		"pinned", "newest verified", "newest verified that lacks no file", "in the future", "last snapshot", "hourly", "daily", "weekly", "monthly", "yearly",
		"oldest hourly snapshot (fewer than", "oldest daily snapshot (fewer than", "oldest weekly snapshot (fewer than", "oldest monthly snapshot (fewer than", "oldest yearly snapshot (fewer than", "within", "no rule keeps it",
		"damaged", "none that is newer is verified", "a newer one is verified",
	} {
		if reasons[reason] < timelines/100 {
			t.Errorf("only %d have the reason %q of %v", reasons[reason], reason, slices.Sorted(maps.Keys(reasons)))
		}
	}
	if removed < 3*timelines {
		t.Errorf("only %d snapshots were removed", removed)
	}
}

// checkProperties holds what was decided against what must be true of any policy.
func checkProperties(t *testing.T, r *rand.Rand, i int, l timeline, left []string) {
	t.Helper()
	expect := func(what string, want, got []string) {
		if !slices.Equal(want, got) {
			t.Fatalf("timeline %d: %s: %s\n%v", i, what, cmp.Diff(want, got), l)
		}
	}
	if len(left) == 0 {
		t.Fatalf("timeline %d: nothing is left:\n%v", i, l)
	}
	// Whatever the rules are, of what is whole and not in the future the newest stays, and the newest that is verified: nothing has its last whole copy removed.
	for _, verified := range []bool{false, true} {
		best := ""
		at := time.Time{}
		for _, s := range l.snapshots {
			if !s.Damaged && !s.Time.After(l.now) && (s.Verified || !verified) && (best == "" || s.Time.After(at) || s.Time.Equal(at) && s.ID > best) {
				best, at = s.ID, s.Time
			}
		}
		if best != "" && !slices.Contains(left, best) {
			t.Fatalf("timeline %d: %s goes, which is the newest (verified %t):\n%v", i, best, verified, l)
		}
	}
	expect("what is kept is not kept when the rest is gone", left, l.only(left).ids(t))

	shuffled := l
	shuffled.snapshots = slices.Clone(l.snapshots)
	r.Shuffle(len(shuffled.snapshots), func(i, j int) {
		shuffled.snapshots[i], shuffled.snapshots[j] = shuffled.snapshots[j], shuffled.snapshots[i]
	})
	expect("the order matters", left, shuffled.ids(t))

	wider := l
	wider.policy = more(r, l.policy)
	more := wider.ids(t)
	for _, id := range left {
		if !slices.Contains(more, id) {
			t.Fatalf("timeline %d: %s is kept, and not by %+v:\n%v", i, id, wider.policy, l)
		}
	}

	steps := l // some of those that go at a time: one by one where it is quick
	for {
		keep := steps.ids(t)
		var gone []string
		for _, s := range steps.snapshots {
			if !slices.Contains(keep, s.ID) {
				gone = append(gone, s.ID)
			}
		}
		if len(gone) == 0 {
			expect("pruned in steps", left, keep)
			return
		}
		n := 1
		if len(gone) > 5 {
			n += r.IntN(len(gone))
		}
		steps.snapshots = slices.DeleteFunc(slices.Clone(steps.snapshots), func(s retention.Snapshot) bool { return slices.Contains(gone[:n], s.ID) })
	}
}
