package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/randtest"
)

// article is a record of these tests.
type article struct {
	ID    string `json:"id,omitempty"`
	Title string `json:"title"`
	N     int    `json:"n"`
}

// book is what writers were told: by title, the number that was acknowledged last, and those tried since.
type book struct {
	mu    sync.Mutex
	acked map[string]article
	tried map[string][]int
}

// write creates records and updates them, until a call fails.
func (b *book) write(ctx context.Context, c *client.Client, name string) {
	for i := 0; ; i++ {
		a := article{Title: fmt.Sprint(name, " ", i)}
		for n := range 3 {
			a.N = n
			if !b.put(ctx, c, &a) {
				return
			}
		}
	}
}

func (b *book) put(ctx context.Context, c *client.Client, a *article) bool {
	b.mu.Lock()
	b.tried[a.Title] = append(b.tried[a.Title], a.N)
	b.mu.Unlock()
	var answer api.Record
	var err error
	if a.ID == "" {
		answer, err = c.CreateRecord(ctx, "blog", "articles", a.record())
	} else {
		answer, err = c.UpdateRecord(ctx, "blog", "articles", a.ID, a.record(), client.WriteOptions{})
	}
	if err != nil || json.Unmarshal(answer, a) != nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acked[a.Title], b.tried[a.Title] = *a, nil
	return true
}

func (a *article) record() api.Record {
	return api.Record(fmt.Sprintf(`{"title":%q,"n":%d}`, a.Title, a.N))
}

// check holds the records that are there against the book, which then goes on from them.
func (b *book) check(t *testing.T, c *client.Client) {
	t.Helper()
	found := map[string]article{}
	for rec, err := range c.Records(t.Context(), "blog", "articles", client.Query{Sort: "title", Limit: 1000}) {
		var a article
		if err != nil || json.Unmarshal(rec, &a) != nil {
			t.Fatal(err, string(rec))
		}
		if _, twice := found[a.Title]; twice {
			t.Errorf("%s is there twice", a.Title)
		}
		found[a.Title] = a
	}
	for title, want := range b.acked {
		got, ok := found[title]
		if !ok || got.ID != want.ID || (got.N != want.N && !slices.Contains(b.tried[title], got.N)) {
			t.Errorf("acknowledged %+v, found %+v", want, got)
		}
	}
	for title := range found {
		if _, acked := b.acked[title]; !acked && len(b.tried[title]) == 0 {
			t.Errorf("%s was never written", title)
		}
	}
	b.acked, b.tried = found, map[string][]int{}
}

// TestKill ends svcd without warning while it writes, again and again: what it has acknowledged stays, and it comes back
// by itself.
func TestKill(t *testing.T) {
	t.Parallel()
	rounds := 15
	if os.Getenv("SOAK") != "" {
		rounds = 300
	}
	s := newSvcd(t)
	srv := s.start()
	srv.register(t)
	b := &book{acked: map[string]article{}, tried: map[string][]int{}}
	for round := range rounds {
		var writers sync.WaitGroup
		for i := range 4 {
			writers.Go(func() { b.write(t.Context(), srv.Client, fmt.Sprint(round, "/", i)) })
		}
		time.Sleep(time.Duration(randtest.Of(t).IntN(150)) * time.Millisecond) // the random moment
		if _, _, err := srv.stop(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		writers.Wait()
		srv = s.start()
		b.check(t, srv.Client)
		for _, a := range slices.Collect(maps.Values(b.acked))[:min(5, len(b.acked))] {
			if _, _, err := srv.GetRecord(t.Context(), "blog", "articles", a.ID, client.Query{}); err != nil {
				t.Errorf("round %d: %+v: %v", round, a, err)
			}
		}
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	if len(b.acked) < rounds {
		t.Errorf("only %d records in %d rounds: this tested little", len(b.acked), rounds)
	}
	t.Logf("%d records after %d kills", len(b.acked), rounds)
	if code, log, err := srv.stop(syscall.SIGTERM); code != 0 || err != nil {
		t.Errorf("code %d, %v, %s", code, err, log)
	}
}
