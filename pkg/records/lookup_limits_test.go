package records_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// TestRelationLimits has row S19: each limit of what a query asks of other collections.
func TestRelationLimits(t *testing.T) {
	w := newWorld(t, teststore.Memory(t), library)
	w.fill()
	clauses := func(n int) string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf(`{"author.age": %d}`, i))
		}
		return `{"$or": [` + strings.Join(out, ",") + `]}`
	}
	joins := func(n int) string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf(`{"localField": "author", "as": "x%d"}`, i))
		}
		return "[" + strings.Join(out, ",") + "]"
	}
	const many = "query_limit: the filter's relations and the lookups read other collections more than 5 times, the limit"
	const deep = "query_limit: relations and lookups go through more than 2 collections behind each other, the limit"
	for _, tt := range []struct{ filter, lookup, want string }{
		{clauses(5), "", "ok"},
		{clauses(6), "", many},
		{"", joins(5), "ok"},
		{"", joins(6), many},
		{clauses(3), joins(2), "ok"},
		{clauses(3), joins(3), many},
		{clauses(3), "author.org,tags", many},
		{`{"author.name": {"$in": ["a", null]}}`, "author,tags,any", "ok"},
		{`{"author.name": {"$in": ["a", null]}}`, "author,tags,any,parent", many}, // null is another question
		{`{"author.org.name": "x", "parent.author.name": "x"}`, "", "ok"},
		{`{"author.org.name": "x", "parent.author.name": "x"}`, "author,tags", many},
		{`{"author.org.head.name": "x"}`, "", deep},
		{`{"parent.parent.parent.n": 1}`, "", deep},
		{"", "author.org.head", deep},
		{"", `[{"localField": "author", "as": "x", "lookup": {"localField": "org", "as": "y", "lookup": "head"}}]`, deep},
		{"", `[{"localField": "author", "as": "x", "lookup": "org", "filter": {"org.head.name": "x"}}]`, deep},
		{`{"tags.label": {"$regex": "o"}}`, "", "query_limit: regular expressions must begin with ^, each of their alternatives too, in this collection"},
		{`{"tags": {"$elemMatch": {"label": {"$not": {"$regex": "o"}}}}}`, "", "query_limit: regular expressions must begin with ^, each of their alternatives too, in this collection"},
		{`{"author.name": {"$regex": "o"}}`, "", "ok"},
		{"", `[{"localField": "author", "as": "` + strings.Repeat("x", 8200) + `"}]`, "query_limit: lookup is 8236 bytes long, the limit is 8192"},
	} {
		_, err := w.service.List(t.Context(), w.call("public"), query.Params{Where: where(t, tt.filter), Lookup: tt.lookup})
		if got := show(err); got != tt.want {
			t.Errorf("%s lookup %.80s\ngot  %s\nwant %s", tt.filter, tt.lookup, got, tt.want)
		}
	}
}

// TestRelationLimitsCountWhatIsReadable: what a caller can't read doesn't use up what they may ask for, so that no limit
// tells of it.
func TestRelationLimitsCountWhatIsReadable(t *testing.T) {
	w := newWorld(t, teststore.Memory(t), library)
	w.fill()
	ops := make([]store.Op, 10_001)
	for i := range ops {
		ops[i] = store.Op{Kind: store.Insert, Doc: w.raw(fmt.Sprintf(`{"_id": "@%d", "name": "N", "age": 1, "on": false}`, 1000+i))}
	}
	w.insert("authors", ops)
	filter, join := where(t, `{"author.age": {"$gt": 0}}`), `[{"from": "authors", "localField": "n", "foreignField": "age", "as": "same"}]`
	for who, want := range map[string][2]string{
		"public": {"ok", "ok"},
		"admin": {
			"query_limit: more than 10000 records of authors match what the filter asks of them: narrow it",
			"query_limit: lookup: more than 10000 records of authors belong to these, or more than 32 MiB of them: ask for fewer records, or give the lookup a filter",
		},
	} {
		_, filtered := w.service.List(t.Context(), w.call(who), query.Params{Where: filter})
		_, joined := w.service.List(t.Context(), w.call(who), query.Params{Lookup: join})
		if got := [2]string{show(filtered), show(joined)}; got != want {
			t.Errorf("%s\ngot  %v\nwant %v", who, got, want)
		}
	}
}

