package records_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/svcctl/svc/pkg/records"
)

// TestTurns: a caller who asks for every place has half of them, others come to theirs, and those who wait do in their order.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := records.NewTurns(4)
		var mu sync.Mutex
		var order []string
		var leaves []func()
		ask := func(ctx context.Context, who string) {
			go func() {
				leave, err := turns.Take(ctx, who)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					order = append(order, "no "+who)
					return
				}
				order, leaves = append(order, who), append(leaves, leave)
			}()
			synctest.Wait()
		}
		want := func(what string, names ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(order) != len(names) {
				t.Fatalf("%s: got %v, want %v", what, order, names)
			}
			for i, name := range names {
				if order[i] != name {
					t.Fatalf("%s: got %v, want %v", what, order, names)
				}
			}
			order = nil
		}
		leave := func() {
			mu.Lock()
			defer mu.Unlock()
			leaves[0]()
			leaves = leaves[1:]
		}
		for range 4 {
			ask(t.Context(), "a")
		}
		want("one caller", "a", "a")
		ask(t.Context(), "b")
		ask(t.Context(), "c")
		want("others", "b", "c")
		gone, cancel := context.WithCancel(t.Context())
		ask(gone, "d")
		ask(t.Context(), "e")
		cancel()
		want("who does not wait any more", "no d")
		leave() // of a
		want("the first that waits", "a")
		leave() // of a
		want("the next", "a")
		leave() // of b
		want("then the last", "e")
		for range 4 {
			leave()
		}
		if turns.Taken() != 0 || turns.Waiting() != 0 {
			t.Errorf("%d places are taken, %d wait", turns.Taken(), turns.Waiting())
		}
	})
}

// TestTurnsAtOnce has many callers come, wait and give up at once: no place is given twice, and none is lost.
func TestTurnsAtOnce(t *testing.T) {
	turns := records.NewTurns(4)
	var now, worst atomic.Int64
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			for n := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if n%3 == 0 {
					go cancel()
				}
				if leave, err := turns.Take(ctx, string(rune('a'+i%3))); err == nil {
					if at := now.Add(1); at > 4 {
						worst.Store(at)
					}
					now.Add(-1)
					leave()
				}
				cancel()
			}
		})
	}
	group.Wait()
	if turns.Taken() != 0 || turns.Waiting() != 0 || worst.Load() > 0 {
		t.Errorf("%d places are taken, %d wait, %d had one at once", turns.Taken(), turns.Waiting(), worst.Load())
	}
}
