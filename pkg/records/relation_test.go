package records_test

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// library has books, whose relations are of every form, and what they refer to.
var library = collections(`
name: items
fields:
  - {name: n, type: number}
  - {name: author, type: string, index: [single], meta: {foreign: {collection: authors}}}
  - {name: tags, type: "string[]", meta: {foreign: {collection: tags, key: slug}}}
  - {name: lines, type: "object[]", subFields: [{name: qty, type: number}, {name: author, type: string, meta: {foreign: {collection: authors, key: _id}}}]}
  - {name: seo, type: object, subFields: [{name: by, type: string, meta: {foreign: {collection: authors}}}]}
  - {name: parent, type: string, meta: {foreign: {collection: items}}}
  - {name: mail, type: string, meta: {foreign: {collection: authors, key: mail}}}
  - {name: any, type: any, meta: {foreign: {collection: tags, key: slug}}}
  - {name: ghost, type: string, hidden: true, meta: {foreign: {collection: authors}}}
  - {name: closed, type: string, meta: {foreign: {collection: closed}}}
meta: {defaultSort: n}
permissions:
  public: {methods: {get: {lookup: true}, put: {bulk: true}}, filter: {n: {$lt: 100}}}
  user: {methods: {get: true}}
`, `
name: authors
fields:
  - {name: name, type: string}
  - {name: age, type: number}
  - {name: born, type: date}
  - {name: mail, type: string, hidden: true}
  - {name: seo, type: object, subFields: [{name: title, type: string}, {name: score, type: number, hidden: true}]}
  - {name: org, type: string, meta: {foreign: {collection: orgs}}}
  - {name: mood, type: string, hidden: {eval: "ctx.doc.name !== 'Ann'"}}
  - {name: on, type: boolean}
  - {name: names, type: "string[]"}
meta: {defaultSort: -name}
permissions:
  public: {methods: {get: true}, filter: {on: true}}
  user: {methods: {get: true}}
`, `
name: orgs
fields: [{name: name, type: string}, {name: head, type: string, meta: {foreign: {collection: authors}}}]
permissions:
  public: {methods: {get: true}}
  user: {methods: {get: true}}
`, `
name: tags
queryLimits: {regex: anchored}
fields: [{name: slug, type: string}, {name: label, type: string}]
permissions:
  public: {methods: {get: true}}
  user: {methods: {get: true}}
`, `
name: closed
fields: [{name: name, type: string}]
permissions:
  public: {methods: {}}
  user: {methods: {}}
`)

// shelve stores documents in a collection as they are, past all rules. Numbers are ids.
func (w *world) shelve(collection string, docs ...string) {
	w.t.Helper()
	ops := make([]store.Op, len(docs))
	for i, text := range docs {
		ops[i] = store.Op{Kind: store.Insert, Doc: w.raw(text)}
	}
	w.insert(collection, ops)
}

func (w *world) insert(collection string, ops []store.Op) {
	w.t.Helper()
	res, err := w.collection(collection).Write(w.t.Context(), ops, true)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range res {
		if r.Err != nil {
			w.t.Fatal(r.Err)
		}
	}
}

// number is the ObjectID that stands for a number in tests.
func number(n int) bson.ObjectID { return bson.ObjectID{10: byte(n >> 8), 11: byte(n)} }

// raw reads a document in which @7 is an id.
func (w *world) raw(text string) bson.Raw {
	w.t.Helper()
	raw, err := document.Marshal(ids(doc(w.t, text)).(bson.D))
	if err != nil {
		w.t.Fatal(err)
	}
	return raw
}

func ids(v any) any {
	switch v := v.(type) {
	case string:
		var n int
		if _, err := fmt.Sscanf(v, "@%d", &n); err == nil {
			return number(n)
		}
	case bson.D:
		for i := range v {
			v[i].Value = ids(v[i].Value)
		}
	case bson.A:
		for i := range v {
			v[i] = ids(v[i])
		}
	}
	return v
}

