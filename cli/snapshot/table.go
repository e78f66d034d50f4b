package snapshot

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

// Print prints snapshots; value is what structured formats get.
func Print(st *command.State, value any, list ...api.Snapshot) error {
	p := st.Printer()
	t := output.NewTable("ID", "PROFILE", "AGE", "RECORDS", "FILES", "SIZE", "NEW", "STATE", "+PINNED", "+MODE", "+STORE", "+GENERATION", "+TOOL")
	result := output.Result{Value: value, Table: t}
	for i := range list {
		s := &list[i]
		result.Names = append(result.Names, command.SnapshotName+s.ID)
		if s.Problem != "" {
			t.Row(s.ID, s.Profile, "", "", "", "", "", painted(p, s))
			continue
		}
		t.Row(s.ID, s.Profile, output.Age(st.Now(), s.ConsistentAt.Time), s.Counts.Documents, s.Counts.MediaFiles, output.Size(s.Counts.Bytes),
			output.Size(s.Counts.NewBytes), painted(p, s), s.Pinned, s.Mode, s.Store, s.Generation, s.Tool)
	}
	st.FitTable(t)
	if err := p.Print(result); err != nil {
		return err
	}
	for i := range list {
		if list[i].Problem != "" && !p.Structured() {
			st.Warnf("%s: %s", list[i].ID, list[i].Problem)
		}
	}
	return nil
}

func painted(p output.Printer, s *api.Snapshot) output.Painted {
	state, tone := StateOf(s)
	return p.Style.Toned(state, tone)
}

// StateOf says in a word or two how a snapshot is, and what that means.
func StateOf(s *api.Snapshot) (string, output.Tone) {
	pinned := ""
	if s.Pinned {
		pinned = ", pinned"
	}
	state, tone, warnings := "verified", output.ToneGood, s.Counts.Warnings
	switch {
	case s.Problem != "":
		return "unreadable" + pinned, output.ToneBad
	case DamageOf(s) != nil: // which a check of another one may have found
		return "damaged" + pinned, output.ToneBad
	case s.Verified == nil:
		state, tone = "unverified", output.ToneNone
	case s.Verified.Sample > 0 && s.WholeAt.IsZero():
		state, tone = "sampled", output.ToneNone
	}
	if s.Verified != nil {
		warnings = max(warnings, s.Verified.Dangling)
	}
	if warnings > 0 { // what is in it is what there was: files may be missing, or damaged
		return state + ", " + output.Count(warnings, "warning") + pinned, output.ToneWarn
	}
	return state + pinned, tone
}

// DamageOf gives the check that has found what is wrong with a snapshot, as far as that is known: one of a part may have missed it since.
func DamageOf(s *api.Snapshot) *api.SnapshotVerification {
	switch {
	case s.Damage != nil:
		return s.Damage
	case s.Verified != nil && s.Verified.Problems > 0:
		return s.Verified
	}
	return nil
}

// ContentOf says what a profile takes.
func ContentOf(p *api.SnapshotProfile) string {
	switch {
	case len(p.Collections) > 0:
		return strings.Join(p.Collections, ", ")
	case len(p.Excluded) > 0:
		return "all but " + strings.Join(p.Excluded, ", ")
	}
	return "all"
}

// RetentionOf says which snapshots of a profile pruning keeps.
func RetentionOf(r *api.SnapshotRetention) string {
	if r == nil {
		return "all"
	}
	var rules []string
	for _, rule := range []struct {
		name string
		n    int
	}{{"last", r.KeepLast}, {"hourly", r.KeepHourly}, {"daily", r.KeepDaily}, {"weekly", r.KeepWeekly}, {"monthly", r.KeepMonthly}, {"yearly", r.KeepYearly}} {
		if rule.n > 0 {
			rules = append(rules, fmt.Sprintf("%d %s", rule.n, rule.name))
		}
	}
	if r.KeepWithin != "" {
		rules = append(rules, "within "+r.KeepWithin)
	}
	return cmp.Or(strings.Join(rules, ", "), "all")
}

// verified says how a check has ended.
func verified(st *command.State, v *api.SnapshotVerification) string {
	if v == nil {
		return "never"
	}
	text := fmt.Sprintf("%s ago: %s, %s", output.Age(st.Now(), v.At.Time), output.Count(v.Files, "file"), output.Size(v.Bytes))
	if v.Sample > 0 {
		text += fmt.Sprintf(" (a sample of %.3g%%)", v.Sample*100)
	}
	if v.Problems > 0 {
		return text + ", " + output.Count(v.Problems, "problem")
	}
	if v.Sample > 0 {
		return text + ", no problems in that"
	}
	return text + ", no problems"
}

func dash(s string) string { return cmp.Or(s, "-") }
