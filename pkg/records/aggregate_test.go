package records_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// analyzed is a collection that may be aggregated, beside one that is looked up and one that may not be read.
const analyzed = `
collections:
  - name: items
    meta: {i18n: {languages: [en, de, fr]}}
    queryLimits: {allowAggregate: true, maxTime: 1m}
    fields:
      - {name: n, type: number}
      - {name: name, type: string}
      - {name: at, type: date}
      - {name: on, type: boolean}
      - {name: tags, type: "string[]"}
      - {name: author, type: string, meta: {foreign: {collection: people}}}
      - {name: seo, type: object, subFields: [{name: title, type: string}, {name: score, type: any, hidden: true}]}
      - {name: parts, type: "object[]", subFields: [{name: sku, type: string}, {name: cost, type: any}]}
      - {name: data, type: any}
      - {name: secret, type: any, hidden: true}
      - {name: rank, type: any, hidden: {eval: "!ctx.user || !ctx.user.isAdmin"}}
      - {name: mood, type: any, hidden: {eval: "ctx.doc.name !== 'a'"}}
    hiddenFields: [data.k]
    permissions:
      public: {methods: {get: {aggregate: true, lookup: true}, post: true}, filter: {on: true}, hiddenFields: [parts.cost]}
      user: {methods: {get: true}}
  - name: people
    fields:
      - {name: name, type: string}
      - {name: mail, type: any, hidden: true}
      - {name: boss, type: string, meta: {foreign: {collection: people}}}
      - {name: active, type: boolean}
    permissions:
      public: {methods: {get: true}, filter: {active: true}}
      user: {methods: {}}
  - name: closed
    permissions: {public: {methods: {post: true}}, user: {methods: {get: true}}}
`

// putIn stores a document of any collection as it is.
func (w *world) putIn(collection string, d bson.D) {
	w.t.Helper()
	raw, err := document.Marshal(d)
	if err != nil {
		w.t.Fatal(err)
	}
	res, err := w.collection(collection).Write(w.t.Context(), []store.Op{{Kind: store.Insert, Doc: raw}}, false)
	if err != nil || res[0].Err != nil {
		w.t.Fatal(err, res)
	}
}

// stagesOf reads a pipeline.
func stagesOf(t testing.TB, text string) bson.A {
	t.Helper()
	list, _ := doc(t, `{"stages": `+text+`}`)[0].Value.(bson.A)
	return list
}

// aggregate gives the results a line, or the error.
func (w *world) aggregate(who, pipeline string) string {
	w.t.Helper()
	return w.aggregateWith(who, records.AggregateParams{Stages: stagesOf(w.t, pipeline)})
}

func (w *world) aggregateWith(who string, p records.AggregateParams) string {
	w.t.Helper()
	return aggregated(w.service.Aggregate(w.t.Context(), w.call(who), p))
}

func aggregated(res *records.Results, err error) string {
	if err != nil {
		return show(err)
	}
	var lines []string
	for _, item := range res.Items {
		lines = append(lines, string(document.AppendJSONValue(nil, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: item}, nil)))
	}
	return strings.Join(lines, "\n")
}

func oid(b byte) bson.ObjectID { return bson.ObjectID{0: 1, 11: b} }

// fillAnalyzed puts records into a world whose hidden values are those that secret makes, and strangers beyond the reach of public.
func fillAnalyzed(w *world, secret func() any, strangers int) {
	w.t.Helper()
	hidden := func(name string, d bson.D) bson.D {
		if v := secret(); v != nil {
			return append(d, bson.E{Key: name, Value: v})
		}
		return d
	}
	for i := range byte(6) {
		name := string(rune('a' + i%3))
		d := bson.D{
			{Key: "_id", Value: oid(i)},
			{Key: "n", Value: int64(i)},
			{Key: "name", Value: name},
			{Key: "at", Value: bson.DateTime(int64(i) * 1000)},
			{Key: "on", Value: true},
			{Key: "tags", Value: bson.A{name, "t", "t"}},
			{Key: "author", Value: oid(100 + i%2)},
			{Key: "seo", Value: hidden("score", bson.D{{Key: "title", Value: name}})},
			{Key: "parts", Value: bson.A{hidden("cost", bson.D{{Key: "sku", Value: name}}), hidden("cost", bson.D{{Key: "sku", Value: "z"}})}},
			{Key: "data", Value: hidden("k", bson.D{{Key: "x", Value: int64(i)}})},
		}
		d = hidden("rank", hidden("secret", d))
		if name == "a" {
			d = append(d, bson.E{Key: "mood", Value: "good"}) // the one value that readers see
		} else {
			d = hidden("mood", d)
		}
		d = append(d, translationsOf(name, hidden)...)
		w.putIn("items", append(d, bson.E{Key: "createdBy", Value: bob.Hex()}, bson.E{Key: "_rev", Value: int64(1)}))
	}
	for i := range byte(3) {
		d := bson.D{{Key: "_id", Value: oid(100 + i)}, {Key: "name", Value: string(rune('p' + i))}, {Key: "active", Value: true}, {Key: "boss", Value: oid(101 + i)}}
		w.putIn("people", hidden("mail", d))
	}
	for i := range strangers {
		id := oid(200 + byte(i))
		w.putIn("items", bson.D{{Key: "_id", Value: id}, {Key: "n", Value: "SECRET"}, {Key: "name", Value: int64(0)}, {Key: "on", Value: false}, {Key: "tags", Value: "SECRET"}, {Key: "author", Value: oid(100)}})
		w.putIn("people", bson.D{{Key: "_id", Value: id}, {Key: "name", Value: "SECRET"}, {Key: "active", Value: false}, {Key: "boss", Value: oid(100)}, {Key: "mail", Value: "SECRET"}})
		w.putIn("people", bson.D{{Key: "_id", Value: oid(103 + byte(i))}, {Key: "name", Value: "SECRET"}, {Key: "active", Value: false}, {Key: "boss", Value: oid(100)}})
	}
}

