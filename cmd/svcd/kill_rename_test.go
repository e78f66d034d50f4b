package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/randtest"
)

// TestKillInARename ends svcd without warning while a collection gets other names, again and again, and others write to it
// under whichever it has: what was acknowledged is there under the last one.
func TestKillInARename(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		killInARename(t, newReleased(t), 10)
	})
	t.Run("mongodb", func(t *testing.T) {
		t.Parallel()
		killInARename(t, newReleased(t, ownMongoDB(t, time.Second)), 3)
	})
}

func killInARename(t *testing.T, s svcd, rounds int) {
	t.Helper()
	if os.Getenv("SOAK") != "" {
		rounds *= 10
	}
	names := []string{"articles", "posts", "stories"}
	config := func(round int) {
		renamed := ""
		if round > 0 {
			renamed = ", renamedFrom: " + names[(round-1)%3]
		}
		s.write("projects/blog/project.yaml", `
namespace: blog
audit: {enabled: true}
collections:
  - {name: `+names[round%3]+renamed+`, fields: [{name: title, type: string, index: [unique]}], permissions: {public: {methods: {}}, user: {methods: {}}}}
`)
	}
	config(0)
	srv := s.start()
	srv.register(t)
	var acked []string
	for round := 1; round <= rounds; round++ {
		var mu sync.Mutex
		var writers sync.WaitGroup
		for i := range 4 {
			writers.Go(func() {
				for n := 0; ; n++ {
					title := fmt.Sprint(round, " ", i, " ", n)
					var err error
					for _, at := range []int{round - 1, round, round - 1, round} {
						if _, err = srv.CreateRecord(t.Context(), "blog", names[at%3], api.Record(fmt.Sprintf(`{"title":%q}`, title))); err == nil {
							break
						}
					}
					if err != nil { // it was ended
						return
					}
					mu.Lock()
					acked = append(acked, title)
					mu.Unlock()
				}
			})
		}
		time.Sleep(20 * time.Millisecond)
		config(round)
		time.Sleep(time.Duration(randtest.Of(t).IntN(500)) * time.Millisecond) // the random moment; the change is seen after 300 ms
		if _, _, err := srv.stop(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		writers.Wait()
		srv = s.start()
		until(t, "the new name is served", func() bool {
			_, err := srv.CountRecords(t.Context(), "blog", names[round%3], "")
			return err == nil
		})
		found := map[string]bool{}
		for rec, err := range srv.Records(t.Context(), "blog", names[round%3], client.Query{Limit: 1000, Select: "title"}) {
			if err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(string(rec), `"title":"`)
			title, _, _ := strings.Cut(rest, `"`)
			found[title] = true
		}
		if lost := slices.DeleteFunc(slices.Clone(acked), func(title string) bool { return found[title] }); len(lost) > 0 {
			t.Fatalf("round %d: of %d acknowledged records %d are not there, such as %q", round, len(acked), len(lost), lost[0])
		}
	}
	if len(acked) < rounds {
		t.Errorf("only %d records in %d rounds: this tested little", len(acked), rounds)
	}
}
