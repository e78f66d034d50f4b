package records_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

const feedPatience = 30 * time.Second

// follower is a reader of a feed.
type follower struct {
	t      *testing.T
	feed   *records.Feed
	cancel context.CancelFunc
	events chan fedEvent
	ended  chan error
	gate   chan struct{} // if set, each event waits for it
}

type fedEvent struct {
	records.FeedEvent
	token string
}

// follow opens a feed of items behind a token, and follows it from the moment in which it is ready.
func (w *world) follow(who, filter, after string, gate chan struct{}) *follower {
	w.t.Helper()
	p := records.FeedParams{Where: where(w.t, filter), After: after, Reader: who + filter, Owner: who}
	feed, err := w.service.OpenFeed(w.t.Context(), w.call(who), p)
	if err != nil {
		w.t.Fatal(show(err))
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	f := &follower{t: w.t, feed: feed, cancel: cancel, events: make(chan fedEvent, 10_000), ended: make(chan error, 1), gate: gate}
	ready := make(chan struct{})
	go func() {
		err := feed.Follow(ctx, func() (*records.Call, error) { return w.call(who), nil }, func() error { close(ready); return nil }, func(e records.FeedEvent) error {
			if f.gate != nil {
				<-f.gate
			}
			f.events <- fedEvent{e, feed.Token()}
			return nil
		})
		f.ended <- errors.Join(err, feed.Close(context.WithoutCancel(ctx)))
	}()
	select {
	case <-ready:
	case err := <-f.ended:
		w.t.Fatal(show(err))
	}
	return f
}

// close ends the feed, and waits for that.
func (f *follower) close() {
	f.cancel()
	<-f.ended
}

// want reads events up to one of a kind, of a record; those before are updates of records that events may be told of more than once.
func (f *follower) want(kind, id string) fedEvent {
	f.t.Helper()
	for {
		select {
		case e := <-f.events:
			if e.Kind == kind && e.ID == id {
				return e
			}
			if e.Kind != records.FeedUpdate {
				f.t.Fatalf("told %s of %s, want %s of %s", e.Kind, e.ID, kind, id)
			}
		case <-time.After(feedPatience):
			f.t.Fatalf("not told %s of %s", kind, id)
		}
	}
}

func (w *world) setN(id string, n int) {
	w.t.Helper()
	if _, err := w.service.Update(w.t.Context(), w.call("admin"), id, records.Change{Body: doc(w.t, fmt.Sprintf(`{"n": %d}`, n))}); err != nil {
		w.t.Fatal(show(err))
	}
}

func (w *world) remove(id string) {
	w.t.Helper()
	if err := deleted(w.service.Delete(w.t.Context(), w.call("admin"), id)); err != nil {
		w.t.Fatal(show(err))
	}
}

const inSight = `{"n": {"$gte": 0}}`

// FuzzFeedTokens: whatever a Last-Event-ID holds, a feed goes on behind a token that it gave out itself, unchanged, and behind nothing else.
func FuzzFeedTokens(f *testing.F) {
	for _, token := range []string{"x", "1", "-1", "AAAA", "!", "\x00", "é", strings.Repeat("A", 64), strings.Repeat("A", 400), strings.Repeat("_", 5000), "e30", "null"} {
		f.Add(token, uint16(0))
		f.Add(token, uint16(77))
	}
	f.Fuzz(func(t *testing.T, token string, at uint16) {
		w := newWorld(t, teststore.Memory(t), collections("name: items\n"+open))
		own := w.follow("admin", inSight, "", nil)
		given := own.feed.Token()
		own.close()
		changed := []byte(given)
		if i := int(at) % (len(changed) - 1); changed[i] == 'A' {
			changed[i] = 'Q'
		} else {
			changed[i] = 'A'
		}
		for _, after := range []string{token, token + given, given + token, given[:int(at)%len(given)], string(changed)} {
			if after == "" || after == given || strings.Trim(token, "\r\n") == "" { // decoding passes over ends of lines
				continue
			}
			_, err := w.service.OpenFeed(t.Context(), w.call("admin"), records.FeedParams{Where: where(t, inSight), After: after, Reader: "admin" + inSight, Owner: "admin"})
			if e := errs.From(err); e == nil || e.Kind != errs.Invalid || e.Code != "bad_event_id" {
				t.Errorf("behind %q: %v", after, err)
			}
		}
		w.follow("admin", inSight, given, nil).close()
	})
}

// Who has not been told of the last events, though they were sent, is told what became of the records that they have: also
// if one of them went out of sight, came back, and is gone by now.
func TestFeedGoesOnBehindWhatDidNotArrive(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, collections("name: items\n"+open))
		back, gone := w.create("admin", `{"n": 1}`), w.create("admin", `{"n": 1}`)
		f := w.follow("admin", inSight, "", nil)
		begin := w.create("admin", `{"n": 1}`)
		arrived := f.want("create", begin).token
		late := w.create("admin", `{"n": 1}`)
		f.want("create", late)
		w.setN(back, -1)
		f.want("delete", back)
		w.setN(back, 1)
		f.want("create", back)
		w.setN(gone, -1)
		f.want("delete", gone)
		f.close()
		w.remove(back)
		w.remove(late)
		again := w.follow("admin", inSight, arrived, nil)
		defer again.close()
		had := map[string]bool{back: true, gone: true}
		last := w.create("admin", `{"n": 1}`)
		for {
			select {
			case e := <-again.events:
				had[e.ID] = e.Kind != records.FeedDelete
				if e.ID != last {
					continue
				}
			case <-time.After(feedPatience):
				t.Fatal("the feed does not go on")
			}
			break
		}
		if had[back] || had[gone] || had[late] || !had[last] {
			t.Errorf("the reader has %v, of %s %s %s", had, back, gone, late)
		}
	})
}

