package records_test

import (
	"maps"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/query"
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
