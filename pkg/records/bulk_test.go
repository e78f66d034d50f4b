package records_test

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

func bulkConfig(settings string) string {
	return collections(`
name: items
strictFields: true
fields:
  - {name: n, type: number, validator: {required: true, max: 99}}
  - {name: slug, type: string, index: [unique, sparse]}
  - {name: owner, type: string}
  - {name: cost, type: number, hidden: true}
bulk: ` + settings + `
permissions:
  public: {methods: {get: true, put: true, delete: true, post: true}}
  user:
    methods: {get: {count: false}, post: {bulk: true}, put: {bulk: true}, delete: {bulk: true}}
    filter: {owner: {$in: [all, null]}}
  "token:writer": {methods: {post: {bulk: true}, put: {bulk: true}, delete: {bulk: true}}}
`)
}

func list(t *testing.T, items ...string) bson.A {
	t.Helper()
	var out bson.A
	for _, item := range items {
		if item == "null" {
			out = append(out, nil)
			continue
		}
		out = append(out, doc(t, item))
	}
	return out
}

// outcome is a bulk result in one line.
func outcome(res records.BulkResult, err error) string {
	if err != nil {
		return show(err) + fields(err)
	}
	parts := make([]string, len(res.Items))
	for i, it := range res.Items {
		parts[i] = show(it.Err)
	}
	return fmt.Sprintf("%d failed: %s", res.Failed(), strings.Join(parts, " | "))
}

func fields(err error) string {
	if e := errs.From(err); e != nil && len(e.Fields) == 1 {
		return " @" + e.Fields[0].Path
	}
	return ""
}

func TestBulkCreate(t *testing.T) {
	good, bad := `{"n": 1}`, `{"n": 100}`
	for _, tt := range []struct {
		name   string
		mode   string
		items  []string
		want   string
		stored int
	}{
		{"none", "continue", nil, "0 failed: ", 0},
		{"all good", "continue", []string{good, good}, "0 failed: ok | ok", 2},
		{"one bad", "continue", []string{good, bad, good}, "1 failed: ok | validation_failed: n: must be at most 99 | ok", 2},
		{"no object", "continue", []string{"null", good}, "1 failed: validation_failed: must be an object | ok", 1},
		{"same unique value", "continue", []string{`{"n": 1, "slug": "a"}`, `{"n": 2, "slug": "a"}`}, "1 failed: ok | unique: slug is already taken", 1},
		{"filter", "continue", []string{`{"n": 1, "owner": "bob"}`, `{"n": 1, "owner": "all"}`}, "1 failed: permission_denied: permission denied | ok", 1},
		{"hidden", "continue", []string{`{"n": 1, "cost": 1}`}, "1 failed: validation_failed: cost: unknown field", 0},
		{"too many", "continue", []string{good, good, good, good}, "bulk_limit: 4 items, the limit is 3: send them in several requests", 0},
		{"atomic, all good", "atomic", []string{good, good}, "0 failed: ok | ok", 2},
		{"atomic, one bad", "atomic", []string{good, bad}, "validation_failed: items.1.n: must be at most 99 @items.1.n", 0},
		{"atomic, no object", "atomic", []string{good, "null"}, "validation_failed: items.1: must be an object @items.1", 0},
		{"atomic, same unique value", "atomic", []string{`{"n": 1, "slug": "a"}`, `{"n": 2, "slug": "a"}`}, "unique: slug is already taken @items.1.slug", 0},
		{"atomic, filter", "atomic", []string{good, `{"n": 1, "owner": "bob"}`}, "permission_denied: permission denied", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			teststore.Each(t, func(t *testing.T, s store.Store) {
				w := newWorld(t, s, bulkConfig("{maxItems: 3, mode: "+tt.mode+"}"))
				res, err := w.service.BulkCreate(t.Context(), w.call("alice"), list(t, tt.items...))
				if got := outcome(res, err); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
				if n := strings.Count(w.everything(), "\n"); n != tt.stored {
					t.Errorf("%d are stored, want %d", n, tt.stored)
				}
				for _, it := range res.Items {
					if (it.Err == nil) != (it.ID != "" && it.Record != nil) {
						t.Errorf("%+v", it)
					}
				}
			})
		})
	}
}

