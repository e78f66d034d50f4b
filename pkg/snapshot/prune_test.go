package snapshot_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/folder"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/randtest"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store/teststore"
)

func keepLast(n int) snapshot.Policy {
	return snapshot.Policy{Retention: &schema.Retention{KeepLast: n}}
}

// ids are those of all snapshots of a profile that are listed, the oldest first. Each has to be whole, but for those that are known not to be.
func (w *world) ids(profile string, damaged ...string) []string {
	w.Helper()
	list, err := w.snaps.List(w.Context(), w.p)
	if err != nil {
		w.Fatal(err)
	}
	out := []string{}
	for _, info := range slices.Backward(list) {
		if info.Profile != profile {
			continue
		}
		if out = append(out, info.ID); !slices.Contains(damaged, info.ID) {
			w.verify(info)
		}
	}
	return out
}

// daily takes a snapshot on each of n days.
func (w *world) daily(profile string, n int) []string {
	w.Helper()
	var ids []string
	for range n {
		w.clock.Pass(24 * time.Hour)
		ids = append(ids, w.create(profile).ID)
	}
	return ids
}

func (w *world) prune(profile string, policy snapshot.Policy, o snapshot.PruneOptions) *snapshot.Pruned {
	w.Helper()
	out, err := w.snaps.Prune(w.Context(), w.p, profile, policy, o)
	if err != nil {
		w.Fatal(err)
	}
	return out
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fillWith(4, 4)
	ids := w.daily("daily", 8)
	others := w.daily("posts", 3)
	verified, pinned, manifest, state, found := ids[1], ids[2], ids[3], ids[4], ids[7]
	if _, err := w.snaps.Verify(t.Context(), w.p, verified, snapshot.VerifyOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.snaps.Verify(t.Context(), w.p, verified, snapshot.VerifyOptions{Sample: 0.1}); err != nil { // which takes nothing from that
		t.Fatal(err)
	}
	if err := w.snaps.Pin(t.Context(), w.p, pinned, true); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(w.p.Dir, "snapshots", "daily")
	replace(t, filepath.Join(dir, manifest, "manifest.json"), "{}")
	if err := os.WriteFile(filepath.Join(dir, state+".state.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, found, "indexes.json")
	text, err := os.ReadFile(name) // #nosec G304 -- a file of the test
	if err != nil {
		t.Fatal(err)
	}
	text[0]++
	replace(t, name, string(text)) // of the size that it had, so that only who reads it sees it
	if v, err := w.snaps.Verify(t.Context(), w.p, found, snapshot.VerifyOptions{}); err != nil || v.Problems == 0 {
		t.Fatal(v, err)
	}
	missed := false // a check of a part that misses the damage, which stays known
	for range 1000 {
		if v, err := w.snaps.Verify(t.Context(), w.p, found, snapshot.VerifyOptions{Sample: 1e-9}); err != nil {
			t.Fatal(err)
		} else if missed = v.Problems == 0; missed {
			break
		}
	}
	if !missed {
		t.Fatal("no check of a part has missed the damage")
	}

	dry := w.prune("daily", keepLast(1), snapshot.PruneOptions{DryRun: true})
	var told []string
	for _, d := range dry.Decisions {
		told = append(told, fmt.Sprintf("%s %t %s", d.ID[:8], d.Keep, strings.Join(d.Reasons, ", ")))
	}
	equal(t, "decisions", []string{
		"20260309 true damaged, last snapshot",
		"20260308 true last snapshot",
		"20260307 false no rule keeps it",
		"20260306 true damaged, pinned",
		"20260305 true damaged, none that is newer is verified",
		"20260304 true pinned",
		"20260303 true newest verified",
		"20260302 false no rule keeps it",
	}, told)
	damaged := []string{manifest, state, found}
	if list, err := w.snaps.List(t.Context(), w.p); err != nil || len(list) != len(ids)+len(others) {
		t.Errorf("after a dry run: %v, %v", list, err)
	}

	var phases []snapshot.Phase
	var done []int64
	out := w.prune("daily", keepLast(1), snapshot.PruneOptions{Report: func(p snapshot.Progress) {
		phases, done = append(phases, p.Phase), append(done, p.Done)
		if p.Total != 2 {
			t.Errorf("total %d", p.Total)
		}
	}})
	equal(t, "removed", []string{ids[0], ids[5]}, out.Removed)
	equal(t, "phases", []snapshot.Phase{snapshot.Pruning, snapshot.Pruning, snapshot.Pruning}, phases)
	equal(t, "progress", []int64{0, 1, 2}, done)
	if again := w.prune("daily", keepLast(1), snapshot.PruneOptions{}); len(again.Removed) > 0 {
		t.Errorf("removed by a second one: %v", again.Removed)
	}
	equal(t, "left", []string{ids[1], ids[2], ids[3], ids[4], ids[6], ids[7]}, w.ids("daily", damaged...))
	equal(t, "another profile's", others, w.ids("posts"))
}

// TestPruneWithoutPolicy keeps all, and so does one that would keep nothing, which is an error.
func TestPruneWithoutPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	ids := w.daily("daily", 3)
	if out := w.prune("daily", snapshot.PolicyOf(w.p, "daily"), snapshot.PruneOptions{}); len(out.Removed) > 0 {
		t.Errorf("removed %v", out.Removed)
	}
	_, err := w.snaps.Prune(t.Context(), w.p, "daily", snapshot.Policy{Retention: &schema.Retention{}}, snapshot.PruneOptions{})
	if e := errs.From(err); e == nil || e.Code != "bad_retention" {
		t.Errorf("a policy that keeps nothing: %v", err)
	}
	equal(t, "left", ids, w.ids("daily"))
	if out := w.prune("nothing", keepLast(1), snapshot.PruneOptions{}); len(out.Decisions) > 0 {
		t.Errorf("of a profile without snapshots: %v", out)
	}
}

// TestPolicyOf takes the zone from the schedule.
func TestPolicyOf(t *testing.T) {
	t.Parallel()
	p := load(t, `
namespace: NAMESPACE
snapshots:
  - {name: zoned, schedule: "CRON_TZ=Pacific/Apia 0 3 * * *", retention: {keepDaily: 2}}
  - {name: utc, schedule: every 6h, retention: {keepLast: 2}}
`, "shop")
	for name, want := range map[string]string{"zoned": "Pacific/Apia 2 0", "utc": "UTC 0 2", snapshot.BackupProfile: "UTC 0 10", snapshot.SafetyProfile: "UTC 0 10"} {
		got := snapshot.PolicyOf(p, name)
		if text := fmt.Sprint(got.Zone, got.Retention.KeepDaily, got.Retention.KeepLast); text != want {
			t.Errorf("%s: %s, want %s", name, text, want)
		}
	}
	if got := snapshot.PolicyOf(p, "other"); got != (snapshot.Policy{}) {
		t.Errorf("of what is no profile: %+v", got)
	}
}

// TestPruneInUse has one that is read stay, with a warning, and go the next time.
func TestPruneInUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	ids := w.daily("daily", 4)
	err := w.snaps.Read(t.Context(), w.p, ids[1], func(*folder.Folder, *snapshot.Manifest) error {
		warning := ""
		out := w.prune("daily", keepLast(1), snapshot.PruneOptions{Report: func(p snapshot.Progress) { warning += p.Warning }})
		equal(t, "removed", []string{ids[0], ids[2]}, out.Removed)
		equal(t, "skipped", []snapshot.Finding{{Path: ids[1], Text: snapshot.ErrInUse.Message}}, out.Skipped)
		if !strings.Contains(warning, ids[1]) {
			t.Errorf("warning %q", warning)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.prune("daily", keepLast(1), snapshot.PruneOptions{})
	equal(t, "left", ids[3:], w.ids("daily"))
}

// TestPruneCanceled stops between two of them.
func TestPruneCanceled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	ids := w.daily("daily", 5)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	out, err := w.snaps.Prune(ctx, w.p, "daily", keepLast(1), snapshot.PruneOptions{Report: func(p snapshot.Progress) {
		if p.Done == 2 {
			cancel(why)
		}
	}})
	if !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	equal(t, "removed", ids[:2], out.Removed)
	equal(t, "left", ids[2:], w.ids("daily"))
}

// R4: whichever operation on the disk fails while snapshots are pruned, or is the last one before the process dies, what is left is whole, and
// the next time ends as if nothing had been.
func TestR4PruneFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		what syscall.Errno
		dies bool
	}{"EIO": {syscall.EIO, false}, "ENOSPC": {syscall.ENOSPC, false}, "dies": {syscall.EIO, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, teststore.Memory(t))
			w.fillWith(3, 3)
			ids := w.daily("daily", 1)
			for at := 1; ; at++ {
				ids = append(ids[len(ids)-1:], w.daily("daily", 3)...)
				f := &nth{at: at, stays: tt.dies, what: tt.what}
				w.faults = f.fault
				out, err := w.snaps.Prune(t.Context(), w.p, "daily", keepLast(1), snapshot.PruneOptions{})
				w.faults = nil
				left := w.ids("daily")
				if f.n < at {
					if err != nil || len(out.Removed) != 2 || len(left) != 2 || at < 10 { // the newest that is verified stays, too
						t.Fatalf("nothing failed in %d operations: %v left, %v", f.n, left, err)
					}
					return
				}
				if err != nil && !errors.Is(err, tt.what) {
					t.Fatalf("operation %d: %v", at, err)
				}
				if last := left[len(left)-1]; last != ids[3] {
					t.Fatalf("operation %d: the newest is %s, and was %s", at, last, ids[3])
				}
				if err := w.snaps.Sweep(t.Context(), w.p); err != nil {
					t.Fatal(err)
				}
				w.prune("daily", keepLast(1), snapshot.PruneOptions{})
				equal(t, fmt.Sprint("left behind operation ", at), ids[3:], w.ids("daily"))
				for name := range contents(t, filepath.Join(w.p.Dir, "snapshots")) {
					if !strings.HasPrefix(name, "daily/"+ids[3]) {
						t.Fatalf("operation %d left %s", at, name)
					}
				}
			}
		})
	}
}

