package records_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// scripted runs text as the hook that replaces the list of items, and gives what it returns as JSON in the member out.
func scripted(t *testing.T, s store.Store, text string) (*world, func(who string) string) {
	t.Helper()
	w := newScripted(t, s, `
collections:
- name: items
  audit: {enabled: true}
  permissions:
    public: {methods: {get: true}}
    user: {methods: {get: true, post: {bulk: true}, put: true, delete: true}, filter: {on: {$ne: false}}, hiddenFields: [secret], readonlyFields: [n]}
  fields:
  - {name: title, type: string, validator: required}
  - {name: n, type: number}
  - {name: on, type: boolean}
  - {name: at, type: date}
  - {name: secret, type: string}
  - {name: tags, type: "string[]"}
- name: hooked
  permissions: {public: {methods: {get: true}}, user: {methods: {get: true}}}
  hooks: {get: {handle: {type: javascript, file: run.js}}}
`, map[string]string{"run.js": `
const text = (v) => JSON.stringify(v, (k, v) => k === 'id' || k === '_id' || k.endsWith('At') || k.endsWith('By') || k === '_rev' ? undefined : v);
const run = async (ctx) => { ` + text + ` };
module.exports = async (ctx) => {
  const out = await run(ctx).then(text, (e) => { if (e.code) return e.code + ': ' + e.message; throw e });
  return {items: [], out};
};`})
	return w, func(who string) string {
		c := w.call(who)
		c.Collection = w.project.Collections["hooked"]
		page, err := w.service.List(t.Context(), c, query.Params{})
		if err != nil {
			return show(err)
		}
		for _, e := range page.Extra {
			if e.Key == "out" {
				return fmt.Sprint(e.Value)
			}
		}
		return "nothing"
	}
}

