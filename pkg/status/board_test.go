package status_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/status"
)

// clock is a time that tests set.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func (c *clock) pass(d time.Duration) time.Time {
	c.t = c.t.Add(d)
	return c.t
}

func newClock() *clock { return &clock{t: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func TestTransitionTimeMovesOnlyWhenTheStatusChanges(t *testing.T) {
	clk := newClock()
	start := clk.now()
	b := status.NewBoard(clk.now)
	b.SetServed("p", 1, "r1")
	b.Set("p", status.Condition{Type: status.ConfigValid, Status: status.True, Reason: status.ReasonLoaded, LastTransitionTime: time.Unix(1, 0)})

	clk.pass(time.Hour)
	b.Set("p", status.Condition{Type: status.ConfigValid, Status: status.True, Reason: "Other", Message: "m"})
	s, _ := b.Get("p")
	want := []status.Condition{
		{Type: status.Ready, Status: status.True, Reason: status.ReasonServing, Message: "generation 1 is served", ObservedGeneration: 1, LastTransitionTime: start.Add(time.Hour)},
		{Type: status.ConfigValid, Status: status.True, Reason: "Other", Message: "m", ObservedGeneration: 1, LastTransitionTime: start},
	}
	want[0].LastTransitionTime = start // it was False for no time
	if diff := cmp.Diff(want, s.Conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}

	changed := clk.pass(time.Hour)
	b.Set("p", status.Condition{Type: status.ConfigValid, Status: status.False, Reason: status.ReasonInvalid, Message: "bad"})
	s, _ = b.Get("p")
	for _, c := range s.Conditions {
		want := status.False
		if c.Type == status.Stalled {
			want = status.True
		}
		if c.Status != want || !c.LastTransitionTime.Equal(changed) {
			t.Errorf("%s is %s since %s, want %s since %s", c.Type, c.Status, c.LastTransitionTime, want, changed)
		}
	}
}

func TestReadyIsDerived(t *testing.T) {
	cond := func(typ string, v status.Value, reason, msg string) status.Condition {
		return status.Condition{Type: typ, Status: v, Reason: reason, Message: msg}
	}
	valid := cond(status.ConfigValid, status.True, status.ReasonLoaded, "")
	for name, tc := range map[string]struct {
		generation int64
		conditions []status.Condition
		want       status.Value
		reason     string
		message    string
	}{
		"nothing known":     {0, nil, status.False, status.ReasonPending, "ConfigValid: not loaded yet"},
		"valid, not served": {0, []status.Condition{valid}, status.False, status.ReasonPending, "ConfigValid: valid, not served yet"},
		"served":            {1, []status.Condition{valid}, status.True, status.ReasonServing, "generation 1 is served"},
		"never loaded":      {0, []status.Condition{cond(status.ConfigValid, status.False, status.ReasonInvalid, "3 errors")}, status.False, status.ReasonInvalid, "ConfigValid: 3 errors"},
		"broken, still served": {
			2,
			[]status.Condition{cond(status.ConfigValid, status.False, status.ReasonInvalid, "3 errors")},
			status.False, status.ReasonInvalid, "ConfigValid: 3 errors (generation 2 is still served)",
		},
		"disabled":       {0, []status.Condition{cond(status.ConfigValid, status.Unknown, status.ReasonDisabled, "off")}, status.False, status.ReasonDisabled, "ConfigValid: off"},
		"out of date":    {1, []status.Condition{valid, cond(status.OutOfDate, status.True, status.ReasonChangedOnDisk, "")}, status.True, status.ReasonServing, "generation 1 is served"},
		"building":       {1, []status.Condition{valid, cond(status.IndexesConverged, status.Unknown, status.ReasonProgressing, "1 of 2")}, status.Unknown, status.ReasonProgressing, "IndexesConverged: 1 of 2 (generation 1 is still served)"},
		"False first":    {1, []status.Condition{valid, cond("A", status.Unknown, "U", ""), cond("B", status.False, "F", "x")}, status.False, "F", "B: x (generation 1 is still served)"},
		"config first":   {1, []status.Condition{cond("A", status.False, "F", ""), cond(status.ConfigValid, status.False, "C", "y")}, status.False, "C", "ConfigValid: y (generation 1 is still served)"},
		"not by callers": {1, []status.Condition{cond(status.ConfigValid, status.False, "C", "y"), cond(status.Ready, status.True, "Mine", "")}, status.False, "C", "ConfigValid: y (generation 1 is still served)"},
		"judged for another generation": {
			3,
			[]status.Condition{valid, {Type: status.IndexesConverged, Status: status.True, Reason: status.ReasonConverged, ObservedGeneration: 2}},
			status.Unknown, status.ReasonProgressing, "IndexesConverged: not judged for generation 3 yet (generation 3 is still served)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := status.NewBoard(newClock().now)
			b.SetServed("p", tc.generation, "r")
			b.Set("p", tc.conditions...)
			s, _ := b.Get("p")
			got, ok := s.Condition(status.Ready)
			if !ok || got.Status != tc.want || got.Reason != tc.reason || got.Message != tc.message {
				t.Errorf("Ready = %s %s %q, want %s %s %q", got.Status, got.Reason, got.Message, tc.want, tc.reason, tc.message)
			}
			if len(s.Conditions) == 0 || s.Conditions[0].Type != status.Ready {
				t.Errorf("Ready is not first: %v", s.Conditions)
			}
		})
	}
}

// Conditions that tell of what is not normal are there only while it is so, and say of what.
func TestAbnormalConditions(t *testing.T) {
	t.Parallel()
	cond := func(typ string, v status.Value, reason string) status.Condition {
		return status.Condition{Type: typ, Status: v, Reason: reason, Message: "m"}
	}
	valid := cond(status.ConfigValid, status.True, status.ReasonLoaded)
	refused := cond(status.IndexesConverged, status.False, status.ReasonIndexRefused)
	for name, tc := range map[string]struct {
		generation           int64
		conditions           []status.Condition
		reconciling, stalled string // reasons; "": not there
	}{
		"nothing known":     {0, nil, status.ReasonPending, ""},
		"valid, not served": {0, []status.Condition{valid}, status.ReasonPending, ""},
		"served":            {1, []status.Condition{valid}, "", ""},
		"broken":            {1, []status.Condition{cond(status.ConfigValid, status.False, status.ReasonInvalid)}, "", status.ReasonInvalid},
		"unreadable":        {0, []status.Condition{cond(status.ConfigValid, status.False, status.ReasonUnreadable)}, "", status.ReasonUnreadable},
		"disabled":          {0, []status.Condition{cond(status.ConfigValid, status.Unknown, status.ReasonDisabled)}, "", ""},
		"building":          {1, []status.Condition{valid, cond(status.IndexesConverged, status.Unknown, status.ReasonProgressing)}, status.ReasonProgressing, ""},
		"violated":          {1, []status.Condition{valid, cond(status.IndexesConverged, status.False, status.ReasonUniqueViolation)}, "", status.ReasonUniqueViolation},
		"drifted":           {1, []status.Condition{valid, cond(status.IndexesConverged, status.False, status.ReasonDrifted)}, "", ""},
		"out of date":       {1, []status.Condition{valid, cond(status.OutOfDate, status.True, status.ReasonChangedOnDisk)}, "", ""},
		"the store failed":  {1, []status.Condition{valid, cond(status.JobsScheduled, status.False, status.ReasonStoreError)}, status.ReasonStoreError, ""},
		"one refused, the other tried": {
			1,
			[]status.Condition{valid, refused, cond(status.JobsScheduled, status.Unknown, status.ReasonProgressing)},
			status.ReasonProgressing, status.ReasonIndexRefused,
		},
		"not by callers": {1, []status.Condition{valid, cond(status.Stalled, status.True, "Mine"), cond(status.Reconciling, status.True, "Mine")}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := status.NewBoard(newClock().now)
			b.SetServed("p", tc.generation, "r")
			b.Set("p", tc.conditions...)
			reasons := func() (reconciling, stalled string) {
				s, _ := b.Get("p")
				for _, c := range s.Conditions {
					switch {
					case c.Type != status.Reconciling && c.Type != status.Stalled:
						continue
					case c.Type == status.Reconciling:
						reconciling = c.Reason
					default:
						stalled = c.Reason
					}
					if c.Status != status.True || c.Message == "" {
						t.Errorf("%+v", c)
					}
				}
				return reconciling, stalled
			}
			if r, s := reasons(); r != tc.reconciling || s != tc.stalled {
				t.Errorf("reconciling %q, stalled %q, want %q and %q", r, s, tc.reconciling, tc.stalled)
			}
			b.SetServed("p", 1, "r")
			b.Unset("p", status.IndexesConverged, status.JobsScheduled)
			b.Set("p", valid)
			if r, s := reasons(); r != "" || s != "" {
				t.Errorf("when all is well: reconciling %q, stalled %q", r, s)
			}
		})
	}
}

