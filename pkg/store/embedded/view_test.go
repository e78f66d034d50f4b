package embedded_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

func openView(tb testing.TB, s *embedded.Store) store.View {
	tb.Helper()
	v, err := s.Database("db").View(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// readAll tries every kind of read of a view and gives the first error.
func readAll(t *testing.T, v store.View) error {
	t.Helper()
	r := v.Collection("things")
	_, getErr := r.Get(t.Context(), value(t, 1))
	_, countErr := r.Count(t.Context(), nil, 0)
	_, distinctErr := r.Distinct(t.Context(), "a", nil)
	_, explainErr := r.Explain(t.Context(), store.Query{})
	_, namesErr := v.CollectionNames(t.Context())
	all := []error{getErr, countErr, distinctErr, explainErr, namesErr, r.Find(t.Context(), store.Query{}, func(bson.Raw) error { return nil })}
	for _, err := range all {
		if (err == nil) != (all[0] == nil) {
			t.Errorf("only some reads fail: %v", all)
		}
	}
	return all[0]
}

func TestViewExpires(t *testing.T) {
	var ahead atomic.Int64
	s := open(t, embedded.Options{InMemory: true, Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: 1}}))
	v := openView(t, s)
	ahead.Store(int64(4 * time.Minute))
	if err := readAll(t, v); err != nil {
		t.Errorf("after four minutes: %v", err)
	}
	ahead.Store(int64(6 * time.Minute))
	if e := errs.From(readAll(t, v)); e == nil || e.Kind != errs.Unavailable || e.Code != "view_expired" {
		t.Errorf("after six minutes: %v", e)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	wantIdle(t, s)
}

// A view that nobody closes lets go of its snapshot by itself.
func TestForgottenView(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	embedded.SetLimits(s, embedded.Limits{View: time.Millisecond})
	must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: 1}}))
	v := openView(t, s)
	for embedded.Snapshots(s) > 0 { // until it has
		time.Sleep(time.Millisecond)
	}
	if e := errs.From(readAll(t, v)); e == nil || e.Code != "view_expired" {
		t.Errorf("got %v", e)
	}
}

// A view that is closed while it is read frees its snapshot when the read ends.
func TestViewClosedInARead(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	for i := range 3 {
		must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: i}}))
	}
	v := openView(t, s)
	n := 0
	err := v.Collection("things").Find(t.Context(), store.Query{}, func(bson.Raw) error {
		n++
		return errors.Join(v.Close(), v.Close())
	})
	if err != nil || n != 3 {
		t.Errorf("%d documents, %v", n, err)
	}
	if e := errs.From(readAll(t, v)); e == nil || e.Kind != errs.Unavailable {
		t.Errorf("after Close: %v", e)
	}
	wantIdle(t, s)
}

func TestCloseEndsViews(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: 1}}))
	v := openView(t, s)
	if err := s.Close(); err != nil { // says if a snapshot is open
		t.Fatal(err)
	}
	if errs.KindOf(readAll(t, v)) != errs.Unavailable {
		t.Errorf("a view of a closed store: %v", readAll(t, v))
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Database("db").View(t.Context()); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("a view of a closed store: %v", err)
	}
}

// What a view shows, a crash right after does not take back.
func TestViewIsDurable(t *testing.T) {
	fs := vfs.NewCrashableMem()
	opts := embedded.Options{Dir: "/store", FS: fs, Ballast: -1}
	s := open(t, opts)
	c := collection(s)
	must(t, c, insert(t, bson.D{{Key: "_id", Value: -1}}))
	var stop atomic.Bool
	var g errgroup.Group
	for w := range 4 {
		g.Go(func() error {
			for i := w; !stop.Load(); i += 4 {
				if _, err := one(context.WithoutCancel(t.Context()), c, insert(t, bson.D{{Key: "_id", Value: i}})); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for range figure(t, "VIEWS", 10, 3) {
		v := openView(t, s)
		clone := fs.CrashClone(vfs.CrashCloneCfg{})
		var seen []bson.RawValue
		err := v.Collection("things").Find(t.Context(), store.Query{}, func(d bson.Raw) error {
			id := d.Lookup("_id")
			seen = append(seen, bson.RawValue{Type: id.Type, Value: slices.Clone(id.Value)})
			return nil
		})
		if err := errors.Join(err, v.Close()); err != nil {
			t.Fatal(err)
		}
		crashed := opts
		crashed.FS = clone
		after := start(t, crashed)
		for _, id := range seen {
			if _, err := collection(after).Get(t.Context(), id); err != nil {
				t.Errorf("document %v, which the view has: %v", id, err)
			}
		}
		validateAndClose(t, after)
	}
	stop.Store(true)
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}
