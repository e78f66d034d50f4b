package records_test

import (
	"testing"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// In a collection without fields any path goes; one that makes no sense on a record still is no fault of ours.
func TestOpenCollection(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, collections("name: items\n"+open))
		w.create("alice", `{"n": 1, "a": [1, 2], "b": [3, 4], "c": {"d": [{"e": 1}, {"e": 2}]}, "0": 5}`)
		for _, sort := range []string{"a,b", "a,c.d.e", "c.d,b", "x.y.z", "a.b", "c", "-c.d.e,n", "a,b,c.d"} {
			_, err := w.service.List(t.Context(), w.call("alice"), query.Params{Sort: sort})
			if err != nil && errs.KindOf(err) != errs.Invalid {
				t.Errorf("sort %s: %s", sort, show(err))
			}
		}
		for _, filter := range []string{`{"a.0": 1}`, `{"0": 5}`, `{"c.d.1.e": 2}`, `{"a": [1, 2]}`, `{"c": {"$gt": {}}}`} {
			page, err := w.service.List(t.Context(), w.call("alice"), query.Params{Where: where(t, filter)})
			if err != nil || len(page.Items) != 1 {
				t.Errorf("%s: %s", filter, show(err))
			}
		}
	})
}