func TestBulkUpdateAndDelete(t *testing.T) {
	for _, tt := range []struct {
		name   string
		mode   string
		who    string
		filter string
		body   string // "" deletes
		want   string
		stored string // the values of n by owner, in order of creation
	}{
		{"update", "continue", "alice", `{"n": {"$gte": 2}}`, `{"n": 50}`, "0 failed: ok | ok", "1 50 50 4 5"},
		{"update nothing", "continue", "alice", `{"n": 77}`, `{"n": 50}`, "0 failed: ", "1 2 3 4 5"},
		{"update all", "continue", "alice", `{}`, `{"n": 50}`, "0 failed: ok | ok | ok", "50 50 50 4 5"},
		{"not valid", "continue", "alice", `{}`, `{"n": 100}`, "3 failed: validation_failed: n: must be at most 99 | validation_failed: n: must be at most 99 | validation_failed: n: must be at most 99", "1 2 3 4 5"},
		{"one unique value for all", "continue", "alice", `{}`, `{"slug": "z"}`, "2 failed: ok | unique: slug is already taken | unique: slug is already taken", "1 2 3 4 5"},
		{"unique, atomic", "atomic", "alice", `{}`, `{"n": 9, "slug": "z"}`, "unique: slug is already taken @items.1.slug", "1 2 3 4 5"},
		{"not valid, atomic", "atomic", "alice", `{}`, `{"n": 100}`, "validation_failed: items.0.n: must be at most 99 @items.0.n", "1 2 3 4 5"},
		{"update, atomic", "atomic", "alice", `{"n": {"$lt": 3}}`, `{"n": 50}`, "0 failed: ok | ok", "50 50 3 4 5"},
		{"out of the permission filter", "continue", "alice", `{"n": 1}`, `{"owner": "bob"}`, "1 failed: permission_denied: permission denied", "1 2 3 4 5"},
		{"hidden field in the body", "continue", "alice", `{"n": 1}`, `{"cost": 1}`, "1 failed: validation_failed: cost: unknown field", "1 2 3 4 5"},
		{"hidden field in the filter", "continue", "alice", `{"cost": 10}`, `{"n": 1}`, "unknown_field: unknown field: cost", "1 2 3 4 5"},
		{"hidden field in the filter of a delete", "continue", "alice", `{"$nor": [{"cost": {"$gt": 1}}]}`, "", "unknown_field: unknown field: cost", "1 2 3 4 5"},
		{"delete", "continue", "alice", `{"n": {"$lte": 2}}`, "", "0 failed: ok | ok", "3 4 5"},
		{"delete all", "continue", "alice", `{}`, "", "0 failed: ok | ok | ok", "4 5"},
		{"delete all, atomic", "atomic", "alice", `{}`, "", "0 failed: ok | ok | ok", "4 5"},
		{"more than maxAffected", "continue", "admin", `{}`, `{"n": 50}`, "bulk_limit: the filter matches more than 3 records, the collection's maxAffected: narrow it", "1 2 3 4 5"},
		{"more than maxAffected, delete", "continue", "admin", `{}`, "", "bulk_limit: the filter matches more than 3 records, the collection's maxAffected: narrow it", "1 2 3 4 5"},
		{"without the bulk right", "continue", "public", `{}`, `{"n": 1}`, "permission_denied: permission denied", "1 2 3 4 5"},
		{"without the bulk right, delete", "continue", "public", `{}`, "", "permission_denied: permission denied", "1 2 3 4 5"},
		{"without the read right", "continue", "token:writer", `{"n": 1}`, `{"n": 2}`, "permission_denied: permission denied", "1 2 3 4 5"},
		{"unknown token", "continue", "token:nobody", `{"n": 1}`, "", "permission_denied: permission denied", "1 2 3 4 5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			teststore.Each(t, func(t *testing.T, s store.Store) {
				w := newWorld(t, s, bulkConfig("{maxAffected: 3, mode: "+tt.mode+"}"))
				for i, owner := range []string{`"all"`, `"all"`, `null`, `"bob"`, `"bob"`} {
					w.create("admin", fmt.Sprintf(`{"n": %d, "owner": %s, "cost": 10}`, i+1, owner))
				}
				var res records.BulkResult
				var err error
				if tt.body == "" {
					res, err = w.service.BulkDelete(t.Context(), w.call(tt.who), where(t, tt.filter))
				} else {
					res, err = w.service.BulkUpdate(t.Context(), w.call(tt.who), where(t, tt.filter), doc(t, tt.body))
				}
				if got := outcome(res, err); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
				if res.Matched != len(res.Items) {
					t.Errorf("matched %d of %d", res.Matched, len(res.Items))
				}
				if got := w.numbers(); got != tt.stored {
					t.Errorf("stored %s, want %s", got, tt.stored)
				}
			})
		})
	}
}

