package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/randtest"
)

const stormyConfig = `
namespace: blog
snapshots: [{name: daily, collectionDedup: true, enabled: true, retention: {keepLast: 4}}]
collections:
  - name: sets
    bulk: {mode: atomic, maxItems: 5000}
    fields: [{name: set, type: string}, {name: k, type: string}, {name: n, type: number}, {name: text, type: string}]
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
  - name: marks
    fields: [{name: title, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
  - name: log
    fields: [{name: title, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
  - name: library
    fields: [{name: title, type: string}, {name: file, type: file}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
`

// stormy is a service of three instances that writers and readers use while instances of it are killed, and stand still.
type stormy struct {
	t     *testing.T
	s     svcd
	mu    sync.RWMutex
	nodes []*server

	acks sync.Mutex
	log  map[string]bool // titles that were acknowledged
	mark string
	mid  string // id of the mark
}

func (y *stormy) node(i int) *server {
	y.mu.RLock()
	defer y.mu.RUnlock()
	return y.nodes[i%len(y.nodes)]
}

const stormSet = 200

// TestR1RestoreStorm kills and stops instances of three that share a store and a disk, at random and in phases, while they restore, take, prune, import and check snapshots, and
// the others serve writers and readers. All then tell one end of the run, that is true of the records, as its events are; nothing that was acknowledged is lost; and all snapshots
// are whole. STORM says for how long, and STORM_RESTORES has only restores, stopped around their swap.
func TestR1RestoreStorm(t *testing.T) {
	if os.Getenv("SOAK") == "" {
		t.Skip("SOAK=1")
	}
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			storm(t, uint64(i))
		})
	}
}

func storm(t *testing.T, seed uint64) {
	minutes := 20 * time.Minute
	if d, err := time.ParseDuration(os.Getenv("STORM")); err == nil {
		minutes = d
	}
	random := rand.New(rand.NewPCG(randtest.Of(t).Uint64(), seed))
	s := newSvcd(t, ownMongoDB(t, time.Second))
	s.write("projects/blog/project.yaml", stormyConfig)
	y := &stormy{t: t, s: s, log: map[string]bool{}}
	for range 3 {
		y.nodes = append(y.nodes, s.start())
	}
	y.nodes[0].register(t)
	for i := range 3 {
		y.nodes[i].served(t)
	}
	if _, err := y.nodes[0].BulkCreate(t.Context(), "blog", "sets", members("one", stormSet, strings.Repeat("x", 100))); err != nil {
		t.Fatal(err)
	}
	for n := range 10 {
		y.nodes[0].mustCreate(t, "library", api.Record(fmt.Sprintf(`{"title":"base","file":%s}`, fileOf(fmt.Sprint("base", n), 3000))))
	}
	y.mid = y.nodes[0].mustCreate(t, "marks", api.Record(`{"title":"snap"}`))
	run, err := y.nodes[0].begin(t, func() (*api.Run, error) { return y.nodes[0].CreateSnapshot(t.Context(), "blog", "daily") })
	base := y.nodes[0].ends(t, run, err)
	if _, err := y.nodes[0].PinSnapshot(t.Context(), "blog", base, true); err != nil {
		t.Fatal(err)
	}
	y.mark = "snap"
	archive := y.nodes[0].downloaded(t, base)

	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer func() { cancel(); wg.Wait() }()
	for w := range 2 {
		wg.Go(func() { y.writes(ctx, w) })
	}
	wg.Go(func() { y.reads(ctx) })

	tally := map[string]int{}
	began := time.Now()
	for round := 0; time.Since(began) < minutes && !t.Failed(); round++ {
		y.round(random, round, base, archive, tally)
	}
	t.Logf("%v", tally)
}

