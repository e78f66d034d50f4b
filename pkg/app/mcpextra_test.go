package app_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/app"
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

// TestTypesOfDeclaredParameters: agents are held to each type that a parameter may have.
func TestTypesOfDeclaredParameters(t *testing.T) {
	s := run(t, nil)
	s.register("typed", `
namespace: typed
collections:
  - name: items
    fields: [{name: title, type: string}]
    meta: {query: {s: {type: string}, n: {type: number}, i: {type: integer}, b: {type: boolean}, a: {type: array}, o: {type: object}, e: {type: integer, enum: [1, 2]}}}
    permissions: {public: {methods: {}}, user: {methods: {get: true}}}
`)
	s.user("ann", map[string]any{"scopes": []string{"namespace.typed"}})
	res := s.do("POST", "/api/v1/token", session(s.login("ann")), text(`{"name": "p", "scopes": ["namespace.typed"]}`))
	res.want(t, http.StatusCreated)
	agent := session(res.field("token"))
	for _, tt := range []struct{ extra, want string }{
		{`{"s": "1", "n": 1.5, "i": -1, "b": false, "a": [1], "o": {"a": 1}, "e": 2}`, ""},
		{`{"n": "1e3", "i": "7", "b": "true", "a": "[]", "o": "{}"}`, ""},
		{`{"n": "x"}`, "400 extra parameter n must be a number"}, {`{"n": true}`, "400 extra parameter n must be a number"},
		{`{"i": 1.5}`, "400 extra parameter i must be a whole number"}, {`{"i": [1]}`, "400 extra parameter i must be a whole number"},
		{`{"b": 1}`, "400 extra parameter b must be true or false"},
		{`{"a": {"a": 1}}`, "400 extra parameter a must be a list"}, {`{"a": "1,2"}`, "400 extra parameter a must be a list"},
		{`{"o": [1]}`, "400 extra parameter o must be an object"}, {`{"o": "a"}`, "400 extra parameter o must be an object"},
		{`{"e": 3}`, "400 extra parameter e must be one of 1, 2"},
	} {
		if _, refusal := s.tool("documents_list", `{"namespace": "typed", "collection": "items", "extra": `+tt.extra+`}`, agent); refusal != tt.want {
			t.Errorf("%s: %q, want %q", tt.extra, refusal, tt.want)
		}
	}
}

// TestAgentsAreWhereTheyAre: what an agent writes is in the audit log with its own address, by whichever proxy it comes, and with the id of its request.
func TestAgentsAreWhereTheyAre(t *testing.T) {
	s := run(t, func(c *app.Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	s.register("seen", `
namespace: seen
audit: {enabled: true}
collections:
  - name: items
    fields: [{name: title, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {post: true}}}
`)
	s.user("ann", map[string]any{"scopes": []string{"namespace.seen"}})
	res := s.do("POST", "/api/v1/token", session(s.login("ann")), text(`{"name": "p", "scopes": ["namespace.seen"]}`))
	res.want(t, http.StatusCreated)
	for _, tt := range []struct{ name, value, want string }{
		{"X-Forwarded-For", "203.0.113.9", "203.0.113.9"}, {"Forwarded", "for=203.0.113.10", "203.0.113.10"}, {"User-Agent", "agent", "127.0.0.1"},
	} {
		id := "agent" + tt.want
		_, refusal := s.tool("document_create", `{"namespace": "seen", "collection": "items", "data": {"title": "x"}}`, session(res.field("token")), header(tt.name, tt.value), header("X-Request-Id", id))
		if refusal != "" {
			t.Fatal(refusal)
		}
		log := s.do("GET", "/api/v1/_/seen/_/audit?limit=1", admin).body
		if !strings.Contains(log, `"address":"`+tt.want+`"`) || !strings.Contains(log, `"requestId":"`+id+`"`) {
			t.Errorf("%s: %s", tt.name, log)
		}
	}
}
