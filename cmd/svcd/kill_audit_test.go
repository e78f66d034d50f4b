package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/randtest"
)

// deed is one write: of a record, or of an org.
type deed struct {
	id, op string
	n      int
}

// ledger is what the writers of audited records and orgs were told was done.
type ledger struct {
	mu    sync.Mutex
	acked []deed
}

func (l *ledger) note(d deed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked = append(l.acked, d)
}

// write creates something, changes it twice and deletes every other one, until a call fails.
func (l *ledger) write(step func(d deed) (id string, err error)) {
	for i := 0; ; i++ {
		id, err := step(deed{op: "create", n: 1})
		for n := 2; n < 4 && err == nil; n++ {
			l.note(deed{id, []string{"create", "update"}[n-2], n - 1})
			_, err = step(deed{id, "update", n})
		}
		if err != nil {
			return
		}
		l.note(deed{id, "update", 3})
		if i%2 == 0 {
			if _, err := step(deed{id: id, op: "delete"}); err != nil {
				return
			}
			l.note(deed{id: id, op: "delete"})
		}
	}
}

func recordStep(ctx context.Context, c *client.Client, name string) func(d deed) (string, error) {
	made := 0
	return func(d deed) (string, error) {
		if d.op == "delete" {
			_, err := c.DeleteRecord(ctx, "blog", "articles", d.id, client.WriteOptions{})
			return d.id, err
		}
		if d.op == "create" {
			made++
		}
		body := api.Record(fmt.Sprintf(`{"title":"%s %d","n":%d}`, name, made, d.n))
		var answer api.Record
		var err error
		if d.op == "create" {
			answer, err = c.CreateRecord(ctx, "blog", "articles", body)
		} else {
			answer, err = c.UpdateRecord(ctx, "blog", "articles", d.id, body, client.WriteOptions{})
		}
		var a article
		if err == nil {
			err = json.Unmarshal(answer, &a)
		}
		return a.ID, err
	}
}

func orgStep(ctx context.Context, c *client.Client, name string) func(d deed) (string, error) {
	made := 0
	return func(d deed) (string, error) {
		description := strconv.Itoa(d.n)
		var org *api.Org
		var err error
		switch d.op {
		case "create":
			made++
			org, err = c.Orgs().Create(ctx, api.OrgWrite{Name: new(fmt.Sprintf("%s-%d", name, made)), Description: &description})
		case "update":
			org, err = c.Orgs().Update(ctx, d.id, api.OrgWrite{Description: &description})
		default:
			_, err = c.Orgs().Delete(ctx, d.id)
			return d.id, err
		}
		if err != nil {
			return "", err
		}
		return org.ID, nil
	}
}

// state is a record or an org, as found or as an entry has it.
type state struct {
	ID          string `json:"id"`
	N           int    `json:"n"`
	Description string `json:"description"`
}

func (s state) number() int {
	if s.Description != "" {
		n, _ := strconv.Atoi(s.Description)
		return n
	}
	return s.N
}

// check holds what there is and the log of it against each other and against the ledger.
func (l *ledger) check(t *testing.T, c *client.Client) {
	t.Helper()
	found := map[string]int{}
	for rec, err := range c.Records(t.Context(), "blog", "articles", client.Query{Limit: 1000}) {
		var s state
		if err != nil || json.Unmarshal(rec, &s) != nil {
			t.Fatal(err, string(rec))
		}
		found[s.ID] = s.number()
	}
	for org, err := range c.Orgs().All(t.Context(), client.Query{Limit: 1000}) {
		if err != nil {
			t.Fatal(err)
		}
		found[org.ID] = state{Description: org.Description}.number()
	}
	told := map[string][]deed{} // by id, what the log tells
	for _, project := range []string{"blog", ""} {
		q, entries := client.Query{Sort: "at", Limit: 1000}, int64(0)
		all := c.Audit(t.Context(), q)
		if project != "" {
			all = c.ProjectAudit(t.Context(), project, q)
		}
		for e, err := range all {
			if err != nil {
				t.Fatal(err)
			}
			if entries++; e.Collection != "articles" && e.Collection != "orgs" {
				continue
			}
			var after state
			if len(e.After) > 0 && json.Unmarshal(e.After, &after) != nil {
				t.Fatalf("%s", e.After)
			}
			told[e.RecordID] = append(told[e.RecordID], deed{e.RecordID, e.Op, after.number()})
		}
		report, err := c.VerifyAudit(t.Context(), project, nil)
		if err != nil || !report.OK || report.Entries != entries {
			t.Errorf("the log of %q has %d entries, and %v: %+v", project, entries, err, report)
		}
	}
	for _, d := range l.acked {
		if !strings.Contains(fmt.Sprint(told[d.id]), fmt.Sprint(d)) {
			t.Errorf("%v was acknowledged, the log has %v", d, told[d.id])
		}
	}
	l.acked = nil
	for id, n := range found {
		if deeds := told[id]; len(deeds) != n || deeds[n-1].n != n {
			t.Errorf("%s is there with %d, the log has %v", id, n, deeds)
		}
	}
	for id, deeds := range told {
		for i, d := range deeds {
			want := deed{id, "update", i + 1}
			switch {
			case i == 0:
				want.op = "create"
			case i == len(deeds)-1 && found[id] == 0:
				want = deed{id: id, op: "delete"}
			}
			if d != want {
				t.Errorf("the log has %v, entry %d is to be %v", deeds, i, want)
			}
		}
		if len(deeds) == 1 && found[id] == 0 {
			t.Errorf("the log has %v, and nothing is there", deeds)
		}
	}
}

// TestKillAudited ends svcd without warning while it writes what goes to the audit log, again and again: of a write and
// its entry there is never one alone, and the chain of the log is whole.
func TestKillAudited(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		killAudited(t, newReleased(t))
	})
	t.Run("mongodb", func(t *testing.T) {
		t.Parallel()
		killAudited(t, newReleased(t, ownMongoDB(t, 2*time.Second)))
	})
}

func killAudited(t *testing.T, s svcd) {
	t.Helper()
	rounds := 3
	if os.Getenv("SOAK") != "" {
		rounds = 60
	}
	s.write("projects/blog/project.yaml", config+"audit: {enabled: true}\n")
	srv := s.start()
	srv.register(t)
	l, acked := &ledger{}, 0
	for round := range rounds {
		var writers sync.WaitGroup
		for i := range 2 {
			name := fmt.Sprintf("r%d-%d", round, i)
			writers.Go(func() { l.write(recordStep(t.Context(), srv.Client, name)) })
			writers.Go(func() { l.write(orgStep(t.Context(), srv.Client, name)) })
		}
		time.Sleep(50*time.Millisecond + time.Duration(randtest.Of(t).IntN(200))*time.Millisecond) // the random moment
		if _, _, err := srv.stop(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		writers.Wait()
		acked += len(l.acked)
		srv = s.start()
		l.check(t, srv.Client)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	if acked < rounds {
		t.Errorf("only %d writes in %d rounds: this tested little", acked, rounds)
	}
	t.Logf("%d audited writes in %d kills", acked, rounds)
	if code, log, err := srv.stop(syscall.SIGTERM); code != 0 || err != nil {
		t.Errorf("code %d, %v, %s", code, err, log)
	}
}
