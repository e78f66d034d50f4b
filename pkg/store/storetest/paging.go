package storetest

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

// testPaging reads a collection page by page, each page behind the sort key of the last document of the page before.
// The pages together must be what one Find gives, in every order and with every index. The orders of the first
// section are also written down, so that stores and package mql cannot be wrong together.
func testPaging(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	for i, fields := range []string{
		`"v":2`, `"v":1`, `"v":2.5`, `"v":{"$numberLong":"2"}`, `"v":"b"`, `"v":"a"`, `"v":""`, `"v":null`, `"w":1`,
		`"v":true`, `"v":false`, `"v":{"$date":"2020-01-01T00:00:00Z"}`, `"v":{"$oid":"5f43a1b2c3d4e5f60718293a"}`,
		`"v":{"x":1}`, `"v":{}`, `"v":[]`, `"v":[3,1]`, `"v":[null]`, `"v":["a",9]`, `"v":[[1]]`, `"v":[{"x":0}]`,
		`"v":{"$numberDouble":"NaN"}`, `"v":{"$numberDouble":"-Infinity"}`, `"v":{"$numberDecimal":"2.0"}`,
		`"v":{"$binary":{"base64":"AAE=","subType":"00"}}`, `"v":{"x":[2,0]}`, `"v":[{"x":2},{"x":[]}]`, `"v":2,"w":2`,
	} {
		f.given(fmt.Sprintf(`{"_id":%d,%s}`, i, fields))
	}
	orders := map[string]string{
		"v _id":   "15 7 8 17 21 22 1 16 0 3 23 27 2 18 6 5 4 14 20 13 26 25 19 24 12 10 9 11",
		"-v _id":  "11 9 10 12 24 19 25 26 13 20 14 4 5 18 6 16 2 0 3 23 27 1 22 21 7 8 17 15",
		"-w v":    "", // not written down: compared page by page only
		"w -v":    "",
		"-v -_id": "",
		"v.x _id": "",
		"-v.x":    "",
		"v w":     "",
		"_id":     "",
		"-_id":    "",
	}
	indexes := append(permutations("v"), on("v _id"), on("-v _id"), on("w v"), on("v.x"), on("w"))
	f.underIndexes(t, indexes, func(f *fixture) {
		for order, want := range orders {
			f.checkPages(order, want)
		}
	})
}

// checkPages compares pages of several sizes with the whole, made total by _id where order does not end in it.
func (f *fixture) checkPages(order, want string) {
	f.t.Helper()
	if !strings.HasSuffix(order, "_id") {
		order += " _id"
	}
	sort := sortBy(order)
	for _, where := range []string{"", `{"v":{"$gte":1}}`, `{"v":{"$ne":2}}`} {
		q := store.Query{Filter: filter(where), Sort: sort}
		whole := f.find(q)
		if where == "" && want != "" && whole != want {
			f.t.Errorf("sort %q: got %s\nwant %s", order, whole, want)
		}
		sizes := []int64{1, 3, 100}
		if where != "" {
			sizes = sizes[1:2]
		}
		for _, size := range sizes {
			if pages := f.pages(q, size); pages != whole {
				f.t.Errorf("filter %s sort %q in pages of %d: got %s\nwant %s", where, order, size, pages, whole)
			}
		}
		q.Limit, q.Skip = 2, 1
		if skipped, _ := f.page(q); len(strings.Fields(whole)) > 2 && skipped != strings.Join(strings.Fields(whole)[1:3], " ") {
			f.t.Errorf("filter %s sort %q: skip 1 limit 2 gave %s of %s", where, order, skipped, whole)
		}
	}
}

// pages reads q in pages of size documents.
func (f *fixture) pages(q store.Query, size int64) string {
	f.t.Helper()
	var pages []string
	q.Limit = size
	for range 1000 { // ends a store that never gets further
		ids, last := f.page(q)
		if last == nil {
			break
		}
		pages = append(pages, ids)
		q.After = q.Sort.Key(last)
	}
	return strings.Join(pages, " ")
}

// page reads one page and also gives a copy of its last document, nil if there is none.
func (f *fixture) page(q store.Query) (ids string, last bson.Raw) {
	f.t.Helper()
	var page []string
	err := f.Find(f.t.Context(), q, func(d bson.Raw) error {
		page = append(page, show(d.Lookup("_id")))
		last = append(last[:0], d...)
		return nil
	})
	if err != nil {
		f.t.Fatalf("Find after %v: %v", q.After, err)
	}
	return strings.Join(page, " "), last
}
