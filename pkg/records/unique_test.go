package records_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// However many want a unique value at once, one gets it and the others are told that it is taken: by whatever request, and
// whatever kind of index says so.
func TestUniqueAtOnce(t *testing.T) {
	const callers = 64
	config := collections(`
name: items
fields:
  - {name: n, type: number}
  - {name: slug, type: string, index: [unique, sparse]}
  - {name: mail, type: string, validator: unique}
  - {name: tags, type: "string[]", index: [unique, sparse]}
  - {name: a, type: string}
  - {name: b, type: number}
indexes:
  - {key: [a, -b], unique: true, sparse: true}
permissions:
  public: {methods: {}}
  user: {methods: {get: true, post: {bulk: true}, put: {bulk: true}}}
`)
	create := func(body func(i int) string) func(t *testing.T, w *world, i int) error {
		return func(t *testing.T, w *world, i int) error {
			_, err := w.service.Create(t.Context(), w.call("alice"), doc(t, body(i)))
			return err
		}
	}
	same := func(body string) func(int) string { return func(int) string { return body } }
	for _, tt := range []struct {
		name  string
		do    func(t *testing.T, w *world, i int) error
		one   string // the filter that finds the one
		taken string
	}{
		{"a field", create(same(`{"slug": "x"}`)), `{"slug": "x"}`, "slug is already taken"},
		{"a rule", create(same(`{"mail": "x"}`)), `{"mail": "x"}`, "mail is already taken"},
		{"several fields", create(same(`{"a": "x", "b": 1}`)), `{"a": "x"}`, "the combination of a, b is already taken"},
		{"a list", create(func(i int) string { return fmt.Sprintf(`{"tags": ["own%d", "x"]}`, i) }), `{"tags": "x"}`, "tags is already taken"},
		{"bulk creates", func(t *testing.T, w *world, _ int) error {
			res, err := w.service.BulkCreate(t.Context(), w.call("alice"), list(t, `{"slug": "x"}`))
			if err != nil {
				return err
			}
			return res.Items[0].Err
		}, `{"slug": "x"}`, "slug is already taken"},
		{"updates", func(t *testing.T, w *world, i int) error {
			id := w.put(fmt.Sprintf(`{"n": %d}`, i))
			_, err := w.service.Update(t.Context(), w.call("alice"), id, records.Change{Body: bson.D{{Key: "slug", Value: "x"}}})
			return err
		}, `{"slug": "x"}`, "slug is already taken"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			teststore.Each(t, func(t *testing.T, s store.Store) {
				w := newWorld(t, s, config)
				answers := make([]error, callers)
				var wg sync.WaitGroup
				for i := range callers {
					wg.Go(func() { answers[i] = tt.do(t, w, i) })
				}
				wg.Wait()
				made := 0
				for _, err := range answers {
					if err == nil {
						made++
					} else if !strings.HasPrefix(show(err), "unique: "+tt.taken) {
						t.Error(show(err))
					}
				}
				n, err := w.service.Count(t.Context(), w.call("alice"), query.Where{Filter: doc(t, tt.one)})
				if err != nil || made != 1 || n != 1 {
					t.Errorf("%d of %d succeeded, %d are stored: %v", made, callers, n, err)
				}
			})
		})
	}
}

// What has no value takes none from others, and an index of several fields is about those that have one of them.
func TestUniqueOfNothing(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:                      "2 made",
		`{"slug": null}`:          "2 made",
		`{"mail": null}`:          "2 made",
		`{"a": "x"}`:              "unique: the combination of a, b is already taken",
		`{"a": "x", "b": 1}`:      "unique: the combination of a, b is already taken",
		`{"lines": [{}]}`:         "2 made",
		`{"lines": [{"c": "x"}]}`: "unique: lines.c is already taken",
	} {
		teststore.Each(t, func(t *testing.T, s store.Store) {
			w := newWorld(t, s, collections(`
name: items
fields:
  - {name: slug, type: string, index: [unique, sparse]}
  - {name: mail, type: string, validator: unique}
  - {name: lines, type: "object[]", subFields: [{name: c, type: string, validator: unique}]}
  - {name: a, type: string}
  - {name: b, type: number}
indexes:
  - {key: [a, -b], unique: true, sparse: true}
permissions:
  public: {methods: {}}
  user: {methods: {get: true, post: true}}
`))
			got := "2 made"
			for range 2 {
				if _, err := w.service.Create(t.Context(), w.call("alice"), doc(t, body)); err != nil {
					got = show(err)
				}
			}
			if !strings.HasPrefix(got, want) {
				t.Errorf("%s twice: %s, want %s", body, got, want)
			}
		})
	}
}