// translationsOf is those of a record: what hidden adds may be all that there is of a language, or of all of them.
func translationsOf(name string, hidden func(name string, d bson.D) bson.D) bson.D {
	all := bson.D{}
	for _, lang := range []string{"de", "fr"} {
		own := hidden("rank", hidden("secret", bson.D{}))
		if lang == "de" && name != "c" {
			own = append(own, bson.E{Key: "name", Value: "ein " + name}, bson.E{Key: "tags", Value: bson.A{"u"}},
				bson.E{Key: "seo", Value: hidden("score", bson.D{{Key: "title", Value: name}})},
				bson.E{Key: "parts", Value: bson.A{hidden("cost", bson.D{{Key: "sku", Value: name}})}}, bson.E{Key: "data", Value: hidden("k", bson.D{{Key: "x", Value: "y"}})})
		}
		if own = hidden("mood", own); name == "a" && lang == "de" {
			own = append(slices.Clip(own), bson.E{Key: "on", Value: "SECRET"}) // no field of a language
		}
		if len(own) > 0 {
			all = append(all, bson.E{Key: lang, Value: own})
		}
	}
	if len(all) == 0 {
		return nil
	}
	return bson.D{{Key: "_i18n", Value: all}}
}

// unmasking is what has made other products show what they hide, and what might. Stages that can't name a hidden field may
// still look at whole documents.
var unmasking = []string{
	`[]`,
	`[{"$project": {"all": "$$ROOT"}}]`,
	`[{"$replaceWith": {"all": "$$ROOT"}}, {"$project": {"s": "$all.secret", "all.rank": 1, "all.seo.score": 1}}]`,
	`[{"$group": {"_id": "$$ROOT"}}]`,
	`[{"$group": {"_id": null, "all": {"$push": "$$ROOT"}, "max": {"$max": "$$ROOT"}, "min": {"$min": "$seo"}}}, {"$unwind": "$all"}, {"$sort": {"all.secret": 1, "all._id": 1}}, {"$project": {"s": "$all.secret"}}]`,
	`[{"$group": {"_id": {"$getField": "secret"}}}, {"$sort": {"_id": 1}}]`,
	`[{"$group": {"_id": "$name", "m": {"$max": {"$getField": {"field": "secret", "input": "$$CURRENT"}}}, "t": {"$top": {"sortBy": {"n": 1}, "output": "$$ROOT"}}}}, {"$sort": {"_id": 1}}]`,
	`[{"$project": {"x": {"$objectToArray": "$$ROOT"}}}, {"$unwind": "$x"}, {"$group": {"_id": "$x.k", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}]`,
	`[{"$project": {"x": {"$objectToArray": "$seo"}, "y": {"$map": {"input": "$parts", "as": "p", "in": {"$objectToArray": "$$p"}}}}}]`,
	`[{"$project": {"x": {"$map": {"input": "$parts", "in": "$$this.cost"}}, "y": {"$filter": {"input": "$parts", "as": "p", "cond": {"$gt": ["$$p.cost", 1]}}}}}]`,
	`[{"$project": {"x": {"$let": {"vars": {"me": "$$ROOT"}, "in": ["$$me.secret", "$$me.seo.score", {"$getField": {"field": "rank", "input": "$$me"}}]}}}}]`,
	`[{"$project": {"x": {"$let": {"vars": {"CURRENT": "$$ROOT"}, "in": {"$getField": "secret"}}}}}]`,
	`[{"$project": {"x": {"$reduce": {"input": ["secret"], "initialValue": "$$ROOT", "in": "$$value"}}}}]`,
	`[{"$project": {"x": {"$mergeObjects": ["$$ROOT", {"name": 1}]}, "y": {"$mergeObjects": ["$seo", "$data"]}}}]`,
	`[{"$project": {"x": {"$setField": {"field": "other", "input": "$$ROOT", "value": 1}}, "y": {"$unsetField": {"field": "name", "input": "$$ROOT"}}}}]`,
	`[{"$project": {"x": {"$arrayToObject": {"$filter": {"input": {"$objectToArray": "$$ROOT"}, "as": "m", "cond": {"$eq": ["$$m.k", "secret"]}}}}}}]`,
	`[{"$project": {"size": {"$bsonSize": "$$ROOT"}, "seo": {"$bsonSize": "$seo"}, "parts": {"$map": {"input": "$parts", "in": {"$bsonSize": "$$this"}}}}}]`,
	`[{"$project": {"t": {"$type": {"$getField": "secret"}}, "c": {"$cond": [{"$getField": "secret"}, 1, 0]}, "e": {"$eq": ["$seo", {"title": "a"}]}, "cmp": {"$cmp": ["$$ROOT", {}]}}}]`,
	`[{"$project": {"x": {"$divide": [1, {"$ifNull": [{"$getField": "secret"}, 1]}]}}}]`,
	`[{"$project": {"x": {"$toInt": {"$getField": "secret"}}}}]`,
	`[{"$project": {"x": {"$toDate": {"$getField": {"field": "score", "input": "$seo"}}}}}]`,
	`[{"$project": {"x": {"$switch": {"branches": [{"case": {"$getField": "secret"}, "then": 1}]}}}}]`,
	`[{"$project": {"x": {"$divide": ["$n", 0]}}}]`,
	`[{"$project": {"x": {"$toUpper": "$parts"}}}]`,
	`[{"$project": {"x": {"$add": ["$n", 1]}, "y": {"$strLenCP": "$name"}}}]`,
	`[{"$sort": {"name": 1, "_id": 1}}, {"$group": {"_id": null, "first": {"$first": "$$ROOT"}, "last": {"$last": "$$ROOT"}}}]`,
	`[{"$set": {"x": 1}}, {"$sort": {"x.secret": 1, "_id": 1}}]`,
	`[{"$set": {"copy": "$$ROOT"}}, {"$sort": {"copy.secret": 1, "_id": 1}}, {"$match": {"copy.rank": {"$exists": true}}}]`,
	`[{"$set": {"copy": "$$ROOT"}}, {"$match": {"copy.parts.cost": {"$gt": 0}}}, {"$count": "n"}]`,
	`[{"$set": {"secret": "$name"}}, {"$match": {"secret": "a"}}]`,
	`[{"$set": {"seo.score": 1, "parts.cost": 2, "data.k": 3}}]`,
	`[{"$replaceWith": {"$setField": {"field": "secret", "input": "$$ROOT", "value": 1}}}]`,
	`[{"$set": {"seo": {"$setField": {"field": "score", "input": "$seo", "value": 1}}}}]`,
	`[{"$set": {"copy": "$$ROOT"}}, {"$set": {"copy.secret": 1, "copy.seo.score": 1}}]`,
	`[{"$addFields": {"mood": "$name", "rank": 1}}]`,
	`[{"$project": {"name": 0}}, {"$project": {"seo.title": 0}}, {"$set": {"secret": 1}}]`,
	`[{"$facet": {"a": [{"$set": {"secret": 1}}]}}]`,
	`[{"$group": {"_id": null, "all": {"$push": "$$ROOT"}}}, {"$set": {"all.secret": 1, "all.parts.cost": 1}}]`,
	`[{"$lookup": {"from": "people", "localField": "author", "foreignField": "_id", "as": "secret"}}]`,
	`[{"$lookup": {"from": "people", "localField": "author", "foreignField": "_id", "as": "who"}}, {"$set": {"who.mail": 1}}]`,
	`[{"$graphLookup": {"from": "people", "startWith": "$author", "connectFromField": "boss", "connectToField": "_id", "as": "g", "maxDepth": 0}}, {"$set": {"g.mail": 1}}]`,
	`[{"$unionWith": "people"}, {"$set": {"mail": 1}}]`,
	`[{"$unwind": {"path": "$tags", "includeArrayIndex": "rank"}}, {"$unwind": {"path": "$parts", "includeArrayIndex": "parts.cost"}}]`,
	`[{"$set": {"seo.other": 1, "data.y": {"$getField": {"field": "k", "input": "$data"}}}}]`,
	`[{"$unset": ["name", "seo.title"]}, {"$group": {"_id": "$seo", "n": {"$sum": 1}}}]`,
	`[{"$project": {"name": 0}}, {"$sortByCount": "$data"}]`,
	`[{"$sortByCount": {"$getField": "secret"}}]`,
	`[{"$bucket": {"groupBy": {"$getField": "secret"}, "boundaries": [0, 2, 4], "default": "other"}}]`,
	`[{"$bucketAuto": {"groupBy": {"$getField": "secret"}, "buckets": 2}}]`,
	`[{"$bucketAuto": {"groupBy": "$$ROOT", "buckets": 3, "output": {"all": {"$push": "$$ROOT"}}}}]`,
	`[{"$setWindowFields": {"partitionBy": {"$getField": "secret"}, "sortBy": {"n": 1}, "output": {"x": {"$push": "$$ROOT", "window": {"documents": [-1, 0]}}}}}]`,
	`[{"$set": {"copy": "$$ROOT"}}, {"$setWindowFields": {"sortBy": {"copy.secret": 1}, "output": {"x": {"$documentNumber": {}}}}}, {"$sort": {"_id": 1}}]`,
	`[{"$setWindowFields": {"sortBy": {"n": 1}, "output": {"x": {"$sum": {"$getField": "secret"}, "window": {"documents": ["unbounded", "current"]}}}}}]`,
	`[{"$setWindowFields": {"sortBy": {"n": 1}, "output": {"secret": {"$shift": {"output": "$seo", "by": 1}}}}}]`,
	`[{"$unwind": {"path": "$parts", "includeArrayIndex": "cost"}}, {"$project": {"cost": 1, "parts": 1}}]`,
	`[{"$facet": {"a": [{"$project": {"x": {"$getField": "secret"}}}], "b": [{"$group": {"_id": "$seo"}}, {"$sort": {"_id": 1}}], "c": [{"$count": "n"}]}}]`,
	`[{"$sample": {"size": 100}}, {"$group": {"_id": {"$getField": "rank"}, "n": {"$sum": 1}}}]`,
	`[{"$match": {"seo": {"$exists": true}, "data": {"$type": "object"}, "parts": {"$size": 2}}}, {"$count": "n"}]`,
	`[{"$match": {"$nor": [{"tags": "SECRET"}, {"n": {"$type": "string"}}]}}, {"$count": "n"}]`,
	`[{"$match": {"id": "010000000000000000000001"}}]`,
	`[{"$match": {"id": "0100000000000000000000c8"}}]`,
	`[{"$match": {"_id": {"$gt": "010000000000000000000003"}}}, {"$group": {"_id": null, "ids": {"$push": "$_id"}}}]`,
	`[{"$match": {"_id": "x"}}]`,
	`[{"$lookup": {"from": "people", "localField": "author", "foreignField": "_id", "as": "who"}}]`,
	`[{"$lookup": {"from": "people", "localField": "author", "foreignField": "boss", "as": "who"}}, {"$project": {"m": "$who.mail", "n": "$who.name"}}]`,
	`[{"$lookup": {"from": "items", "localField": "_id", "foreignField": "_id", "as": "me"}}, {"$project": {"s": "$me.secret", "p": "$me.parts.cost", "all": "$me"}}]`,
	`[{"$lookup": {"from": "items", "localField": "nothing", "foreignField": "author", "as": "me"}}]`,
	`[{"$set": {"k": "SECRET"}}, {"$lookup": {"from": "items", "localField": "k", "foreignField": "tags", "as": "found"}}, {"$lookup": {"from": "people", "localField": "k", "foreignField": "name", "as": "whom"}}]`,
	`[{"$set": {"k": null}}, {"$lookup": {"from": "people", "localField": "k", "foreignField": "boss", "as": "found"}}]`,
	`[{"$limit": 1}, {"$graphLookup": {"from": "people", "startWith": "$author", "connectFromField": "boss", "connectToField": "_id", "as": "g", "depthField": "mail"}}, {"$set": {"g": {"$sortArray": {"input": "$g", "sortBy": {"_id": 1}}}}}]`,
	`[{"$limit": 1}, {"$graphLookup": {"from": "people", "startWith": [{"$literal": "p"}], "connectFromField": "name", "connectToField": "name", "as": "g", "restrictSearchWithMatch": {"name": {"$ne": "x"}}}}]`,
	`[{"$limit": 1}, {"$graphLookup": {"from": "people", "startWith": {"$getField": "secret"}, "connectFromField": "boss", "connectToField": "_id", "as": "g"}}]`,
	`[{"$unionWith": "people"}, {"$group": {"_id": "$mail", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}]`,
	`[{"$unionWith": {"coll": "people", "pipeline": [{"$project": {"x": {"$getField": "mail"}, "all": "$$ROOT"}}]}}, {"$sort": {"_id": 1}}]`,
	`[{"$unionWith": {"coll": "items", "pipeline": [{"$group": {"_id": "$$ROOT"}}]}}, {"$count": "n"}]`,
	`[{"$project": {"x": "$_i18n", "t": {"$type": "$_i18n"}, "f": {"$type": "$_i18n.fr"}}}]`,
	`[{"$project": {"x": {"$objectToArray": "$_i18n"}, "y": {"$objectToArray": "$_i18n.de"}}}]`,
	`[{"$project": {"x": {"$bsonSize": {"$ifNull": ["$_i18n", {}]}}, "y": {"$bsonSize": {"$ifNull": ["$_i18n.de", {}]}}}}]`,
	`[{"$group": {"_id": "$_i18n", "n": {"$sum": 1}}}]`,
	`[{"$sortByCount": "$_i18n.fr"}]`,
	`[{"$project": {"_i18n.fr": 1}}]`,
	`[{"$project": {"x": {"$getField": {"field": "secret", "input": "$_i18n.de"}}, "y": {"$getField": "_i18n"}}}]`,
	`[{"$set": {"_i18n": 1}}]`,
	`[{"$set": {"_i18n.de.secret": 1, "_i18n.fr.x": 2}}]`,
	`[{"$set": {"de": {"$setField": {"field": "secret", "input": "$_i18n.de", "value": 1}}}}]`,
	`[{"$unset": "_i18n"}, {"$set": {"_i18n": "$name"}}]`,
	`[{"$set": {"copy": "$$ROOT"}}, {"$match": {"copy._i18n.fr": {"$exists": true}}}, {"$count": "n"}]`,
	`[{"$set": {"copy": "$_i18n"}}, {"$sort": {"copy.de.secret": 1, "_id": 1}}]`,
	`[{"$match": {"_i18n.fr": {"$exists": false}}}, {"$count": "n"}]`,
	`[{"$match": {"_i18n.de.secret": {"$exists": true}}}, {"$count": "n"}]`,
	`[{"$match": {"_i18n.de.name": {"$exists": true}}}, {"$sort": {"_i18n.de.name": -1, "_id": 1}}, {"$project": {"_i18n.de.name": 1}}]`,
	`[{"$unwind": {"path": "$_i18n.de.tags", "includeArrayIndex": "_i18n.fr"}}]`,
	`[{"$lookup": {"from": "items", "localField": "_i18n.de.name", "foreignField": "_i18n.de.name", "as": "_i18n"}}]`,
	`[{"$lookup": {"from": "items", "localField": "_id", "foreignField": "_id", "as": "me"}}, {"$project": {"x": "$me._i18n", "s": "$me._i18n.de.secret"}}, {"$set": {"x.fr": 1}}]`,
	`[{"$graphLookup": {"from": "items", "startWith": "$name", "connectFromField": "_i18n.de.name", "connectToField": "name", "as": "g", "maxDepth": 0}}, {"$project": {"g": {"$sortArray": {"input": "$g", "sortBy": {"_id": 1}}}}}]`,
	`[{"$unionWith": {"coll": "items", "pipeline": [{"$project": {"_i18n": 1}}]}}, {"$sort": {"_id": 1, "name": 1}}]`,
}

