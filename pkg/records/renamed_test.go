package records_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

const renamedConfig = `
collections:
- name: items
  renamedFrom: things
  fields: [{name: title, type: string}, {name: cover, type: file}]
  audit: {enabled: true}
  permissions: {public: {methods: {get: true}}, user: {methods: {get: true, post: true, delete: true}}}
- name: hooked
  fields: [{name: result, type: any}]
  hooks: {get: {handle: {type: javascript, file: aggregate.js}}}
  permissions: {public: {methods: {}}, user: {methods: {get: true, post: true}}}
`

const aggregateScript = `module.exports = async (ctx) => ({items: [], out: JSON.stringify(await db.collection('hooked').aggregate([
	{$unionWith: 'items'}, {$match: {title: 'one'}},
	{$lookup: {from: 'items', localField: 'title', foreignField: 'title', as: 'same'}},
	{$graphLookup: {from: 'items', startWith: '$title', connectFromField: 'none', connectToField: 'title', as: 'reached'}},
	{$project: {_id: 0, same: {$size: '$same'}, reached: {$size: '$reached'}}}]))})`

// All that is done with a renamed collection is done with the one that the store has: pipelines of scripts, and writes that are
// logged. Files are known by the addresses that they were stored with, whichever name the collection had then.
func TestRenamed(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		t.Helper()
		w := newScripted(t, s, renamedConfig, map[string]string{"aggregate.js": aggregateScript})
		names := project.Names{"items": {In: "things", From: "things"}}
		if _, err := names.Resolve(w.project, nil, nil); err != nil {
			t.Fatal(err)
		}
		var want []string
		id := bson.NewObjectID()
		files := bson.A{}
		for _, name := range []string{"things", "items", "others"} {
			files = append(files, bson.D{{Key: "src", Value: "/api/v1/_/" + w.project.Namespace + "/" + name + "/" + id.Hex() + "/cover/" + name + ".txt"}})
			if name != "others" {
				want = append(want, media.Key("cover", name+".txt"))
			}
		}
		raw, err := bson.Marshal(bson.D{{Key: "_id", Value: id}, {Key: "title", Value: "one"}, {Key: "cover", Value: files}})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.WriteAll(t.Context(), w.collection("things"), store.Op{Kind: store.Insert, Doc: raw}); err != nil {
			t.Fatal(err)
		}
		live, err := w.service.LiveFiles(w.project)(t.Context(), "things", id.Hex())
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(live)); err != nil || !slices.Equal(want, got) {
			t.Errorf("live: %v, %v; want %v", got, err, want)
		}

		two := w.create("alice", `{"title": "two"}`) // logged, in a transaction
		if n, err := w.collection("things").Count(t.Context(), nil, 0); err != nil || n != 2 {
			t.Errorf("there are %d records, %v", n, err)
		}
		if _, err := w.service.Delete(t.Context(), w.call("alice"), two); err != nil {
			t.Error(err)
		}
		call := w.call("alice")
		call.Collection = w.project.Collections["hooked"]
		page, err := w.service.List(t.Context(), call, query.Params{})
		if err != nil {
			t.Fatal(show(err))
		}
		if out, _ := document.Member(page.Extra, "out"); out != `[{"same":1,"reached":1}]` {
			t.Errorf("the script finds %v", out)
		}
		if n, err := w.collection("items").Count(t.Context(), nil, 0); err != nil || n != 0 {
			t.Errorf("under the new name the store has %d records, %v", n, err)
		}
	})
}

const renamedFieldsConfig = `
collections:
- name: old
  fields:
  - {name: heading, type: string, renamedFrom: title, index: [single]}
  - {name: amount, type: number, renamedFrom: n}
  - {name: parts, type: "object[]", subFields: [{name: left, type: number, renamedFrom: x}, {name: y, type: string}]}
  permissions: {public: {methods: {get: true}}, user: {methods: {get: true, post: true, put: true, delete: true}}}
- name: new
  fields:
  - {name: heading, type: string, index: [single]}
  - {name: amount, type: number}
  - {name: parts, type: "object[]", subFields: [{name: left, type: number}, {name: y, type: string}]}
  permissions: {public: {methods: {get: true}}, user: {methods: {get: true, post: true, put: true, delete: true}}}
- name: hooked
  fields: [{name: result, type: any}]
  hooks: {get: {handle: {type: javascript, file: script.js}}}
  permissions: {public: {methods: {}}, user: {methods: {get: true, post: true}}}
`