// A record that is found again and again makes no answer larger than a page may be.
func TestLookupsAreBoundedInBytes(t *testing.T) {
	w := newWorld(t, teststore.Memory(t), library)
	w.shelve("tags", `{"_id": "@31", "slug": "big", "label": "`+strings.Repeat("x", 1<<20)+`"}`)
	big := strings.Repeat(`"big",`, 20)
	w.shelve("items", `{"_id": "@51", "n": 1, "tags": [`+strings.TrimSuffix(big, ",")+`]}`, `{"_id": "@52", "n": 2, "tags": [`+strings.TrimSuffix(big, ",")+`]}`)
	for _, tt := range []struct{ filter, lookup, sel, want string }{
		{`{"n": 1}`, "tags", "", "ok"},
		{"", "tags", "", "query_limit: lookup: what is found makes the page larger than 32 MiB: ask for fewer records, or select less of what is looked up"},
		{"", "tags", "tags.slug", "ok"},
		{"", `[{"localField": "tags", "as": "x"}]`, "", "ok"}, // each once
		{`{"n": 1}`, `["tags", {"from": "items", "localField": "n", "foreignField": "n", "as": "x", "lookup": "tags"}]`, "", "query_limit: lookup: what is found makes the page larger than 32 MiB: ask for fewer records, or select less of what is looked up"},
	} {
		_, err := w.service.List(t.Context(), w.call("public"), query.Params{Where: where(t, tt.filter), Lookup: tt.lookup, Select: tt.sel})
		if got := show(err); got != tt.want {
			t.Errorf("%s lookup %s\ngot  %s\nwant %s", tt.filter, tt.lookup, got, tt.want)
		}
	}
}

// counting counts the queries that a store is asked.
type counting struct {
	store.Store

	queries *[]string
}

type countingDatabase struct {
	store.Database

	queries *[]string
}

type countingCollection struct {
	store.Collection

	name    string
	queries *[]string
}

func (c counting) Database(name string) store.Database {
	return countingDatabase{c.Store.Database(name), c.queries}
}

func (c countingDatabase) Collection(name string) store.Collection {
	return countingCollection{c.Database.Collection(name), name, c.queries}
}

func (c countingCollection) Find(ctx context.Context, q store.Query, fn func(bson.Raw) error) error {
	*c.queries = append(*c.queries, c.name)
	return c.Collection.Find(ctx, q, fn)
}

// Whatever the number of records, each lookup and each condition behind a relation is one query.
func TestOneQueryALevel(t *testing.T) {
	var queries []string
	w := newWorld(t, counting{teststore.Memory(t), &queries}, library)
	w.fill()
	for _, tt := range []struct{ filter, lookup, want string }{
		{"", "", "items"},
		{"", "author", "items authors"},
		{"", "author.org,tags", "items authors orgs tags"},
		{"", `[{"localField": "author", "as": "x", "lookup": "org"}, "lines.author"]`, "items authors orgs authors"},
		{`{"author.org.name": "Acme"}`, "author", "orgs authors items authors"},
		{`{"n": 8}`, "author", "items"}, // refers to nothing
		{`{"n": 800}`, "author", "items"},
	} {
		queries = nil
		if _, err := w.service.List(t.Context(), w.call("public"), query.Params{Where: where(t, tt.filter), Lookup: tt.lookup}); err != nil {
			t.Fatal(show(err))
		}
		if got := strings.Join(queries, " "); got != tt.want {
			t.Errorf("%s lookup %s: asked %s, want %s", tt.filter, tt.lookup, got, tt.want)
		}
	}
}