// TestS6Unmask is rows S4, S5 and S6 of the fault list for aggregations: whatever a pipeline does, its answer does not
// depend on what the caller may not read, errors included. Values that make expressions fail are among it.
func TestS6Unmask(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		rnd := rand.New(rand.NewPCG(1, 2))
		values := []any{nil, nil, int64(0), int64(3), "SECRET", true, bson.A{"SECRET", int64(1)}, bson.D{{Key: "x", Value: "SECRET"}}, bson.DateTime(1), 2.5, bson.NewObjectID()}
		a, b := newWorld(t, s, analyzed), newWorld(t, s, analyzed)
		fillAnalyzed(a, func() any { return nil }, 0)
		fillAnalyzed(b, func() any { return values[rnd.IntN(len(values))] }, 5)
		fine := 0
		for _, pipeline := range unmasking {
			want, got := a.aggregate("public", pipeline), b.aggregate("public", pipeline)
			if !strings.Contains(pipeline, `"$sort"`) { // any order
				want, got = sortLines(want), sortLines(got)
			}
			if want != got {
				t.Errorf("%s\nwithout secrets: %s\nwith some:       %s", pipeline, want, got)
			}
			if strings.Contains(got, "internal") || strings.Contains(strings.ReplaceAll(got, `"k":"SECRET"`, ""), "SECRET") {
				t.Errorf("%s: %s", pipeline, got)
			}
			if strings.HasPrefix(got, "{") {
				fine++
			}
		}
		if fine < len(unmasking)*3/4 {
			t.Errorf("only %d of %d say anything", fine, len(unmasking))
		}
	})
}

