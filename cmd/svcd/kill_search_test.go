package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/randtest"
)

// TestR3SearchAfterKill is row R3 of the fault list: svcd is ended without warning while it indexes, again and again, and now and then the
// indexes are taken away. Once it is back, searches find what the records are.
func TestR3SearchAfterKill(t *testing.T) {
	t.Parallel()
	vectors := []string{`EMBEDDING_PROVIDERS=[{"name": "demo", "type": "hash"}]`, `EMBEDDING_GROUPS=[{"name": "texts", "members": ["demo"]}]`}
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		searchAfterKill(t, newReleased(t, vectors...), 8)
	})
	t.Run("mongodb", func(t *testing.T) {
		t.Parallel()
		searchAfterKill(t, newReleased(t, append(vectors, ownMongoDB(t, time.Second))...), 3)
	})
}

var colors = strings.Fields("amber beige crimson denim ecru fuchsia garnet hazel")

func searchAfterKill(t *testing.T, s svcd, rounds int) {
	t.Helper()
	if os.Getenv("SOAK") != "" {
		rounds = 50
	}
	const collection = `
    fields: [{name: title, type: string}]
    search:
      - {name: words, mode: text}
      - {name: parts, mode: ngram}
      - {name: fused, mode: rrf, rrf: {sources: [words, parts], topK: 10000}}
      - {name: meaning, mode: vector, vector: {group: texts}, score: {minScore: 0.99}}
    permissions: {public: {methods: {}}, user: {methods: {}}}
`
	s.write("projects/blog/project.yaml", "namespace: blog\ncollections:\n  - name: articles"+collection+
		"  - name: notes # of which no write waits until it can be found"+regexp.MustCompile(`mode: (text|ngram|vector)`).ReplaceAllString(collection, "$0, async: true"))
	srv := s.start()
	srv.register(t)
	written, slowest := 0, time.Duration(0)
	for round := range rounds {
		var mu sync.Mutex
		var writers sync.WaitGroup
		for i := range 4 {
			writers.Go(func() {
				n := writeColors(t, srv.Client, searchedCollections()[i%2], rand.New(rand.NewPCG(uint64(round), uint64(i))))
				mu.Lock()
				defer mu.Unlock()
				written += n
			})
		}
		time.Sleep(time.Duration(randtest.Of(t).IntN(400)) * time.Millisecond) // the random moment
		if _, _, err := srv.stop(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		writers.Wait()
		if round%3 == 2 {
			if err := os.RemoveAll(filepath.Join(s.dir, "data", "search")); err != nil {
				t.Fatal(err)
			}
		}
		srv = s.start()
		began := time.Now()
		until(t, "searches find what the records are", func() bool { return differs(t, srv.Client) == "" })
		slowest = max(slowest, time.Since(began))
		if t.Failed() {
			t.Fatalf("round %d: %s", round, differs(t, srv.Client))
		}
	}
	t.Logf("%d writes in %d rounds; searches found what the records were within %v", written, rounds, slowest)
	if os.Getenv("SOAK") != "" && slowest > 10*time.Second {
		t.Errorf("it took %v until searches found what the records were", slowest)
	}
	if written < 10*rounds {
		t.Errorf("only %d writes in %d rounds: this tested little", written, rounds)
	}
}

func searchedCollections() []string { return []string{"articles", "notes"} }

// writeColors creates, changes and deletes records of a collection until a call fails, and says how many writes were done.
func writeColors(t *testing.T, c *client.Client, collection string, r *rand.Rand) (n int) {
	t.Helper()
	var ids []string
	for ; ; n++ {
		body := api.Record(fmt.Sprintf(`{"title":%q}`, colors[r.IntN(len(colors))]))
		var err error
		switch k := r.IntN(6); {
		case k < 3 || len(ids) == 0:
			var rec api.Record
			if rec, err = c.CreateRecord(t.Context(), "blog", collection, body); err == nil {
				var a article
				if err := json.Unmarshal(rec, &a); err != nil {
					t.Error(err)
				}
				ids = append(ids, a.ID)
			}
		case k < 5:
			_, err = c.UpdateRecord(t.Context(), "blog", collection, ids[r.IntN(len(ids))], body, client.WriteOptions{})
		default:
			_, err = c.DeleteRecord(t.Context(), "blog", collection, ids[0], client.WriteOptions{})
			ids = ids[1:]
		}
		if err != nil { // it was ended
			return n
		}
	}
}

// differs tells what searches find otherwise than a filter does; "": nothing.
func differs(t *testing.T, c *client.Client) string {
	t.Helper()
	for i := range 2 * len(colors) {
		collection, color := searchedCollections()[i%2], colors[i/2]
		want, err := c.CountRecords(t.Context(), "blog", collection, fmt.Sprintf(`{"title":%q}`, color))
		if err != nil {
			return err.Error()
		}
		for _, search := range []string{"words", "parts", "fused", "meaning"} {
			list, err := c.ListRecords(t.Context(), "blog", collection, client.Query{Q: color, QName: search, Limit: 1, Count: true})
			if err != nil {
				return err.Error()
			}
			if list.Total == nil || *list.Total != want {
				return fmt.Sprintf("%s of %s finds %v of %s, there are %d", search, collection, list.Total, color, want)
			}
		}
	}
	return ""
}