// fill stores a small library: authors 1 to 4, of which 4 is unreadable, and books.
func (w *world) fill() {
	w.t.Helper()
	w.shelve("orgs", `{"_id": "@21", "name": "Acme", "head": "@2"}`, `{"_id": "@22", "name": "Bolt"}`)
	w.shelve("authors",
		`{"_id": "@1", "name": "Ann", "age": 30, "mail": "ann@x", "org": "@21", "mood": "fine", "on": true, "seo": {"title": "A", "score": 1}, "names": ["Annie", "An"]}`,
		`{"_id": "@2", "name": "Bea", "age": 40, "mail": "bea@x", "org": "@22", "mood": "sad", "on": true, "seo": {"title": "B", "score": 2}}`,
		`{"_id": "@3", "name": null, "age": 40, "mail": "cy@x", "org": "@29", "on": true}`,
		`{"_id": "@4", "name": "Dan", "age": 30, "mail": "dan@x", "org": "@21", "on": false}`)
	w.shelve("tags", `{"_id": "@31", "slug": "go", "label": "Go"}`, `{"_id": "@32", "slug": "js", "label": "JS"}`, `{"_id": "@33", "label": "none"}`)
	w.shelve("closed", `{"_id": "@41", "name": "secret"}`)
	w.shelve("items",
		`{"_id": "@51", "n": 1, "author": "@1", "tags": ["go", "js"], "any": "go", "seo": {"by": "@1"}, "mail": "ann@x", "ghost": "@1", "closed": "@41"}`,
		`{"_id": "@52", "n": 2, "author": "@2", "tags": ["js", "gone", "js"], "any": ["js", "go"], "lines": [{"qty": 1, "author": "@1"}, {"qty": 2, "author": "@2"}], "parent": "@51"}`,
		`{"_id": "@53", "n": 3, "author": "@3", "tags": [], "parent": "@53"}`,
		`{"_id": "@54", "n": 4, "author": "@4", "lines": [{"qty": 2, "author": "@4"}, {"qty": 3}], "parent": "@59"}`,
		`{"_id": "@55", "n": 5, "author": "@9", "tags": ["gone"]}`,
		`{"_id": "@56", "n": 6, "any": {"slug": "go"}}`,
		`{"_id": "@57", "n": 7, "author": "000000000000000000000001", "any": 5}`,
		`{"_id": "@58", "n": 8, "author": null}`,
		`{"_id": "@59", "n": 100, "author": "@1"}`)
}