func sortLines(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// A pipeline without stages gives what reads give, and a field that expressions hide on some records on none.
func TestAggregateShowsWhatReadsShow(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		for _, config := range []string{strictly, looselyStrict} {
			w := newWorld(t, s, config)
			w.put(`{"title": "A", "own": "o", "gone": "GONE", "seo": {"title": "T", "gone": "GONE", "deep": {"x": 1, "gone": "GONE", "list": [{"y": 1, "gone": "GONE"}]}},
				"parts": [{"sku": "a", "cost": 1, "gone": "GONE"}, {"gone": "GONE"}], "loose": {"a": "1", "more": 2}, "free": {"z": [{"own": 1}]}}`)
			w.put(`{"seo": {}, "parts": [], "title": null, "free": {}}`)
			w.put(`{"gone": 1, "loose": {"a": {"b": 1}}}`)
			w.put(`{"title": "B", "_i18n": {"de": {"title": "Z", "own": "o", "gone": "GONE", "seo": {"title": "T", "gone": "GONE", "deep": {"x": 1, "list": [{"y": 1, "gone": "GONE"}]}},
				"parts": [{"sku": "a", "cost": 1, "gone": "GONE"}], "loose": {"more": 2}, "free": {"z": 1}}, "fr": {"own": "p"}, "it": {"title": "GONE"}}}`)
			w.put(`{"title": "G", "_i18n": {"fr": {"title": "y"}, "de": {"title": "x"}}}`)
			w.put(`{"title": "C", "_i18n": {"de": {"own": "o", "nope": "GONE"}, "fr": {"gone": "GONE", "parts": [{"cost": 1}]}}}`)
			w.put(`{"title": "D", "_i18n": {"fr": {"own": "o", "gone": "GONE"}}}`)
			w.put(`{"title": "E", "_i18n": {"de": {}, "it": 1}}`)
			w.put(`{"title": "F", "_i18n": {}}`)
			for _, who := range []string{"public", "alice", "admin"} {
				page, err := w.service.List(t.Context(), w.call(who), query.Params{})
				if err != nil {
					t.Fatal(show(err))
				}
				var want []string
				for _, rec := range page.Items {
					want = append(want, strings.Replace(string(rec.AppendJSON(nil)), `{"id":`, `{"_id":`, 1))
				}
				got := w.aggregate(who, `[{"$sort": {"id": 1}}]`)
				if got != strings.Join(want, "\n") {
					t.Errorf("%s\n%s reads\n%s\nand aggregates\n%s", config, who, strings.Join(want, "\n"), got)
				}
				if named := w.aggregate(who, `[{"$sort": {"id": 1}}, {"$set": {"none": "$_i18n.de.title"}}, {"$unset": "none"}]`); named != got {
					t.Errorf("%s: with translations named %s\nelse %s", who, named, got)
				}
				deep := w.aggregate(who, `[{"$sort": {"id": 1}}, {"$limit": 1}, {"$graphLookup": {"from": "items", "startWith": "$title", "connectFromField": "title", "connectToField": "title", "as": "g", "depthField": "own"}}]`)
				if !strings.Contains(deep, `"own":0`) || strings.Contains(deep, `"gone":`) != strings.Contains(got, `"gone":`) {
					t.Errorf("%s: %s", who, deep)
				}
				if who != "admin" && strings.Contains(got, "GONE") {
					t.Errorf("%s: %s", who, got)
				}
			}
		}
	})
}