const renamedFieldsScript = `module.exports = async (ctx) => {
	const out = {};
	for (const name of ['old', 'new']) {
		const c = db.collection(name), all = [];
		const one = await c.insert({heading: 'one', amount: 1, parts: [{left: 1, y: 'a'}, {left: 2}]});
		await c.insert({heading: 'two', amount: 2, title: 'of no field'});
		const say = async (what) => { try { const v = await what(); all.push(v && v.map ? v.map(r => ({...r, id: 0, _id: 0, createdAt: 0, updatedAt: 0})) : v) } catch (e) { all.push(String(e.message)) } };
		await say(async () => (await c.update(one.id, {$inc: {amount: 5}, $push: {parts: {left: 3}}})).amount);
		await say(async () => (await c.update(one.id, {$set: {'parts.0.left': 9}})).amount);
		await say(async () => (await c.update(one.id, {$inc: {heading: 5}})).amount);
		await say(async () => await c.find({'parts.left': 9}));
		await say(async () => await c.find({parts: {$elemMatch: {left: {$gt: 2}}}}, {sort: 'heading', select: 'heading,parts.left'}));
		await say(async () => await c.count({heading: {$in: ['one', 'two']}}));
		await say(async () => await c.aggregate([{$match: {$expr: {$gt: ['$amount', 2]}}}, {$project: {_id: 0, heading: 1, first: {$first: '$parts.left'}}}]));
		await say(async () => await c.aggregate([{$match: {heading: 'one'}},
			{$lookup: {from: name, let: {h: '$heading'}, pipeline: [{$match: {$expr: {$eq: ['$heading', '$$h']}}}, {$project: {_id: 0, parts: 1}}], as: 'same'}},
			{$graphLookup: {from: name, startWith: '$amount', connectFromField: 'none', connectToField: 'amount', as: 'reached', restrictSearchWithMatch: {heading: 'one'}}},
			{$project: {_id: 0, same: 1, reached: {heading: 1, amount: 1}}}]));
		await say(async () => await c.aggregate([{$facet: {a: [{$sortByCount: '$heading'}, {$sort: {_id: 1}}], b: [{$unionWith: {coll: name, pipeline: [{$match: {amount: 2}}]}}, {$count: 'n'}]}}]));
		out[name] = all;
	}
	return {items: [], out: JSON.stringify(out.old) === JSON.stringify(out.new) ? 'same ' + JSON.stringify(out.old) : JSON.stringify(out, null, 1)};
}`

// What scripts do with records of which fields were renamed is what they would do otherwise; and the store has the names of before.
func TestScriptsOfRenamedFields(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		t.Helper()
		w := newScripted(t, s, renamedFieldsConfig, map[string]string{"script.js": renamedFieldsScript})
		names := project.Names{"old.heading": {In: "title", From: "title"}, "old.amount": {In: "n", From: "n"}, "old.parts.left": {In: "x", From: "x"}}
		if _, err := names.Resolve(w.project, nil, nil); err != nil {
			t.Fatal(err)
		}
		call := w.call("alice")
		call.Collection = w.project.Collections["hooked"]
		page, err := w.service.List(t.Context(), call, query.Params{})
		if err != nil {
			t.Fatal(show(err))
		}
		out, _ := document.Member(page.Extra, "out")
		text, _ := out.(string)
		for _, part := range []string{`same [6,6,"db.update: update: $inc heading: `, `"first":9`, `"reached":[{"heading":"one","amount":6}]`, `"b":[{"n":3}]`} {
			if !strings.Contains(text, part) {
				t.Errorf("the script finds %s, want %s in it", text, part)
			}
		}
		stored := mql.MustCompile(bson.D{{Key: "title", Value: "one"}, {Key: "n", Value: 6}, {Key: "parts.x", Value: 9}})
		if n, err := w.collection("old").Count(t.Context(), stored, 0); err != nil || n != 1 {
			t.Errorf("%d records are stored by the names of before, %v", n, err)
		}
	})
}

// A feed tells of records by the names that their fields have.
func TestFeedOfRenamedFields(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		t.Helper()
		w := newWorld(t, s, `
collections:
- name: items
  fields: [{name: heading, type: string, renamedFrom: title}, {name: amount, type: number, renamedFrom: n}]
  permissions: {public: {methods: {}}, user: {methods: {get: true, post: true, put: true}}}
`)
		names := project.Names{"items.heading": {In: "title", From: "title"}, "items.amount": {In: "n", From: "n"}}
		if _, err := names.Resolve(w.project, nil, nil); err != nil {
			t.Fatal(err)
		}
		f := w.follow("alice", `{"amount": {"$gt": 1}}`, "", nil)
		defer f.close()
		w.create("alice", `{"heading": "out of sight", "amount": 1}`)
		id := w.create("alice", `{"heading": "in sight", "amount": 2}`)
		e := f.want(records.FeedCreate, id)
		if got := string(e.Record.AppendJSON(nil)); !strings.Contains(got, `"heading":"in sight"`) || strings.Contains(got, "title") {
			t.Errorf("%s", got)
		}
	})
}
