package main

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/randtest"
)

// TestKillWithKeys ends svcd without warning while it creates records with idempotency keys. Each request is repeated
// with its key until it is answered: then there is exactly one record of each.
func TestKillWithKeys(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		killWithKeys(t, newReleased(t), 10, 300)
	})
	t.Run("mongodb", func(t *testing.T) {
		t.Parallel()
		killWithKeys(t, newReleased(t, ownMongoDB(t, time.Second)), 2, 20)
	})
}

func killWithKeys(t *testing.T, s svcd, rounds, soak int) {
	t.Helper()
	if os.Getenv("SOAK") != "" {
		rounds = soak
	}
	s.write("projects/blog/project.yaml", `
namespace: blog
audit: {enabled: true}
collections:
  - name: articles
    fields: [{name: title, type: string, index: [single]}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
`)
	srv := s.start()
	srv.register(t)
	type request struct {
		titles []string
		key    client.WriteOptions
	}
	for round := range rounds {
		var mu sync.Mutex
		var open, answered []request
		send := func(c *client.Client, r request) error {
			if len(r.titles) == 1 {
				_, err := c.CreateRecord(t.Context(), "blog", "articles", api.Record(fmt.Sprintf(`{"title":%q}`, r.titles[0])), r.key)
				return err
			}
			var items []api.Record
			for _, title := range r.titles {
				items = append(items, api.Record(fmt.Sprintf(`{"title":%q}`, title)))
			}
			_, err := c.BulkCreate(t.Context(), "blog", "articles", items, r.key)
			return err
		}
		var writers sync.WaitGroup
		for i := range 4 {
			writers.Go(func() {
				for n := 0; ; n++ {
					name := fmt.Sprint(round, " ", i, " ", n)
					r := request{titles: []string{name}, key: client.WriteOptions{IdempotencyKey: name[:1] + "-" + fmt.Sprint(round, "-", i, "-", n)}}
					if i == 3 {
						r.titles = []string{name + " a", name + " b", name + " c"}
					}
					err := send(srv.Client, r)
					mu.Lock()
					if err == nil {
						answered = append(answered, r)
					} else {
						open = append(open, r)
					}
					mu.Unlock()
					if err != nil {
						return
					}
				}
			})
		}
		time.Sleep(20*time.Millisecond + time.Duration(randtest.Of(t).IntN(150))*time.Millisecond) // the random moment
		if _, _, err := srv.stop(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		writers.Wait()
		srv = s.start()
		for _, r := range append(open, answered...) {
			until(t, "a request is answered", func() bool { return send(srv.Client, r) == nil })
			for _, title := range r.titles {
				if n, err := srv.CountRecords(t.Context(), "blog", "articles", fmt.Sprintf(`{"title":%q}`, title)); err != nil || n != 1 {
					t.Fatalf("%q is there %d times, %v", title, n, err)
				}
			}
		}
	}
}
