package records_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

const limited = `
name: items
fields: [{name: n, type: number}, {name: name, type: string}, {name: a, type: any}, {name: b, type: any}]
queryLimits: {defaultLimit: 2, maxLimit: 4, maxOffset: 6, maxFilterBytes: 200, maxFilterDepth: 3, maxFilterClauses: 5, maxInValues: 4, maxSortFields: 2, regex: `

func nested(n int) string {
	return strings.Repeat(`{"$and":[`, n) + `{"n":1}` + strings.Repeat(`]}`, n)
}

func TestQueryLimits(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	for _, tt := range []struct {
		name   string
		regex  string
		params query.Params
		filter string
		want   string
	}{
		{name: "default limit", want: "ok 2 more"},
		{name: "no items", params: query.Params{Limit: n(0)}, want: "ok 0"},
		{name: "limit", params: query.Params{Limit: n(4)}, want: "ok 4 more"},
		{name: "above the highest limit", params: query.Params{Limit: n(5)}, want: "query_limit: limit is 5, the highest allowed is 4"},
		{name: "negative limit", params: query.Params{Limit: n(-1)}, want: "bad_parameter: limit and offset can't be negative"},
		{name: "negative offset", params: query.Params{Offset: -1}, want: "bad_parameter: limit and offset can't be negative"},
		{name: "offset", params: query.Params{Offset: 6}, want: "ok 0"},
		{name: "above the highest offset", params: query.Params{Offset: 7}, want: "query_limit: offset is 7, the highest allowed is 6; use after with the next cursor of a page"},
		{name: "filter bytes", filter: `{"name": "` + strings.Repeat("x", 200) + `"}`, want: "query_limit: filter is 212 bytes long, the limit is 200"},
		{name: "filter depth", filter: nested(2), want: "ok 1"},
		{name: "filter too deep", filter: nested(3), want: "query_limit: filter is nested 4 deep, the limit is 3"},
		{name: "clauses", filter: `{"n": {"$gt": 0, "$lt": 9, "$ne": 5}, "name": "x", "a": null}`, want: "ok 0"},
		{name: "too many clauses", filter: `{"n": {"$gt": 0, "$lt": 9, "$ne": 5}, "name": "x", "a": null, "b": 1}`, want: "query_limit: filter has 6 clauses, the limit is 5"},
		{name: "values", filter: `{"n": {"$in": [1, 2, 3, 4]}}`, want: "ok 2 more"},
		{name: "too many values", filter: `{"n": {"$nin": [1, 2, 3, 4, 5]}}`, want: "query_limit: filter lists 5 values, the limit is 4"},
		{name: "sort fields", params: query.Params{Sort: "n,-name"}, want: "ok 2 more"},
		{name: "too many sort fields", params: query.Params{Sort: "n,name,id"}, want: "query_limit: sort names 3 fields, the limit is 2"},
		{name: "sort twice by one", params: query.Params{Sort: "n,-n"}, want: "bad_sort: sort names n twice"},
		{name: "sort twice by the id", params: query.Params{Sort: "id,_id"}, want: "bad_sort: sort names _id twice"},
		{name: "sort by nothing", params: query.Params{Sort: "n,"}, want: "bad_sort: sort must look like -publishedAt,title"},
		{name: "sort by signs", params: query.Params{Sort: "--n"}, want: "bad_sort: sort must look like -publishedAt,title"},
		{name: "sort by a word", params: query.Params{Sort: "n:desc"}, want: "bad_sort: sort must look like -publishedAt,title"},
		{name: "sort by 2", params: query.Params{Sort: `{"n": 2}`}, want: "bad_sort: sort: n must be 1 or -1"},
		{name: "sort that is no JSON", params: query.Params{Sort: `{"n": 1`}, want: "*"},

		{name: "regex", filter: `{"name": {"$regex": "x"}}`, want: "ok 0"},
		{name: "regex too long", filter: `{"name": {"$regex": "` + strings.Repeat("x", 257) + `"}}`, want: "*"},
		{name: "regex off", regex: "off", filter: `{"name": {"$regex": "^x"}}`, want: "query_limit: regular expressions are off in this collection"},
		{name: "regex off, below", regex: "off", filter: `{"$nor": [{"name": {"$not": {"$regex": "^x"}}}]}`, want: "query_limit: regular expressions are off in this collection"},
		{name: "anchored", regex: "anchored", filter: `{"name": {"$regex": "^x"}}`, want: "ok 0"},
		{name: "not anchored", regex: "anchored", filter: `{"name": {"$regex": "x"}}`, want: "anchored"},
		{name: "one alternative not anchored", regex: "anchored", filter: `{"name": {"$regex": "^x|y"}}`, want: "anchored"},
		{name: "each alternative anchored", regex: "anchored", filter: `{"name": {"$regex": "^x|^y"}}`, want: "ok 0"},
		{name: "anchored at lines", regex: "anchored", filter: `{"name": {"$regex": "^x", "$options": "m"}}`, want: "anchored"},
		{name: "anchored at lines, inside", regex: "anchored", filter: `{"name": {"$regex": "(?m)^x"}}`, want: "anchored"},
		{name: "anchored optionally", regex: "anchored", filter: `{"name": {"$regex": "(^)?x"}}`, want: "anchored"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			teststore.Each(t, func(t *testing.T, s store.Store) {
				if tt.regex == "" {
					tt.regex = "any"
				}
				w := newWorld(t, s, collections(limited+tt.regex+"}"+open))
				for i := range 6 {
					w.create("admin", fmt.Sprintf(`{"n": %d}`, i+1))
				}
				tt.params.Where = where(t, tt.filter)
				page, err := w.service.List(t.Context(), w.call("alice"), tt.params)
				got := show(err)
				if err == nil {
					got = fmt.Sprint("ok ", len(page.Items))
					if page.HasMore {
						got += " more"
					}
				}
				want := tt.want
				if want == "anchored" {
					want = "query_limit: regular expressions must begin with ^, each of their alternatives too, in this collection"
				}
				if want == "*" && errs.KindOf(err) == errs.Invalid && err != nil {
					return
				}
				if got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				if tt.filter != "" && err != nil { // the same limits hold for every door to a filter
					_, countErr := w.service.Count(t.Context(), w.call("alice"), tt.params.Where)
					_, updateErr := w.service.BulkUpdate(t.Context(), w.call("alice"), tt.params.Where, bson.D{})
					_, deleteErr := w.service.BulkDelete(t.Context(), w.call("alice"), tt.params.Where)
					for _, other := range []error{countErr, updateErr, deleteErr} {
						if show(other) != got {
							t.Errorf("got  %s\nwant %s", show(other), got)
						}
					}
				}
			})
		})
	}
}

