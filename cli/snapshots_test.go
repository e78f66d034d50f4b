package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/svcctl/svc/cli"
	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/tui/frame/frametest"
	"github.com/svcctl/svc/pkg/api"
)

const (
	runID      = "6b01a2b3c4d5e6f708192a3b"
	snapshotID = "20260301T031500Z-k3x9q2"
	inSnaps    = api.Prefix + "/_/blog/_/admin/snapshots"
)

// snapshotService answers as svcd does about one run, which ends as end says.
type snapshotService struct {
	mu       sync.Mutex
	run      api.Run
	snapshot api.Snapshot
	breaks   int           // so many streams end in between
	silent   int           // so many streams stay open behind their first event, and nothing comes any more
	hold     bool          // streams stay open behind their first event
	opened   chan struct{} // one for each stream
	after    []string      // Last-Event-ID of each stream
	asked    []string      // what was to be changed
}

func (s *snapshotService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if r.Method != http.MethodGet {
		s.asked = append(s.asked, r.Method+" "+strings.TrimPrefix(r.URL.Path, inSnaps))
	}
	var value any = s.run
	switch path := strings.TrimPrefix(r.URL.Path, inSnaps); {
	case strings.HasSuffix(path, "/events"):
		s.after = append(s.after, r.Header.Get("Last-Event-ID"))
		broken := s.breaks > 0
		s.breaks--
		silent := s.silent > 0
		s.silent--
		s.mu.Unlock()
		s.stream(w, r, broken, silent || s.hold)
		return
	case path == "/"+snapshotID:
		value = s.snapshot
	case path == "/prune" && dry(r):
		plan := api.SnapshotPrunePlan{Items: []api.SnapshotDecision{
			{ID: snapshotID, Profile: "daily", Keep: true, Reasons: []string{"last 1 of 3"}}, {ID: "20260201T031500Z-p7m4aa", Profile: "daily", Reasons: []string{"no rule keeps it"}},
		}}
		if s.snapshot.Pinned {
			plan.Items = plan.Items[:1]
		}
		value = plan
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", api.MediaJSON)
	_ = json.NewEncoder(w).Encode(value) // the client may have gone
}

// dry says that nothing is to be changed.
func dry(r *http.Request) bool {
	var body api.SnapshotPrune
	return json.NewDecoder(r.Body).Decode(&body) == nil && body.DryRun
}

func (s *snapshotService) stream(w http.ResponseWriter, r *http.Request, broken, hold bool) {
	w.Header().Set("Content-Type", api.MediaEvents)
	w.WriteHeader(http.StatusOK) // also where no event follows
	send := func(id int, event string, data api.RunEventData) {
		text, err := json.Marshal(data)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", id, event, text)
	}
	if r.Header.Get("Last-Event-ID") == "" {
		send(1, api.EventProgress, api.RunEventData{Phase: "collections", Done: 1, Total: 2})
		for i, text := range []string{"a warning"}[:min(int(s.run.Progress.Warnings), 1)] {
			send(2+i, api.EventLog, api.RunEventData{Level: "warn", Message: text})
		}
	}
	_ = http.NewResponseController(w).Flush()
	if s.opened != nil {
		s.opened <- struct{}{}
	}
	if hold {
		<-r.Context().Done()
	}
	if broken || hold {
		return
	}
	send(9, map[bool]string{true: api.EventDone, false: api.EventError}[s.run.Status == api.RunSucceeded], api.RunEventData{Status: s.run.Status})
}

func snapshotRun(kind, status string, change func(*api.Run)) api.Run {
	run := api.Run{ID: runID, Kind: kind, Name: "daily", Subject: snapshotID, Status: status, Result: json.RawMessage(`{"snapshot":"` + snapshotID + `"}`)}
	if change != nil {
		change(&run)
	}
	return run
}

// TestEndsOfSnapshotRuns holds the exit codes of commands that wait, and what these say.
func TestEndsOfSnapshotRuns(t *testing.T) {
	t.Parallel()
	failed := func(code string) func(*api.Run) {
		return func(r *api.Run) { r.Error = &api.RunError{Code: code, Message: "it is said why"} }
	}
	found := func(code, result string) func(*api.Run) {
		return func(r *api.Run) {
			failed(code)(r)
			r.Error.Message = "the snapshot is damaged: media/9f86: it has another sum; and 102 more"
			if strings.Contains(result, "checked") {
				r.Error.Message = "1 of 3 snapshots are damaged: " + snapshotID + ": media/9f86: it has another sum; and 2 more"
			}
			r.Result = json.RawMessage(strings.ReplaceAll(result, "FOUND", `"problems":103,"found":[{"path":"media/9f86","text":"it has another sum"},{"path":"indexes.json","text":"it is not there"}]`))
		}
	}
	for _, tc := range []struct {
		name, line     string
		run            api.Run
		snapshot       api.Snapshot
		exit           int
		stdout, stderr string
	}{
		{"taken", "create blog daily", snapshotRun("snapshot", "succeeded", nil), api.Snapshot{ID: snapshotID}, command.ExitOK, snapshotID, ""},
		{"taken with warnings", "create blog daily", snapshotRun("snapshot", "succeeded", func(r *api.Run) { r.Progress.Warnings = 1 }), api.Snapshot{ID: snapshotID}, command.ExitPartial, snapshotID, "warning: a warning\nwarnings: 1"},
		{"with warnings, for programs", "create blog daily -o json", snapshotRun("snapshot", "succeeded", func(r *api.Run) { r.Progress.Warnings = 1 }), api.Snapshot{}, command.ExitPartial, `"message":"a warning"`, ""},
		{"failed", "create blog daily", snapshotRun("snapshot", "failed", failed("snapshots_full")), api.Snapshot{}, command.ExitFailed, "", "error: run " + runID + ": it is said why"},
		{"cancelled", "create blog daily", snapshotRun("snapshot", "cancelled", failed("run_cancelled")), api.Snapshot{}, command.ExitFailed, "", "it is said why"},
		{"asked to end", "cancel blog " + runID, snapshotRun("snapshot", "running", nil), api.Snapshot{}, command.ExitOK, "running", "asked to end, and does so soon; svcctl snapshot attach blog " + runID},
		{"whole", "verify blog " + snapshotID, snapshotRun("verify", "succeeded", nil), api.Snapshot{ID: snapshotID, Verified: &api.SnapshotVerification{Files: 3}}, command.ExitOK, "verified", "3 files, 0 B, no problems"},
		{"whole as it was", "verify blog " + snapshotID, snapshotRun("verify", "succeeded", nil), api.Snapshot{ID: snapshotID, Verified: &api.SnapshotVerification{Files: 3}, Counts: api.SnapshotCounts{Warnings: 2}}, command.ExitOK, "verified, 2 warnings", "with 2 warnings then; svcctl snapshot show blog " + snapshotID + " names what was missing or damaged already"},
		{"a sample has missed it", "verify blog " + snapshotID + " --sample 10%", snapshotRun("verify", "succeeded", nil), api.Snapshot{
			ID: snapshotID, Verified: &api.SnapshotVerification{Files: 3, Sample: 0.1}, Damage: &api.SnapshotVerification{Problems: 1, Found: []api.SnapshotFinding{{Path: "media/9f86", Text: "it has another sum"}}},
		}, command.ExitFailed, "damaged", "no problems in that\nwarning: found before: media/9f86: it has another sum\nerror: " + snapshotID + " is known to be damaged: 1 problem, which this check has not looked at"},
		{"found in another one", "attach blog " + runID, snapshotRun("snapshot", "succeeded", nil), api.Snapshot{ID: snapshotID, Damage: &api.SnapshotVerification{Problems: 1}}, command.ExitOK, " damaged", ""},
		{"damaged", "verify blog " + snapshotID, snapshotRun("verify", "failed", found("snapshot_damaged", `{"verified":{FOUND}}`)), api.Snapshot{}, command.ExitFailed, "media/9f86     it has another sum\nindexes.json   it is not there\n", "and 101 more problems\nerror: run " + runID + ": the snapshot is damaged: 103 problems\n"},
		{"damaged ones", "attach blog " + runID, snapshotRun("verify", "failed", found("snapshot_damaged", `{"checked":{"snapshots":3,"damaged":1,"problems":3,"found":[{"snapshot":"`+snapshotID+`",FOUND}]}}`)),
			api.Snapshot{}, command.ExitFailed, snapshotID + "   indexes.json   it is not there", "and 1 more problem\nerror: run " + runID + ": 1 of 3 snapshots are damaged: 3 problems\n"},
		{"all whole", "attach blog " + runID, snapshotRun("verify", "succeeded", func(r *api.Run) { r.Result = json.RawMessage(`{"checked":{"snapshots":1}}`) }), api.Snapshot{}, command.ExitOK, "1 snapshot, no problems", ""},
		{"can't be restored", "drill blog " + snapshotID, snapshotRun("drill", "failed", found("drill_differs", `{"drill":{FOUND}}`)), api.Snapshot{}, command.ExitFailed, "indexes.json   it is not there", "and 101 more problems"},
		{"for programs", "drill blog " + snapshotID + " -o json", snapshotRun("drill", "failed", found("drill_differs", `{"drill":{FOUND}}`)), api.Snapshot{}, command.ExitFailed, `"problems":103`, "it has another sum; and 102 more"},
		{"not checked", "verify blog " + snapshotID, snapshotRun("verify", "failed", failed("internal")), api.Snapshot{}, command.ExitUsage, "", "it is said why"},
		{"check not ended", "attach blog " + runID, snapshotRun("verify", "lost", failed("run_lost")), api.Snapshot{}, command.ExitUsage, "", "it is said why"},
		{"restored, and something was missing before", "restore blog " + snapshotID + " --yes", snapshotRun("restore", "succeeded", func(r *api.Run) {
			r.Result = json.RawMessage(`{"restored":{"into":"blog","safety":"` + snapshotID + `","collections":[],"files":{"linked":1},"safetyWarnings":["the file a is not there","b","c","d","e","f"]}}`)
		}), api.Snapshot{ID: snapshotID}, command.ExitOK, "", "of that snapshot: the file a is not there\nof that snapshot: b\nof that snapshot: c\nof that snapshot: d\nof that snapshot: e\nand more, which svcctl snapshot show blog " + snapshotID + " names\n"},
		{"what restoring would do to files", "restore blog " + snapshotID + " --dry-run", snapshotRun("restore", "succeeded", func(r *api.Run) {
			r.Result = json.RawMessage(`{"diff":{"id":"` + snapshotID + `","collections":[{"collection":"posts","same":3,"files":1,"fileDiffs":[{"record":"6501","field":"cover","name":"a.png","change":"added"}]}]}}`)
		}), api.Snapshot{ID: snapshotID}, command.ExitOK, "Files\nCHANGE   FILE\nadded    posts/6501/cover/a.png\n", "that is what a restore would change; nothing was changed"},
		{"pruned", "prune blog --yes", snapshotRun("prune", "succeeded", func(r *api.Run) {
			r.Result = json.RawMessage(`{"removed":[{"id":"` + snapshotID + `","profile":"daily","reasons":["no rule keeps it"]}],"kept":[{"id":"x"}]}`)
		}), api.Snapshot{}, command.ExitOK, "", ""},
		{"nothing to prune", "prune blog", api.Run{}, api.Snapshot{Pinned: true}, command.ExitOK, "last 1 of 3", "nothing is to be removed of 1 snapshot"},
		{"nothing to rehearse", "drill blog", api.Run{}, api.Snapshot{}, command.ExitNotFound, "", "svcctl snapshot profiles blog shows by which profiles they are taken"},
		{"none of a profile", "list blog --profile dayly", api.Run{}, api.Snapshot{}, command.ExitOK, "", "no snapshots of the profile dayly; svcctl snapshot profiles blog shows those of the config"},
		{"what pruning would do", "prune blog --dry-run", api.Run{}, api.Snapshot{}, command.ExitOK, "remove     no rule keeps it", "snapshots that would be removed: 1 of 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, serve(t, (&snapshotService{run: tc.run, snapshot: tc.snapshot}).ServeHTTP))
			if code := p.run(t, append([]string{"snapshot"}, strings.Fields(tc.line)...)...); code != tc.exit {
				t.Errorf("exit code %d, want %d", code, tc.exit)
			}
			if !strings.Contains(p.out.String(), tc.stdout) || !strings.Contains(p.err.String(), tc.stderr) {
				t.Errorf("stdout %s, stderr %s", p.out.String(), p.err.String())
			}
		})
	}
}