// strictly takes declared fields only, on every level but one that is at the end.
const strictly = `
collections:
  - name: items
    meta: {i18n: {languages: [en, fr, de]}}
    strictFields: true
    queryLimits: {allowAggregate: true, maxTime: 1m}
    fields:
      - {name: title, type: string}
      - {name: own, type: string, hidden: true}
      - {name: seo, type: object, subFields: [{name: title, type: string}, {name: deep, type: object, subFields: [{name: x, type: number}, {name: list, type: "object[]", subFields: [{name: y, type: number}]}]}]}
      - {name: parts, type: "object[]", subFields: [{name: sku, type: string}, {name: cost, type: number}]}
      - {name: loose, type: object, strictFields: false, subFields: [{name: a, type: any}]}
      - {name: free, type: object}
    permissions:
      public: {methods: {get: {aggregate: true, lookup: true}}, hiddenFields: [parts.cost, seo.deep.list.y]}
      user: {methods: {get: {aggregate: true, lookup: true}}, hiddenFields: [seo.deep]}
`

// looselyStrict takes anything but within some objects.
const looselyStrict = `
collections:
  - name: items
    meta: {i18n: {languages: [en, fr, de]}}
    queryLimits: {allowAggregate: true, maxTime: 1m}
    fields:
      - {name: title, type: string}
      - {name: gone, type: string, hidden: true}
      - {name: seo, type: object, strictFields: true, subFields: [{name: title, type: string}, {name: deep, type: object, strictFields: true, subFields: [{name: x, type: number}, {name: list, type: "object[]", strictFields: true, subFields: [{name: y, type: number}]}]}]}
      - {name: parts, type: "object[]", strictFields: true, subFields: [{name: sku, type: string}, {name: cost, type: number}]}
      - {name: loose, type: object, subFields: [{name: a, type: any}]}
    permissions:
      public: {methods: {get: {aggregate: true, lookup: true}}, hiddenFields: [parts.cost]}
      user: {methods: {get: {aggregate: true, lookup: true}}, hiddenFields: [seo.deep.list.y]}
`

