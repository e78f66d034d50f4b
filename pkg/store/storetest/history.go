package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// historyRounds is how many MB are written, 20 in each round, before a store must have forgotten something.
const historyRounds = 50

// RunHistory tests what becomes of positions that are older than what the store keeps of its feeds. s keeps as little as
// it can be told to. forget is called again and again, for a store that has to be told when to throw away; nil: it does
// so by itself.
func RunHistory(t *testing.T, s store.Store, forget func()) {
	f := newFixture(t, s)
	old := f.oldPositions()
	for round := 0; ; round++ {
		if round == historyRounds {
			t.Fatalf("%d MB did not make the store forget", 20*historyRounds)
		}
		f.change20MB(round)
		if forget != nil {
			forget()
		}
		if f.lost(f.position(), store.Watch{}) {
			t.Fatal("the feed's end is lost")
		}
		all := true
		for _, p := range old {
			all = f.lost(p, store.Watch{}) && all // each of them says either that, or what came behind it
		}
		if all {
			break
		}
	}
	for what, p := range old {
		for _, w := range []store.Watch{{Collections: []string{"quiet"}}, {Documents: true}} {
			if !f.lost(p, w) {
				t.Errorf("the position %s is lost, but not with %+v", what, w)
			}
		}
	}
	// What such a consumer has to do: read everything anew.
	view, err := f.db.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close() //nolint:errcheck // only read
	if n, err := view.Collection("things").Count(t.Context(), nil, 0); err != nil || n != 2 {
		t.Errorf("the view has %d documents, %v", n, err)
	}
	f.given(`{"_id":"new"}`)
	if got := showEvents(f.events(view.Position(), store.Watch{})); got != "things inserted new" {
		t.Errorf("behind the view: %s", got)
	}
}

// oldPositions takes a position in each way there is.
func (f *fixture) oldPositions() map[string]store.Position {
	f.t.Helper()
	old := map[string]store.Position{"of the feed's end": f.position()}
	f.given(`{"_id":"first"}`)
	events := f.events(old["of the feed's end"], store.Watch{})
	if len(events) != 1 {
		f.t.Fatalf("told %s", showEvents(events))
	}
	old["of an event"] = events[0].Position
	view, err := f.db.View(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	old["of a view"] = view.Position()
	if err := view.Close(); err != nil {
		f.t.Fatal(err)
	}
	err = f.db.Watch(f.t.Context(), store.Watch{After: events[0].Position, OnIdle: func(p store.Position) error {
		old["of a quiet moment"] = append(store.Position{}, p...)
		return errStop
	}}, func(store.Event) error { return nil })
	if !errors.Is(err, errStop) {
		f.t.Fatalf("Watch: %v", err)
	}
	return old
}

// change20MB writes one document of 1 MB 20 times.
func (f *fixture) change20MB(round int) {
	f.t.Helper()
	text := strings.Repeat("x", 1<<20)
	for i := range 20 {
		op := replace(fmt.Sprintf(`{"_id":"large","n":%d,"s":%q}`, 20*round+i, text))
		if round == 0 && i == 0 {
			op.Kind = store.Insert
		}
		f.mustWrite(op)
	}
}

// lost says whether a Watch behind p is told that the history is lost. All else but a feed that works is an error.
func (f *fixture) lost(p store.Position, w store.Watch) bool {
	f.t.Helper()
	w.After, w.OnIdle = p, func(store.Position) error { return errStop }
	err := f.db.Watch(f.t.Context(), w, func(store.Event) error { return nil })
	if errors.Is(err, store.ErrHistoryLost) {
		if e := errs.From(err); e.Kind != errs.Conflict || e.Code != "history_lost" {
			f.t.Errorf("Watch: %v", err)
		}
		return true
	}
	if !errors.Is(err, errStop) {
		f.t.Fatalf("Watch: %v", err)
	}
	return false
}