// With the limits that a collection has by itself, what is absurd is refused and does no harm.
func TestDefaultLimits(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, typed)
		w.create("alice", `{"title": "A", "views": 3}`)
		values := make(bson.A, 10_000)
		for i := range values {
			values[i] = int64(i)
		}
		deep := bson.D{{Key: "views", Value: int64(1)}}
		for range 100 {
			deep = bson.D{{Key: "$and", Value: bson.A{deep}}}
		}
		for _, tt := range []struct {
			filter bson.D
			want   string
		}{
			{bson.D{{Key: "views", Value: bson.D{{Key: "$in", Value: values}}}}, "query_limit: filter lists 10000 values, the limit is 1000"},
			{bson.D{{Key: "views", Value: bson.D{{Key: "$in", Value: values[:1000]}}}}, "ok"},
			{deep, ""},
			{doc(t, `{"title": "`+strings.Repeat("x", 8300)+`"}`), "query_limit: filter is 8312 bytes long, the limit is 8192"},
		} {
			raw, err := bson.Marshal(tt.filter)
			if err != nil {
				t.Fatal(err)
			}
			size := 0
			if len(raw) < 9000 {
				size = len(raw) - 1
			}
			if strings.HasPrefix(tt.want, "query_limit: filter is") {
				size = 8312
			}
			_, err = w.service.List(t.Context(), w.call("alice"), query.Params{Where: query.Where{Filter: tt.filter, Bytes: size}})
			if got := show(err); got != tt.want && (tt.want != "" || errs.KindOf(err) != errs.Invalid || err == nil) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		}
	})
}

