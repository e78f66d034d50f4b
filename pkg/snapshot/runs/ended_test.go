package runs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/runs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/gate"
	"github.com/svcctl/svc/pkg/store/storetest"
)

// process is one that does runs on the store of a world.
type process struct {
	*runs.Service

	snaps *snapshot.Snapshots
	all   *operation.Runs
	ended []snapshot.Ended
}

// begin is a process that has just been started. around is called for each restore that has ended, and calls tell for the run to learn of it.
func (w *world) begin(s store.Store, shuts snapshot.Gate, around func(tell func() error) error) *process {
	w.Helper()
	out := &process{}
	log := slog.New(slog.DiscardHandler)
	var err error
	if out.all, err = operation.New(operation.Options{Store: s, Now: w.clock.Now, Registerer: prometheus.NewRegistry(), Alone: true}); err != nil {
		w.Fatal(err)
	}
	out.snaps = snapshot.New(snapshot.Options{Store: s, Now: w.clock.Now, Logger: log, Gate: shuts, Ended: func(ctx context.Context, e snapshot.Ended) error {
		out.ended = append(out.ended, e)
		return around(func() error { return out.Ended(ctx, e) })
	}})
	out.Service = runs.New(out.snaps, out.all, log)
	w.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		out.all.Close(ctx)
		out.Close()
	})
	return out
}

// killing is a gate in which the process dies, when all is loaded.
type killing struct{ link *storetest.Outage }

func (k killing) Shut(context.Context, string) (gate.Shut, error) {
	k.link.Kill()
	return nil, store.ErrClosed
}

func (w *world) other(namespace string) *project.Project {
	w.Helper()
	dir := w.TempDir()
	text := "namespace: " + namespace + "\ncollections: [{name: items, fields: [{name: n, type: number}], permissions: {public: {methods: {}}, user: {methods: {}}}}]\n"
	if err := os.WriteFile(filepath.Join(dir, "project.yaml"), []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	p, problems := project.Load(dir, "project.yaml", func(string) (string, bool) { return "", false })
	if p == nil {
		w.Fatal(problems)
	}
	return p
}

// TestRestoreOutlived: a restore whose process dies ends with what has become of it, whoever finds it first, the one that looks after runs or the one that is about to serve
// the project: with the result that it would have had, or saying that all is as before.
func TestRestoreOutlived(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before it is decided", "before the run is told", "behind that"} {
		for _, patrol := range []bool{false, true} {
			for _, into := range []string{"", "copy"} {
				t.Run(fmt.Sprintf("%s, patrol %v, into %s", when, patrol, into), func(t *testing.T) {
					t.Parallel()
					outlive(newWorld(t), when, patrol, into)
				})
			}
		}
	}
}

