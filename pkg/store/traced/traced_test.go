package traced_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/storetest"
	"github.com/svcctl/svc/pkg/store/teststore"
	"github.com/svcctl/svc/pkg/store/traced"
	"github.com/svcctl/svc/pkg/tracing"
	"github.com/svcctl/svc/pkg/tracing/tracetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) (*tracing.Tracer, *tracetest.Collector) {
	t.Helper()
	c := tracetest.NewCollector(t)
	tracer, err := tracing.New(tracing.Options{
		Config: tracing.Config{Endpoint: c.URL, SampleRatio: 1}, Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tracer.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return tracer, c
}

// TestConformance: spans change nothing.
func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.RunAround(t, func(t *testing.T) store.Store {
		t.Helper()
		tracer, _ := open(t)
		return traced.New(teststore.Memory(t), tracer)
	})
}

// Where nothing is traced, the store is itself: nothing is around it that could cost anything.
func TestOff(t *testing.T) {
	t.Parallel()
	s := teststore.Memory(t)
	if traced.New(s, nil) != s {
		t.Error("there is something around it")
	}
}

// Each operation has its span, with what it was on, and nothing of what it was about. What a caller stops one with is no failure of it.
func TestOperations(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, own store.Store) {
		tracer, c := open(t)
		s := traced.New(own, tracer)
		const name = "traced_operations"
		t.Cleanup(func() {
			if err := own.DropDatabase(context.WithoutCancel(t.Context()), name); err != nil {
				t.Error(err)
			}
		})
		db := s.Database(name)
		items := db.Collection("items")
		insert := func(id string) store.Op {
			doc, err := bson.Marshal(bson.D{{Key: "_id", Value: "canary-" + id}, {Key: "n", Value: "canary"}})
			if err != nil {
				t.Fatal(err)
			}
			return store.Op{Kind: store.Insert, Doc: doc}
		}
		skip := errors.New("canary")
		ctx, whole := tracer.Background(t.Context(), "whole")
		err := errors.Join(
			store.WriteAll(ctx, items, insert("1"), insert("2")),
			store.WriteAll(ctx, items, insert("3"), store.Op{Kind: store.Delete, ID: store.Name("canary-3")}),
			items.Find(ctx, store.Query{}, func(bson.Raw) error { return nil }),
			db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
				_, err := tx.Collection("items").Get(ctx, store.Name("canary-1"))
				return err
			}),
		)
		if err != nil {
			t.Fatal(err)
		}
		if err := items.Find(ctx, store.Query{}, func(bson.Raw) error { return skip }); !errors.Is(err, skip) {
			t.Fatal(err)
		}
		if err := db.Transact(ctx, func(context.Context, store.Tx) error { return skip }); !errors.Is(err, skip) {
			t.Fatal(err)
		}
		if _, err := items.Get(ctx, store.Name("canary-none")); !errors.Is(err, errs.ErrNotFound) {
			t.Fatal(err)
		}
		if _, err := items.Count(t.Context(), nil, 0); err != nil { // of nothing that is traced
			t.Fatal(err)
		}
		view, err := db.View(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := view.Collection("items").Count(ctx, nil, 0); err != nil {
			t.Fatal(err)
		}
		if err := view.Close(); err != nil {
			t.Fatal(err)
		}
		whole.End(nil)
		all := c.Wait(t, func(all []tracetest.Span) bool { return len(all) > 0 && all[len(all)-1].Name == "whole" })
		got := tracetest.Tree(all, all[0].Trace, func(s tracetest.Span) string {
			line := s.Name
			for _, name := range []string{"db.namespace", "db.collection.name", "db.operation.batch.size", "db.response.returned_rows", "error.type"} {
				if v := s.Attributes[name]; v != "" {
					line += " " + v
				}
			}
			if s.Name != "whole" && (s.Kind != "client" || s.Attributes["db.system.name"] != own.Name()) {
				t.Errorf("%+v", s)
			}
			return line
		})
		if want := `whole
  insert items traced_operations items 2
  write items traced_operations items 2
  find items traced_operations items 2
  transaction traced_operations
    get items traced_operations items
  find items traced_operations items 1
  transaction traced_operations
  get items traced_operations items not_found
  count items traced_operations items
`; got != want {
			t.Errorf("the spans are\n%s", got)
		}
		if strings.Contains(c.Raw(), "canary") {
			t.Error("something of the documents is in a span")
		}
	})
}

// What a store is besides, it is with spans, too.
func TestWhatStoresAreBesides(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, own store.Store) {
		tracer, _ := open(t)
		plain, with := own.Database("traced_besides"), traced.New(own, tracer).Database("traced_besides")
		_, was := plain.(store.Replacer)
		if _, is := with.(store.Replacer); is != was {
			t.Errorf("a store.Replacer: %v, and was %v", is, was)
		}
		_, was = plain.Collection("c").(store.ImageKeeper)
		if _, is := with.Collection("c").(store.ImageKeeper); is != was {
			t.Errorf("a store.ImageKeeper: %v, and was %v", is, was)
		}
		creates := func(db store.Database) (is bool) {
			if err := db.Transact(t.Context(), func(_ context.Context, tx store.Tx) error {
				_, is = tx.Collection("c").(store.TxCreator)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			return is
		}
		if is, was := creates(with), creates(plain); is != was {
			t.Errorf("a store.TxCreator: %v, and was %v", is, was)
		}
	})
}