// numbers lists the field n of all records, in order of creation.
func (w *world) numbers() string {
	w.t.Helper()
	var out []string
	page, err := w.service.List(w.t.Context(), w.call("admin"), query.Params{Sort: "id"})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, rec := range page.Items {
		d := doc(w.t, string(rec.AppendJSON(nil)))
		for _, e := range d {
			if e.Key == "n" {
				out = append(out, fmt.Sprint(e.Value))
			}
		}
	}
	return strings.Join(out, " ")
}

func TestBulkCreateNeedsTheRight(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, bulkConfig("{}"))
		_, err := w.service.BulkCreate(t.Context(), w.call("public"), list(t, `{"n": 1}`))
		if show(err) != "permission_denied: permission denied" || w.everything() != "" {
			t.Error(show(err), w.everything())
		}
		res, err := w.service.BulkCreate(t.Context(), w.call("token:writer"), list(t, `{"n": 1}`))
		if err != nil || res.Items[0].ID == "" || res.Items[0].Record != nil {
			t.Errorf("%+v %v: the id alone, for one who may not read", res, err)
		}
	})
}

// More than one chunk, in both modes; each record is written once.
func TestBulkInChunks(t *testing.T) {
	const n = 1100
	for _, mode := range []string{"continue", "atomic"} {
		t.Run(mode, func(t *testing.T) {
			teststore.Each(t, func(t *testing.T, s store.Store) {
				w := newWorld(t, s, bulkConfig("{maxItems: 2000, mode: "+mode+"}"))
				items := make(bson.A, n)
				for i := range items {
					items[i] = bson.D{{Key: "n", Value: int64(i % 100)}}
				}
				if res, err := w.service.BulkCreate(t.Context(), w.call("admin"), items); err != nil || res.Failed() > 0 {
					t.Fatal(err, res.Failed())
				}
				res, err := w.service.BulkUpdate(t.Context(), w.call("alice"), where(t, `{}`), doc(t, `{"owner": "all"}`))
				if err != nil || res.Matched != n || res.Failed() > 0 {
					t.Fatal(err, res.Matched, res.Failed())
				}
				if c := strings.Count(w.everything(), `"owner":"all"`); c != n {
					t.Errorf("%d changed", c)
				}
				if c := strings.Count(w.everything(), `"_rev":2}`); c != n {
					t.Errorf("%d written once", c)
				}
				res, err = w.service.BulkDelete(t.Context(), w.call("alice"), where(t, `{}`))
				if err != nil || res.Matched != n || res.Failed() > 0 || w.everything() != "" {
					t.Fatal(err, res.Matched, res.Failed())
				}
			})
		})
	}
}