// TestRelationFilters has rows S1, S3, S4, S5, S10: what a filter asks of related records holds as if they were in the place
// of what refers to them, within what the caller may read.
func TestRelationFilters(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, library)
		w.fill()
		hex := func(n int) string { return `"` + number(n).Hex() + `"` }
		unknown := func(path string) string { return "unknown_field: unknown field: " + path }
		for _, tt := range []struct{ who, filter, want string }{
			{"public", `{"author.name": "Ann"}`, "1"},
			{"public", `{"author.name": {"$in": ["Ann", "Bea", "Dan"]}}`, "1 2"},
			{"public", `{"author.age": {"$gt": 35}}`, "2 3"},
			{"public", `{"author.age": {"$gt": 25, "$lt": 35}}`, "1"},
			{"public", `{"author.names": "Annie"}`, "1"},
			{"public", `{"author.names": {"$size": 2}}`, "1"},
			{"public", `{"author.names.0": "An"}`, ""},
			{"public", `{"author.names.1": "An"}`, "1"},
			{"public", `{"author.seo.title": {"$regex": "^b", "$options": "i"}}`, "2"},
			{"public", `{"author.id": ` + hex(2) + `}`, "2"},
			{"public", `{"author._id": {"$in": [` + hex(1) + `, ` + hex(4) + `]}}`, "1"},
			{"public", `{"author.name": "Dan"}`, ""}, // is not readable
			{"admin", `{"author.name": "Dan"}`, "4"},
			{"public", `{"author": ` + hex(4) + `}`, "4"},

			// What is not there, or can't be read, is missing.
			{"public", `{"author.name": null}`, "3 4 5 6 7 8"},
			{"admin", `{"author.name": null}`, "3 5 6 7 8"},
			{"public", `{"author.name": {"$exists": false}}`, "4 5 6 7 8"},
			{"public", `{"author.name": {"$exists": true}}`, "1 2 3"},
			{"public", `{"author.name": {"$ne": "Ann"}}`, "2 3 4 5 6 7 8"},
			{"public", `{"author.name": {"$ne": null}}`, "1 2"},
			{"public", `{"author.name": {"$nin": ["Ann", "Dan"]}}`, "2 3 4 5 6 7 8"},
			{"public", `{"author.name": {"$nin": ["Ann", null]}}`, "2"},
			{"public", `{"author.name": {"$in": ["Ann", null]}}`, "1 3 4 5 6 7 8"},
			{"public", `{"author.name": {"$not": {"$gt": "B"}}}`, "1 3 4 5 6 7 8"},
			{"public", `{"author.age": {"$not": {"$gt": 20, "$lt": 35}}}`, "2 3 4 5 6 7 8"},
			{"public", `{"author.name": {"$not": {"$exists": false}}}`, "1 2 3"},
			{"public", `{"author.name": {"$type": "null"}}`, "3"},
			{"public", `{"author.name": {"$gte": null}}`, "3 4 5 6 7 8"},
			{"public", `{"author.name": {"$in": []}}`, ""},
			{"public", `{"author.name": {"$nin": []}}`, "1 2 3 4 5 6 7 8"},

			{"public", `{"$or": [{"author.name": "Ann"}, {"n": 3}]}`, "1 3"},
			{"public", `{"$nor": [{"author.age": 40}, {"n": {"$gt": 5}}]}`, "1 4 5"},
			{"public", `{"$and": [{"author.age": 40}, {"author.name": "Bea"}]}`, "2"},

			// Lists of what is referred to, by another key than the id.
			{"public", `{"tags.label": "Go"}`, "1"},
			{"public", `{"tags.label": "JS"}`, "1 2"},
			{"public", `{"tags.0.label": "JS"}`, "2"},
			{"public", `{"tags.label": {"$all": ["Go", "JS"]}}`, "1"},
			{"public", `{"tags.label": {"$ne": "Go"}}`, "2 3 4 5 6 7 8"},
			{"public", `{"tags.label": "none"}`, ""}, // has no key, and so have some records no tags
			{"public", `{"tags": {"$elemMatch": {"label": "JS", "slug": "js"}}}`, "1 2"},
			{"public", `{"tags": {"$not": {"$elemMatch": {"label": "JS"}}}}`, "3 4 5 6 7 8"},
			{"public", `{"tags.label": {"$regex": "^J"}}`, "1 2"},
			{"public", `{"any.label": "Go"}`, "1 2"},
			{"public", `{"any.0.label": "JS"}`, "2"},

			// In objects, and in objects of lists.
			{"public", `{"seo.by.name": "Ann"}`, "1"},
			{"public", `{"lines.author.name": "Ann"}`, "2"},
			{"public", `{"lines.1.author.name": "Ann"}`, ""},
			{"public", `{"lines": {"$elemMatch": {"qty": 2, "author.name": "Bea"}}}`, "2"},
			{"public", `{"lines": {"$elemMatch": {"qty": 1, "author.name": "Bea"}}}`, ""},
			{"public", `{"lines": {"$elemMatch": {"qty": 2, "author.name": {"$ne": "Bea"}}}}`, "4"},
			{"public", `{"lines": {"$not": {"$elemMatch": {"author": {"$elemMatch": {"name": "Ann"}}}}}}`, "1 3 4 5 6 7 8"},
			{"public", `{"author": {"$elemMatch": {"age": 40, "name": "Bea"}}}`, "2"},
			{"public", `{"author": {"$elemMatch": {"age": 40, "name": {"$ne": "Bea"}}}}`, "3"},
			{"public", `{"author": {"$elemMatch": {"id": ` + hex(2) + `}}}`, "2"},

			// Through more than one, and back into the same collection.
			{"public", `{"author.org.name": "Acme"}`, "1"},
			{"public", `{"author.org.name": {"$ne": "Acme"}}`, "2 3 4 5 6 7 8"},
			{"public", `{"author": {"$elemMatch": {"org.name": "Bolt", "age": 40}}}`, "2"},
			{"public", `{"parent.n": 1}`, "2"},
			{"public", `{"parent.n": 3}`, "3"},
			{"public", `{"parent.n": 100}`, ""},
			{"public", `{"parent.author.name": "Ann"}`, "2"},
			{"admin", `{"parent.author.name": "Ann"}`, "2 4"},
			{"admin", `{"parent.n": 100}`, "4"},

			{"public", `{"author.nope": 1}`, unknown("author.nope")},
			{"public", `{"author.mail": "ann@x"}`, unknown("author.mail")},
			{"public", `{"author.mail": {"$exists": true}}`, unknown("author.mail")},
			{"public", `{"author.mail.x": 1}`, unknown("author.mail.x")},
			{"public", `{"author.mood": "fine"}`, unknown("author.mood")},
			{"public", `{"author.seo.score": 1}`, unknown("author.seo.score")},
			{"public", `{"lines": {"$elemMatch": {"author.mail": "x"}}}`, unknown("lines.author.mail")},
			{"public", `{"author": {"$elemMatch": {"mail": "ann@x"}}}`, unknown("author.mail")},
			{"public", `{"author": {"$not": {"$elemMatch": {"$or": [{"mail": "ann@x"}]}}}}`, unknown("author.mail")},
			{"public", `{"parent.author.mail": 1}`, unknown("parent.author.mail")},
			{"public", `{"parent.ghost": 1}`, unknown("parent.ghost")},
			{"public", `{"parent.ghost.name": 1}`, unknown("parent.ghost.name")},
			{"public", `{"ghost.name": "Ann"}`, unknown("ghost.name")},
			{"public", `{"ghost.mail": "Ann"}`, unknown("ghost.mail")},
			{"public", `{"mail.name": "Ann"}`, unknown("mail.name")}, // the key is hidden there
			{"admin", `{"mail.name": "Ann"}`, "1"},
			{"public", `{"n.x": 1}`, unknown("n.x")},
			{"public", `{"author.seo": {"title": "A", "score": 1}}`, "not_comparable: author.seo can't be compared as a whole: name one of its fields"},
			{"public", `{"author.": 1}`, `bad_filter: filter: "author." is not a field path`},
			{"public", `{"author.name": {"$where": "1"}}`, `bad_filter: filter: author.name: operator "$where" is not supported here; there are $eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $not, $exists, $type, $all, $elemMatch, $size, $mod, $regex and $options`},
			{"public", `{"author": {"$elemMatch": {"$elemMatch": {"name": "Ann"}}}}`, "bad_filter: filter: author.name: an $elemMatch on a relation can't be inside another"},

			{"public", `{"closed.name": "secret"}`, "permission_denied: permission denied"},
			{"public", `{"closed.nope": "secret"}`, "permission_denied: permission denied"},
			{"public", `{"closed": ` + hex(41) + `}`, "1"},
			{"alice", `{"author.name": "Ann"}`, "permission_denied: permission denied"}, // the set has no lookup
			{"alice", `{"author": ` + hex(1) + `}`, "1 100"},
		} {
			page, err := w.service.List(t.Context(), w.call(tt.who), query.Params{Where: where(t, tt.filter)})
			got := show(err)
			if err == nil {
				got = names(t, page)
			}
			want := tt.want
			if tt.who == "admin" && err == nil {
				got = strings.TrimSuffix(strings.TrimSuffix(got, "100"), " ")
			}
			if got != want {
				t.Errorf("%s %s\ngot  %s\nwant %s", tt.who, tt.filter, got, want)
			}
			n, countErr := w.service.Count(t.Context(), w.call(tt.who), where(t, tt.filter))
			if show(countErr) != show(err) || err == nil && tt.who != "admin" && int(n) != len(page.Items) {
				t.Errorf("%s count %s: %d, %s", tt.who, tt.filter, n, show(countErr))
			}
		}
	})
}
