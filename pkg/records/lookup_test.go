package records_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// short is the JSON of a record with the ids of tests written as @7.
func short(t testing.TB, rec *records.Record) string {
	t.Helper()
	text := bare(t, rec.AppendJSON(nil))
	for n := range 60 {
		text = strings.ReplaceAll(text, `"`+number(n).Hex()+`"`, fmt.Sprintf("@%d", n))
	}
	return text
}

// long writes ids of tests out.
func long(text string) string {
	for n := 59; n > 0; n-- {
		text = strings.ReplaceAll(text, fmt.Sprintf("@%d", n), number(n).Hex())
	}
	return text
}

func listed(t testing.TB, w *world, who string, p query.Params) string {
	t.Helper()
	page, err := w.service.List(t.Context(), w.call(who), p)
	if err != nil {
		return show(err)
	}
	var out []string
	for i := range page.Items {
		out = append(out, short(t, &page.Items[i]))
	}
	return strings.Join(out, "\n")
}

// TestLookups has rows S1, S3 and S5: what is looked up is as the caller could read it there.
func TestLookups(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, library)
		w.fill()
		const (
			ann = `{"age":30,"id":@1,"mood":"fine","name":"Ann","names":["Annie","An"],"on":true,"org":@21,"seo":{"title":"A"}}`
			bea = `{"age":40,"id":@2,"name":"Bea","on":true,"org":@22,"seo":{"title":"B"}}`
			dan = `{"age":30,"id":@4,"mail":"dan@x","name":"Dan","on":false,"org":@21}`
		)
		unknown := func(path string) string { return "unknown_field: unknown field: " + path }
		for _, tt := range []struct{ who, filter, sel, lookup, want string }{
			{"public", `{"n": 1}`, "author", "author", `{"author":` + ann + `}`},
			{"public", `{"n": 1}`, "n", "author", `{"author":` + ann + `,"n":1}`}, // what is looked up always comes
			{"public", `{"n": {"$lte": 2}}`, "id", "author", `{"author":` + ann + `}` + "\n" + `{"author":` + bea + `}`},
			{"public", `{"n": 1}`, "-tags,-any,-seo,-mail,-closed", "author", `{"author":` + ann + `,"n":1}`},
			{"public", `{"n": 1}`, "-author,-tags,-any,-seo,-mail,-closed", "author", `{"n":1}`},
			{"admin", `{"n": 4}`, "author", "author", `{"author":` + dan + `}`},

			// What is missing, not readable or no id is null, or left out of a list; the order of a list stays.
			{"public", `{"n": {"$gte": 4, "$lt": 9}}`, "author", "author", `{"author":null}` + "\n" + `{"author":null}` + "\n" + `{}` + "\n" + `{"author":null}` + "\n" + `{"author":null}`},
			{"public", `{"n": 1}`, "tags", "tags", `{"tags":[{"id":@31,"label":"Go","slug":"go"},{"id":@32,"label":"JS","slug":"js"}]}`},
			{"public", `{"n": 2}`, "tags", "tags", `{"tags":[{"id":@32,"label":"JS","slug":"js"},{"id":@32,"label":"JS","slug":"js"}]}`},
			{"public", `{"n": {"$in": [3, 5]}}`, "tags", "tags", `{"tags":[]}` + "\n" + `{"tags":[]}`},
			{"public", `{"n": 1}`, "any", "any", `{"any":{"id":@31,"label":"Go","slug":"go"}}`},
			{"public", `{"n": 2}`, "any.slug", "any", `{"any":[{"id":@32,"slug":"js"},{"id":@31,"slug":"go"}]}`},
			{"public", `{"n": 6}`, "any", "any", `{"any":{"slug":"go"}}`},
			{"public", `{"n": 7}`, "any", "any", `{"any":null}`},

			// Inside objects, and objects of lists; nested; back into the same collection.
			{"public", `{"n": 1}`, "seo.by.name", "seo.by", `{"seo":{"by":{"id":@1,"name":"Ann"}}}`},
			{
				"public", `{"n": {"$in": [2, 4]}}`, "lines.qty,lines.author.name", "lines.author",
				`{"lines":[{"author":{"id":@1,"name":"Ann"},"qty":1},{"author":{"id":@2,"name":"Bea"},"qty":2}]}` + "\n" + `{"lines":[{"author":null,"qty":2},{"qty":3}]}`,
			},
			{"public", `{"n": 1}`, "author.name,author.org.name", "author,author.org", `{"author":{"id":@1,"name":"Ann","org":{"id":@21,"name":"Acme"}}}`},
			{"public", `{"n": 1}`, "author.org.name", "author.org", `{"author":{"id":@1,"org":{"id":@21,"name":"Acme"}}}`},
			{"public", `{"n": 3}`, "author", "author.org", `{"author":{"age":40,"id":@3,"name":null,"on":true,"org":null}}`},
			{
				"public", `{"n": {"$in": [2, 3, 4]}}`, "parent.n,parent.author.name", "parent.author",
				`{"parent":{"author":{"id":@1,"name":"Ann"},"id":@51,"n":1}}` + "\n" + `{"parent":{"author":{"id":@3,"name":null},"id":@53,"n":3}}` + "\n" + `{"parent":null}`,
			},
			{"public", `{"n": 1}`, "author.name,tags.label", "author,tags", `{"author":{"id":@1,"name":"Ann"},"tags":[{"id":@31,"label":"Go"},{"id":@32,"label":"JS"}]}`},
			{
				"public", `{"n": 1}`, "-author.age,-author.seo,-author.names,-tags,-any,-seo,-mail,-closed", "author",
				`{"author":{"id":@1,"mood":"fine","name":"Ann","on":true,"org":@21},"n":1}`,
			},

			// The JSON form: a list, as a member of its own.
			{"public", `{"n": 1}`, "n", `[{"from": "authors", "localField": "author", "foreignField": "id", "select": "name"}]`, `{"authors":[{"id":@1,"name":"Ann"}],"n":1}`},
			{"public", `{"n": {"$in": [1, 4]}}`, "id", `[{"localField": "author", "select": {"name": 1}, "as": "by"}]`, `{"by":[{"id":@1,"name":"Ann"}]}` + "\n" + `{"by":[]}`},
			{"public", `{"n": 2}`, "id", `[{"localField": "tags", "as": "labels", "select": ["x"]}]`, "bad_select: select must be a text or an object"},
			{"public", `{"n": 2}`, "id", `[{"localField": "tags", "as": "labels", "select": "label"}]`, `{"labels":[{"id":@32,"label":"JS"}]}`},
			{"public", `{"n": 1}`, "id", `[{"localField": "tags", "as": "labels", "select": "label", "sort": "-label"}]`, `{"labels":[{"id":@32,"label":"JS"},{"id":@31,"label":"Go"}]}`},
			{"public", `{"n": 1}`, "id", `[{"localField": "tags", "as": "labels", "select": "label", "sort": {"label": -1}, "limit": 1}]`, `{"labels":[{"id":@32,"label":"JS"}]}`},
			{"public", `{"n": 1}`, "id", `[{"localField": "tags", "as": "labels", "select": "label", "filter": {"label": {"$ne": "JS"}}}]`, `{"labels":[{"id":@31,"label":"Go"}]}`},
			{"public", `{"n": 1}`, "id", `{"localField": "tags", "as": "tags", "select": "label"}`, `{"tags":[{"id":@31,"label":"Go"},{"id":@32,"label":"JS"}]}`},
			{"public", `{"n": 2}`, "id", `{"localField": "lines.author", "as": "lines.author", "select": "name"}`, `{"lines":[{"author":[{"id":@1,"name":"Ann"}]},{"author":[{"id":@2,"name":"Bea"}]}]}`},
			{"public", `{"n": 1}`, "id", `[{"localField": "author", "as": "x", "select": "org.name", "lookup": "org"}]`, `{"x":[{"id":@1,"org":{"id":@21,"name":"Acme"}}]}`},
			{"public", `{"n": 1}`, "id", `[{"localField": "author", "as": "x", "select": "id", "lookup": [{"localField": "org", "as": "orgs", "select": "name"}]}]`, `{"x":[{"id":@1,"orgs":[{"id":@21,"name":"Acme"}]}]}`},
			{"public", `{"n": 1}`, "id,x.name", `[{"localField": "author", "as": "x"}]`, `{"x":[{"id":@1,"name":"Ann"}]}`},
			{"public", `{"n": 1}`, "id", `[{"localField": "author", "as": "x", "filter": {"org.name": "Acme"}, "select": "name"}]`, `{"x":[{"id":@1,"name":"Ann"}]}`},
			{"public", `{"n": 1}`, "id", `[{"localField": "author", "as": "x", "filter": {"org.name": "Bolt"}, "select": "name"}]`, `{"x":[]}`},
			// What refers to a record: the other way round.
			{"public", `{"n": 1}`, "id", `[{"from": "items", "localField": "id", "foreignField": "parent", "as": "children", "select": "n"}]`, `{"children":[{"id":@52,"n":2}]}`},
			{"public", `{"n": 3}`, "id", `[{"from": "items", "localField": "author", "foreignField": "author", "as": "same", "select": "n"}]`, `{"same":[{"id":@53,"n":3}]}`},
			{"public", `{"n": 1}`, "id", `[{"from": "items", "localField": "author", "foreignField": "lines.author", "as": "same", "select": "n"}]`, `{"same":[{"id":@52,"n":2}]}`},
			{"public", `{"n": 8}`, "id", `[{"from": "items", "localField": "author", "foreignField": "parent", "as": "same"}]`, `{"same":[]}`}, // null joins with nothing
			{"public", `{"n": 1}`, "id", `[{"localField": "author", "as": "ghost", "select": "name"}]`, `{"ghost":[{"id":@1,"name":"Ann"}]}`},  // hidden: as if there were no such field

			{"public", ``, "", "nope", unknown("nope")},
			{"public", ``, "", "ghost", unknown("ghost")},
			{"public", ``, "", "author.nope", unknown("author.nope")},
			{"public", ``, "", "author.mail", unknown("author.mail")},
			{"public", ``, "", "mail", unknown("mail")}, // the key is hidden there
			{"public", ``, "author.mail", "author", unknown("author.mail")},
			{"public", ``, "-author.mail", "author", unknown("author.mail")},
			{"public", ``, "author.mood", "author", unknown("author.mood")},
			{"public", ``, "author.name", "", unknown("author.name")},
			{"public", ``, "parent.author.mail", "parent.author", unknown("parent.author.mail")},
			{"public", ``, "", "n", "bad_lookup: lookup: n refers to no other records: name a field with meta.foreign, or give from, localField and foreignField"},
			{"public", ``, "", "author.name", "bad_lookup: lookup: name refers to no other records: name a field with meta.foreign, or give from, localField and foreignField"},
			{"public", ``, "", "tags.0", "bad_lookup: lookup: tags.0: no position in a list can be named"},
			{"public", ``, "", "lines.0.author", "bad_lookup: lookup: lines.0.author: no position in a list can be named"},
			{"public", ``, "", "author,,tags", "bad_lookup: lookup: must look like author,tags"},
			{"public", ``, "", "closed", "permission_denied: permission denied"},
			{"alice", ``, "", "author", "permission_denied: permission denied"},
			{"public", ``, "", `[{"from": "closed", "localField": "n", "foreignField": "nope"}]`, "permission_denied: permission denied"},
			{"public", ``, "", `[{"from": "user", "localField": "createdBy", "foreignField": "id"}]`, "unknown_collection: unknown collection: user"},
			{"public", ``, "", `[{"from": "svc.audit", "localField": "n", "foreignField": "id"}]`, "unknown_collection: unknown collection: svc.audit"},
			{"public", ``, "", `[{"from": "authors", "localField": "ghost", "foreignField": "id"}]`, unknown("ghost")},
			{"public", ``, "", `[{"from": "authors", "localField": "n", "foreignField": "mail"}]`, unknown("mail")},
			{"public", ``, "", `[{"from": "authors", "localField": "n", "foreignField": "mood"}]`, unknown("mood")},
			{"public", ``, "", `[{"from": "authors", "localField": "n", "foreignField": "seo"}]`, "not_comparable: seo can't be compared as a whole: name one of its fields"},
			{"public", ``, "", `[{"localField": "author", "filter": {"mail": "ann@x"}}]`, unknown("mail")},
			{"public", ``, "", `[{"localField": "author", "sort": "mail"}]`, unknown("mail")},
			{"public", ``, "", `[{"localField": "author", "sort": "-mood"}]`, unknown("mood")},
			{"public", ``, "", `[{"localField": "author", "select": "mail"}]`, unknown("mail")},
			{"public", ``, "", `[{"localField": "author", "as": "n"}]`, "bad_lookup: lookup: as can't be n, which is a field: give another name"},
			{"public", ``, "", `[{"localField": "author", "as": "_rev"}]`, "bad_lookup: lookup: as can't be _rev, which is a field: give another name"},
			{"public", ``, "", `[{"localField": "author", "as": "id"}]`, "bad_lookup: lookup: as can't be id, which is a field: give another name"},
			{"public", ``, "", `[{"localField": "author", "as": "a.b"}]`, "bad_lookup: lookup: as must be a name without dots and $, or localField"},
			{"public", ``, "", `[{"localField": "author", "as": "__proto__"}]`, "bad_lookup: lookup: as must be a name without dots and $, or localField"},
			{"public", ``, "", `[{"localField": "author", "as": "x"}, {"localField": "tags", "as": "x"}]`, "bad_lookup: lookup: x is looked up twice"},
			{"public", ``, "", `["author", {"localField": "author", "as": "author"}]`, "bad_lookup: lookup: author is looked up twice"},
			{"public", ``, "", `[{"localField": "author", "pipeline": []}]`, `bad_lookup: lookup: unknown member "pipeline"; there are from, localField, foreignField, as, select, filter, sort, limit and lookup`},
			{"public", ``, "", `[{"from": "authors"}]`, "bad_lookup: lookup: localField is missing: it names the field whose values to look for"},
			{"public", ``, "", `[{"localField": "n"}]`, "bad_lookup: lookup: from and foreignField are missing: n does not refer to other records"},
			{"public", ``, "", `[{"localField": "author", "limit": 0}]`, "bad_lookup: lookup: limit must be a whole number above 0"},
			{"public", ``, "", `[{"localField": "author", "limit": 1001}]`, "query_limit: lookup: limit is 1001, the highest allowed in authors is 1000"},
			{"public", ``, "", `[1]`, "bad_lookup: lookup: must be field names, or a list of objects"},
			{"public", ``, "", `[{"localField": {"$gt": ""}}]`, "bad_lookup: lookup: localField must be a name"},
			{"public", ``, "", `[{"localField": "tags.0", "as": "tags.0"}]`, "bad_lookup: lookup: as can't name a position in a list"},
			{"public", ``, "x.name", `[{"localField": "author", "as": "x", "select": "id"}]`, "bad_select: x.name: the lookup has a select of its own"},
		} {
			p := query.Params{Where: where(t, tt.filter), Select: tt.sel, Lookup: tt.lookup}
			got := listed(t, w, tt.who, p)
			if got != tt.want {
				t.Errorf("%s %s lookup %s select %s\ngot  %s\nwant %s", tt.who, tt.filter, tt.lookup, tt.sel, got, tt.want)
			}
			id := "@51"
			var n int
			if _, err := fmt.Sscanf(tt.filter, `{"n": %d}`, &n); err == nil {
				id = fmt.Sprintf("@%d", 50+n)
			} else if tt.filter != "" {
				continue
			}
			rec, err := w.service.Get(t.Context(), w.call(tt.who), long(id), records.GetParams{Select: tt.sel, Lookup: tt.lookup})
			one := show(err)
			if err == nil {
				one = short(t, &rec)
				if !rec.Made() {
					t.Errorf("lookup %s: an answer that may change without the revision", tt.lookup)
				}
			}
			if one != tt.want {
				t.Errorf("%s get %s lookup %s select %s\ngot  %s\nwant %s", tt.who, id, tt.lookup, tt.sel, one, tt.want)
			}
		}
	})
}