func TestHostOfScripts(t *testing.T) {
	t.Parallel()
	const fill = `const c = db.collection('items'); for (let i = 0; i < 5; i++) await c.insert({title: 't' + i, n: i, on: i !== 3, secret: 's' + i}); `
	tests := map[string]struct{ who, text, want string }{
		"find":              {"alice", fill + `return await c.find({n: {$gte: 3}}, {sort: '-n', select: ['title', 'secret']})`, `[{"title":"t4","secret":"s4"},{"title":"t3","secret":"s3"}]`},
		"find pages":        {"alice", fill + `return (await c.find({}, {sort: 'n', offset: 1, limit: 2})).map(r => r.n)`, `[1,2]`},
		"find none":         {"alice", fill + `return await c.find({n: 99})`, `[]`},
		"types":             {"alice", fill + `await c.insert({title: 'd', at: new Date(0)}); const r = await c.findOne({at: new Date(0)}); return [r.at instanceof Date, typeof r._id, r.id === r._id.toHexString(), r._id.equals(r.id)]`, `[true,"object",true,true]`},
		"findOne by filter": {"alice", fill + `return await c.findOne({n: {$lt: 3}}, {sort: '-n'})`, `{"title":"t2","n":2,"on":true,"secret":"s2"}`},
		"findOne by id":     {"alice", fill + `const r = await c.findOne({n: 1}); return [(await c.findOne(r.id)).n, (await c.findOne(r._id)).n]`, `[1,1]`},
		"findOne none":      {"alice", fill + `return [await c.findOne({n: 9}), await c.findOne('650102030405060708090a0b')]`, `[null,null]`},
		"findOne bad id":    {"alice", `return await db.collection('items').findOne('x')`, `bad_id: db.findOne: invalid id: must be 24 hex digits`},
		"count":             {"alice", fill + `return [await c.count(), await c.count({on: true})]`, `[5,4]`},
		"aggregate": {
			"alice", fill + `return await c.aggregate([{$match: {n: {$gt: 0}}}, {$group: {_id: '$on', sum: {$sum: '$n'}, of: {$push: '$secret'}}}, {$sort: {sum: -1}}, {$project: {_id: 0}}])`,
			`[{"sum":7,"of":["s1","s2","s4"]},{"sum":3,"of":["s3"]}]`,
		},
		"aggregate with another collection": {
			"alice", fill + `return await db.collection('hooked').aggregate([{$unionWith: {coll: 'items', pipeline: [{$match: {$expr: {$gte: ['$n', 3]}}}]}}, {$sort: {n: 1}}, {$lookup: {from: 'items', localField: 'n', foreignField: 'n', as: 'same'}}, {$project: {same: {$size: '$same'}}}])`,
			`[{"same":1},{"same":1}]`,
		},
		"aggregate beyond the project":        {"alice", `return await db.collection('items').aggregate([{$facet: {a: [{$lookup: {from: 'svc.audit', pipeline: [], as: 'x'}}]}}])`, `collection_not_found: db.aggregate: the pipeline reads a collection that the project does not have: "svc.audit"`},
		"aggregate without stages":            {"alice", `return await db.collection('items').aggregate({})`, `bad_argument: db.aggregate: a pipeline must be a list of stages`},
		"aggregate with a bad stage":          {"alice", `return await db.collection('items').aggregate([{$out: 'x'}])`, `bad_pipeline: db.aggregate: the stage $out is not supported`},
		"aggregate that can't":                {"alice", fill + `return await c.aggregate([{$project: {x: {$divide: ['$n', 0]}}}])`, `expression_failed: db.aggregate: $divide can't divide by zero`},
		"aggregate as the user":               {"alice", `return await db.collection('items', {asUser: true}).aggregate([])`, `permission_denied: db.aggregate: permission denied`},
		"aggregate too many results":          {"alice", fill + `return await c.aggregate([{$project: {x: {$range: [0, 3000]}}}, {$unwind: '$x'}])`, `too_many_results: db.aggregate: the aggregation gives more than 10000 results: add a $limit`},
		"aggregate in a transaction":          {"alice", fill + `return await db.transaction(async (tx) => { const c = tx.collection('items'); await c.insert({title: 'in', n: 1}); return (await c.aggregate([{$match: {n: 1}}, {$unionWith: 'items'}, {$lookup: {from: 'items', localField: 'n', foreignField: 'n', as: 'x'}}, {$group: {_id: null, x: {$sum: {$size: '$x'}}}}]))[0].x })`, `12`},
		"aggregate beside a transaction":      {"alice", fill + `return await db.transaction(async (tx) => { await tx.collection('items').insert({title: 'in'}); return await c.aggregate([{$count: 'n'}]) })`, `[{"n":5}]`},
		"insert gives the record":             {"alice", `const r = await db.collection('items').insert({title: 'x'}); return [r.id.length, r._rev, r.title, (await db.collection('items').count())]`, `[24,1,"x",1]`},
		"insert many":                         {"alice", `return await db.collection('items').insert([{title: 'x'}, {title: 'y'}])`, `[{"title":"x"},{"title":"y"}]`},
		"insert many or none":                 {"alice", `try { await db.collection('items').insert([{title: 'x'}, {n: 1}]) } catch (e) { return [e.code, e.errors[0].path, await db.collection('items').count()] }`, `["validation_failed","items.1.title",0]`},
		"insert is checked":                   {"alice", `await db.collection('items').insert({title: 'x', n: 'no'})`, `validation_failed: db.insert: n: must be a number, is a string`},
		"all that is wrong is told":           {"alice", `await db.collection('items').insert({title: 5, n: 'no'})`, `validation_failed: db.insert: title: must be a string, is a number; n: must be a number, is a string`},
		"update by id":                        {"alice", fill + `const r = await c.findOne({n: 1}); return await c.update(r.id, {title: 'u', on: null})`, `{"title":"u","n":1,"secret":"s1"}`},
		"update with operators":               {"alice", fill + `const r = await c.findOne({n: 1}); const u = await c.update(r._id, {$inc: {n: 10}, $push: {tags: 'a'}, $unset: {secret: ''}}); return [u, u._rev]`, `[{"title":"t1","n":11,"on":true,"tags":["a"]},2]`},
		"operators are checked":               {"alice", fill + `const r = await c.findOne({n: 1}); await c.update(r.id, {$set: {on: 'maybe'}})`, `validation_failed: db.update: on: must be a boolean, is a string`},
		"operators and what the service sets": {"alice", fill + `await c.update((await c.findOne({n: 1})).id, {$inc: {_rev: 1}})`, `validation_failed: db.update: _rev: is set by the service: leave it out`},
		"operators and fields":                {"alice", fill + `await c.update({n: 1}, {$set: {on: true}, n: 2})`, `bad_argument: db.update: a change has either fields or operators such as $inc; it can't have both`},
		"update many":                         {"alice", fill + `const u = await c.update({n: {$lt: 3}}, {$inc: {n: 100}}); return [u, await c.count({n: {$gte: 100}})]`, `[{"matched":3,"modified":3},3]`},
		"update none there":                   {"alice", `await db.collection('items').update('650102030405060708090a0b', {n: 1})`, `not_found: db.update: not found`},
		"delete":                              {"alice", fill + `const r = await c.findOne({n: 1}); return [await c.delete(r.id), await c.delete(r.id), await c.delete({n: {$gte: 3}}), await c.count()]`, `[1,0,2,2]`},
		"what has no value is no filter": {
			"alice", fill + `const out = []; let id; for (const f of [() => c.delete(id), () => c.delete(null), () => c.delete({title: id}), () => c.update(id, {n: 1}), () => c.update(null, {n: 1}), () => c.update({n: id}, {n: 7}),
			() => c.findOne(id), () => c.findOne(), () => c.find({n: id}), () => db.collection('items', {asUser: true}).delete(id)]) try { await f(); out.push('done') } catch (e) { out.push(e.code || e.name) } return [out.join(' '), await c.count(), await c.delete({})]`,
			`["bad_argument bad_argument TypeError bad_argument bad_argument TypeError bad_argument bad_argument TypeError bad_argument",5,5]`,
		},
		"no such collection":        {"alice", `await db.collection('users').find()`, `collection_not_found: db.find: the project has no collection "users"`},
		"no such option":            {"alice", `await db.collection('items').find({}, {skip: 1})`, `bad_argument: db.find: unknown option skip; there are sort, limit, offset, select, lookup, q, qName, highlight, explain and lang`},
		"no such field":             {"alice", `await db.collection('items').find({nope: 1})`, `unknown_field: db.find: unknown field: nope`},
		"S60: as the user":          {"alice", fill + `const u = db.collection('items', {asUser: true}); return [await u.find({}, {sort: 'n'}), await u.count()]`, `[[{"title":"t0","n":0,"on":true},{"title":"t1","n":1,"on":true},{"title":"t2","n":2,"on":true},{"title":"t4","n":4,"on":true}],4]`},
		"what the user can't name":  {"alice", `await db.collection('items', {asUser: true}).find({secret: 's'})`, `unknown_field: db.find: unknown field: secret`},
		"what the user can't write": {"alice", `await db.collection('items', {asUser: true}).insert({title: 'x', n: 1})`, `validation_failed: db.insert: n: is read-only for you`},
		"what the user may not":     {"alice", fill + `await db.collection('items', {asUser: true}).delete({n: 1})`, `permission_denied: db.delete: permission denied`},
		"the public may not":        {"public", `await db.collection('items', {asUser: true}).insert({title: 'x'})`, `permission_denied: db.insert: permission denied`},
		"transaction":               {"alice", fill + `const r = await db.transaction(async (tx) => { await tx.collection('items').insert({title: 'in'}); return await tx.collection('items').count() }); return [r, await c.count()]`, `[6,6]`},
		"transaction is alone":      {"alice", fill + `return await db.transaction(async (tx) => { await tx.collection('items').insert({title: 'in'}); return await c.count() })`, `5`},
		"transaction rolls back":    {"alice", fill + `try { await db.transaction(async (tx) => { await tx.collection('items').delete({n: 1}); throw new Error('no') }) } catch (e) { return [e.message, await c.count()] }`, `["no",5]`},
		"transaction runs again": {
			"alice", fill + `const r = await c.findOne({n: 1}); let tries = 0
			await db.transaction(async (tx) => { const t = tx.collection('items'); const now = await t.findOne(r.id); if (!tries++) await c.update(r.id, {n: 50}); await t.update(r.id, {n: now.n + 1}) })
			return [tries, (await c.findOne(r.id)).n]`, `[2,51]`,
		},
		"transaction runs again, whatever the script makes of it": {
			"alice", fill + `const r = await c.findOne({n: 1}); let tries = 0, seen
			await db.transaction(async (tx) => { const t = tx.collection('items'); await t.findOne(r.id); if (!tries++) await c.update(r.id, {n: 50})
			try { await t.update(r.id, {$inc: {n: 1}}) } catch (e) { seen = e.code; if (tries === 1) throw new Error('mine') } })
			return [seen, tries, (await c.findOne(r.id)).n]`, `["busy",2,51]`,
		},
		"transaction runs again, though the script goes on": {
			"alice", fill + `const r = await c.findOne({n: 1}); let tries = 0
			await db.transaction(async (tx) => { const t = tx.collection('items'); await t.findOne(r.id); if (!tries++) await c.update(r.id, {n: 50}); await t.update(r.id, {$inc: {n: 1}}).catch(() => {}) })
			return [tries, (await c.findOne(r.id)).n]`, `[2,51]`,
		},
		"many at once":        {"alice", fill + `return (await Promise.all([1, 2, 3].map((n) => c.findOne({n})))).map(r => r.n)`, `[1,2,3]`},
		"many at once in one": {"alice", fill + `return await db.transaction(async (tx) => { const c = tx.collection('items'); await Promise.all([1, 2, 3].map((n) => c.insert({title: 'p' + n}))); return await c.count() })`, `8`},
		"other modules":       {"alice", `return await cache.get('k')`, `not_available: cache.get: this is not available to scripts of this service`},
	}
	teststore.Each(t, func(t *testing.T, s store.Store) {
		for name, tt := range tests {
			if s.Name() == "mongodb" && !strings.Contains(name, "transaction") && !strings.Contains(name, "once") {
				continue
			}
			w, ask := scripted(t, s, tt.text)
			if got := ask(tt.who); got != tt.want {
				t.Errorf("%s: %s\nwant %s", name, got, tt.want)
			}
			_ = w
		}
	})
}

