package records_test

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// contents is all that the store holds of a world's project.
func (w *world) contents(collections ...string) string {
	w.t.Helper()
	var out []byte
	for _, name := range collections {
		err := w.collection(name).Find(w.t.Context(), store.Query{}, func(d bson.Raw) error {
			out = append(document.AppendJSON(append(out, name+" "...), d, nil), '\n')
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return string(out)
}

// each runs a test on each store, under a name.
func each(t *testing.T, name string, test func(t *testing.T, s store.Store)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { teststore.EachParallel(t, test) })
}

// write is one write, and what its caller is told, in short.
type write struct {
	name, who string
	do        func(w *world, c *records.Call) string
}

func writes(t *testing.T, ids []string) []write {
	create := func(body string) func(*world, *records.Call) string {
		return func(w *world, c *records.Call) string {
			_, err := w.service.Create(t.Context(), c, doc(t, body))
			return show(err) + fields(err)
		}
	}
	update := func(id string, ch records.Change) func(*world, *records.Call) string {
		return func(w *world, c *records.Call) string {
			res, err := w.service.Update(t.Context(), c, id, ch)
			return res.ID + show(err) + fields(err)
		}
	}
	remove := func(id string, revs ...int64) func(*world, *records.Call) string {
		return func(w *world, c *records.Call) string {
			res, err := w.service.Delete(t.Context(), c, id, revs...)
			return res.ID + show(err)
		}
	}
	bulkCreate := func(items ...string) func(*world, *records.Call) string {
		return func(w *world, c *records.Call) string {
			return outcome(w.service.BulkCreate(t.Context(), c, list(t, items...)))
		}
	}
	bulkUpdate := func(filter, body string) func(*world, *records.Call) string {
		return func(w *world, c *records.Call) string {
			res, err := w.service.BulkUpdate(t.Context(), c, where(t, filter), doc(t, body))
			return fmt.Sprint(res.Matched, outcome(res, err))
		}
	}
	bulkDelete := func(filter string) func(*world, *records.Call) string {
		return func(w *world, c *records.Call) string {
			res, err := w.service.BulkDelete(t.Context(), c, where(t, filter))
			return fmt.Sprint(res.Matched, outcome(res, err))
		}
	}
	merge := func(body string) records.Change { return records.Change{Body: doc(t, body)} }
	return []write{
		{"create", "alice", create(`{"n": 7}`)},
		{"create that is not valid", "alice", create(`{"n": 100}`)},
		{"create of a taken value", "alice", create(`{"n": 7, "slug": "s1"}`)},
		{"create of what the filter doesn't let", "alice", create(`{"n": 7, "owner": "bob"}`)},
		{"create with a hidden field", "alice", create(`{"n": 7, "cost": 1}`)},
		{"create without the right", "token:none", create(`{"n": 7}`)},
		{"update", "alice", update(ids[0], merge(`{"n": 8}`))},
		{"update to a taken value", "alice", update(ids[0], merge(`{"slug": "s1"}`))},
		{"update of what is not readable", "alice", update(ids[3], merge(`{"n": 8}`))},
		{"update of another revision", "alice", update(ids[0], records.Change{Body: doc(t, `{"n": 1}`), IfRev: []int64{7}})},
		{"replace", "alice", update(ids[0], records.Change{Mode: records.Overwrite, Body: doc(t, `{"n": 9}`)})},
		{"patch", "alice", update(ids[0], records.Change{Mode: records.JSONPatch, Patch: []byte(`[{"op": "replace", "path": "/n", "value": 3}]`)})},
		{"patch whose test fails", "alice", update(ids[0], records.Change{Mode: records.JSONPatch, Patch: []byte(`[{"op": "test", "path": "/n", "value": 77}]`)})},
		{"bulk create", "alice", bulkCreate(`{"n": 1}`, `{"n": 2}`)},
		{"bulk create, some not", "alice", bulkCreate(`{"n": 1}`, `{"n": 100}`, `{"n": 1, "slug": "s2"}`, `{"n": 1, "slug": "x"}`, `{"n": 2, "slug": "x"}`, `{"n": 3, "slug": "x"}`, `{"n": 5}`)},
		{"bulk create without the right", "public", bulkCreate(`{"n": 1}`)},
		{"bulk update", "alice", bulkUpdate(`{"n": {"$lt": 3}}`, `{"n": 50}`)},
		{"bulk update, one value for all", "alice", bulkUpdate(`{}`, `{"slug": "z"}`)},
		{"bulk update of nothing", "alice", bulkUpdate(`{"n": 77}`, `{"n": 50}`)},
		{"bulk delete", "alice", bulkDelete(`{"n": {"$gt": 1}}`)},
		{"delete of another revision", "alice", remove(ids[0], 9)},
		{"delete of what is not readable", "alice", remove(ids[3])},
		{"delete", "alice", remove(ids[1])},
	}
}

// A dry run says what the write then does, and leaves nothing behind.
func TestDryRun(t *testing.T) {
	for _, mode := range []string{"{}", "{mode: atomic}"} {
		each(t, mode, func(t *testing.T, s store.Store) {
			w := newWorld(t, s, "audit: {enabled: true}\n"+bulkConfig(mode))
			var ids []string
			for i, owner := range []string{`"all"`, `"all"`, `null`, `"bob"`} {
				ids = append(ids, w.create("admin", fmt.Sprintf(`{"n": %d, "owner": %s, "cost": 10, "slug": "s%d"}`, i+1, owner, i)))
			}
			for _, tt := range writes(t, ids) {
				before := w.contents("items", "svc.audit")
				c := w.call(tt.who)
				c.DryRun = true
				dry := tt.do(w, c)
				if after := w.contents("items", "svc.audit"); after != before {
					t.Errorf("%s: a dry run has left something:\n%s\nwas\n%s", tt.name, after, before)
				}
				wet := tt.do(w, w.call(tt.who))
				if strings.HasSuffix(wet, "ok") && w.contents("items", "svc.audit") == before && !strings.Contains(tt.name, "nothing") {
					t.Errorf("%s: the write itself wrote nothing", tt.name)
				}
				if wet = strings.ReplaceAll(wet, "items.", ""); strings.ReplaceAll(dry, "items.", "") != wet {
					t.Errorf("%s:\nthe dry run said %s\nthe write         %s", tt.name, dry, wet)
				}
			}
		})
	}
}

// What hooks do by db is taken back, too; those that run instead of a write or behind it don't run.
func TestDryRunOfHooks(t *testing.T) {
	note := func(stage string) string {
		return fmt.Sprintf("module.exports = async (ctx) => { await db.collection('notes').insert({text: '%s', n: Math.random()}); await db.transaction(async (tx) => { await db.collection('notes').insert({text: 'tx', n: Math.random()}); }); }", stage)
	}
	stages := map[string]string{}
	for _, stage := range []string{
		"post.bind", "post.validate", "post.create", "post.return", "post.bulkCreate", "post.bulkReturn", "audit.return",
		"put.bind", "put.validate", "put.update", "put.return", "put.bulkUpdate", "put.bulkReturn",
		"delete.delete", "delete.return", "delete.bulkDelete", "delete.bulkReturn",
	} {
		stages[stage] = note(stage)
	}
	for _, tt := range []struct {
		bulk string
		want map[string]string // by write
	}{
		{"{}", map[string]string{
			"create": "post.bind, post.validate, post.create", "update": "put.bind, put.validate, put.update", "delete": "delete.delete",
			"bulk create": "post.bulkCreate", "bulk update": "put.bulkUpdate", "bulk delete": "delete.bulkDelete",
		}},
		{"{mode: atomic, hooks: each}", map[string]string{
			"bulk create": "post.bind, post.validate, post.bulkCreate, post.create",
			"bulk update": "put.bind, put.validate, put.bulkUpdate, put.update", "bulk delete": "delete.bulkDelete, delete.delete",
		}},
		{"{hooks: each}", map[string]string{
			"bulk create": "post.bind, post.validate, post.bulkCreate, post.create",
			"bulk update": "put.bind, put.validate, put.bulkUpdate, put.update", "bulk delete": "delete.bulkDelete, delete.delete",
		}},
	} {
		each(t, tt.bulk, func(t *testing.T, s store.Store) {
			w := hooked(t, s, "  bulk: "+tt.bulk, stages)
			id := w.put(`{"title": "a", "_rev": 1}`)
			before := w.contents("items", "notes", "svc.audit")
			for name, want := range tt.want {
				c := w.call("alice")
				c.DryRun = true
				var err error
				var res records.BulkResult
				switch name {
				case "create":
					_, err = w.service.Create(t.Context(), c, doc(t, `{"title": "b"}`))
				case "update":
					_, err = w.service.Update(t.Context(), c, id, records.Change{Body: doc(t, `{"title": "b"}`)})
				case "delete":
					_, err = w.service.Delete(t.Context(), c, id)
				case "bulk create":
					res, err = w.service.BulkCreate(t.Context(), c, list(t, `{"title": "b"}`))
				case "bulk update":
					res, err = w.service.BulkUpdate(t.Context(), c, where(t, `{"title": "a"}`), doc(t, `{"title": "b"}`))
				case "bulk delete":
					res, err = w.service.BulkDelete(t.Context(), c, where(t, `{"title": "a"}`))
				}
				if err != nil || res.Failed() > 0 {
					t.Errorf("%s: %s", name, outcome(res, err))
				}
				if ran := w.stages(); ran != want {
					t.Errorf("%s ran %s, want %s", name, ran, want)
				}
				if after := w.contents("items", "notes", "svc.audit"); after != before {
					t.Errorf("%s has left\n%s\nwas\n%s", name, after, before)
				}
			}
		})
	}
}

// What a hook does in the place of a create is not known before: a dry run does not run it.
func TestDryRunOfHandle(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := hooked(t, s, "", map[string]string{"post.handle": "module.exports = async (ctx) => { await db.collection('notes').insert({text: 'h'}); return {id: null}; }"})
		c := w.call("alice")
		c.DryRun = true
		if _, err := w.service.Create(t.Context(), c, doc(t, `{"title": "a"}`)); err != nil {
			t.Error(show(err))
		}
		if got := outcome(w.service.BulkCreate(t.Context(), c, list(t, `{"title": "a"}`, `{"title": 1}`))); got != "1 failed: ok | validation_failed: title: must be a string, is a number" {
			t.Error(got)
		}
		if got := w.contents("items", "notes", "svc.audit"); got != "" || w.stages() != "" {
			t.Error(got)
		}
	})
}

