package system_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
	"github.com/svcctl/svc/pkg/system"
)

// told gives the events of a project in short.
func told(t *testing.T, e *system.Events, project string) []string {
	t.Helper()
	events, err := e.List(t.Context(), project)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, event := range events {
		out = append(out, fmt.Sprintf("%d %s %s: %s x%d", event.ID, event.Type, event.Reason, event.Message, event.Count))
	}
	return out
}

func state(typ, reason, message string) system.Note {
	return system.Note{Concern: "config", Type: typ, Reason: reason, Message: message}
}

func TestEventsAreCounted(t *testing.T) {
	onStores(t, func(t *testing.T, st store.Store) {
		t.Helper()
		e := system.New(st, system.Options{Now: time.Now}).Events
		bad, good := state(system.EventWarning, "Invalid", "3 errors"), state(system.EventNormal, "Loaded", "valid")
		good.Recovery = true
		late := good
		late.At = time.Now().Add(-time.Minute)
		served := func(n int64) system.Note {
			return system.Note{Concern: "project", Type: system.EventNormal, Reason: "Serving", Message: strconv.FormatInt(n, 10), Generation: n, Once: true}
		}
		failed := system.Note{Concern: "runs", Type: system.EventWarning, Reason: "JobFailed", Message: "no", Object: "job/x", Happened: true}
		for _, n := range []system.Note{
			good, // nothing to recover from
			served(1),
			served(1), // another instance
			bad,
			bad,  // another instance
			late, // what an instance found before it was bad
			good,
			bad, // again
			good,
			served(2),
			served(1), // who is late
			failed,
			failed,
		} {
			if err := e.Append(t.Context(), "p", n); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{
			"1 Normal Serving: 1 x1", "4 Warning Invalid: 3 errors x2", "5 Normal Loaded: valid x2", "6 Normal Serving: 2 x1",
			"8 Warning JobFailed: no x2",
		}
		if diff := cmp.Diff(want, told(t, e, "p")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got := told(t, e, "q"); got != nil {
			t.Errorf("another project has %v", got)
		}
		if err := errors.Join(e.Remove(t.Context(), "p"), e.Remove(t.Context(), "p")); err != nil || told(t, e, "p") != nil {
			t.Errorf("%v stay, %v", told(t, e, "p"), err)
		}
	})
}

func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	e := system.New(teststore.Memory(t), system.Options{Now: time.Now}).Events
	var notes []system.Note
	for i := range system.KeptEvents + 5 {
		notes = append(notes, state(system.EventWarning, "Invalid", strconv.Itoa(i)+strings.Repeat("ü", 1000)))
	}
	if err := e.Append(t.Context(), "p", notes...); err != nil {
		t.Fatal(err)
	}
	events, err := e.List(t.Context(), "p")
	if err != nil || len(events) != system.KeptEvents || events[0].ID != 6 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	if m := events[0].Message; len(m) > 1024 || len(m) < 1000 || !utf8.ValidString(m) || !strings.HasSuffix(m, "ü…") {
		t.Errorf("%d bytes: %q", len(m), m)
	}
}

// Many instances that find the same tell it once, and none of what they tell is lost.
func TestEventsOfManyWriters(t *testing.T) {
	onStores(t, func(t *testing.T, st store.Store) {
		t.Helper()
		e := system.New(st, system.Options{Now: time.Now}).Events
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				own := system.Note{Concern: "runs", Type: system.EventWarning, Reason: "JobFailed", Message: strconv.Itoa(i), Happened: true}
				if err := e.Append(t.Context(), "p", state(system.EventWarning, "Invalid", "x"), own); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := told(t, e, "p"); len(got) != 6 {
			t.Errorf("%v", got)
		}
	})
}

// Who follows gets those that there are, those that come, and with the id of the last one no other.
func TestEventsAreFollowed(t *testing.T) {
	onStores(t, func(t *testing.T, st store.Store) {
		t.Helper()
		e := system.New(st, system.Options{Now: time.Now}).Events
		tell := func(project, message string) {
			t.Helper()
			if err := e.Append(t.Context(), project, state(system.EventWarning, "Invalid", message)); err != nil {
				t.Error(err)
			}
		}
		follow := func(after int64, want ...string) (last int64) {
			t.Helper()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var got []string
			err := e.Follow(ctx, "p", after, func(event system.Event) error {
				got, last = append(got, event.Message), event.ID
				if len(got) == 1 {
					tell("other", "x")
					tell("p", "new after "+event.Message)
				}
				if len(got) == len(want) {
					stop()
				}
				return nil
			})
			if diff := cmp.Diff(want, got); diff != "" || ctx.Err() == nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			return last
		}
		tell("p", "a")
		tell("p", "b")
		last := follow(0, "a", "b", "new after a")
		tell("p", "c")
		follow(last, "c", "new after c")
	})
}
