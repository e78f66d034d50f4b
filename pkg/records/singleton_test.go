package records_test

import (
	"sync"
	"testing"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

var settings = collections(`
name: items
meta: {singleton: true}
fields:
  - {name: title, type: string, validator: required}
  - {name: n, type: number}
permissions:
  public: {methods: {get: true, put: true}}
  user: {methods: {get: true, post: {bulk: true}, put: true, delete: true}, filter: {n: {$gte: 0}}}
`)

func TestSingleton(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, settings)
		put := func(who, body string, revs ...int64) (string, bool) {
			t.Helper()
			res, created, err := w.service.PutOnly(t.Context(), w.call(who), records.Change{Body: doc(t, body), IfRev: revs})
			if err != nil {
				return show(err), created
			}
			return seen(t, res.Record), created
		}
		get := func(who string) string {
			rec, err := w.service.GetOnly(t.Context(), w.call(who), records.GetParams{})
			if err != nil {
				return show(err)
			}
			return seen(t, &rec)
		}
		step := func(name, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		first := func(got string, _ bool) string { return got }
		step("none yet", get("public"), "not_found: not found")
		step("who may not create", first(put("public", `{"title": "a"}`)), "not_found: not found")
		step("rules", first(put("alice", `{"n": 1}`)), "validation_failed: title: is required")
		step("stale", first(put("alice", `{"title": "a", "n": 1}`, 1)), "stale: the record has changed since you read it: read it again and repeat the change on its new revision")
		got, created := put("alice", `{"title": "a", "n": 1}`)
		if step("created", got, `{"n":1,"title":"a"}`); !created {
			t.Error("it is new")
		}
		got, created = put("public", `{"n": 2}`, 1)
		if step("changed", got, `{"n":2,"title":"a"}`); created {
			t.Error("it is not new")
		}
		step("stale", first(put("alice", `{"n": 3}`, 1)), "stale: the record has changed since you read it: read it again and repeat the change on its new revision")
		step("read", get("public"), `{"n":2,"title":"a"}`)
		_, err := w.service.Create(t.Context(), w.call("alice"), doc(t, `{"title": "b", "n": 1}`))
		step("a second one", show(err), "singleton: the collection has one record, which is there already: change it by PUT")
		// One that is out of the caller's reach is not there, and no other one comes in its place.
		step("out of reach", first(put("public", `{"n": -1}`)), `{"n":-1,"title":"a"}`)
		step("out of reach", get("alice"), "not_found: not found")
		step("out of reach", first(put("alice", `{"n": 1}`)), "not_found: not found")
		page, err := w.service.GetOnly(t.Context(), w.call("admin"), records.GetParams{})
		if err != nil {
			t.Fatal(err)
		}
		if err := deleted(w.service.Delete(t.Context(), w.call("admin"), page.ID())); err != nil {
			t.Fatal(err)
		}
		res, err := w.service.BulkCreate(t.Context(), w.call("alice"), list(t, `{"title": "a", "n": 1}`, `{"title": "b", "n": 1}`))
		if err != nil || res.Failed() != 1 || show(res.Items[1].Err) != "singleton: the collection has one record, which is there already: change it by PUT" {
			t.Error(res, err)
		}
		step("after a bulk create", get("alice"), `{"n":1,"title":"a"}`)
	})
}

// A record from before the collection was a singleton stays the one that there is.
func TestSingletonOfBefore(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, settings)
		id := w.put(`{"title": "old", "n": 1}`)
		res, created, err := w.service.PutOnly(t.Context(), w.call("alice"), records.Change{Body: doc(t, `{"n": 2}`)})
		if err != nil || created || res.ID != id {
			t.Error(res, created, err)
		}
		if _, err := w.service.Create(t.Context(), w.call("alice"), doc(t, `{"title": "b", "n": 1}`)); show(err) != "singleton: the collection has one record, which is there already: change it by PUT" {
			t.Error(err)
		}
	})
}

// However many come first at once, one record comes of it, and each write that was answered is in it.
func TestSingletonAtOnce(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, settings)
		var mu sync.Mutex
		var wg sync.WaitGroup
		made, done := 0, 0
		for i := range 64 {
			wg.Go(func() {
				call := func() (err error) {
					if i%4 == 0 {
						_, err = w.service.Create(t.Context(), w.call("alice"), doc(t, `{"title": "p", "n": 1}`))
						if errs.From(err) != nil && errs.From(err).Code == "singleton" {
							return err
						}
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							made, done = made+1, done+1
						}
						return err
					}
					_, created, err := w.service.PutOnly(t.Context(), w.call("alice"), records.Change{Body: doc(t, `{"title": "t", "n": 1}`)})
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						done++
					}
					if err == nil && created {
						made++
					}
					return err
				}
				if err := call(); err != nil && errs.From(err).Code != "singleton" && errs.From(err).Code != "busy_record" {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		rec, err := w.service.GetOnly(t.Context(), w.call("alice"), records.GetParams{})
		n, countErr := w.service.Count(t.Context(), w.call("admin"), where(t, `{}`))
		if err != nil || countErr != nil || n != 1 || made != 1 || rec.Rev() != int64(done) {
			t.Errorf("%d records, %d made, %d writes, revision %d: %v %v", n, made, done, rec.Rev(), err, countErr)
		}
	})
}
