package idempotency_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/idempotency"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// world is a store with a database of its own, and the processes on it.
type world struct {
	*testing.T
	store    store.Store
	database string
	clock    *teststore.Clock
}

func newWorld(t *testing.T, s store.Store) *world {
	t.Helper()
	w := &world{
		T: t, store: s, database: "keys-" + strings.ToLower(bson.NewObjectID().Hex()),
		clock: teststore.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
	}
	t.Cleanup(func() {
		if err := s.DropDatabase(context.WithoutCancel(t.Context()), w.database); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) process(alone bool) *idempotency.Keys {
	return idempotency.New(idempotency.Options{Store: w.store, Now: w.clock.Now, Alone: alone})
}

func (w *world) request(what string, repeatable bool) idempotency.Request {
	return idempotency.Request{
		Database: w.database, Scope: "ann POST items", Key: "k", Hash: sha256.Sum256([]byte(what)), Repeatable: repeatable,
	}
}

// begin says in short what becomes of a request.
func (w *world) begin(k *idempotency.Keys, r idempotency.Request) (*idempotency.Claim, string) {
	w.Helper()
	c, a, err := k.Begin(w.Context(), r)
	switch {
	case errors.Is(err, idempotency.ErrRunning):
		return nil, "running"
	case errors.Is(err, idempotency.ErrUnknown):
		return nil, "unknown"
	case errors.Is(err, idempotency.ErrReused):
		return nil, "reused"
	case err != nil:
		w.Fatal(err)
	case a != nil:
		return nil, fmt.Sprint(a.Status, " ", string(a.Body), a.Header)
	case c.Again():
		return c, "again"
	}
	return c, "first"
}

func (w *world) want(k *idempotency.Keys, r idempotency.Request, want string) *idempotency.Claim {
	w.Helper()
	c, got := w.begin(k, r)
	if got != want {
		w.Errorf("got %s, want %s", got, want)
	}
	return c
}

func TestKeys(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		k, other := w.process(false), w.process(false)
		a, b := w.request("a", true), w.request("b", true)
		c := w.want(k, a, "first")
		w.want(k, a, "running")
		w.want(other, a, "running")
		w.want(k, b, "reused")
		elsewhere := a
		elsewhere.Scope = "bob POST items"
		w.want(k, elsewhere, "first")
		if err := c.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.want(k, b, "reused") // it may have been carried out
		id := c.ID(3)
		if c = w.want(other, a, "again"); c.ID(3) != id || c.ID(4) == id || c.ID(4).Hex() < id.Hex() || c.ID(256).Hex() < c.ID(4).Hex() {
			t.Error("the ids are others")
		}
		answer := idempotency.Answer{Status: 201, Header: map[string]string{"Location": "/x"}, Body: []byte("made"), Kept: true}
		if err := c.Done(t.Context(), answer); err != nil {
			t.Fatal(err)
		}
		w.want(k, a, "201 mademap[Location:/x]")
		w.want(other, a, "201 mademap[Location:/x]")
		w.clock.Pass(idempotency.Lifetime - time.Second)
		w.want(k, b, "reused")
		w.clock.Pass(2 * time.Second)
		if c = w.want(k, b, "first"); c.ID(3) == id {
			t.Error("ids come twice")
		}
	})
}

// A request whose process is gone may be done again where that does no harm; of any other nobody knows.
func TestKeysOfTheDead(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		for i, tt := range []struct {
			alone, repeatable bool
			now, later        string
		}{
			{false, true, "running", "again"},
			{false, false, "running", "unknown"},
			{true, true, "again", "running"}, // by then it is carried out by this process
			{true, false, "unknown", "unknown"},
		} {
			r := w.request("a", tt.repeatable)
			r.Key = strconv.Itoa(i)
			w.want(w.process(tt.alone), r, "first")
			next := w.process(tt.alone)
			w.want(next, r, tt.now)
			w.clock.Pass(2 * time.Minute)
			w.want(next, r, tt.later)
		}
	})
}

// One who was given up does not say how the request ended.
func TestLateEnd(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		r := w.request("a", true)
		late := w.want(w.process(false), r, "first")
		w.clock.Pass(time.Minute)
		next := w.want(w.process(false), r, "again")
		if err := late.Done(t.Context(), idempotency.Answer{Status: 500}); err != nil {
			t.Error(err)
		}
		if err := next.Done(t.Context(), idempotency.Answer{Status: 201}); err != nil {
			t.Error(err)
		}
		if err := late.Release(t.Context()); err != nil {
			t.Error(err)
		}
		w.want(w.process(false), r, "201 map[]")
	})
}

func TestLargeAnswersAreNotKept(t *testing.T) {
	w := newWorld(t, teststore.Memory(t))
	for size, kept := range map[int]bool{idempotency.MaxBody: true, idempotency.MaxBody + 1: false} {
		r := w.request("a", true)
		r.Key = strconv.Itoa(size)
		k := w.process(true)
		if err := w.want(k, r, "first").Done(t.Context(), idempotency.Answer{Status: 200, Body: make([]byte, size), Kept: true}); err != nil {
			t.Fatal(err)
		}
		if _, a, err := k.Begin(t.Context(), r); err != nil || a.Kept != kept || (len(a.Body) == size) != kept {
			t.Errorf("%d: %v %v", size, a.Kept, err)
		}
	}
}

// Of many at once, on two instances, one gets the claim.
func TestKeysAtOnce(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		for round := range 5 {
			r := w.request("a", true)
			r.Key = strconv.Itoa(round)
			processes := []*idempotency.Keys{w.process(false), w.process(false)}
			var mu sync.Mutex
			got := map[string]int{}
			var all sync.WaitGroup
			for i := range 32 {
				all.Go(func() {
					c, _, err := processes[i%2].Begin(t.Context(), r)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case c != nil:
						got["claim"]++
					case errors.Is(err, idempotency.ErrRunning):
						got["running"]++
					default:
						got[fmt.Sprint(err)]++
					}
				})
			}
			all.Wait()
			if got["claim"] != 1 || got["running"] != 31 {
				t.Errorf("%v", got)
			}
		}
	})
}
