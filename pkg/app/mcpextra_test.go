package app_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestAgentsAreHeldToDeclaredParameters: tools that take extra are held to what the collection declares, also where REST ignores what it doesn't
// know; tools that take none answer for a collection that needs some.
func TestAgentsAreHeldToDeclaredParameters(t *testing.T) {
	s := run(t, nil)
	for name, legacy := range map[string]string{"strict": "", "loose": "legacy: {looseQuery: true}"} {
		s.register(name, `
namespace: `+name+`
`+legacy+`
collections:
  - name: items
    fields: [{name: title, type: string}]
    meta: {agent: {purpose: Things}, query: {tenant: {required: true}}}
    permissions: {public: {methods: {}}, user: {methods: {get: {count: true}, post: true}}}
`)
	}
	s.user("ann", map[string]any{"scopes": []string{"project.read", "namespace.strict", "namespace.loose"}})
	res := s.do("POST", "/api/v1/token", session(s.login("ann")), text(`{"name": "p", "scopes": ["project.read", "namespace.strict", "namespace.loose"]}`))
	res.want(t, http.StatusCreated)
	agent := session(res.field("token"))
	for _, namespace := range []string{"strict", "loose"} {
		for _, tt := range []struct{ tool, more, want string }{
			{"documents_list", `, "extra": {"tenant": "a"}`, ""},
			{"documents_list", ``, "400 extra parameter tenant is required"},
			{"documents_count", `, "extra": {}`, "400 extra parameter tenant is required"},
			{"documents_list", `, "extra": {"tenant": "a", "after": "x"}`, "400 unknown extra parameter: after; *"},
			{"documents_list", `, "extra": {"tenant": "a", "explain": true}`, "400 unknown extra parameter: explain; *"},
			{"documents_list", `, "extra": {"tenant": "a", "filter[title]": "x"}`, "400 unknown extra parameter: filter[title]; *"},
			{"document_create", `, "data": {"title": "x"}`, ""},
			{"collection_describe", ``, ""},
			{"agent_guide_get", ``, ""},
			{"queue_status", ``, ""},
		} {
			arguments := `{"namespace": "` + namespace + `", "collection": "items"` + tt.more + `}`
			data, refusal := s.tool(tt.tool, arguments, agent)
			if !fits(tt.want, refusal) || tt.want == "" && (data == "" || tt.tool == "agent_guide_get" && !strings.Contains(data, "Things")) {
				t.Errorf("%s %s: %s %s, want %q", tt.tool, arguments, data, refusal, tt.want)
			}
		}
	}
}