// TestAggregateRights: the right aggregate, the right lookup, the other collection's own, and the limit.
func TestAggregateRights(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, analyzed)
		fillAnalyzed(w, func() any { return "SECRET" }, 1)
		const denied = "permission_denied: permission denied"
		lookup := func(from string) string {
			return `[{"$limit": 1}, {"$lookup": {"from": "` + from + `", "localField": "name", "foreignField": "_id", "as": "x"}}, {"$count": "n"}]`
		}
		for _, tt := range []struct{ who, pipeline, want string }{
			{"public", `[{"$count": "n"}]`, `{"n":6}`},
			{"alice", `[{"$count": "n"}]`, denied},
			{"admin", `[{"$count": "n"}]`, `{"n":7}`},
			{"public", lookup("people"), `{"n":1}`},
			{"public", lookup("closed"), denied},
			{"admin", lookup("closed"), `{"n":1}`},
			{"public", lookup("nowhere"), `unknown_collection: unknown collection: nowhere`},
			{"admin", lookup("users"), `unknown_collection: unknown collection: users`},
			{"admin", lookup("_audit"), `unknown_collection: unknown collection: _audit`},
			{"public", `[{"$unionWith": "closed"}]`, denied},
			{"public", `[{"$unionWith": {"coll": "people", "pipeline": [{"$unionWith": "closed"}]}}]`, denied},
			{"public", `[{"$facet": {"a": [{"$unionWith": "closed"}]}}]`, denied},
			{"admin", `[{"$graphLookup": {"from": "svc.users", "startWith": 1, "connectFromField": "a", "connectToField": "b", "as": "x"}}]`, `unknown_collection: unknown collection: svc.users`},
		} {
			if got := w.aggregate(tt.who, tt.pipeline); got != tt.want {
				t.Errorf("%s %s: %s, want %s", tt.who, tt.pipeline, got, tt.want)
			}
		}
	})
}

