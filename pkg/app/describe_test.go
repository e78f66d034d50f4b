package app_test

import (
	"net/http"
	"strings"
	"testing"
)

// A description tells callers of the fields that they may see, and of no others (S14).
func TestS14DescriptionsKeepHiddenNames(t *testing.T) {
	s := run(t, nil)
	s.register("desk", `
namespace: desk
collections:
  - name: items
    fields:
      - {name: title, type: string, index: [single]}
      - {name: margin, type: number, hidden: true, index: [single]}
      - {name: seo, type: object, subFields: [{name: title, type: string}, {name: ranking, type: number}]}
    indexes: [{name: both, key: [title, -margin]}, {name: inner, key: [seo.ranking]}]
    projections: {card: {select: {title: 1}}, full: {select: {margin: 1}}}
    meta: {label: Things, defaultSort: "-margin"}
    permissions:
      public: {methods: {get: true}, hiddenFields: [seo.ranking], validProjections: [card]}
      user: {methods: {}}
`)
	const path = "/api/v1/_/desk/_/collections/items"
	got := s.do("GET", path)
	got.want(t, http.StatusOK)
	for _, hidden := range []string{"margin", "ranking", "full", "both", "inner"} {
		if strings.Contains(got.body, hidden) {
			t.Errorf("%s is in %s", hidden, got.body)
		}
	}
	for _, open := range []string{"title", "seo", "card", "Things", `"get":{"allow":true`, `"post":{"allow":false`} {
		if !strings.Contains(got.body, open) {
			t.Errorf("%s is not in %s", open, got.body)
		}
	}
	all := s.do("GET", path, admin)
	for _, name := range []string{"margin", "ranking", "full", "both", "inner", "defaultSort"} {
		if !strings.Contains(all.body, name) {
			t.Errorf("%s is not in %s", name, all.body)
		}
	}
}
