package system_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
	"github.com/svcctl/svc/pkg/system"
)

var admin = &access.Principal{Kind: access.KindAdmin}

// hooked calls before ahead of each write, while it is set.
type hooked struct {
	store.Store
	mu     sync.Mutex
	before func()
	inTx   func(coll string) error // called before each write of a transaction, while it is set
}

func (h *hooked) Database(name string) store.Database {
	return hookedDatabase{h.Store.Database(name), h}
}

type hookedDatabase struct {
	store.Database
	h *hooked
}

func (d hookedDatabase) Collection(name string) store.Collection {
	return hookedCollection{d.Database.Collection(name), d.h}
}

func (d hookedDatabase) Transact(ctx context.Context, fn func(ctx context.Context, tx store.Tx) error) error {
	d.h.beforeWrite()
	d.h.mu.Lock()
	before := d.h.inTx
	d.h.mu.Unlock()
	if before == nil {
		return d.Database.Transact(ctx, fn)
	}
	return d.Database.Transact(ctx, func(ctx context.Context, tx store.Tx) error { return fn(ctx, hookedTx{tx, before}) })
}

type hookedTx struct {
	store.Tx
	before func(coll string) error
}

func (tx hookedTx) Collection(name string) store.TxCollection {
	return hookedTxCollection{tx.Tx.Collection(name), name, tx.before}
}

type hookedTxCollection struct {
	store.TxCollection
	name   string
	before func(coll string) error
}

func (c hookedTxCollection) Write(ctx context.Context, ops []store.Op, atomic bool) ([]store.Result, error) {
	if err := c.before(c.name); err != nil {
		return nil, err
	}
	return c.TxCollection.Write(ctx, ops, atomic)
}

// inTransaction sets what happens before each write of a transaction; its error is the write's.
func (h *hooked) inTransaction(before func(coll string) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inTx = before
}

type hookedCollection struct {
	store.Collection
	h *hooked
}

func (c hookedCollection) Write(ctx context.Context, ops []store.Op, atomic bool) ([]store.Result, error) {
	c.h.beforeWrite()
	return c.Collection.Write(ctx, ops, atomic)
}

func (h *hooked) beforeWrite() {
	h.mu.Lock()
	before := h.before
	h.before = nil
	h.mu.Unlock()
	if before != nil {
		before()
	}
}

// once sets what happens just before the next write.
func (h *hooked) once(before func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.before = before
}

type fixture struct {
	*testing.T
	*system.System
	store *hooked
	clock *teststore.Clock
}

func newSystem(t *testing.T) *fixture {
	t.Helper()
	st := teststore.Memory(t)
	f := &fixture{T: t, store: &hooked{Store: st}, clock: teststore.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.UTC))}
	f.System = f.another()
	if err := f.EnsureIndexes(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

// another is a second instance on the same store.
func (f *fixture) another() *system.System {
	return system.New(f.store, system.Options{
		Now:          f.clock.Now,
		HashPassword: func(_ context.Context, password string) (string, error) { return "hash of " + password, nil },
	})
}

func (f *fixture) user(name string, more ...bson.E) system.User {
	f.Helper()
	doc := append(bson.D{{Key: "username", Value: name}, {Key: "password", Value: "secret-" + name}}, more...)
	u, err := f.Users.Create(f.Context(), admin, doc)
	if err != nil {
		f.Fatal(err)
	}
	return u
}

func (f *fixture) reload(u system.User) system.User {
	f.Helper()
	u, err := f.Users.ByID(f.Context(), u.ID.Hex())
	if err != nil {
		f.Fatal(err)
	}
	return u
}

var isAdmin = bson.E{Key: "isAdmin", Value: true}

// body reads a request body as a door does.
func body(t *testing.T, json string) bson.D {
	t.Helper()
	d, err := document.ParseJSON([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// wantProblems checks for a validation error with these problems, as path:rule, in order.
func wantProblems(t *testing.T, err error, want ...string) {
	t.Helper()
	var got []string
	if e := errs.From(err); e != nil {
		for _, f := range e.Fields {
			if f.Message == "" {
				t.Errorf("problem with %s has no message", f.Path)
			}
			got = append(got, f.Path+":"+f.Rule)
		}
		if e.Kind != errs.Invalid {
			t.Errorf("error is %v, want Invalid", err)
		}
	}
	diff(t, "problems", want, got)
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error is %v, want %v", err, want)
	}
}

func TestEnsureIndexesMayBeRepeated(t *testing.T) {
	f := newSystem(t)
	if err := f.EnsureIndexes(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestIDs(t *testing.T) {
	f := newSystem(t)
	ctx := t.Context()
	unknown := bson.NewObjectID().Hex()
	for name, call := range map[string]func(id string) error{
		"user get":       func(id string) error { _, err := f.Users.ByID(ctx, id); return err },
		"user update":    func(id string) error { _, err := f.Users.Update(ctx, admin, id, bson.D{}); return err },
		"user delete":    func(id string) error { return f.Users.Delete(ctx, admin, id) },
		"project get":    func(id string) error { _, err := f.Projects.ByID(ctx, id); return err },
		"project update": func(id string) error { _, err := f.Projects.Update(ctx, id, bson.D{}, nil); return err },
		"project delete": func(id string) error { _, err := f.Projects.Delete(ctx, id); return err },
	} {
		t.Run(name, func(t *testing.T) {
			wantError(t, call(unknown), errs.ErrNotFound)
			for _, bad := range []string{"", "x", unknown + "0", `{"$ne":null}`} {
				if e := errs.From(call(bad)); e == nil || e.Code != "bad_id" {
					t.Errorf("id %q: %v, want bad_id", bad, e)
				}
			}
		})
	}
}