func TestBoardKeepsItsState(t *testing.T) {
	b := status.NewBoard(newClock().now)
	if _, ok := b.Get("p"); ok {
		t.Fatal("an empty board knows a project")
	}
	b.Unset("p", status.OutOfDate)
	if keys := b.Keys(); len(keys) != 0 {
		t.Fatalf("Unset added %v", keys)
	}

	problems := []status.Problem{{File: "project.yaml", Line: 3, Column: 7, Path: "collections[0].name", Code: "required", Message: "is required"}}
	b.SetServed("p", 4, "rev")
	b.SetProblems("p", problems)
	problems[0].Message = "changed by the caller"
	b.Set("p", status.Condition{Type: status.OutOfDate, Status: status.True})
	s, _ := b.Get("p")
	s.Conditions[0].Reason, s.Problems[0].Message = "changed by the reader", "changed by the reader"

	b.Unset("p", status.OutOfDate)
	s, _ = b.Get("p")
	if s.ObservedGeneration != 4 || s.Revision != "rev" || s.Problems[0].Message != "is required" || s.Conditions[0].Reason != status.ReasonPending {
		t.Errorf("state = %+v", s)
	}
	if _, ok := s.Condition(status.OutOfDate); ok {
		t.Error("OutOfDate is still there")
	}

	b.Set("a")
	if diff := cmp.Diff([]string{"a", "p"}, b.Keys()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	b.Remove("p")
	if _, ok := b.Get("p"); ok {
		t.Error("a removed project is still known")
	}
	if s, _ := b.Get("a"); s.Problems == nil {
		t.Error("no problems is null, want an empty list")
	}
}

func TestBoardIsSafeForConcurrentUse(t *testing.T) {
	b := status.NewBoard(time.Now)
	var wg sync.WaitGroup
	for _, key := range []string{"a", "b", "a", "b"} {
		wg.Go(func() {
			for i := range 100 {
				b.SetServed(key, int64(i), "r")
				b.Set(key, status.Condition{Type: status.ConfigValid, Status: status.True})
				b.Get(key)
				b.Keys()
			}
		})
	}
	wg.Wait()
	if s, _ := b.Get("a"); s.Conditions[0].Status != status.True {
		t.Errorf("state = %+v", s)
	}
}
