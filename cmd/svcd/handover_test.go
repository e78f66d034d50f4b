package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// handover is within what time another instance goes on with what a killed one did. It holds with SOAK set.
const handover = 15 * time.Second

// TestIndexBuildsHandOver kills the instance that builds an index, while it does: of three, one builds, and another one takes
// over from it. The embedded store has one instance.
func TestIndexBuildsHandOver(t *testing.T) {
	t.Parallel()
	mongod := startMongoDB(t, mongotest.FailPoints())
	s := newSvcd(t, "STORE_URI="+mongod.URI)
	servers := []*server{s.start(), s.start(), s.start()}
	servers[0].register(t)
	for _, srv := range servers {
		until(t, "it serves the project", func() bool {
			_, err := srv.CountRecords(t.Context(), "blog", "articles", "")
			return err == nil
		})
	}
	if _, err := servers[0].CreateRecord(t.Context(), "blog", "articles", api.Record(`{"title": "one", "n": 1}`)); err != nil {
		t.Fatal(err) // an index of nothing is built at once
	}
	conn := mongod.Dial(t)
	hang := func(mode string) {
		conn.Run(t, "admin", bson.D{{Key: "configureFailPoint", Value: "hangAfterStartingIndexBuild"}, {Key: "mode", Value: mode}})
	}
	hang("alwaysOn")
	t.Cleanup(func() { hang("off") }) // or the server would not end
	s.write("projects/blog/project.yaml", strings.Replace(config, "{name: n, type: number}", "{name: n, type: number, index: [sparse]}", 1))

	began, first := time.Now(), holder{}
	until(t, "an instance builds the index", func() bool {
		first = holderOf(t, conn)
		return first.pid != 0 && building(t, conn)
	})
	t.Logf("being built after %s", ms(time.Since(began)))
	i := instanceOf(servers, first.pid)
	if i < 0 {
		t.Fatalf("none of ours holds the lease: %+v", first)
	}
	if _, _, err := servers[i].stop(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	began, second := time.Now(), holder{}
	until(t, "another instance takes over", func() bool {
		second = holderOf(t, conn)
		return second.pid != first.pid
	})
	took := time.Since(began)
	t.Logf("taken over after %s", ms(took))
	if next := instanceOf(servers, second.pid); next < 0 || next == i || second.token <= first.token {
		t.Errorf("after %+v comes %+v", first, second)
	}
	if soaking() && took > handover {
		t.Errorf("taken over after %s, want %s", took, handover)
	}
	hang("off")
	for n, srv := range servers {
		if n == i {
			continue
		}
		until(t, "the indexes are as declared", func() bool {
			list, err := srv.Projects().List(t.Context(), client.Query{})
			if err != nil || len(list.Items) != 1 {
				return false
			}
			st, err := srv.ProjectStatus(t.Context(), list.Items[0].ID)
			if err != nil || st.ObservedGeneration != 2 {
				return false
			}
			for _, c := range st.Conditions {
				if c.Type == "IndexesConverged" && c.Status == "True" && c.ObservedGeneration == 2 {
					return true
				}
			}
			return false
		})
	}
	if last := holderOf(t, conn); last.pid != 0 {
		t.Errorf("the lease is not given back: %+v", last)
	}
}

// soaking says whether the true figures are wanted.
func soaking() bool { return os.Getenv("SOAK") != "" }

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// holder is who has the lease of the project's indexes.
type holder struct {
	pid   int // 0: nobody
	token int64
}

func holderOf(t *testing.T, conn *mongotest.Conn) (h holder) {
	t.Helper()
	reply := conn.Run(t, "svc_blog", bson.D{{Key: "find", Value: "svc.leases"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: "indexes"}}}})
	var found struct {
		Cursor struct {
			FirstBatch []struct {
				Holder string
				Token  int64
			} `bson:"firstBatch"`
		}
	}
	if err := bson.Unmarshal(reply, &found); err != nil {
		t.Fatal(err)
	}
	for _, l := range found.Cursor.FirstBatch {
		h.token = l.Token
		if l.Holder != "" {
			h.pid, _ = strconv.Atoi(l.Holder[strings.LastIndexByte(l.Holder, ':')+1:])
		}
	}
	return h
}

// building says whether the server builds the index.
func building(t *testing.T, conn *mongotest.Conn) bool {
	t.Helper()
	reply := conn.Run(t, "admin", bson.D{{Key: "currentOp", Value: 1}, {Key: "command.createIndexes", Value: bson.D{{Key: "$exists", Value: true}}}})
	ops, _ := reply.Lookup("inprog").Array().Values()
	return len(ops) > 0
}

func instanceOf(servers []*server, pid int) int {
	for i, srv := range servers {
		if srv.cmd.Process.Pid == pid {
			return i
		}
	}
	return -1
}

// slotsConfig is a project with a job that is due every second.
const slotsConfig = `
namespace: blog
jobs:
  - {name: slow, cron: every 1s, type: javascript, file: slow.js}
collections:
  - name: notes
    fields: [{name: slot, type: string}, {name: text, type: string}]
    permissions: {public: {methods: {get: true, post: true}}, user: {methods: {}}}
`

// slowScript notes that it began, and that it ended. As long as no more than %d runs began, it waits in between until it is told
// to go on.
const slowScript = `module.exports = async (ctx) => {
  const notes = db.collection('notes')
  const slot = String(ctx.job.slot.getTime())
  await notes.insert({slot, text: 'began'})
  if ((await notes.find({text: 'began'})).length <= %d) while (!(await notes.findOne({text: 'go on'}))) await sleep(20)
  await notes.insert({slot, text: 'ended'})
}`