// persist calls fn until it does not fail: instances that are gone, stand still, or have shut the project refuse for a while.
func (y *stormy) persist(what string, fn func() error) {
	y.t.Helper()
	until := time.Now().Add(150 * time.Second)
	for {
		err := fn()
		if err == nil {
			return
		}
		if time.Now().After(until) {
			y.t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (y *stormy) setMark(title string) {
	y.persist("mark", func() error {
		_, err := y.node(0).UpdateRecord(y.t.Context(), "blog", "marks", y.mid, api.Record(fmt.Sprintf(`{"title":%q}`, title)), client.WriteOptions{})
		return err
	})
}

func (y *stormy) getMark(node *server) (title string) {
	y.persist("get mark", func() error {
		for rec, err := range node.Records(y.t.Context(), "blog", "marks", client.Query{Limit: 10}) {
			var r struct{ Title string }
			if err != nil {
				return err
			}
			if err := json.Unmarshal(rec, &r); err != nil {
				return err
			}
			title = r.Title
		}
		return nil
	})
	return title
}

func (y *stormy) round(random *rand.Rand, round int, base string, archive []byte, tally map[string]int) {
	t := y.t
	t.Helper()
	what := []string{"restore", "restore", "restore", "merge", "backup", "take", "prune", "import", "drill", "verify"}[random.IntN(10)]
	if os.Getenv("STORM_RESTORES") != "" {
		what = []string{"restore", "merge", "backup"}[random.IntN(3)]
	}
	toldBefore := y.told()
	before := fmt.Sprintf("round %d", round)
	y.setMark(before)
	at := random.IntN(3)
	dies := y.node(at)
	other := y.node(at + 1)
	phase := []string{"load", "safety", "swap", "media", "begin", "the end"}[random.IntN(6)]
	how := []string{"kill", "kill", "stop", "stop", "stopother"}[random.IntN(5)]
	if os.Getenv("STORM_RESTORES") != "" {
		phase = []string{"safety", "swap", "swap", "media", "the end"}[random.IntN(5)]
		how = []string{"kill", "stop", "stop"}[random.IntN(3)]
	}
	still := []time.Duration{200 * time.Millisecond, 3 * time.Second, 14 * time.Second, 17 * time.Second, 30 * time.Second}[random.IntN(5)]
	victim := at
	if how == "stopother" {
		victim = at + 1 + random.IntN(2)
	}
	tally[what+" "+how]++
	began := time.Now()
	var imported string
	if what == "import" {
		// one that is not there: a fresh snapshot, downloaded and deleted
		run, err := other.begin(t, func() (*api.Run, error) { return other.CreateBackup(t.Context(), "blog") })
		imported = other.ends(t, run, err)
		archive = other.downloaded(t, imported)
		y.persist("delete", func() error { return other.DeleteSnapshot(t.Context(), "blog", imported) })
	}
	start := func() (*api.Run, error) {
		switch what {
		case "restore":
			return dies.RestoreSnapshot(t.Context(), "blog", base, api.SnapshotRestore{})
		case "merge":
			return dies.RestoreSnapshot(t.Context(), "blog", base, api.SnapshotRestore{Mode: "merge"})
		case "take":
			return dies.CreateSnapshot(t.Context(), "blog", "daily")
		case "prune":
			return dies.PruneSnapshots(t.Context(), "blog", "daily")
		case "drill":
			return dies.DrillSnapshot(t.Context(), "blog", base)
		case "verify":
			return dies.VerifySnapshot(t.Context(), "blog", base, api.SnapshotVerify{})
		}
		return nil, nil
	}
	var run *api.Run
	bg := make(chan struct{})
	switch what {
	case "import", "backup":
		go func() {
			defer close(bg)
			if what == "import" {
				_, _ = dies.ImportSnapshot(t.Context(), "blog", "", bytes.NewReader(archive), int64(len(archive)))
				return
			}
			r, _ := dies.RestoreBackup(t.Context(), "blog", api.SnapshotRestore{}, bytes.NewReader(archive), int64(len(archive)))
			_ = r
		}()
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
	default:
		close(bg)
		y.persist("start "+what, func() (err error) { run, err = start(); return err })
		if phase == "begin" {
			break
		}
		ctx, done := context.WithTimeout(t.Context(), 120*time.Second)
		there := errors.New("there")
		_ = other.FollowSnapshotRun(ctx, "blog", run.ID, 0, func(e api.RunEvent) error {
			if e.Data.Phase == phase {
				return there
			}
			return nil
		})
		done()
	}
	moment := 60
	if os.Getenv("STORM_RESTORES") != "" {
		moment = 20
	}
	if phase == "load" || phase == "safety" {
		moment = 250
	}
	time.Sleep(time.Duration(random.IntN(moment)) * time.Millisecond)
	v := y.node(victim)
	if how == "kill" {
		if _, _, err := v.stop(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		restart := random.IntN(2) == 0
		<-bg
		if !restart { // the others end it
			time.Sleep(time.Duration(random.IntN(25)) * time.Second)
		}
		fresh := y.s.start()
		y.mu.Lock()
		y.nodes[victim%3] = fresh
		y.mu.Unlock()
	} else {
		_ = v.cmd.Process.Signal(syscall.SIGSTOP)
		time.Sleep(still)
		_ = v.cmd.Process.Signal(syscall.SIGCONT)
		<-bg
	}
	said := fmt.Sprintf("round %d, %s, %s at %s (%s)", round, what, how, phase, still)
	// The run, by all instances.
	if run == nil && what == "backup" {
		y.persist("runs", func() error {
			list, err := other.ListSnapshotRuns(t.Context(), "blog", client.SnapshotRunsQuery{Kind: "restore"})
			if err == nil && len(list.Items) > 0 && list.Items[0].CreatedAt.After(began) {
				run = &list.Items[0]
			}
			return err
		})
	}
	status := "none"
	if run != nil {
		var ends []*api.Run
		for i := range 3 {
			n := y.node(i)
			var now *api.Run
			y.persist(said+": the run ends", func() (err error) {
				if now, err = n.SnapshotRun(t.Context(), "blog", run.ID); err == nil && now.Active() {
					err = fmt.Errorf("%s is %s", run.ID, now.Status)
				}
				return err
			})
			ends = append(ends, now)
		}
		// a lost run may be settled behind that
		if ends[0].Status == api.RunLost || ends[0].Status != ends[2].Status || ends[1].Status != ends[2].Status {
			time.Sleep(3 * time.Second)
			for i := range 3 {
				now, err := y.node(i).SnapshotRun(t.Context(), "blog", run.ID)
				if err == nil {
					if now.Status != ends[i].Status {
						t.Logf("%s: told %s, then %s", said, ends[i].Status, now.Status)
					}
					ends[i] = now
				}
			}
		}
		for _, e := range ends {
			if e.Status != ends[0].Status || string(e.Result) != string(ends[0].Result) {
				t.Errorf("%s: instances tell %s %s and %s %s", said, ends[0].Status, ends[0].Result, e.Status, e.Result)
			}
		}
		end := ends[0]
		status = end.Status
		if end.Error != nil {
			status += " " + end.Error.Code
		}
		if what == "restore" || what == "merge" || what == "backup" {
			restored := ""
			var marks []string
			for i := range 3 {
				marks = append(marks, y.getMark(y.node(i)))
			}
			if marks[0] != marks[1] || marks[1] != marks[2] {
				t.Errorf("%s: marks %v", said, marks)
			}
			switch marks[0] {
			case "snap":
				restored = "restored"
			case before:
				restored = "as before"
			default:
				t.Errorf("%s: the mark is %q", said, marks[0])
			}
			if (restored == "restored") != (end.Status == api.RunSucceeded) {
				t.Errorf("%s: FALSE: %s, and the run (%s) is %s %+v", said, restored, run.ID, end.Status, end.Error)
			}
			if end.Status == api.RunSucceeded {
				result, err := client.SnapshotResultOf(end)
				if err != nil || result.Restored == nil {
					t.Errorf("%s: %v %+v", said, err, result)
				} else {
					y.persist(said+": safety", func() error {
						_, err := other.Snapshot(t.Context(), "blog", result.Restored.Safety, false)
						return err
					})
				}
			}
			tally[restored+" "+end.Status]++
			told := y.told()
			for _, reason := range []string{"Restored", "RestoreUndone"} {
				n := told[reason] - toldBefore[reason]
				if n > 1 || n == 1 && (reason == "Restored") != (restored == "restored") {
					t.Errorf("%s: %s is told %d times, and it is %s", said, reason, n, restored)
				}
				if n == 1 {
					status += " told"
				}
			}
			status += " " + restored
		}
	} else {
		if m := y.getMark(y.node(0)); m != before {
			if what != "backup" {
				t.Errorf("%s: the mark is %q", said, m)
			}
		}
	}
	y.check(said)
	t.Logf("%s: %s, %s", said, status, time.Since(began).Round(100*time.Millisecond))
}

// told counts events.
func (y *stormy) told() (out map[string]int64) {
	y.persist("events", func() error {
		out = map[string]int64{}
		list, err := y.node(0).ProjectEvents(y.t.Context(), "blog")
		if err != nil {
			return err
		}
		for _, e := range list.Items {
			out[e.Reason] += e.Count
		}
		return nil
	})
	return out
}

// check holds that records are whole, acknowledged writes are there or in a safety snapshot, files are what records say, and all snapshots verify.
func (y *stormy) check(said string) {
	t := y.t
	t.Helper()
	y.acks.Lock() // nobody writes the log meanwhile
	defer y.acks.Unlock()
	n := y.node(0)
	live := map[string]int{}
	y.persist("log", func() error {
		clear(live)
		for rec, err := range n.Records(t.Context(), "blog", "log", client.Query{Limit: 1000}) {
			var r struct{ Title string }
			if err != nil {
				return err
			}
			if err := json.Unmarshal(rec, &r); err != nil {
				return err
			}
			live[r.Title]++
		}
		return nil
	})
	missing := map[string]bool{}
	for title := range y.log {
		if live[title] == 0 {
			missing[title] = true
		}
	}
	for title, c := range live {
		if c > 1 {
			t.Errorf("%s: %s is there %d times", said, title, c)
		}
	}
	if len(missing) > 0 {
		y.lookInSafety(missing)
		var m []string
		for title := range missing {
			m = append(m, title)
		}
		slices.Sort(m)
		if len(m) > 0 {
			t.Errorf("%s: acknowledged and nowhere: %d: %v", said, len(m), m[:min(len(m), 10)])
		}
	}
	// what is not live from now on is known to be in a safety snapshot
	for title := range y.log {
		if live[title] == 0 {
			delete(y.log, title)
		}
	}
	var list *api.List[api.Snapshot]
	y.persist("list", func() (err error) {
		list, err = n.ListSnapshots(t.Context(), "blog", "", client.Query{Limit: 1000})
		return err
	})
	for i, info := range list.Items {
		if info.Problem != "" {
			t.Errorf("%s: %+v", said, info)
		}
		if i > 2 {
			continue
		}
		var run *api.Run
		y.persist("verify", func() (err error) {
			run, err = n.VerifySnapshot(t.Context(), "blog", info.ID, api.SnapshotVerify{})
			return err
		})
		y.persist("verify ends", func() (err error) {
			if run, err = n.SnapshotRun(t.Context(), "blog", run.ID); err == nil && run.Active() {
				err = errors.New(run.Status)
			}
			return err
		})
		if run.Status != api.RunSucceeded {
			t.Errorf("%s: check of %s: %s %+v", said, info.ID, run.Status, run.Error)
		}
	}
	left, _ := filepath.Glob(filepath.Join(y.s.dir, "projects", "blog", "snapshots", "*", ".*"))
	if len(left) > 0 {
		time.Sleep(5 * time.Second)
		for _, l := range left {
			if _, err := os.Stat(l); err == nil {
				t.Logf("%s: %s is left 5 s later", said, l)
			}
		}
	}
}

// lookInSafety takes those out of missing that are in safety snapshots.
func (y *stormy) lookInSafety(missing map[string]bool) {
	files, _ := filepath.Glob(filepath.Join(y.s.dir, "projects", "blog", "snapshots", "before-restore", "*", "collections", "log.jsonl.zst"))
	slices.Sort(files)
	for _, f := range slices.Backward(files) {
		text, err := unzst(f)
		if err != nil {
			y.t.Errorf("%s: %v", f, err)
			continue
		}
		for title := range missing {
			if bytes.Contains(text, []byte(`"`+title+`"`)) {
				delete(missing, title)
			}
		}
	}
}

// writes by one instance after the other: atomic sets, records of the log, files.
func (y *stormy) writes(ctx context.Context, w int) {
	for k := 1; ctx.Err() == nil; k++ {
		n := y.node(k + w)
		one, done := context.WithTimeout(ctx, 4*time.Second)
		title := fmt.Sprintf("w%d-%d", w, k)
		y.acks.Lock()
		y.acks.Unlock() //nolint:staticcheck // waits for a check
		_, err := n.CreateRecord(one, "blog", "log", api.Record(fmt.Sprintf(`{"title":%q}`, title)))
		if err == nil {
			y.acks.Lock()
			y.log[title] = true
			y.acks.Unlock()
		}
		if k%3 == 0 {
			_, _ = n.BulkUpdate(one, "blog", "sets", inSet("one"), api.Record(fmt.Sprintf(`{"n":%d}`, k*10+w)))
		}
		if k%5 == 0 {
			_, _ = n.CreateRecord(one, "blog", "library", api.Record(fmt.Sprintf(`{"title":"w","file":%s}`, fileOf(title, 2000))))
		}
		done()
		time.Sleep(30 * time.Millisecond)
	}
}

// reads holds that one answer has one state, and that a file is what its record says.
func (y *stormy) reads(ctx context.Context) {
	for k := 0; ctx.Err() == nil; k++ {
		n := y.node(k)
		one, done := context.WithTimeout(ctx, 4*time.Second)
		found := map[int]int{}
		var failed error
		page, err := n.ListRecords(one, "blog", "sets", client.Query{Limit: 1000, Select: "n"})
		if err == nil {
			for _, rec := range page.Items {
				var m member
				failed = errors.Join(failed, json.Unmarshal(rec, &m))
				found[m.N]++
			}
			total := 0
			for _, c := range found {
				total += c
			}
			if failed != nil || len(found) != 1 || total != stormSet {
				y.t.Errorf("a reader has a mix: %v %v", found, failed)
			}
		}
		y.readFile(one, n, k)
		done()
		time.Sleep(20 * time.Millisecond)
	}
}

func (y *stormy) readFile(ctx context.Context, n *server, k int) {
	page, err := n.ListRecords(ctx, "blog", "library", client.Query{Limit: 50})
	if err != nil || len(page.Items) == 0 {
		return
	}
	rec := page.Items[k%len(page.Items)]
	var r stored
	if json.Unmarshal(rec, &r) != nil || r.File == nil {
		return
	}
	f, err := n.RecordFile(ctx, "blog", "library", r.ID, "file", r.File.Path, "")
	if err != nil {
		return
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return
	}
	sum := sha256.Sum256(data)
	if hex.EncodeToString(sum[:]) != r.File.Hash {
		y.t.Errorf("the file %s is not what its record says", r.File.Src)
	}
}

func unzst(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	zip, err := zstd.NewReader(file)
	if err != nil {
		return nil, err
	}
	defer zip.Close()
	return io.ReadAll(zip)
}
