package app_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/api"
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
      - {name: seo, type: object, subFields: [{name: title, type: string}, {name: remark, type: string}, {name: ranking, type: number}, {name: tint, type: string, meta: {dependsOn: ranking}}, {name: score, type: number, validator: {lte: {field: ranking}}}]}
      - {name: maker, type: string, meta: {foreign: {collection: people, label: "{name} ({mail})"}}}
      - {name: buyer, type: string, meta: {foreign: {collection: people, key: mail}}}
      - {name: seller, type: string, meta: {foreign: {namespace: desk, collection: people, label: [name]}}}
      - {name: source, type: string, meta: {foreign: {collection: vaults, label: code}}}
      - {name: twin, type: string, meta: {foreign: {collection: items, label: margin}}}
    indexes: [{name: both, key: [title, -margin]}, {name: inner, key: [seo.ranking]}]
    search:
      - {name: words, mode: text, fields: [title, memo, seo.remark], meta: {label: {en: Words, de: Wörter}}}
      - {name: inside, mode: ngram, fields: [memo]}
      - {name: fused, mode: rrf, rrf: {sources: [words, inside]}}
    projections: {card: {select: {title: 1}}, full: {select: {margin: 1}}}
    meta: {label: Things, defaultSort: "-margin", agent: {purpose: Selling, fieldHints: {margin: Secret, title: Short, seo.ranking: Low, seo.title: Same, seo: {ranking: Low, en: Texts}}}}
    permissions:
      public: {methods: {get: true}, hiddenFields: [seo.ranking, seo.remark], validProjections: [card]}
      user: {methods: {}}
  - name: people
    fields: [{name: name, type: string}, {name: mail, type: string, hidden: true}]
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
  - name: vaults
    fields: [{name: code, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
`)
	const path = "/api/v1/_/desk/_/collections/items"
	guide := s.do("GET", "/api/v1/_/desk/_/agent?collection=items")
	if want := `"agent":{"fieldHints":{"seo":{"en":"Texts"},"seo.title":"Same","title":"Short"},"purpose":"Selling"}`; !strings.Contains(guide.body, want) {
		t.Errorf("%s is not in %s", want, guide.body)
	}
	got := s.do("GET", path)
	got.want(t, http.StatusOK)
	for _, hidden := range []string{"margin", "ranking", "full", "both", "inner", "check.js", "memo", "remark", "inside", "mail", "vaults"} {
		if strings.Contains(got.body, hidden) {
			t.Errorf("%s is in %s", hidden, got.body)
		}
	}
	for _, open := range []string{`{"name":"maker","type":"string","meta":{"foreign":{"collection":"people"}}}`, `{"name":"seller","type":"string","meta":{"foreign":{"collection":"people","label":["name"],"namespace":"desk"}}}`, `{"name":"twin","type":"string","meta":{"foreign":{"collection":"items"}}}`, "title", "seo", "card", "Things", "Aside", `"validator":{"script":true}`, `"validator":{"min":1}`, `"validator":{"lt":{"field":"price"}}`, `"dependsOn":{"price":1}`, `"search":[{"name":"words","mode":"text","fields":["title"],"meta":{"label":{"de":"Wörter","en":"Words"}}},{"name":"fused","mode":"rrf","sources":["words"]}]`, `"get":{"allow":true`, `"post":{"allow":false`} {
		if !strings.Contains(got.body, open) {
			t.Errorf("%s is not in %s", open, got.body)
		}
	}
	all := s.do("GET", path, admin)
	for _, name := range []string{`"label":"{name} ({mail})"`, `"key":"mail"`, `"collection":"vaults"`, "margin", "ranking", "full", "both", "inner", "defaultSort", "check.js", `"dependsOn":"ranking"`, `"gte":{"field":"margin"}`, `"lte":{"field":"ranking"}`, `"fields":["title","memo","seo.remark"]`, `{"name":"inside","mode":"ngram","fields":["memo"]}`, `"sources":["words","inside"]`} {
		if !strings.Contains(all.body, name) {
			t.Errorf("%s is not in %s", name, all.body)
		}
	}
}

// TestAgentGuide: what a project tells agents is in the language that they ask for, of one thing at a time, and who may not be told learns what they lack.
func TestAgentGuide(t *testing.T) {
	s := run(t, nil)
	s.file("desk", "act.js", "module.exports = () => 1")
	s.register("desk", `
namespace: desk
meta: {label: {en: Desk, de: Tisch}, agent: {purpose: Selling, hints: [{title: {en: Short, de: Kurz}}]}}
collections:
  - name: items
    fields: [{name: title, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {get: true}}}
  - name: notes
    fields: [{name: title, type: string}]
    permissions: {public: {methods: {get: true}}, user: {methods: {get: true, post: true}}}
actions:
  - name: act
    permissions: {public: {methods: {}}, user: {methods: {post: true}}}
    hooks: {handle: {type: javascript, file: act.js}}
    meta: {methods: {post: {}}}
`)
	_, owner := s.user("owner", map[string]any{"scopes": []string{"project.read", "namespace.desk"}})
	made := s.do("POST", "/api/v1/token", session(owner), text(`{"name": "p", "scopes": ["project.read", "namespace.desk.notes.read"]}`))
	made.want(t, http.StatusCreated)
	reader := made.field("token")
	const path = "/api/v1/_/desk/_/agent"
	for _, tt := range []struct {
		name, query string
		as          []option
		status      int
		want        string
	}{
		{"of the project", "", []option{session(reader)}, 200, `{"namespace":"desk","label":{"de":"Tisch","en":"Desk"},"agent":{"hints":[{"title":{"de":"Kurz","en":"Short"}}],"purpose":"Selling"},` +
			`"yourPermissions":{"collections":{"notes":*}},"actions":{}}}`},
		{"in a language", "lang=de", []option{session(reader)}, 200, `{"namespace":"desk","label":"Tisch","agent":{"hints":[{"title":"Kurz"}],"purpose":"Selling"},*`},
		{"of two things", "collection=notes&action=act", []option{session(reader)}, 400, `*give collection or action, not both*`},
		{"of nothing there", "collection=none", []option{session(reader)}, 404, `*collection not found*`},
		{"of no action there", "action=none", []option{session(reader)}, 404, `*action not found*`},
		{"of what is not theirs", "collection=items", []option{session(reader)}, 403, `*"right":"namespace.desk.items.read"*`},
		{"of an action that is not theirs", "action=act", []option{session(reader)}, 403, `*permission denied*`},
		{"of a project that is not theirs", "", nil, 403, `*permission denied*`},
		{"of what is anybody's", "collection=notes", nil, 200, `{"namespace":"desk","collection":"notes",*"post":{"allow":false*`},
	} {
		if got := s.do("GET", path+"?"+tt.query, tt.as...); got.status != tt.status || !fits(tt.want, got.body) {
			t.Errorf("%s: %d %s\nwant %d %s", tt.name, got.status, got.body, tt.status, tt.want)
		}
	}
}

// TestStatsAreOfAll: how large a collection is tells of records, so who reads a part of them is not told.
func TestStatsAreOfAll(t *testing.T) {
	s := run(t, nil)
	s.file("desk", "everything.js", `module.exports = () => ({})`)
	s.register("desk", `
namespace: desk
collections:
  - name: all
    fields: [{name: title, type: string, index: [single]}, {name: margin, type: number, index: [single]}]
    permissions: {public: {methods: {}}, user: {methods: {get: true}, hiddenFields: [margin]}}
  - name: some
    fields: [{name: owner, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {get: true}, filter: {owner: {$var: user.id}}}}
  - name: made
    fields: [{name: owner, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {get: true}, filter: {type: javascript, file: everything.js}}}
`)
	_, reader := s.user("reader", map[string]any{"scopes": []string{"project.read", "namespace.desk"}})
	s.do("GET", "/api/v1/_/desk/_/collections/some", session(reader)).want(t, http.StatusOK)
	s.do("GET", "/api/v1/_/desk/_/collections/some/stats", session(reader)).want(t, http.StatusForbidden)
	s.do("GET", "/api/v1/_/desk/_/collections/some/stats", admin).want(t, http.StatusOK)
	all := s.do("GET", "/api/v1/_/desk/_/collections/all/stats", session(reader))
	all.contains(t, http.StatusOK, `"key":["title"]`)
	all.lacks(t, "margin")

	// The status counts the records of those, too, and of no others. It runs no script: a collection is left out for those about whom one would decide.
	for range 3 {
		s.do("POST", "/api/v1/_/desk/some", admin, text(`{"owner": "ann"}`)).want(t, http.StatusCreated)
	}
	s.do("POST", "/api/v1/_/desk/all", admin, text(`{"title": "A"}`)).want(t, http.StatusCreated)
	var projects api.List[api.Project]
	unmarshal(t, s.do("GET", "/api/v1/project", admin).body, &projects)
	path := "/api/v1/project/" + projects.Items[0].ID + "/status"
	s.do("GET", path, admin).contains(t, http.StatusOK, `"counts":{"all":1,"made":0,"some":3}`)
	s.do("GET", path, session(reader)).contains(t, http.StatusOK, `"counts":{"all":1}`)
}

// TestOpenAPI: what a project's document tells of is what the asker may see and do.
func TestOpenAPI(t *testing.T) {
	s := run(t, nil)
	s.register("desk", `
namespace: desk
meta: {label: {en: Desk, de: Tisch}}
collections:
  - name: items
    strictFields: true
    fields:
      - {name: title, type: string}
      - {name: margin, type: number, hidden: true}
      - {name: price, type: number, readonly: true, validator: {gte: {field: margin}}}
      - {name: seo, type: object, subFields: [{name: remark, type: string}, {name: open, type: string}]}
    search: [{name: words, mode: text, fields: [title]}, {name: inside, mode: ngram, fields: [seo.remark]}]
    projections: {card: {select: {title: 1}}, full: {select: {margin: 1}}}
    permissions:
      public: {methods: {get: {allow: true, facet: false}}, hiddenFields: [seo.remark], validProjections: [card]}
      user: {methods: {}}
  - name: letters
    fields: [{name: text, type: string}]
    permissions: {public: {methods: {post: true}}, user: {methods: {}}}
  - name: vault
    fields: [{name: secret, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {get: true}}}
`)
	const path = "/api/v1/_openapi/desk"
	got := s.do("GET", path)
	got.want(t, http.StatusOK)
	for _, hidden := range []string{"margin", "remark", "full", "inside", "vault", "secret", "_facet", "create_items", "list_letters", `"letters":{`} {
		if strings.Contains(got.body, hidden) {
			t.Errorf("%s is in %s", hidden, got.body)
		}
	}
	for _, open := range []string{`"openapi":"3.1.1"`, `"operationId":"list_items"`, `"operationId":"count_items"`, `"operationId":"create_letters"`, `"letters.create":{`, `"enum":["card"]`, `"enum":["words"]`, `"title":"Desk"`} {
		if !strings.Contains(got.body, open) {
			t.Errorf("%s is not in %s", open, got.body)
		}
	}
	all := s.do("GET", path, admin)
	for _, name := range []string{"margin", "remark", "full", "inside", "vault", "_facet", "create_items", "list_letters"} {
		if !strings.Contains(all.body, name) {
			t.Errorf("%s is not in %s", name, all.body)
		}
	}
	tag := got.header.Get("ETag")
	if !strings.HasPrefix(tag, `"1-json-`) || tag == all.header.Get("ETag") {
		t.Errorf("ETag %s, and of another caller %s", tag, all.header.Get("ETag"))
	}
	s.do("GET", path, header("If-None-Match", tag)).want(t, http.StatusNotModified)
	s.do("GET", path+"?lang=de", header("If-None-Match", tag)).want(t, http.StatusOK)
	s.do("HEAD", path).want(t, http.StatusOK)
	if yaml := s.do("GET", path+"?format=yaml&lang=de"); yaml.header.Get("Content-Type") != "application/yaml" || !strings.Contains(yaml.body, "\n  title: Tisch\n") {
		t.Errorf("%s: %s", yaml.header.Get("Content-Type"), yaml.body)
	}
	for query, status := range map[string]int{"?format=toml": http.StatusBadRequest, "?x=1": http.StatusBadRequest, "?lang=!": http.StatusBadRequest} {
		s.do("GET", path+query).want(t, status)
	}
	s.do("GET", "/api/v1/_openapi/none").want(t, http.StatusNotFound)
	s.do("GET", path, header("Token", "nobody's")).want(t, http.StatusForbidden)
}