// TestSnapshotStreamThatBreaks is opened again behind the last event.
func TestSnapshotStreamThatBreaks(t *testing.T) {
	t.Parallel()
	s := &snapshotService{run: snapshotRun("snapshot", "succeeded", nil), breaks: 2, snapshot: api.Snapshot{ID: snapshotID}}
	p := start(t, serve(t, s.ServeHTTP))
	if code := p.run(t, "snapshot", "create", "blog", "daily"); code != 0 {
		t.Fatalf("exit code %d: %s", code, p.err.String())
	}
	if got := strings.Join(s.after, ","); got != ",1,1" {
		t.Errorf("it asks for the events behind %s", got)
	}
	p = start(t, serve(t, s.ServeHTTP))
	if code := p.run(t, "snapshot", "attach", "blog", runID, "--after", "7", "-o", "json"); code != 0 || s.after[3] != "7" {
		t.Errorf("exit code %d, it asks for the events behind %v", code, s.after)
	}
}

// TestLeaveSnapshotRun leaves a run that goes on, and says how to come back.
func TestLeaveSnapshotRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testLeaveSnapshotRun) // so that the run is begun in the time that a command waits, however slow the machine is
}

func testLeaveSnapshotRun(t *testing.T) {
	const hint = "svcctl snapshot attach blog " + runID + " comes back to it"
	s := &snapshotService{run: snapshotRun("snapshot", "running", nil), hold: true, opened: make(chan struct{}, 3)}
	start := func() *process {
		p := start(t, "http://svc")
		p.st.Transport = frametest.Transport{Handler: s}
		return p
	}
	ctx, interrupt := context.WithCancel(t.Context())
	go func() { <-s.opened; interrupt() }()
	p := start()
	if code := cli.Run(ctx, p.st, []string{"snapshot", "create", "blog", "daily"}); code != command.ExitInterrupted {
		t.Errorf("interrupted: exit code %d", code)
	}
	if got := p.err.String(); !strings.Contains(got, "error: interrupted; the run "+runID+" goes on\n") || !strings.Contains(got, hint+", svcctl snapshot cancel blog "+runID+" ends it") {
		t.Errorf("it says %s", got)
	}
	p = start()
	if code := p.run(t, "snapshot", "attach", "blog", runID, "--timeout", "10ms"); code != command.ExitTimeout || !strings.Contains(p.err.String(), hint) {
		t.Errorf("--timeout: exit code %d, %s", code, p.err.String())
	}
	p = start()
	if code := p.run(t, "snapshot", "create", "blog", "daily", "--timeout", "50ms"); code != command.ExitTimeout || !strings.Contains(p.err.String(), hint) {
		t.Errorf("create --timeout: exit code %d, %s", code, p.err.String())
	}
	p = start()
	if code := p.run(t, "snapshot", "create", "blog", "daily", "--no-wait", "-o", "name"); code != 0 || p.out.String() != "run/"+runID+"\n" || !strings.Contains(p.err.String(), hint) {
		t.Errorf("--no-wait: exit code %d, %s, %s", code, p.out.String(), p.err.String())
	}
	if strings.Contains(strings.Join(s.asked, "\n"), "cancel") {
		t.Errorf("it asks %v", s.asked)
	}
}