// What a collection's limits say of aggregations holds for everybody; what they leave open is for those with a credential.
func TestAllowAggregate(t *testing.T) {
	t.Parallel()
	const denied = "permission_denied: permission denied"
	const off = "query_limit: aggregate is off in this collection (queryLimits.allowAggregate)"
	for _, tt := range []struct{ limits, public, user, admin string }{
		{"{}", off, "", ""},
		{"{allowAggregate: true}", "", "", ""},
		{"{allowAggregate: false}", off, off, off},
	} {
		w := newWorld(t, teststore.Memory(t), `
collections:
  - name: items
    queryLimits: `+tt.limits+`
    permissions: {public: {methods: {get: {aggregate: true}}}, user: {methods: {get: {aggregate: true}}}}
  - name: people
    permissions: {public: {methods: {get: true}}, user: {methods: {get: true}}}
`)
		for who, want := range map[string]string{"public": tt.public, "alice": tt.user, "admin": tt.admin} {
			if got := w.aggregate(who, `[]`); got != want {
				t.Errorf("%s as %s: %s, want %s", tt.limits, who, got, want)
			}
		}
		if got := w.aggregate("alice", `[{"$unionWith": "people"}]`); tt.user == "" && got != denied {
			t.Errorf("without the right lookup: %s", got)
		}
	}
}