// pruneChild prunes what is in a folder, and says so.
func pruneChild(dir string) error {
	p, problems := project.Load(dir, "project.yaml", func(string) (string, bool) { return "", false })
	if p == nil {
		return fmt.Errorf("%v", problems)
	}
	say := func(string, string) error { fmt.Println("step"); return nil }
	s := snapshot.New(snapshot.Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Fault: say})
	_, err := s.Prune(context.Background(), p, "daily", keepLast(2), snapshot.PruneOptions{})
	return err
}

// R1: whenever a process that prunes is killed, every snapshot that is left verifies, the newest are among them, and the next one ends it.
func TestR1PruneKilled(t *testing.T) {
	t.Parallel()
	rounds := 5
	if os.Getenv("SOAK") != "" {
		rounds = 200
	}
	w := newWorld(t, teststore.Memory(t))
	w.fillWith(4, 4)
	ids, halves := w.daily("daily", 2), 0
	for range rounds {
		ids = append(ids[len(ids)-2:], w.daily("daily", 6)...)
		cmd := exec.CommandContext(t.Context(), os.Args[0], w.p.Dir)
		cmd.Env = append(os.Environ(), asChild+"=prune")
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		steps := bufio.NewScanner(out)
		for n := 1 + randtest.Of(t).IntN(80); n > 0 && steps.Scan(); n-- {
		}
		time.Sleep(time.Duration(randtest.Of(t).IntN(300)) * time.Microsecond) // into a step
		_ = cmd.Process.Kill()                                                 // it may have ended
		_ = cmd.Wait()
		left := w.ids("daily")
		if len(left) < 8 && len(left) > 2 {
			halves++
		}
		equal(t, "the newest", ids[6:], left[len(left)-2:])
		if err := w.snaps.Sweep(t.Context(), w.p); err != nil {
			t.Fatal(err)
		}
		w.prune("daily", keepLast(2), snapshot.PruneOptions{})
		equal(t, "in the end", ids[6:], w.ids("daily"))
	}
	if rounds > 100 && halves < rounds/10 {
		t.Errorf("only %d of %d were killed on their way", halves, rounds)
	}
}

func TestVerifyAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fillWith(2, 2)
	_, err := w.snaps.VerifyAll(t.Context(), w.p, "daily", false, snapshot.VerifyOptions{})
	if !errors.Is(err, snapshot.ErrNotFound) {
		t.Errorf("without snapshots: %v", err)
	}
	ids := w.daily("daily", 3)
	w.daily("posts", 1)
	for newest, want := range map[bool]int{false: 3, true: 1} {
		if out, err := w.snaps.VerifyAll(t.Context(), w.p, "daily", newest, snapshot.VerifyOptions{}); err != nil || out.Snapshots != want || out.Err() != nil {
			t.Errorf("newest %t: %+v, %v", newest, out, err)
		}
	}
	spoil := func(id string, names ...string) {
		for _, name := range names {
			replace(t, filepath.Join(w.p.Dir, "snapshots", "daily", id, name), "{}")
		}
	}
	exported := []string{"indexes.json", "collections/items.jsonl.zst", "collections/posts.jsonl.zst", "config/project.yaml"}
	spoil(ids[0], exported...)
	spoil(ids[2], exported[:2]...)
	out, err := w.snaps.VerifyAll(t.Context(), w.p, "daily", false, snapshot.VerifyOptions{})
	if err != nil || out.Snapshots != 3 || len(out.Damaged) != 2 || out.Problems() != 6 {
		t.Fatalf("%+v, %v", out, err)
	}
	for i, want := range [][]string{exported[:2], exported} { // the newest first
		found := map[string]bool{}
		for _, f := range out.Damaged[i].Verified.Found {
			found[f.Path] = true
		}
		for _, name := range want {
			if !found[name] || len(found) != len(want) {
				t.Errorf("%d: %v of %v", i, found, want)
			}
		}
	}
	said := out.Err()
	if !errors.Is(said, snapshot.ErrDamaged) || !strings.Contains(said.Error(), "2 of 3 snapshots are damaged: ") || !strings.Contains(said.Error(), ids[0]+": ") || !strings.Contains(said.Error(), ids[2]+": ") ||
		!strings.HasSuffix(said.Error(), "; and 1 more") || strings.Contains(said.Error(), ids[1]) {
		t.Error(said)
	}
	list, err := w.snaps.List(t.Context(), w.p)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range list {
		if want := info.Profile == "daily" && info.ID == ids[1]; info.State.Whole() != want {
			t.Errorf("%s whole: %t", info.ID, info.State.Whole())
		}
	}
}

