package app_test

import (
	"net/http"
	"strings"
	"testing"
)

// Languages by the public: reads, writes, and the texts of descriptions.
func TestLanguages(t *testing.T) {
	s := run(t, nil)
	s.file("desk", "ping.js", "module.exports = () => ({ok: true})")
	s.register("desk", `
namespace: desk
collections:
  - name: items
    meta: {label: {en: Items, de: Dinge}, i18n: {languages: [en, de]}}
    fields:
      - {name: title, type: string, meta: {label: {en: Title, de: Titel}, choices: [{value: a, label: {en: A, de: Ah}}, b, c]}}
      - {name: code, type: string, meta: {i18n: false}}
    permissions: {public: {methods: {get: true, post: true, put: true}}, user: {methods: {}}}
  - name: plain
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
actions:
  - name: ping
    meta: {label: {en: Ping, de: Klopfen}}
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
    hooks: {handle: {type: javascript, file: ping.js}}
`[1:])
	const items = "/api/v1/_/desk/items"
	made := s.do("POST", items, text(`{"title": "a", "code": "x"}`))
	made.want(t, http.StatusCreated)
	id := made.field("id")
	for _, tt := range []struct{ method, path, body, want string }{
		{"PUT", items + "/" + id + "?lang=de", `{"title": "b"}`, `"title":"b","code":"x"`},
		{"GET", items + "/" + id, "", `"title":"a","code":"x","_i18n":{"de":{"title":"b"}}`},
		{"GET", items + "/" + id + "?lang=DE", "", `"title":"b","code":"x","createdAt"`},
		{"GET", items + "?lang=de&select=title", "", `"title":"b"}]`},
		{"GET", items + "?lang=de&limit=0", "", `"items":[]`},
		{"PATCH", items + "/" + id + "?lang=de", `{"title": "c"}`, `"title":"c"`},
		{"GET", items + "/_count?filter[_i18n.de.title]=c&lang=de", "", `{"count":1}`},
		{"GET", items + "?lang=fr", "", `unknown language: fr; items has en, de`},
		{"GET", items + "?lang=de&aggregate=[]", "", `lang does not go together with aggregate: name translations by their paths, such as _i18n.de.title`},
		{"GET", items + "?lang=de&facet=title", "", `lang does not go together with facet: name translations by their paths, such as _i18n.de.title`},
		{"GET", items + "/_facet?lang=de&fields=title", "", `lang does not go together with fields`},
		{"GET", items + "/_facet?fields=_i18n.de.title,title", "", `{"facets":{"_i18n.de.title":[{"value":"c","count":1}],"title":[{"value":"a","count":1}]}`},
		{"GET", items + "/_facet?fields=_i18n.de.code", "", `unknown field: _i18n.de.code`},
		{"GET", items + "?lang=de&lang=en", "", `lang is given 2 times`},
		{"GET", items + "?lang=%22", "", `lang must be a language tag`},
		{"GET", "/api/v1/_/desk/plain?lang=fr", "", `"items":[]`},
		{"GET", "/api/v1/version?lang=fr", "", `unknown query parameter: lang`},
		{"GET", "/api/v1/_/desk/_/collections/items?lang=de", "", `"label":"Dinge"`},
		{"GET", "/api/v1/_/desk/_/collections/items?lang=fr", "", `"label":"Title"`},
		{"GET", "/api/v1/_/desk/_/collections/items?lang=de", "", `{"label":"Ah","value":"a"}`},
		{"GET", "/api/v1/_/desk/_/collections/items", "", `"label":{"de":"Dinge","en":"Items"}`},
		{"GET", "/api/v1/_/desk/_/collections/items", "", `"languages":["en","de"]`},
		{"GET", "/api/v1/_/desk/_/collections/items", "", `"name":"title","type":"string","translated":true`},
		{"GET", "/api/v1/_/desk/_/actions/ping/describe?lang=de", "", `"label":"Klopfen"`},
		{"GET", "/api/v1/_/desk/_/actions?lang=de", "", `"label":"Klopfen"`},
	} {
		o := noop
		if tt.body != "" {
			o = text(tt.body)
		}
		if got := s.do(tt.method, tt.path, o); !strings.Contains(got.body, tt.want) {
			t.Errorf("%s %s: %s, want %s", tt.method, tt.path, got.body, tt.want)
		}
	}
}

// What can't be translated is said when the config is loaded.
func TestLanguagesConfig(t *testing.T) {
	s := run(t, nil)
	for meta, want := range map[string]string{
		"{i18n: {languages: [en, de], default: fr}}": "not one of languages",
		"{i18n: {languages: []}}":                    "languages",
		"{i18n: {languages: ['e']}}":                 "language tag",
		"{i18n: {languages: [en, de]}}":              "no field to translate",
	} {
		s.configure("bad", "namespace: bad\ncollections: [{name: a, fields: [{name: n, type: number}], meta: "+meta+", permissions: {public: {methods: {}}, user: {methods: {}}}}]\n")
		res := s.do("POST", "/api/v1/project", admin, text(`{"name": "bad", "configFile": "bad/project.yaml", "enabled": true}`))
		if res.status != http.StatusUnprocessableEntity || !strings.Contains(res.body, want) {
			t.Errorf("%s: %s", meta, res.body)
		}
	}
}