// TestAggregate shows answers: values as records have them, names as the store has them, and pages.
func TestAggregate(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, analyzed)
		fillAnalyzed(w, func() any { return "SECRET" }, 2)
		two := int64(2)
		res, err := w.service.Aggregate(t.Context(), w.call("public"), records.AggregateParams{
			Where: where(t, `{"n": {"$gte": 1}, "author": "010000000000000000000065"}`), Limit: &two,
			Stages: stagesOf(t, `[{"$match": {"at": {"$gte": "1970-01-01T00:00:01Z"}}}, {"$sort": {"n": -1}}, {"$project": {"author": 1, "at": 1, "dec": {"$toDecimal": "1.50"}, "long": {"$literal": 9007199254740993}}}]`),
		})
		if err != nil {
			t.Fatal(show(err))
		}
		const want = `{"items":[` +
			`{"_id":"010000000000000000000005","at":"1970-01-01T00:00:05.000Z","author":"010000000000000000000065","dec":1.50,"long":9007199254740993},` +
			`{"_id":"010000000000000000000003","at":"1970-01-01T00:00:03.000Z","author":"010000000000000000000065","dec":1.50,"long":9007199254740993}],` +
			`"limit":2,"offset":0,"hasMore":true}`
		if got := string(res.AppendJSON(nil)); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		for _, tt := range []struct {
			limit        int64
			filter, want string
		}{
			{0, "", `{"items":[],"limit":0,"offset":0,"hasMore":false}`},
			{1, `{"n": 1}`, `{"items":[{"_id":"b","n":1}],"limit":1,"offset":0,"hasMore":false}`},
			{3, "", `{"items":[{"_id":"a","n":2},{"_id":"b","n":2},{"_id":"c","n":2}],"limit":3,"offset":0,"hasMore":false}`},
			{1001, "", "query_limit: limit is 1001, the highest allowed is 1000"},
			{-1, "", "bad_parameter: limit and offset can't be negative"},
			{1, `{"secret": 1}`, "unknown_field: unknown field: secret"},
		} {
			res, err := w.service.Aggregate(t.Context(), w.call("public"), records.AggregateParams{
				Where: where(t, tt.filter), Limit: &tt.limit, Stages: stagesOf(t, `[{"$group": {"_id": "$name", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}]`),
			})
			got := show(err)
			if err == nil {
				got = string(res.AppendJSON(nil))
			}
			if got != tt.want {
				t.Errorf("limit %d, filter %s: %s\nwant %s", tt.limit, tt.filter, got, tt.want)
			}
		}
	})
}

// TestS19AggregateIsBounded is row S19 of the fault list: time, memory and the size of the answer.
func TestS19AggregateIsBounded(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		config := strings.Replace(analyzed, "maxTime: 1m", "maxTime: 1ms", 1)
		w := newWorld(t, s, config)
		fillAnalyzed(w, func() any { return nil }, 0)
		many := `{"x": {"$range": [0, 2000]}}`
		got := w.aggregate("public", `[{"$set": `+many+`}, {"$unwind": "$x"}, {"$set": `+strings.Replace(many, "x", "y", 1)+`}, {"$unwind": "$y"}, {"$group": {"_id": null, "n": {"$sum": "$y"}}}]`)
		if !strings.HasPrefix(got, "query_too_slow: ") {
			t.Errorf("a pipeline that goes on for long: %s", got)
		}

		w = newWorld(t, s, analyzed)
		fillAnalyzed(w, func() any { return nil }, 0)
		long := `{"$reduce": {"input": {"$range": [0, 14]}, "initialValue": "xxxxxxxxxxxxxxxx", "in": {"$concat": ["$$value", "$$value"]}}}`
		got = w.aggregate("public", `[{"$set": {"x": {"$range": [0, 2000]}}}, {"$unwind": "$x"}, {"$set": {"long": `+long+`}}, {"$group": {"_id": "$x", "all": {"$push": "$long"}}}, {"$sort": {"all": 1}}]`)
		if !strings.HasPrefix(got, "aggregation_too_large: ") {
			t.Errorf("a pipeline that holds much: %.200s", got)
		}
		thousand := int64(1000)
		res, err := w.service.Aggregate(t.Context(), w.call("public"), records.AggregateParams{
			Limit: &thousand, Stages: stagesOf(t, `[{"$set": {"x": {"$range": [0, 2000]}}}, {"$unwind": "$x"}, {"$project": {"long": `+long+`}}]`),
		})
		if err != nil {
			t.Fatal(show(err))
		}
		size := 0
		for _, item := range res.Items {
			size += len(item)
		}
		if !res.HasMore || size > 33<<20 || len(res.Items) >= 1000 {
			t.Errorf("%d results of %d bytes, more: %v", len(res.Items), size, res.HasMore)
		}
	})
}
