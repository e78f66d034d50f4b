package records_test

import (
	"testing"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// A denial of what a set allows within a method says what the set would need, to users alone.
func TestDenialsNameWhatASetWouldNeed(t *testing.T) {
	t.Parallel()
	const set = `{methods: {get: {count: false, facet: false}, post: true, put: true}, filter: {own: true}}`
	w := newWorld(t, teststore.Memory(t), `
collections:
  - name: items
    permissions: {public: `+set+`, user: `+set+`}
`)
	id := w.put(`{"own": true}`)
	for _, tt := range []struct {
		right string
		do    func(c *records.Call) error
	}{
		{"aggregate on items", func(c *records.Call) error {
			_, err := w.service.Aggregate(t.Context(), c, records.AggregateParams{})
			return err
		}},
		{"facet on items", func(c *records.Call) error {
			_, err := w.service.Facets(t.Context(), c, records.FacetParams{Fields: "own"})
			return err
		}},
		{"count on items", func(c *records.Call) error {
			_, err := w.service.Count(t.Context(), c, query.Where{})
			return err
		}},
		{"count on items", func(c *records.Call) error {
			_, err := w.service.List(t.Context(), c, query.Params{Count: true})
			return err
		}},
		{"bulk create on items", func(c *records.Call) error {
			_, err := w.service.BulkCreate(t.Context(), c, list(t, `{"own": true}`))
			return err
		}},
		{"create on items, beyond the filter of your permission set", func(c *records.Call) error {
			_, err := w.service.Create(t.Context(), c, doc(t, `{"own": false}`))
			return err
		}},
		{"update on items, beyond the filter of your permission set", func(c *records.Call) error {
			_, err := w.service.Update(t.Context(), c, id, records.Change{Body: doc(t, `{"own": false}`)})
			return err
		}},
	} {
		for who, right := range map[string]string{"alice": tt.right, "public": ""} {
			if err := tt.do(w.call(who)); errs.KindOf(err) != errs.Denied || errs.From(err).Right != right {
				t.Errorf("%s: %v, right %q, want %q", who, err, errs.From(err).Right, right)
			}
		}
	}
}
