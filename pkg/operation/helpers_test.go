package operation_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/storetest"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// world is a store with a database of its own, and the instances at work on it.
type world struct {
	*testing.T
	store    store.Store
	database string
	clock    *teststore.Clock
}

func newWorld(t *testing.T, s store.Store) *world {
	t.Helper()
	w := &world{
		T: t, store: s, database: "runs-" + strings.ToLower(bson.NewObjectID().Hex()),
		clock: teststore.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
	}
	t.Cleanup(func() {
		if err := s.DropDatabase(context.WithoutCancel(t.Context()), w.database); err != nil {
			t.Error(err)
		}
	})
	return w
}

// instance is one of the world's processes.
type instance struct {
	*operation.Runs
	w        *world
	link     *storetest.Outage
	registry *prometheus.Registry
}

func (w *world) instance(opts operation.Options) *instance {
	w.Helper()
	i := &instance{w: w, link: storetest.NewOutage(w.store), registry: prometheus.NewRegistry()}
	opts.Store, opts.Now, opts.Registerer = i.link, w.clock.Now, i.registry
	runs, err := operation.New(opts)
	if err != nil {
		w.Fatal(err)
	}
	i.Runs = runs
	w.Cleanup(i.stop)
	return i
}

// stop ends what the instance does.
func (i *instance) stop() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(i.w.Context()))
	cancel()
	i.Close(ctx)
}

func spec(w *world) operation.Spec {
	return operation.Spec{Database: w.database, Kind: operation.Action, Name: "export", Trigger: operation.Call, Cancellable: true}
}

func (i *instance) start(s operation.Spec, do operation.Func) operation.Ref {
	i.w.Helper()
	run, err := i.Start(i.w.Context(), s, do)
	if err != nil {
		i.w.Fatal(err)
	}
	return refOf(run)
}

func refOf(r *operation.Run) operation.Ref {
	return operation.Ref{Kind: r.Kind, Name: r.Name, ID: r.ID}
}

// wait follows a run to its end and gives its record and events.
func (i *instance) wait(ref operation.Ref) (*operation.Run, []operation.Event) {
	i.w.Helper()
	var events []operation.Event
	err := i.Follow(i.w.Context(), i.w.database, ref, 0, func(e operation.Event) error {
		events = append(events, e)
		return nil
	})
	if err != nil {
		i.w.Fatal(err)
	}
	return i.get(ref), events
}

func (i *instance) get(ref operation.Ref) *operation.Run {
	i.w.Helper()
	run, err := i.Get(i.w.Context(), i.w.database, ref)
	if err != nil {
		i.w.Fatal(err)
	}
	return run
}

// until asks a condition again and again.
func (w *world) until(what string, ok func() bool) {
	w.Helper()
	for !ok() {
		select {
		case <-w.Context().Done():
			w.Fatal("never: ", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func untilEnd(ctx context.Context, _ *operation.Live) (operation.Outcome, error) {
	<-ctx.Done()
	return operation.Outcome{}, errors.New("interrupted")
}

func count(t *testing.T, registry *prometheus.Registry, name string, labels ...string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var values []string
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
			if f.GetName() == name && strings.Join(values, " ") == strings.Join(labels, " ") {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no metric %s%v", name, labels)
	return 0
}