func TestMaxTime(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, collections("name: items\nqueryLimits: {maxTime: 1ms}\n"+open))
		slow := &slowStore{Store: s}
		w.service = records.New(slow, w.now, w.logs, nil, nil)
		id := w.put(`{"n": 1}`)
		_, listErr := w.service.List(t.Context(), w.call("alice"), query.Params{})
		_, countErr := w.service.Count(t.Context(), w.call("alice"), query.Where{})
		_, getErr := w.service.Get(t.Context(), w.call("alice"), id, records.GetParams{})
		_, bulkErr := w.service.BulkDelete(t.Context(), w.call("alice"), where(t, `{"n": 1}`))
		for i, err := range []error{listErr, countErr, getErr, bulkErr} {
			if e := errs.From(err); e == nil || e.Code != "query_too_slow" || e.Kind != errs.Invalid {
				t.Errorf("%d: %s", i, show(err))
			}
		}
	})
}

// TestMaxTimeStopsTheStore: queries over maxTime end where they work, by every door, and none goes on when the caller is told.
// (What is left of them in the stores: TestReadsStopWorking, TestServerStopsWorking.)
func TestMaxTimeStopsTheStore(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, collections("name: items\nfields: [{name: k, type: string, meta: {foreign: {collection: items, key: k}}}, {name: s, type: string}]\nqueryLimits: {maxTime: 20ms, allowAggregate: true}\n"+
			"permissions: {public: {methods: {get: {lookup: true, aggregate: true, facet: true, count: true}, put: {bulk: true}, delete: {bulk: true}}}, user: {methods: {}}}\n"))
		var ops []store.Op
		for range 2000 {
			raw, err := bson.Marshal(bson.D{{Key: "_id", Value: bson.NewObjectID()}, {Key: "k", Value: "k"}, {Key: "s", Value: strings.Repeat("ab", 1500)}})
			if err != nil {
				t.Fatal(err)
			}
			ops = append(ops, store.Op{Kind: store.Insert, Doc: raw})
		}
		w.insert("items", ops)
		working := &atomic.Int64{}
		w.service = records.New(busyStore{s, working}, w.now, w.logs, nil, nil)
		const slow = `{"s": {"$regex": "(a|b|ab)*(b|a|ba)*(ab|a|b)*c$"}}`
		list := func(p query.Params) error { _, err := w.service.List(t.Context(), w.call("public"), p); return err }
		one := int64(1)
		for name, ask := range map[string]func() error{
			"list":   func() error { return list(query.Params{Where: where(t, slow)}) },
			"sorted": func() error { return list(query.Params{Where: where(t, slow), Sort: "s"}) },
			"total":  func() error { return list(query.Params{Where: where(t, slow), Count: true, Limit: new(int64)}) },
			"lookup": func() error {
				return list(query.Params{Limit: &one, Lookup: `{"localField": "k", "as": "x", "filter": ` + slow + `}`})
			},
			"relation": func() error { return list(query.Params{Where: where(t, strings.Replace(slow, `"s"`, `"k.s"`, 1))}) },
			"count":    func() error { _, err := w.service.Count(t.Context(), w.call("public"), where(t, slow)); return err },
			"facet": func() error {
				_, err := w.service.Facets(t.Context(), w.call("public"), records.FacetParams{Where: where(t, slow), Fields: "k"})
				return err
			},
			"aggregate": func() error {
				_, err := w.service.Aggregate(t.Context(), w.call("public"), records.AggregateParams{Stages: stagesOf(t, `[{"$set": {"x": 1}}, {"$match": `+slow+`}]`)})
				return err
			},
			"$unionWith": func() error {
				_, err := w.service.Aggregate(t.Context(), w.call("public"), records.AggregateParams{Stages: stagesOf(t, `[{"$limit": 1}, {"$unionWith": {"coll": "items", "pipeline": [{"$match": `+slow+`}]}}]`)})
				return err
			},
			"feed": func() error {
				_, err := w.service.OpenFeed(t.Context(), w.call("public"), records.FeedParams{Where: where(t, slow)})
				return err
			},
			"bulk update": func() error {
				_, err := w.service.BulkUpdate(t.Context(), w.call("public"), where(t, slow), bson.D{})
				return err
			},
			"bulk delete": func() error {
				_, err := w.service.BulkDelete(t.Context(), w.call("public"), where(t, slow))
				return err
			},
		} {
			err := ask()
			if e := errs.From(err); e == nil || e.Code != "query_too_slow" || e.Kind != errs.Invalid {
				t.Errorf("%s: %s", name, show(err))
			}
			if n := working.Load(); n != 0 {
				t.Errorf("%s: %d calls of the store go on", name, n)
			}
		}
	})
}