// TestR18HoldersOfJobs is row R18 of the fault list with processes: the instance that does the run of a job is paused for longer than
// a run may be silent, with SOAK set after another one was killed. The run is lost, another instance runs the job's next slots, each slot is executed
// once, and what the paused one still writes is refused. pkg/jobs has it for 10,000 slots; the embedded store has one instance.
func TestR18HoldersOfJobs(t *testing.T) {
	t.Parallel()
	ends := []syscall.Signal{syscall.SIGSTOP}
	if soaking() {
		ends = []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP}
	}
	s := newSvcd(t, "STORE_URI="+startMongoDB(t).URI)
	s.write("projects/blog/project.yaml", slotsConfig)
	s.write("projects/blog/slow.js", fmt.Sprintf(slowScript, len(ends)))
	servers := []*server{s.start(), s.start(), s.start()}
	servers[0].register(t)
	asked := servers[0] // who is asked, and never the one that is away
	active := func() (run api.Run) {
		t.Helper()
		until(t, "a run that waits is under way", func() bool {
			list, err := asked.ListJobRuns(t.Context(), "blog", "slow", api.RunRunning, client.Query{})
			if err != nil || len(list.Items) == 0 {
				return false
			}
			run = list.Items[0]
			began, err := asked.CountRecords(t.Context(), "blog", "notes", fmt.Sprintf(`{"text": "began", "slot": %q}`, slotOf(run)))
			return err == nil && began == 1
		})
		return run
	}
	var paused *server
	var lost []api.Run
	for _, end := range ends {
		run := active()
		pid, err := strconv.Atoi(run.Instance[strings.LastIndexByte(run.Instance, ':')+1:])
		i := instanceOf(servers, pid)
		if err != nil || i < 0 {
			t.Fatalf("the run belongs to %s (%v)", run.Instance, err)
		}
		lost = append(lost, run)
		began := time.Now()
		if end == syscall.SIGKILL {
			if _, _, err := servers[i].stop(end); err != nil {
				t.Fatal(err)
			}
		} else if err := servers[i].cmd.Process.Signal(end); err != nil {
			t.Fatal(err)
		}
		paused = servers[i]
		servers = slices.Delete(servers, i, i+1)
		asked = servers[0]
		until(t, "the run is lost", func() bool {
			run, err := asked.JobRun(t.Context(), "blog", "slow", run.ID)
			return err == nil && run.Status == api.RunLost
		})
		took := time.Since(began)
		t.Logf("%s: its run is lost after %s", end, ms(took))
		if soaking() && took > handover {
			t.Errorf("%s: its run is lost after %s, want %s", end, took, handover)
		}
	}
	ended := func() int64 {
		n, err := asked.CountRecords(t.Context(), "blog", "notes", `{"text": "ended"}`)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	until(t, "others run the next slots", func() bool { return ended() >= 2 })
	if _, err := asked.CreateRecord(t.Context(), "blog", "notes", api.Record(`{"text": "go on"}`)); err != nil {
		t.Fatal(err)
	}
	if err := paused.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, "the one that was paused knows", func() bool {
		run, err := paused.JobRun(t.Context(), "blog", "slow", lost[len(lost)-1].ID)
		return err == nil && run.Status == api.RunLost
	})
	before := ended()
	until(t, "the job goes on, with the one that is back", func() bool { return ended() >= before+2 })
	if _, err := asked.SuspendJob(t.Context(), "blog", "slow"); err != nil {
		t.Fatal(err)
	}
	until(t, "no run is under way", func() bool {
		list, err := asked.ListJobRuns(t.Context(), "blog", "slow", api.RunRunning, client.Query{})
		return err == nil && len(list.Items) == 0
	})
	if code, log, err := paused.stop(syscall.SIGTERM); code != 0 || err != nil { // what it does is over then
		t.Errorf("code %d, %v, %s", code, err, log)
	}
	checkSlots(t, asked, lost)
}

// checkSlots holds what the runs have written against their records: of each slot there is one run; it began once, and ended once unless
// it was lost.
func checkSlots(t *testing.T, srv *server, lost []api.Run) {
	t.Helper()
	notes := map[string]int{}
	for rec, err := range srv.Records(t.Context(), "blog", "notes", client.Query{Limit: 1000}) {
		var note struct{ Slot, Text string }
		if err = errors.Join(err, json.Unmarshal(rec, &note)); err != nil {
			t.Fatal(err)
		}
		notes[note.Text+" "+note.Slot]++
	}
	list, err := srv.ListJobRuns(t.Context(), "blog", "slow", "", client.Query{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	runs := map[string]bool{}
	for _, run := range list.Items {
		slot := slotOf(run)
		isLost := slices.ContainsFunc(lost, func(l api.Run) bool { return l.ID == run.ID })
		wantStatus, wantEnded := api.RunSucceeded, 1
		if isLost {
			wantStatus, wantEnded = api.RunLost, 0
		}
		if runs[slot] || run.Status != wantStatus || notes["began "+slot] != 1 || notes["ended "+slot] != wantEnded {
			t.Errorf("%s: %s; of the slot %s there was a run before: %v, it began %d times, and ended %d times", run.ID, run.Status, slot, runs[slot], notes["began "+slot], notes["ended "+slot])
		}
		runs[slot] = true
	}
	if want := 2*len(runs) - len(lost) + 1; len(notes) != want {
		t.Errorf("%d notes of %d runs, want %d: %v", len(notes), len(runs), want, notes)
	}
}

// slotOf gives the slot of a run as the job's script does.
func slotOf(run api.Run) string { return strconv.FormatInt(run.Slot.UnixMilli(), 10) }