// TestRestoreIsTyped asks for the name of what is replaced.
func TestRestoreIsTyped(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		typed, args string
		tty         bool
		exit        int
		restored    bool
	}{
		{"blog\n", "", true, 0, true},
		{"y\n", "", true, command.ExitFailed, false},
		{"", "", true, command.ExitFailed, false},
		{"blog\n", "", false, command.ExitUsage, false},
		{"", "--yes", false, 0, true},
		{"blog\n", "--to-namespace copy", true, command.ExitFailed, false},
		{"copy\n", "--to-namespace copy", true, 0, true},
		{"", "--dry-run", false, 0, true},
	} {
		s := &snapshotService{snapshot: api.Snapshot{ID: snapshotID, Counts: api.SnapshotCounts{Documents: 7}}, run: snapshotRun("restore", "succeeded", func(r *api.Run) {
			r.Result = json.RawMessage(`{"restored":{"into":"blog","safety":"` + snapshotID + `","collections":[{"name":"articles","documents":7}]}}`)
		})}
		p := start(t, serve(t, s.ServeHTTP))
		p.st.In, p.st.InTTY, p.st.ErrTTY = strings.NewReader(tc.typed), tc.tty, tc.tty
		if code := p.run(t, append([]string{"snapshot", "restore", "blog", snapshotID}, strings.Fields(tc.args)...)...); code != tc.exit || (len(s.asked) > 0) != tc.restored {
			t.Errorf("%+v: exit code %d, it asks %v: %s", tc, code, s.asked, p.err.String())
		}
		if tc.tty && !strings.Contains(p.err.String(), "7 records) into "+strings.TrimPrefix("blog"+tc.args, "blog--to-namespace ")+" at http://") {
			t.Errorf("%+v: the question is missing: %s", tc, p.err.String())
		}
		if made := strings.Contains(p.err.String(), ", a project that is made for it: all collections that it has."); tc.tty && made != (tc.args != "") {
			t.Errorf("%+v: that a project is made: %t: %s", tc, made, p.err.String())
		}
	}
}

// TestDamagedSnapshots: what can't be done since a snapshot is damaged has failed, and is no conflict; what has its own meaning for 1 ends with 2.
func TestDamagedSnapshots(t *testing.T) {
	t.Parallel()
	for line, exit := range map[string]int{"diff": command.ExitUsage, "export -f -": command.ExitFailed, "show": command.ExitFailed} {
		verb, flags, _ := strings.Cut(line, " ")
		p := start(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", api.MediaProblem)
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"status":409,"code":"snapshot_damaged","detail":"the snapshot is damaged: indexes.json: it is not there"}`))
		}))
		args := append([]string{"snapshot", verb, "blog", snapshotID}, strings.Fields(flags)...)
		if code := p.run(t, args...); code != exit || !strings.Contains(p.err.String(), "hint: svcctl snapshot verify blog "+snapshotID+" reads all of it") {
			t.Errorf("%s: exit code %d, %s", line, code, p.err.String())
		}
	}
}