func TestPaging(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, queried)
		for i := range 23 {
			n := strconv.Itoa(i % 5)
			if i%7 == 0 {
				n = "null"
			}
			tags := fmt.Sprintf(`["%c", "%c"]`, 'a'+i%3, 'c'-i%3)
			if i%5 == 0 {
				tags = "[]"
			}
			w.put(fmt.Sprintf(`{"n": %s, "name": "r%d", "on": true, "_rev": 1, "tags": %s, "data": {"x": [%d]}}`, n, i, tags, i%4))
		}
		for _, sort := range []string{"", "n", "-n", "n,-name", "-id", "id", "-n,id", "tags", "-tags,n", "name,-n", "data", "-at"} {
			for _, limit := range []int64{1, 4, 23, 24} {
				var got []string
				p := query.Params{Sort: sort, Limit: &limit}
				for page := 0; ; page++ {
					res, err := w.service.List(t.Context(), w.call("alice"), p)
					if err != nil {
						t.Fatalf("sort %q: %s", sort, show(err))
					}
					for _, rec := range res.Items {
						got = append(got, rec.ID())
					}
					if res.HasMore != (res.Next != "") || int64(len(res.Items)) > limit {
						t.Fatalf("%d of %d, more %v, next %q", len(res.Items), limit, res.HasMore, res.Next)
					}
					if res.Next == "" {
						break
					}
					p.After = res.Next
				}
				high := int64(100)
				all, err := w.service.List(t.Context(), w.call("alice"), query.Params{Sort: sort, Limit: &high})
				if err != nil {
					t.Fatal(show(err))
				}
				var want []string
				for _, rec := range all.Items {
					want = append(want, rec.ID())
				}
				if !slices.Equal(got, want) || len(want) != 23 {
					t.Errorf("sort %q, pages of %d: %d records, want %d", sort, limit, len(got), len(want))
				}
			}
		}
	})
}

// Records that come and go between two pages move nobody else to another page.
func TestPagesAreStable(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, queried)
		ids := map[string]string{}
		for i := range 10 {
			ids[strconv.Itoa(i)] = w.put(fmt.Sprintf(`{"n": %d, "on": true, "_rev": 1}`, i))
		}
		limit := int64(4)
		p := query.Params{Sort: "n", Limit: &limit}
		first, err := w.service.List(t.Context(), w.call("alice"), p)
		if err != nil || names(t, first) != "0 1 2 3" {
			t.Fatal(names(t, first), err)
		}
		w.put(`{"n": 0, "on": true}`)
		w.put(`{"n": 3, "on": true}`) // a later id: behind the cursor
		for _, gone := range []string{"1", "3", "5"} {
			if _, err := w.service.Delete(t.Context(), w.call("admin"), ids[gone]); err != nil {
				t.Fatal(show(err))
			}
		}
		p.After = first.Next
		second, err := w.service.List(t.Context(), w.call("alice"), p)
		if err != nil || names(t, second) != "3 4 6 7" {
			t.Error(names(t, second), err)
		}
	})
}

