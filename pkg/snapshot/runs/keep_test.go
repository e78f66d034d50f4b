package runs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/runs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a project with some records, whose snapshots are runs.
type world struct {
	*testing.T
	*runs.Service

	p     *project.Project
	clock *teststore.Clock
	all   *operation.Runs
	store store.Store
	log   bytes.Buffer // a handler writes to it by one goroutine at a time; it is read when no run goes on
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	config := `
namespace: shop
snapshots:
  - {name: daily, retention: {keepLast: 1}}
  - {name: weekly, retention: {keepLast: 1}}
  - {name: all}
collections:
  - {name: items, fields: [{name: n, type: number}], permissions: {public: {methods: {}}, user: {methods: {}}}}
`
	if err := os.WriteFile(filepath.Join(dir, "project.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p, problems := project.Load(dir, "project.yaml", func(string) (string, bool) { return "", false })
	if p == nil {
		t.Fatal(problems)
	}
	s := teststore.Memory(t)
	w := &world{T: t, p: p, store: s, clock: teststore.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	log := slog.New(slog.NewTextHandler(&w.log, nil))
	var err error
	w.all, err = operation.New(operation.Options{Store: s, Now: w.clock.Now, Registerer: prometheus.NewRegistry(), Alone: true})
	if err != nil {
		t.Fatal(err)
	}
	w.Service = runs.New(snapshot.New(snapshot.Options{Store: s, Now: w.clock.Now, Logger: log}), w.all, log)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		w.all.Close(ctx)
		w.Close()
	})
	items := s.Database(project.DatabaseName("shop")).Collection("items")
	for n := range 5 {
		doc, err := bson.Marshal(bson.D{{Key: "_id", Value: bson.ObjectID{byte(n)}}, {Key: "n", Value: int64(n)}})
		if err == nil {
			err = store.WriteAll(t.Context(), items, store.Op{Kind: store.Insert, Doc: doc})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// do starts a run, and waits for its end.
func (w *world) do(what runs.Start) (*operation.Run, api.SnapshotResult) {
	w.Helper()
	w.clock.Pass(time.Minute)
	run, err := w.Start(w.Context(), w.p, what)
	if err == nil {
		run, err = w.Wait(w.Context(), w.p, run)
	}
	if err != nil {
		w.Fatalf("%+v: %v", what, err)
	}
	var out api.SnapshotResult
	if run.Result.Type != 0 {
		if err := json.Unmarshal(document.AppendJSONValue(nil, run.Result, nil), &out); err != nil {
			w.Fatal(err)
		}
	}
	return run, out
}

func (w *world) take(profile string) string {
	w.Helper()
	run, out := w.do(runs.Start{Kind: operation.Snapshot, Profile: profile})
	if run.Status != operation.Succeeded {
		w.Fatalf("%+v", run.Error)
	}
	return out.Snapshot
}

func ids(list []api.SnapshotDecision) []string {
	var out []string
	for _, d := range list {
		out = append(out, d.Profile+" "+d.ID+" "+strings.Join(d.Reasons, ", "))
	}
	return out
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestPrune removes what is not kept, of one profile or of all that have a retention.
func TestPrune(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var daily, weekly []string
	for range 2 {
		daily, weekly = append(daily, w.take("daily")), append(weekly, w.take("weekly"))
		w.take("all")
	}
	plan, err := w.PlanPrune(t.Context(), w.p, "")
	if err != nil {
		t.Fatal(err)
	}
	kept := []string{"daily " + daily[1] + " last snapshot", "weekly " + weekly[1] + " last snapshot"}
	equal(t, "plan", []string{kept[0], "daily " + daily[0] + " no rule keeps it", kept[1], "weekly " + weekly[0] + " no rule keeps it"}, ids(plan))

	run, out := w.do(runs.Start{Kind: operation.Prune, Profile: "daily"})
	equal(t, "name", "daily", run.Name)
	equal(t, "removed", []string{"daily " + daily[0] + " no rule keeps it"}, ids(out.Removed))
	equal(t, "kept", kept[:1], ids(out.Kept))
	if p := run.Progress; p.Phase != "prune" || p.Done != 1 || p.Total != 1 {
		t.Errorf("progress %+v", p)
	}
	run, out = w.do(runs.Start{Kind: operation.Prune})
	equal(t, "name", runs.AllProfiles, run.Name)
	equal(t, "removed of all", []string{"weekly " + weekly[0] + " no rule keeps it"}, ids(out.Removed))
	equal(t, "kept of all", kept, ids(out.Kept))

	for _, kind := range []operation.Kind{operation.Prune, operation.Verify, operation.Drill, operation.Snapshot} {
		if _, err := w.Start(t.Context(), w.p, runs.Start{Kind: kind, Profile: "nothing"}); errs.KindOf(err) != errs.NotFound {
			t.Errorf("%s of no profile: %v", kind, err)
		}
	}
	if _, err := w.PlanPrune(t.Context(), w.p, "nothing"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("plan of no profile: %v", err)
	}
}

// TestChecks of a whole profile, and of what can be restored of it.
func TestChecks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	verify, newest, drill := runs.Start{Kind: operation.Verify, Profile: "daily"}, runs.Start{Kind: operation.Verify, Profile: "daily", Newest: true}, runs.Start{Kind: operation.Drill, Profile: "daily"}
	for _, what := range []runs.Start{verify, drill} {
		if run, _ := w.do(what); run.Status != operation.Failed || run.Error.Code != snapshot.ErrNotFound.Code {
			t.Errorf("%s without snapshots: %s, %+v", what.Kind, run.Status, run.Error)
		}
	}
	first := w.take("daily")
	last := w.take("daily")
	for _, what := range []runs.Start{verify, newest, drill} {
		if run, _ := w.do(what); run.Status != operation.Succeeded || run.Name != "daily" {
			t.Errorf("%s: %s, %+v", what.Kind, run.Status, run.Error)
		}
	}
	if _, out := w.do(drill); out.Snapshot != last || out.Drill == nil || out.Drill.Documents != 5 {
		t.Errorf("drill %+v", out)
	}
	spoil := func(id string, names ...string) {
		for _, name := range names {
			name = filepath.Join(w.p.Dir, "snapshots", "daily", id, name)
			if err := errors.Join(os.Remove(name), os.WriteFile(name, []byte("x"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	const items, indexes = "collections/items.jsonl.zst", "indexes.json"
	spoil(first, items, indexes)
	if run, out := w.do(newest); run.Status != operation.Succeeded || out.Checked.Snapshots != 1 || out.Checked.Damaged != 0 {
		t.Errorf("the newest: %+v, %+v", run.Error, out.Checked)
	}
	// What was found is the run's result, though it has failed.
	run, out := w.do(verify)
	if run.Status != operation.Failed || run.Error.Code != snapshot.ErrDamaged.Code || !strings.Contains(run.Error.Message, first+": "+items) || !strings.Contains(run.Error.Message, first+": "+indexes) {
		t.Errorf("all: %+v", run.Error)
	}
	if c := out.Checked; c == nil || c.Snapshots != 2 || c.Damaged != 1 || c.Problems != 2 || c.Found[0].Snapshot != first || paths(c.Found[0].Found) != items+" "+indexes {
		t.Errorf("all: %+v", c)
	}
	spoil(last, items, indexes)
	run, out = w.do(drill)
	if run.Status != operation.Failed || run.Error.Code != runs.DrillDiffers || !strings.Contains(run.Error.Message, last) || run.Subject != last {
		t.Errorf("drill: %+v", run)
	}
	if d := out.Drill; d == nil || d.Problems != 2 || paths(d.Found) != items+" "+indexes {
		t.Errorf("drill: %+v", d)
	}
	run, out = w.do(runs.Start{Kind: operation.Verify, Snapshot: last})
	if v := out.Verified; run.Status != operation.Failed || v == nil || v.Problems != 2 || paths(v.Found) != items+" "+indexes {
		t.Errorf("one: %+v, %+v", run.Error, v)
	}
	for _, id := range []string{first, last} {
		for _, name := range []string{items, indexes} {
			if !strings.Contains(w.log.String(), "snapshot="+id+" file="+name) {
				t.Errorf("the log does not name %s of %s:\n%s", name, id, &w.log)
			}
		}
	}
}

func paths(found []api.SnapshotFinding) string {
	var out []string
	for _, f := range found {
		out = append(out, f.Path)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestBeside has what only reads keep nobody from the rest, and the other way round.
func TestBeside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hold := func(kind operation.Kind) (end func()) {
		gate := make(chan struct{})
		_, err := w.all.Start(t.Context(), operation.Spec{Database: project.DatabaseName("shop"), Kind: kind, Name: "daily"},
			func(ctx context.Context, _ *operation.Live) (operation.Outcome, error) {
				select {
				case <-gate:
				case <-ctx.Done():
				}
				return operation.Outcome{}, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		return func() { close(gate) }
	}
	checked := hold(operation.Verify)
	_, taken := w.do(runs.Start{Kind: operation.Snapshot, Profile: "daily"})
	if _, err := w.Start(t.Context(), w.p, runs.Start{Kind: operation.Drill, Profile: "daily"}); !errors.Is(err, snapshot.ErrBusy) {
		t.Errorf("a drill beside a check: %v", err)
	}
	checked()
	defer hold(operation.Prune)()
	for began := time.Now(); ; time.Sleep(time.Millisecond) { // until the check has ended
		run, err := w.Start(t.Context(), w.p, runs.Start{Kind: operation.Verify, Profile: "daily"})
		if err == nil {
			if run, err = w.Wait(t.Context(), w.p, run); err != nil || run.Status != operation.Succeeded {
				t.Errorf("a check beside a prune: %+v, %v", run, err)
			}
			break
		}
		if !errors.Is(err, snapshot.ErrBusy) || time.Since(began) > time.Minute {
			t.Fatal(err)
		}
	}
	if _, err := w.Start(t.Context(), w.p, runs.Start{Kind: operation.Snapshot, Profile: "daily"}); !errors.Is(err, snapshot.ErrBusy) {
		t.Errorf("a snapshot beside a prune: %v", err)
	}
	if err := w.Delete(t.Context(), w.p, taken.Snapshot); !errors.Is(err, snapshot.ErrBusy) || !strings.Contains(err.Error(), "the prune run ") {
		t.Errorf("a deletion beside a prune: %v", err)
	}
}

// TestOwnProfiles: of backups the newest ten stay, what is of the last week, and what was checked lately.
func TestOwnProfiles(t *testing.T) {
	t.Parallel()
	if snapshot.BackupProfile != api.ProfileBackup {
		t.Errorf("clients know backups as %s", api.ProfileBackup)
	}
	w := newWorld(t)
	var taken []string
	for range 14 {
		w.clock.Pass(2 * 24 * time.Hour)
		_, out := w.do(runs.Start{Kind: operation.Backup})
		taken = append(taken, out.Snapshot)
	}
	w.do(runs.Start{Kind: operation.Verify, Snapshot: taken[1]})
	plan, err := w.PlanPrune(t.Context(), w.p, snapshot.BackupProfile)
	if err != nil {
		t.Fatal(err)
	}
	var gone []string
	for _, d := range plan {
		if !d.Keep {
			gone = append(gone, d.ID)
		}
	}
	equal(t, "what goes", []string{taken[3], taken[2], taken[0]}, gone)
	// Verified whole, it is the newest such one, too. Once another one is, and a week is over, it goes like the rest.
	w.clock.Pass(8 * 24 * time.Hour)
	w.do(runs.Start{Kind: operation.Verify, Snapshot: taken[13]})
	_, out := w.do(runs.Start{Kind: operation.Prune, Profile: snapshot.BackupProfile})
	var removed []string
	for _, d := range out.Removed {
		removed = append(removed, d.ID)
	}
	equal(t, "removed", []string{taken[3], taken[2], taken[1], taken[0]}, removed)
	if len(out.Kept) != 10 {
		t.Errorf("%d are kept", len(out.Kept))
	}
}