// What a script writes as the service is its own in the audit log; as the user, it is the user's.
func TestAuditOfScripts(t *testing.T) {
	t.Parallel()
	w, ask := scripted(t, teststore.Memory(t), `
		await db.collection('items').insert({title: 'service'}); await db.collection('items', {asUser: true}).insert({title: 'user'})
		await db.transaction(async (tx) => { await tx.collection('items').insert({title: 'within'}) })`)
	if got := ask("alice"); got != "<nil>" && got != "nothing" {
		t.Fatal(got)
	}
	page, err := w.service.Audit(t.Context(), w.project, as("admin"), query.Params{Sort: "_id"})
	if err != nil || len(page.Items) != 3 {
		t.Fatal(err, page)
	}
	for i, want := range []string{"script run.js", "service ", "script run.js"} { // there is no request here, so no user is named
		if got := page.Items[i].Actor.Kind + " " + page.Items[i].Actor.Name; got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
}

// A stock check in the order's transaction: nobody sells what is not there, however many try at once.
func TestHookInTheWritesTransaction(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newScripted(t, s, `
collections:
- name: stock
  permissions: {public: {methods: {}}, user: {methods: {get: true, post: true}}}
  fields: [{name: sku, type: string, index: [unique]}, {name: left, type: number}]
- name: items
  audit: {enabled: true}
  permissions: {public: {methods: {}}, user: {methods: {get: true, post: {bulk: true}}}}
  fields: [{name: sku, type: string}, {name: n, type: number}]
  bulk: {mode: atomic, hooks: each}
  hooks: {post: {create: {type: javascript, file: take.ts}}}
`, map[string]string{"take.ts": `
export default async (ctx: any) => {
  const stock = db.collection('stock');
  const s = await stock.findOne({sku: ctx.doc.sku});
  if (!s || s.left < ctx.doc.n) throw ctx.error(409, 'out of stock', [{path: 'n', rule: 'stock', message: 'only ' + (s ? s.left : 0) + ' left'}]);
  await stock.update(s.id, {$inc: {left: -ctx.doc.n}});
};`})
		c := w.call("alice")
		c.Collection = w.project.Collections["stock"]
		if _, err := w.service.Create(t.Context(), c, doc(t, `{"sku": "a", "left": 10}`)); err != nil {
			t.Fatal(show(err))
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		outcomes := map[string]int{}
		for range 8 {
			wg.Go(func() {
				for range 2 {
					_, err := w.service.Create(t.Context(), w.call("alice"), doc(t, `{"sku": "a", "n": 1}`))
					mu.Lock()
					outcomes[show(err)]++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if outcomes["ok"] != 10 || outcomes["script_error: out of stock"] != 6 {
			t.Errorf("%v", outcomes)
		}
		n, err := w.collection("items").Count(t.Context(), nil, 0)
		if err != nil || n != 10 {
			t.Errorf("%d orders (%v)", n, err)
		}
		stock, err := w.service.List(t.Context(), c, query.Params{})
		if err != nil || bare(t, stock.Items[0].AppendJSON(nil)) != `{"left":0,"sku":"a"}` {
			t.Errorf("%v %s", err, stock.Items[0].AppendJSON(nil))
		}
		if n, err := w.collection("svc.audit").Count(t.Context(), nil, 0); err != nil || n != 10 {
			t.Errorf("%d entries (%v)", n, err)
		}
		// A bulk write is one transaction with what its hooks do.
		if _, err := w.service.BulkCreate(t.Context(), w.call("alice"), []any{doc(t, `{"sku": "a", "n": 0}`), doc(t, `{"sku": "a", "n": 1}`)}); errs.From(err).Status != 409 {
			t.Errorf("%v", err)
		}
		if n, err := w.collection("items").Count(t.Context(), nil, 0); err != nil || n != 10 {
			t.Errorf("%d orders (%v)", n, err)
		}
	})
}

// A transaction that a hook leaves open within another one neither hangs that one nor lets it be committed.
func TestTransactionLeftOpen(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"by a hook that fails": "await db.transaction(() => new Promise(() => {}))",
		"by a hook that ends":  "db.transaction(() => new Promise(() => {}))",
	} {
		teststore.Each(t, func(t *testing.T, s store.Store) {
			w := hooked(t, s, "", map[string]string{"post.create": "module.exports = async (ctx) => { " + text + " }"})
			if _, err := w.service.Create(t.Context(), w.call("alice"), doc(t, `{"title": "a"}`)); err == nil {
				t.Errorf("%s: it was created", name)
			}
			host := w.service.Host(w.project, records.Caller{}, "run.js")
			defer host.Close()
			tx, err := host.Call(t.Context(), "db.begin", nil)
			if err != nil {
				t.Fatal(err)
			}
			items := bson.D{{Key: "collection", Value: "items"}, {Key: "tx", Value: tx}}
			_, err = host.Call(t.Context(), "db.insert", bson.A{items, doc(t, `{"title": "b"}`)})
			if _, committed := host.Call(t.Context(), "db.commit", bson.A{tx}); committed == nil {
				t.Errorf("%s: it was committed (%v)", name, err)
			}
			if n, err := w.collection("items").Count(t.Context(), nil, 0); err != nil || n != 0 {
				t.Errorf("%s: %d records (%v)", name, n, err)
			}
		})
	}
}

// A transaction that is refused is not left open.
func TestTooManyTransactions(t *testing.T) {
	t.Parallel()
	w, _ := scripted(t, teststore.Memory(t), `return null`)
	var begun []store.Tx
	host := w.service.Host(w.project, records.Caller{Fence: func(_ context.Context, tx store.Tx) error {
		begun = append(begun, tx)
		return nil
	}}, "run.js")
	there := func(i int) bool {
		_, err := begun[i].Collection("items").Count(t.Context(), nil, 0)
		return err == nil
	}
	for range 4 {
		if _, err := host.Call(t.Context(), "db.begin", nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := host.Call(t.Context(), "db.begin", nil); errs.From(err).Code != "too_many_transactions" || there(4) || !there(0) {
		t.Errorf("%v, the fifth is open: %v, the first: %v", err, there(4), there(0))
	}
	host.Close()
	if there(0) {
		t.Error("a transaction is open behind the end of the script")
	}
	if _, err := host.Call(t.Context(), "db.begin", nil); err == nil || there(5) {
		t.Errorf("a transaction is begun behind the end: %v", err)
	}
}