func outlive(w *world, when string, patrol bool, into string) {
	w.Helper()
	id, target := w.take("all"), w.p
	what := runs.Start{Kind: operation.Restore, Snapshot: id, Restore: &runs.Restore{}}
	if into != "" {
		target = w.other(into)
		what.Restore.Into = target
	}
	link := storetest.NewOutage(w.store)
	var shuts snapshot.Gate
	if when == "before it is decided" {
		shuts = killing{link}
	}
	first := w.begin(link, shuts, func(tell func() error) error {
		switch when {
		case "before the run is told":
			link.Kill()
		case "behind that":
			if err := tell(); err != nil {
				w.Error(err)
			}
			link.Kill()
			return nil
		}
		return tell()
	})
	run, err := first.Start(w.Context(), w.p, what)
	if err != nil {
		w.Fatal(err)
	}
	_ = first.Follow(w.Context(), w.p, run, 0, func(operation.Event) error { return nil }) // it ends as its process does
	next := w.begin(w.store, nil, func(tell func() error) error { return tell() })
	end := func(ctx context.Context, database string) error {
		if database != project.DatabaseName(target.Namespace) {
			w.Errorf("what is left is in %s", database)
		}
		return next.snaps.RecoverAbandoned(ctx, target)
	}
	served := false
	next.Inherit(func(ctx context.Context, database string) error {
		if !served {
			return errors.New("the project is not known here yet")
		}
		return end(ctx, database)
	})
	look := func() {
		if err := next.all.Patrol(w.Context(), project.DatabaseName(w.p.Namespace)); err != nil {
			w.Error(err)
		}
	}
	if patrol {
		look()
		if now, err := next.Get(w.Context(), w.p, run.ID); err != nil || now.Status == operation.Lost {
			w.Errorf("while it is not ended, the run is %v, %v", now, err)
		}
		served = true
		look()
	} else if err := next.snaps.Recover(w.Context(), target); err != nil {
		w.Error(err)
	}
	if when == "behind that" {
		look() // it may have been told already: then its instance is gone, and that is all
	}
	var last operation.Event
	if err := next.Follow(w.Context(), w.p, run, 0, func(e operation.Event) error { last = e; return nil }); err != nil {
		w.Fatal(err)
	}
	now, err := next.Get(w.Context(), w.p, run.ID)
	if err != nil {
		w.Fatal(err)
	}
	if when == "before it is decided" {
		if now.Status != operation.Failed || now.Error == nil || now.Error.Code != "restore_undone" || last.Kind != operation.EventError || now.Result.Type != 0 {
			w.Errorf("%s %+v, %s", now.Status, now.Error, last.Kind)
		}
		return
	}
	if now.Status != operation.Succeeded || now.Error != nil || last.Kind != operation.EventDone || now.Subject != id {
		w.Fatalf("%s %+v, %s", now.Status, now.Error, last.Kind)
	}
	again, err := next.Start(w.Context(), w.p, what)
	if err == nil {
		again, err = next.Wait(w.Context(), w.p, again)
	}
	if err != nil {
		w.Fatal(err)
	}
	got, want := resultOf(w, now), resultOf(w, again)
	if into == "" && (got.Restored.Safety == "" || got.Restored.Safety == want.Restored.Safety) {
		w.Errorf("the snapshot of what was before is %q", got.Restored.Safety)
	}
	list, err := next.List(w.Context(), target)
	if into == "" && (err != nil || !slices.ContainsFunc(list, func(i snapshot.Info) bool { return i.ID == got.Restored.Safety })) {
		w.Errorf("there is no snapshot %s: %v", got.Restored.Safety, err)
	}
	got.Restored.Safety, want.Restored.Safety = "", ""
	equal(w.T, "the result of a restore that was outlived, and of one that was not", want, got)
	if left := next.ended[0]; !left.Forward || left.Snapshot != id {
		w.Errorf("told is %+v", left)
	}
}

// TestRestoreUnfinished: the run of a restore that could not be ended behind its last step has failed, and ends with the restore: as done, with its result, once.
func TestRestoreUnfinished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.take("all")
	var broken atomic.Bool
	broken.Store(true)
	one := w.begin(w.store, nil, func(tell func() error) error {
		if broken.Load() {
			return errors.New("nothing can be told")
		}
		return tell()
	})
	run, err := one.Start(t.Context(), w.p, runs.Start{Kind: operation.Restore, Snapshot: id, Restore: &runs.Restore{}})
	if err == nil {
		run, err = one.Wait(t.Context(), w.p, run)
	}
	if err != nil || run.Status != operation.Failed || run.Error == nil || run.Error.Code != "restore_unfinished" {
		t.Fatalf("%v, %s %+v", err, run.Status, run.Error)
	}
	broken.Store(false)
	for range 2 {
		for {
			if err := one.snaps.Recover(t.Context(), w.p); err == nil {
				break
			} else if e := errs.From(err); e.Code != "run_ending" {
				t.Fatal(err)
			}
		}
		now, err := one.Get(t.Context(), w.p, run.ID)
		if err != nil {
			t.Fatal(err)
		}
		ends := 0
		for _, e := range now.Events {
			if e.Kind == operation.EventDone || e.Kind == operation.EventError {
				ends++
			}
		}
		if got := resultOf(w, now); now.Error != nil || ends != 1 || now.LastEvent <= run.LastEvent || got.Restored == nil || got.Restored.Safety == "" {
			t.Errorf("%+v, %d ends, the last event is %d behind %d, %+v", now.Error, ends, now.LastEvent, run.LastEvent, got.Restored)
		}
	}
}

func resultOf(w *world, run *operation.Run) (out api.SnapshotResult) {
	w.Helper()
	if run.Status != operation.Succeeded {
		w.Fatalf("%s %+v", run.Status, run.Error)
	}
	if err := json.Unmarshal(document.AppendJSONValue(nil, run.Result, nil), &out); err != nil {
		w.Fatal(err)
	}
	return out
}

// TestEndedTolerates what nobody can make anything of: that a restore has ended counts for more.
func TestEndedTolerates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, e := range []snapshot.Ended{
		{Project: w.p, Forward: true},
		{Project: w.p, Forward: true, Run: snapshot.Run{Namespace: "shop", ID: "gone"}, Outcome: []byte("{")},
		{Project: w.p, Run: snapshot.Run{Namespace: "nowhere", ID: "gone"}},
	} {
		if err := w.Ended(t.Context(), e); err != nil {
			t.Errorf("%+v: %v", e, err)
		}
	}
}