func TestCursors(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, queried)
		six(w)
		limit := int64(1)
		page, err := w.service.List(t.Context(), w.call("public"), query.Params{Sort: "n", Limit: &limit})
		if err != nil {
			t.Fatal(show(err))
		}
		raw, err := base64.RawURLEncoding.DecodeString(page.Next)
		if err != nil {
			t.Fatal(err)
		}
		var cursor bson.D
		if err := bson.Unmarshal(raw, &cursor); err != nil {
			t.Fatal(err)
		}
		after := func(sort, cursor string) error {
			_, err := w.service.List(t.Context(), w.call("public"), query.Params{Sort: sort, After: cursor})
			return err
		}
		const bad = "bad_cursor: after must be the next cursor of a page of the same sort"
		for _, tt := range []struct{ sort, cursor string }{
			{"-n", page.Next},
			{"name", page.Next},
			{"", page.Next},
			{"n,name", page.Next},
			{"n", page.Next + "A"},
			{"n", page.Next[1:]},
			{"n", "x"},
			{"n", "%"},
			{"n", strings.Repeat("A", 1<<17)},
		} {
			if got := show(after(tt.sort, tt.cursor)); got != bad {
				t.Errorf("%s %.20s: %s", tt.sort, tt.cursor, got)
			}
		}
		forged := func(key ...any) string {
			c := bson.D{cursor[0], {Key: "k", Value: bson.A(key)}}
			raw, err := bson.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			return base64.RawURLEncoding.EncodeToString(raw)
		}
		var deep any = "x"
		for range 200 {
			deep = bson.A{deep}
		}
		id := bson.NewObjectID()
		for _, key := range [][]any{
			{"text", id},
			{nil, nil},
			{1.5, "x"},
			{bson.D{{Key: "$gt", Value: 1}}, id},
			{bson.A{1, 2}, id},
			{true, bson.D{}},
			{bson.DateTime(1), id},
			{bson.Undefined{}, id},
			{bson.D{{Key: "$where", Value: "1"}}, id},
		} {
			if err := after("n", forged(key...)); err != nil && show(err) != bad {
				t.Errorf("%v: %s", key, show(err))
			}
		}
		for _, key := range [][]any{
			{},
			{1},
			{1, id, 2},
			{bson.Regex{Pattern: "("}, id},
			{bson.MinKey{}, id},
			{bson.MaxKey{}, id},
			{deep, id},
			{bson.A{bson.Regex{Pattern: "x"}}, id},
			{bson.D{{Key: "x", Value: bson.MinKey{}}}, id},
			{bson.JavaScript("x"), id},
			{bson.Symbol("x"), id},
			{bson.CodeWithScope{Code: "x", Scope: bson.D{}}, id},
			{bson.DBPointer{DB: "x", Pointer: id}, id},
		} {
			if got := show(after("n", forged(key...))); got != bad {
				t.Errorf("%v: %s", key, got)
			}
		}
	})
}

// A value that is too long for a cursor is told, where there is a next page; a page that promises more has a cursor.
func TestCursorsOfLongValues(t *testing.T) {
	w := newWorld(t, teststore.Memory(t), queried)
	for _, n := range []int{1400, 1400, 1500, 70_000} {
		w.put(`{"name": "` + strings.Repeat("x", n) + `", "on": true}`)
	}
	one, all := int64(1), int64(10)
	p := query.Params{Sort: "name", Limit: &one}
	const long = "sort_value_too_long: there is a next page, but a value of name is too long to page by: sort by something shorter"
	for _, want := range []string{"ok", "ok", long} {
		page, err := w.service.List(t.Context(), w.call("public"), p)
		if show(err) != want {
			t.Fatal(show(err))
		}
		if err != nil {
			break
		}
		if !page.HasMore || page.Next == "" || len(page.Next) > 2048 {
			t.Fatalf("more %v, next of %d bytes", page.HasMore, len(page.Next))
		}
		p.After = page.Next
	}
	for _, p := range []query.Params{{Sort: "name", Limit: &all}, {Sort: "-name", Limit: &one, Offset: 3}} {
		if page, err := w.service.List(t.Context(), w.call("public"), p); err != nil || page.HasMore {
			t.Error(show(err))
		}
	}
	if _, err := w.service.List(t.Context(), w.call("public"), query.Params{Sort: "n,-name", Limit: &one}); show(err) != long {
		t.Error(show(err))
	}
}

func TestCount(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, queried)
		six(w)
		for _, tt := range []struct {
			who, filter string
			want        int64
		}{{"admin", "", 6}, {"alice", "", 5}, {"alice", `{"name": "Ann"}`, 1}, {"admin", `{"name": "Ann"}`, 2}, {"alice", `{"on": false}`, 0}} {
			n, err := w.service.Count(t.Context(), w.call(tt.who), where(t, tt.filter))
			if err != nil || n != tt.want {
				t.Errorf("%s %s: %d, want %d %v", tt.who, tt.filter, n, tt.want, err)
			}
			limit := int64(1)
			page, err := w.service.List(t.Context(), w.call(tt.who), query.Params{Where: where(t, tt.filter), Count: true, Limit: &limit})
			if err != nil || page.Total != tt.want {
				t.Errorf("%s %s: total %d, want %d %v", tt.who, tt.filter, page.Total, tt.want, err)
			}
		}
		_, countErr := w.service.Count(t.Context(), w.call("public"), query.Where{})
		_, listErr := w.service.List(t.Context(), w.call("public"), query.Params{Count: true})
		if !errors.Is(countErr, errs.ErrDenied) || !errors.Is(listErr, errs.ErrDenied) {
			t.Error(countErr, listErr)
		}
	})
}
