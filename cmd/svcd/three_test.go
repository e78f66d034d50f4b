package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

const tickConfig = `
namespace: blog
jobs:
  - {name: tick, cron: every 1s, type: javascript, file: tick.js}
collections:
  - name: ticks
    fields: [{name: slot, type: string}, {name: n, type: number, meta: {defaultValue: %d}}]
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
`

// TestThreeInstances has three processes on one MongoDB, each with files of its own: a registration and a reload on one reach
// all, one whose files are older is not ready until it has them, and jobs go on when the others are killed.
func TestThreeInstances(t *testing.T) {
	t.Parallel()
	uri := "STORE_URI=" + startMongoDB(t).URI
	var nodes []svcd
	var servers []*server
	write := func(s svcd, n int) {
		s.write("projects/blog/tick.js", "module.exports = async (ctx) => { await db.collection('ticks').insert({slot: String(ctx.job.slot)}) }\n")
		s.write("projects/blog/project.yaml", fmt.Sprintf(tickConfig, n))
	}
	for range 3 {
		s := newSvcd(t, uri)
		write(s, 1)
		nodes, servers = append(nodes, s), append(servers, s.start())
	}
	generation := func(srv *server, want int64) func() bool {
		return func() bool {
			list, err := srv.Projects().List(t.Context(), client.Query{})
			if err != nil || len(list.Items) != 1 {
				return false
			}
			st, err := srv.ProjectStatus(t.Context(), list.Items[0].ID)
			return err == nil && st.ObservedGeneration == want
		}
	}
	all := func(what string, want int64) {
		t.Helper()
		began := time.Now()
		for _, srv := range servers {
			until(t, what, generation(srv, want))
		}
		t.Logf("%s: on all after %s", what, time.Since(began).Round(time.Millisecond))
	}
	servers[0].register(t)
	all("the registration", 1)

	write(nodes[0], 2) // each of them watches its files
	write(nodes[1], 2)
	began := time.Now()
	until(t, "the second one has the reload", generation(servers[1], 2))
	t.Logf("the reload: on the second one after %s", time.Since(began).Round(time.Millisecond))
	until(t, "the third one is not ready, and says why", func() bool {
		w := &wildServer{t: t, url: servers[2].Server()}
		status, text := w.call(t.Context(), http.MethodGet, api.RootReady, "")
		return status == http.StatusServiceUnavailable && strings.Contains(text, "are behind")
	})
	if !generation(servers[2], 1)() {
		t.Error("the one that is behind does not go on")
	}
	write(nodes[2], 2)
	all("the reload", 2)
	until(t, "the third one is ready", func() bool { return servers[2].Ready(t.Context()) == nil })

	last := servers[2]
	const jobRuns = 2 // that show that the job goes on
	for i := range 3 {
		count := func() int64 {
			n, err := last.CountRecords(t.Context(), "blog", "ticks", "")
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		before, began := count(), time.Now()
		until(t, "the job goes on", func() bool { return count() >= before+jobRuns })
		t.Logf("%d instances killed: two runs after %s", i, time.Since(began).Round(time.Millisecond))
		if i < 2 {
			if _, _, err := servers[i].stop(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	slots := map[string]bool{}
	for rec, err := range last.Records(t.Context(), "blog", "ticks", client.Query{Limit: 1000}) {
		var tick struct{ Slot string }
		if err != nil || json.Unmarshal(rec, &tick) != nil {
			t.Fatal(err, string(rec))
		}
		if tick.Slot == "" || slots[tick.Slot] {
			t.Errorf("the time %q was run twice", tick.Slot)
		}
		slots[tick.Slot] = true
	}
}
