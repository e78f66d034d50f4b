package records_test

import (
	"testing"

	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// A rule between two fields holds for a write to either of them, and tells nothing of one that is hidden.
func TestRulesAcrossFields(t *testing.T) {
	config := collections(`
name: items
fields:
  - {name: from, type: date}
  - {name: to, type: date, validator: {after: {field: from}}}
  - {name: low, type: number, validator: {lte: {field: limits.high}}}
  - {name: limits, type: object, subFields: [{name: high, type: number}]}
  - {name: word, type: string}
  - {name: again, type: string, validator: {eq: {field: word}}}
  - {name: floor, type: number, hidden: true}
  - {name: price, type: number, validator: {gte: {field: floor}}}
  - {name: fixed, type: number, readonly: true, validator: {gt: {field: low}}}
  - {name: parts, type: "object[]", subFields: [{name: a, type: number}, {name: b, type: number, validator: {ne: {field: a}}}]}
permissions: {public: {methods: {}}, user: {methods: {get: true, post: true, put: true}}}
`)
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, config)
		for _, tt := range []struct{ before, body, want string }{
			{``, `{"from": "2026-01-01", "to": "2026-01-02"}`, "ok"},
			{``, `{"to": "2026-01-02", "from": "2026-01-03"}`, "validation_failed: to: must be after from"},
			{``, `{"to": "2026-01-02"}`, "ok"},
			{``, `{"low": 2, "limits": {"high": 1}}`, "validation_failed: low: must be at most limits.high"},
			{``, `{"low": 2, "limits": {}}`, "ok"},
			{``, `{"word": "a", "again": "b"}`, "validation_failed: again: must be the same as word"},
			{``, `{"parts": [{"a": 1, "b": 2}, {"a": 1, "b": 1.0}]}`, "validation_failed: parts.1.b: must not be the same as a"},
			{`{"low": 1, "limits": {"high": 2}}`, `{"low": 3}`, "validation_failed: low: must be at most limits.high"},
			{`{"low": 1, "limits": {"high": 2}}`, `{"limits": {"high": 0}}`, "validation_failed: low: must be at most limits.high"},
			{`{"low": 3, "limits": {"high": 2}}`, `{"word": "x"}`, "ok"}, // not of this write
			{`{"low": 1, "fixed": 5}`, `{"low": 6}`, "validation_failed: fixed: must be greater than low"},
			{`{"price": 5, "floor": 4}`, `{"price": 3}`, "ok"}, // else it would tell the floor
		} {
			var err error
			if tt.before == "" {
				_, err = w.service.Create(t.Context(), w.call("alice"), doc(t, tt.body))
			} else {
				_, err = w.service.Update(t.Context(), w.call("alice"), w.put(tt.before), records.Change{Body: doc(t, tt.body)})
			}
			if got := show(err); got != tt.want {
				t.Errorf("%s %s: %s, want %s", tt.before, tt.body, got, tt.want)
			}
		}
		if _, err := w.service.Create(t.Context(), w.call("admin"), doc(t, `{"price": 3, "floor": 4}`)); show(err) != "validation_failed: price: must be at least floor" {
			t.Error(show(err))
		}
	})
}
