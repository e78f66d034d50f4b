package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/randtest"
)

// TestKillWithFeed ends svcd without warning while records are written and a feed of changes is followed. Who connects again
// with the id of their last event is told of every write that was acknowledged.
func TestKillWithFeed(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		killWithFeed(t, newReleased(t), 10)
	})
	t.Run("mongodb", func(t *testing.T) {
		t.Parallel()
		killWithFeed(t, newReleased(t, ownMongoDB(t, time.Second)), 2)
	})
}

func killWithFeed(t *testing.T, s svcd, rounds int) {
	t.Helper()
	srv := s.start()
	srv.register(t)
	var mu sync.Mutex
	written, told, last := map[string]bool{}, map[string]bool{}, ""
	follow := func() (end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var reader sync.WaitGroup
		reader.Go(func() {
			_ = srv.FollowChanges(ctx, "blog", "articles", client.Query{}, last, func(c api.Change) error {
				mu.Lock()
				defer mu.Unlock()
				last = c.Token
				if c.ID != "" {
					told[c.ID] = true
				}
				return nil
			})
		})
		return func() { cancel(); reader.Wait() }
	}
	ready := func() bool { mu.Lock(); defer mu.Unlock(); return last != "" }
	for round := range rounds {
		end := follow()
		until(t, "the feed begins", ready)
		var writers sync.WaitGroup
		for w := range 3 {
			writers.Go(func() {
				for n := 0; ; n++ {
					rec, err := srv.CreateRecord(t.Context(), "blog", "articles", api.Record(fmt.Sprintf(`{"title":"%d-%d-%d"}`, round, w, n)))
					if err != nil {
						return
					}
					var created struct {
						ID string `json:"id"`
					}
					if err := json.Unmarshal(rec, &created); err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					written[created.ID] = true
					mu.Unlock()
				}
			})
		}
		time.Sleep(20*time.Millisecond + time.Duration(randtest.Of(t).IntN(150))*time.Millisecond) // the random moment
		if _, _, err := srv.stop(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		writers.Wait()
		end()
		srv = s.start()
	}
	end := follow()
	defer end()
	until(t, "all that was written is told", func() bool {
		mu.Lock()
		defer mu.Unlock()
		for id := range written {
			if !told[id] {
				return false
			}
		}
		return true
	})
}