// Who was sent more than is kept of it begins anew, and misses nothing unawares.
func TestFeedKnowsWhatItForgot(t *testing.T) {
	const many = 2200
	w := newWorld(t, teststore.Memory(t), collections("name: items\n"+open))
	var ids []string
	for range many {
		ids = append(ids, w.put(`{"n": 1}`))
	}
	f := w.follow("admin", inSight, "", nil)
	first := w.create("admin", `{"n": 1}`)
	early := f.want("create", first).token
	var ops []store.Op
	for _, id := range ids {
		oid, err := document.ParseID(id)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := bson.Marshal(bson.D{{Key: "_id", Value: oid}})
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, store.Op{Kind: store.Update, ID: bson.Raw(raw).Lookup("_id"), Update: mql.MustCompileUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: -1}}}})})
	}
	if _, err := w.collection("items").Write(t.Context(), ops, false); err != nil {
		t.Fatal(err)
	}
	late := ""
	for _, id := range ids {
		late = f.want("delete", id).token
	}
	f.close()
	if _, err := w.service.OpenFeed(t.Context(), w.call("admin"), records.FeedParams{Where: where(t, inSight), After: early, Reader: "admin" + inSight}); !errors.Is(err, records.ErrFeedGone) {
		t.Errorf("behind the first event: %v", err)
	}
	w.follow("admin", inSight, late, nil).close()
}

// A reader who is slower than the writers is told of everything all the same, in order, while others are told at once.
func TestFeedOfASlowReader(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		const many = 600 // more than wait for a reader
		w := newWorld(t, s, collections("name: items\n"+open))
		gate := make(chan struct{})
		slow, quick := w.follow("admin", "", "", gate), w.follow("admin", inSight, "", nil)
		var ids []string
		for range many {
			ids = append(ids, w.put(`{"n": 1}`))
		}
		for _, id := range ids {
			quick.want("create", id)
		}
		close(gate)
		for _, id := range ids {
			slow.want("create", id)
		}
		last := w.put(`{"n": 1}`)
		slow.want("create", last)
		quick.want("create", last)
		slow.close()
		quick.close()
	})
}