// TestLookupHooks: what is looked up goes through the other collection's stage get.read, once for all, and the answer's
// stage sees it as the caller would.
func TestLookupHooks(t *testing.T) {
	config := collections(`
name: items
strictFields: true
fields: [{name: n, type: number}, {name: author, type: string, meta: {foreign: {collection: authors}}}]
hooks: {get: {return: {type: javascript, file: return.js}}}
permissions: {public: {methods: {get: {lookup: true}}}, user: {methods: {}}}
`, `
name: authors
fields: [{name: name, type: string}, {name: mail, type: string, hidden: true}, {name: drop, type: boolean}]
hooks: {get: {read: {type: javascript, file: read.js}, return: {type: javascript, file: never.js}}}
permissions: {public: {methods: {get: true}, filter: {type: javascript, file: filter.js}}, user: {methods: {}}}
`)
	files := map[string]string{
		"filter.js": "module.exports = (ctx) => { if (ctx.query && ctx.query.lookup) throw new Error('another collection\\'s query'); return {name: {$ne: 'Eve'}} }",
		"read.js":   "module.exports = (ctx) => { const see = (d) => ({...d, name: d.name.toUpperCase(), mail: 'told'}); if (ctx.doc) ctx.doc = see(ctx.doc); else ctx.docs = ctx.docs.filter((d) => !d.drop).map(see) }",
		"never.js":  "module.exports = () => { throw new Error('shapes answers of authors') }",
		"return.js": "module.exports = (ctx) => { const see = (d) => ({...d, n: d.author && d.author.name ? d.author.name.length + (d.author.mail ? 100 : 0) : -1}); ctx.result = ctx.result.items ? {...ctx.result, items: ctx.result.items.map(see)} : see(ctx.result) }",
	}
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newScripted(t, s, config, files)
		w.shelve("authors", `{"_id": "@1", "name": "ann", "mail": "m"}`, `{"_id": "@2", "name": "bo", "drop": true}`, `{"_id": "@3", "name": "Eve"}`)
		w.shelve("items", `{"_id": "@51", "n": 1, "author": "@1"}`, `{"_id": "@52", "n": 2, "author": "@2"}`, `{"_id": "@53", "n": 3, "author": "@3"}`, `{"_id": "@54", "n": 4, "author": "@1"}`)
		w.stages()
		const ann = `{"author":{"id":@1,"name":"ANN"},"n":3}`
		if got, want := listed(t, w, "public", query.Params{Lookup: "author"}), strings.Join([]string{ann, `{"author":null,"n":-1}`, `{"author":null,"n":-1}`, ann}, "\n"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got, want := w.stages(), "filter of authors, get.read of authors, get.return"; got != want {
			t.Errorf("ran %s, want %s", got, want)
		}
		join := query.Params{Where: where(t, `{"n": 1}`), Lookup: `[{"localField": "author", "as": "by"}]`}
		if got, want := listed(t, w, "public", join), `{"author":@1,"by":[{"id":@1,"name":"ANN"}],"n":-1}`; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		rec, err := w.service.Get(t.Context(), w.call("public"), number(51).Hex(), records.GetParams{Lookup: "author"})
		if err != nil || short(t, &rec) != ann {
			t.Errorf("got %s %s", show(err), short(t, &rec))
		}
	})
}

// TestS8BulkFiltersThroughRelations: a bulk write finds by relations what a list would, and only that.
func TestS8BulkFiltersThroughRelations(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, library)
		w.fill()
		for _, tt := range []struct{ filter, want string }{
			{`{"author.name": "Ann"}`, "1"},
			{`{"author.name": "Dan"}`, "0"},
			{`{"author.mail": "dan@x"}`, "unknown_field: unknown field: author.mail"},
			{`{"closed.name": "secret"}`, "permission_denied: permission denied"},
		} {
			res, err := w.service.BulkUpdate(t.Context(), w.call("public"), where(t, tt.filter), doc(t, `{"n": 1}`))
			got := show(err)
			if err == nil {
				got = strconv.Itoa(res.Matched)
			}
			if got != tt.want {
				t.Errorf("%s: %s, want %s", tt.filter, got, tt.want)
			}
		}
	})
}
