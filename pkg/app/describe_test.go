package app_test

import (
	"net/http"
	"strings"
	"testing"
)

// A description tells callers of the fields that they may see, and of no others (S14).
func TestS14DescriptionsKeepHiddenNames(t *testing.T) {
	s := run(t, nil)
	s.file("desk", "inside/check.js", "module.exports = () => undefined")
	s.register("desk", `
namespace: desk
collections:
  - name: items
    fields:
      - {name: title, type: string, index: [single], validator: {script: inside/check.js}}
      - {name: margin, type: number, hidden: true, index: [single]}
      - {name: price, type: number, validator: {gte: {field: margin}, min: 1}}
      - {name: cost, type: number, validator: {lt: {field: price}}, meta: {dependsOn: {price: 1}}}
      - {name: note, type: string, meta: {dependsOn: [title, margin], helperText: Aside}}
      - {name: memo, type: string, hidden: true}
      - {name: seo, type: object, subFields: [{name: title, type: string}, {name: remark, type: string}, {name: ranking, type: number}, {name: score, type: number, validator: {lte: {field: ranking}}}]}
    indexes: [{name: both, key: [title, -margin]}, {name: inner, key: [seo.ranking]}]
    search:
      - {name: words, mode: text, fields: [title, memo, seo.remark], meta: {label: {en: Words, de: Wörter}}}
      - {name: inside, mode: ngram, fields: [memo]}
      - {name: fused, mode: rrf, rrf: {sources: [words, inside]}}
    projections: {card: {select: {title: 1}}, full: {select: {margin: 1}}}
    meta: {label: Things, defaultSort: "-margin"}
    permissions:
      public: {methods: {get: true}, hiddenFields: [seo.ranking, seo.remark], validProjections: [card]}
      user: {methods: {}}
`)
	const path = "/api/v1/_/desk/_/collections/items"
	got := s.do("GET", path)
	got.want(t, http.StatusOK)
	for _, hidden := range []string{"margin", "ranking", "full", "both", "inner", "check.js", "memo", "remark", "inside"} {
		if strings.Contains(got.body, hidden) {
			t.Errorf("%s is in %s", hidden, got.body)
		}
	}
	for _, open := range []string{"title", "seo", "card", "Things", "Aside", `"validator":{"script":true}`, `"validator":{"min":1}`, `"validator":{"lt":{"field":"price"}}`, `"dependsOn":{"price":1}`, `"search":[{"name":"words","mode":"text","fields":["title"],"meta":{"label":{"de":"Wörter","en":"Words"}}},{"name":"fused","mode":"rrf","sources":["words"]}]`, `"get":{"allow":true`, `"post":{"allow":false`} {
		if !strings.Contains(got.body, open) {
			t.Errorf("%s is not in %s", open, got.body)
		}
	}
	all := s.do("GET", path, admin)
	for _, name := range []string{"margin", "ranking", "full", "both", "inner", "defaultSort", "check.js", `"gte":{"field":"margin"}`, `"lte":{"field":"ranking"}`, `"fields":["title","memo","seo.remark"]`, `{"name":"inside","mode":"ngram","fields":["memo"]}`, `"sources":["words","inside"]`} {
		if !strings.Contains(all.body, name) {
			t.Errorf("%s is not in %s", name, all.body)
		}
	}
}
