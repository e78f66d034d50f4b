package records_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store/teststore"
)

const pacedItems = `
collections:
  - name: items
    queryLimits: {maxTime: %s, allowAggregate: true}
    permissions:
      user: {methods: {}}
      public: {methods: {get: {allow: true, count: true, facet: true, aggregate: true}, post: true}}
    fields: [{name: title, type: string}, {name: n, type: number}]
    indexes: [{name: n, key: [n]}]
`

// TestS19LongReadsTakeTurns is row S19: reads that look at many records wait for a place while others have all of them, and
// are told so; the read of a record and a short list do not. MongoDB does its reads in its own process, so this is about
// the embedded store.
func TestS19LongReadsTakeTurns(t *testing.T) {
	t.Parallel()
	s := teststore.Memory(t)
	long := map[string]func(w *world) error{
		"list": func(w *world) error {
			_, err := w.service.List(t.Context(), w.call("public"), query.Params{Where: where(t, `{"title": {"$regex": "x$"}}`)})
			return err
		},
		"sorted list": func(w *world) error {
			_, err := w.service.List(t.Context(), w.call("public"), query.Params{Sort: "title"})
			return err
		},
		"count": func(w *world) error {
			_, err := w.service.Count(t.Context(), w.call("public"), where(t, `{"title": {"$regex": "x$"}}`))
			return err
		},
		"facets": func(w *world) error {
			_, err := w.service.Facets(t.Context(), w.call("public"), records.FacetParams{Fields: "title"})
			return err
		},
		"aggregate": func(w *world) error {
			if got := w.aggregate("public", `[{"$group": {"_id": "$title"}}, {"$count": "n"}]`); got != `{"n":500}` {
				return errors.New(got)
			}
			return nil
		},
	}
	fill := func(maxTime string) (w *world, last string) {
		w = newWorld(t, s, fmt.Sprintf(pacedItems, maxTime))
		for i := range 500 {
			last = w.create("public", fmt.Sprintf(`{"title": "t%d", "n": %d}`, i, i))
		}
		return w, last
	}
	short := func(w *world, id string) {
		t.Helper()
		if _, err := w.service.Get(t.Context(), w.call("public"), id, records.GetParams{}); err != nil {
			t.Errorf("the read of a record: %s", show(err))
		}
		if page, err := w.service.List(t.Context(), w.call("public"), query.Params{Where: where(t, `{"n": {"$gte": 490}}`)}); err != nil || len(page.Items) != 10 {
			t.Errorf("a short list: %s", show(err))
		}
	}

	t.Run("refused", func(t *testing.T) {
		w, _ := fill("50ms")
		places := w.service.LongReads()
		for i := range places.All() { // of callers enough to have them all
			if _, err := places.Take(t.Context(), strconv.Itoa(i)); err != nil {
				t.Fatal(err)
			}
		}
		for name, read := range long {
			err := read(w)
			if err == nil {
				t.Errorf("%s: came to its end without a place", name)
				continue
			}
			got := show(err)
			if name == "aggregate" {
				got = err.Error()
			}
			// On a machine that has other things to do, the wait may have been the least of it.
			if !strings.HasPrefix(got, "too_many_queries: ") && !strings.HasPrefix(got, "query_too_slow: ") {
				t.Errorf("%s while there is no place: %s", name, got)
			}
		}
	})

	t.Run("waits", func(t *testing.T) {
		w, id := fill("1m")
		places := w.service.LongReads()
		var leaves []func()
		for i := range places.All() {
			leave, err := places.Take(t.Context(), strconv.Itoa(i))
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, leave)
		}
		ended := make(chan error, len(long))
		for _, read := range long {
			go func() { ended <- read(w) }()
		}
		for places.Waiting() < len(long) {
			runtime.Gosched()
			if err := context.Cause(t.Context()); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-ended:
				t.Fatalf("a long read did not wait: %v", err)
			default:
			}
		}
		short(w, id)
		for _, leave := range leaves {
			leave()
		}
		for range long {
			if err := <-ended; err != nil {
				t.Errorf("a long read that came to its turn: %s", show(err))
			}
		}
		if places.Taken() != 0 || places.Waiting() != 0 {
			t.Errorf("%d places are still taken, %d wait", places.Taken(), places.Waiting())
		}
	})

	t.Run("rests", func(t *testing.T) {
		w, id := fill("1m")
		w.service.LongReads()
		var rests atomic.Int64
		w.service.OnRest(func() { rests.Add(1) })
		for name, read := range long {
			if err := read(w); err != nil || rests.Load() > 0 {
				t.Errorf("%s alone: rested %d times, %v", name, rests.Load(), err)
			}
		}
		var others sync.WaitGroup
		done := make(chan struct{})
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					short(w, id)
				}
			}
		})
		for name, read := range long {
			for rests.Store(0); rests.Load() == 0 && !t.Failed(); { // until one of theirs falls into it
				if err := read(w); err != nil {
					t.Errorf("%s beside others: %s", name, show(err))
				}
			}
		}
		close(done)
		others.Wait()
	})
}