// TestNewestOfASecond is the one that is newer by milliseconds, whatever its id.
func TestNewestOfASecond(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	var ids []string
	for range 6 {
		info, err := w.snaps.Create(t.Context(), w.p, w.profile("daily"), nil)
		if err != nil {
			t.Fatal(err)
		}
		ids = append([]string{info.ID}, ids...)
		w.clock.Pass(10 * time.Millisecond)
	}
	list, err := w.snaps.List(t.Context(), w.p)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, info := range list {
		got = append(got, info.ID)
	}
	equal(t, "list", ids, got)
	out := w.prune("daily", keepLast(1), snapshot.PruneOptions{DryRun: true})
	for i, d := range out.Decisions {
		if d.ID != ids[i] || d.Keep != (i == 0) {
			t.Errorf("%d: %s is kept: %t", i, d.ID, d.Keep)
		}
	}
}

// TestPruneKeepsImported has a snapshot that is older than all that a rule keeps stay for a week behind its import, and then go.
func TestPruneKeepsImported(t *testing.T) {
	t.Parallel()
	from := newWorld(t, teststore.Memory(t))
	from.fillWith(3, 3)
	archived := from.export(from.create("daily"))
	w := newWorld(t, teststore.Memory(t))
	w.fillWith(3, 3)
	w.clock.Pass(30 * 24 * time.Hour)
	w.daily("daily", 2)
	info, err := w.imports(archived, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, there := range []bool{true, false} {
		w.clock.Pass(5 * 24 * time.Hour)
		if _, err := w.snaps.Prune(t.Context(), w.p, "daily", keepLast(2), snapshot.PruneOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(w.ids("daily"), info.ID); got != there {
			t.Errorf("it is there: %v, want %v", got, there)
		}
	}
}

// TestPruneDamaged: those that are damaged do not pile up. They go when whole ones of their age would, and one that is newer is verified.
func TestPruneDamaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fillWith(2, 2)
	ids := w.daily("daily", 5)
	dir := filepath.Join(w.p.Dir, "snapshots", "daily")
	replace(t, filepath.Join(dir, ids[0], "manifest.json"), "{}")
	replace(t, filepath.Join(dir, ids[1], "collections/items.jsonl.zst"), "{}")
	check := func(id string) *snapshot.Verification {
		v, err := w.snaps.Verify(t.Context(), w.p, id, snapshot.VerifyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if check(ids[1]).Whole() {
		t.Fatal("the damage was not found")
	}
	if out := w.prune("daily", keepLast(3), snapshot.PruneOptions{}); len(out.Removed) > 0 {
		t.Errorf("removed before one that is newer was verified: %v", out.Removed)
	}
	check(ids[3])

	// While they are removed, the one that they go for is found damaged: they stay.
	good, err := os.ReadFile(filepath.Join(dir, ids[3], "indexes.json"))
	if err != nil {
		t.Fatal(err)
	}
	once := false
	out := w.prune("daily", keepLast(3), snapshot.PruneOptions{Report: func(snapshot.Progress) {
		if !once {
			once = true
			replace(t, filepath.Join(dir, ids[3], "indexes.json"), "{}")
			check(ids[3])
		}
	}})
	if len(out.Removed) > 0 || len(out.Skipped) != 2 {
		t.Errorf("removed %v, skipped %v", out.Removed, out.Skipped)
	}
	replace(t, filepath.Join(dir, ids[3], "indexes.json"), string(good))
	check(ids[3])

	if out := w.prune("daily", keepLast(4), snapshot.PruneOptions{}); !slices.Equal(out.Removed, ids[:1]) {
		t.Errorf("removed %v, and a whole one as old as the second would be kept", out.Removed)
	}
	// Found whole after it was decided that it goes, it stays.
	replace(t, filepath.Join(dir, ids[1], "collections/items.jsonl.zst"), contents(t, filepath.Join(dir, ids[2]))["collections/items.jsonl.zst"])
	once = false
	out = w.prune("daily", keepLast(3), snapshot.PruneOptions{Report: func(snapshot.Progress) {
		if !once {
			once = true
			check(ids[1])
		}
	}})
	if len(out.Removed) > 0 || len(out.Skipped) != 1 {
		t.Errorf("removed %v, skipped %v", out.Removed, out.Skipped)
	}
	equal(t, "left", ids[1:], w.ids("daily"))
}