func TestMaxAffected(t *testing.T) {
	const most = "max_affected: this would write more than %d records, the maxAffected of the request: nothing was written"
	for _, mode := range []string{"{maxAffected: 4, maxItems: 3}", "{maxAffected: 4, maxItems: 3, mode: atomic}"} {
		each(t, mode, func(t *testing.T, s store.Store) {
			w := newWorld(t, s, bulkConfig(mode))
			for i := range 3 {
				w.put(fmt.Sprintf(`{"n": %d}`, i))
			}
			for _, n := range []int64{0, 1, 2} {
				before := w.everything()
				refused := fmt.Sprintf(most, n)
				c := w.call("alice")
				c.MaxAffected = &n
				res, err := w.service.BulkUpdate(t.Context(), c, where(t, `{}`), doc(t, `{"n": 5}`))
				if got := outcome(res, err); got != refused {
					t.Error(got)
				}
				if res, err = w.service.BulkDelete(t.Context(), c, where(t, `{}`)); outcome(res, err) != refused {
					t.Error(outcome(res, err))
				}
				if res, err = w.service.BulkCreate(t.Context(), c, list(t, `{"n": 1}`, `{"n": 1}`, `{"n": 1}`)); outcome(res, err) != refused {
					t.Error(outcome(res, err))
				}
				if _, err := w.service.Create(t.Context(), c, doc(t, `{"n": 1}`)); n == 0 && show(err) != refused {
					t.Error(show(err))
				} else if n > 0 {
					if err != nil {
						t.Error(show(err))
					}
					if _, err := w.service.BulkDelete(t.Context(), w.call("alice"), where(t, `{"_rev": 1}`)); err != nil {
						t.Error(show(err))
					}
				}
				if after := w.everything(); after != before {
					t.Errorf("%d: %s", n, after)
				}
			}
			three, ten := int64(3), int64(10)
			c := w.call("alice")
			c.MaxAffected = &three
			if res, err := w.service.BulkUpdate(t.Context(), c, where(t, `{}`), doc(t, `{"n": 5}`)); err != nil || res.Matched != 3 {
				t.Error(outcome(res, err))
			}
			w.put(`{"n": 1}`)
			w.put(`{"n": 1}`)
			c.MaxAffected = &ten
			if got := outcome(w.service.BulkDelete(t.Context(), c, where(t, `{}`))); !strings.HasPrefix(got, "bulk_limit: the filter matches more than 4 records") {
				t.Error(got)
			}
		})
	}
}