// A reader who has to catch up, and is so slow that even what comes meanwhile is too much to wait for them, is told of everything
// once.
func TestFeedOfASlowReaderWhoComesBack(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, collections("name: items\n"+open))
		before := w.follow("admin", "", "", nil)
		token := before.want("create", w.put(`{"n": 1}`)).token
		before.close()
		missed := w.put(`{"n": 1}`)
		gate := make(chan struct{})
		slow, quick := w.follow("admin", "", token, gate), w.follow("admin", inSight, "", nil)
		var ids []string
		for range 600 {
			ids = append(ids, w.put(`{"n": 1}`))
		}
		for _, id := range ids {
			quick.want("create", id)
		}
		close(gate)
		slow.want("create", missed)
		for _, id := range ids {
			slow.want("create", id)
		}
		slow.want("create", w.put(`{"n": 1}`))
		slow.close()
		quick.close()
	})
}

// An id of an event does not say, by its length or else, what happened to records that its reader does not see.
func TestTokensOfFeedsTellNothing(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, collections("name: items\n"+open))
		f := w.follow("admin", inSight, "", nil)
		defer f.close()
		before := f.feed.Token()
		if again := f.feed.Token(); again == before || len(again) != len(before) {
			t.Errorf("%s and %s", before, again)
		}
		for n := range 20 {
			w.create("admin", `{"n": -1}`)
			if now := f.feed.Token(); len(now) != len(before) {
				t.Errorf("after %d changes out of sight: %d characters, before %d", n, len(now), len(before))
			}
		}
		seen := f.want("create", w.create("admin", `{"n": 1}`)).token
		if len(seen) != len(before) {
			t.Errorf("an event: %d characters, before %d", len(seen), len(before))
		}
	})
}

// What is kept of feeds that ended is bounded, however often somebody comes and goes.
func TestFeedsKeepLittle(t *testing.T) {
	const most = 64
	w := newWorld(t, teststore.Memory(t), collections("name: items\n"+open))
	kept := w.collection("svc.feeds")
	count := func(filter *mql.Filter) int64 {
		t.Helper()
		n, err := kept.Count(t.Context(), filter, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := ""
	for n := range most + 6 {
		f := w.follow("alice", inSight, "", nil)
		token := f.feed.Token()
		if n == 0 {
			first = token
		}
		f.close()
	}
	w.follow("bob", inSight, "", nil).close() // who has no token
	if n := count(mql.MustCompile(bson.D{{Key: "owner", Value: bson.D{{Key: "$exists", Value: true}}}})); n != most {
		t.Errorf("%d feeds are kept, want %d", n, most)
	}
	if _, err := w.service.OpenFeed(t.Context(), w.call("alice"), records.FeedParams{Where: where(t, inSight), After: first, Reader: "alice" + inSight}); !errors.Is(err, records.ErrFeedGone) {
		t.Errorf("the oldest: %v", err)
	}
}

// When its readers are gone, nothing of a feed runs on.
func TestFeedsLeaveNothingBehind(t *testing.T) {
	w := newWorld(t, teststore.Memory(t), collections("name: items\n"+open))
	w.follow("admin", "", "", nil).close() // what comes once for all
	before := runtime.NumGoroutine()
	for range 3 {
		var all []*follower
		for n := range 40 {
			all = append(all, w.follow([]string{"admin", "alice"}[n%2], inSight, "", nil))
		}
		id := w.create("admin", `{"n": 1}`)
		for _, f := range all {
			f.want("create", id)
			f.close()
		}
	}
	for giveUp := time.Now().Add(feedPatience); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(giveUp) {
			t.Fatalf("%d goroutines, before %d", runtime.NumGoroutine(), before)
		}
	}
}
