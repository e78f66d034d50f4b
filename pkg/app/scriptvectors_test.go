package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/embedding"
)

// talking are collections whose lists scripts give, which ask embedding groups.
const talking = `
  - {name: lengths, permissions: {public: {methods: {get: true}}, user: {methods: {}}}, hooks: {get: {handle: {type: javascript, file: lengths.js, timeout: 1m}}}}
  - {name: caught, permissions: {public: {methods: {get: true}}, user: {methods: {}}}, hooks: {get: {handle: {type: javascript, file: caught.js, timeout: 1m}}}}
  - {name: unknown, permissions: {public: {methods: {get: true}}, user: {methods: {}}}, hooks: {get: {handle: {type: javascript, file: unknown.js, timeout: 1m}}}}
  - {name: near, permissions: {public: {methods: {get: true}}, user: {methods: {}}}, hooks: {get: {handle: {type: javascript, file: near.js, timeout: 1m}}}}
  - {name: short, permissions: {public: {methods: {get: true}}, user: {methods: {}}}, hooks: {get: {handle: {type: javascript, file: short.js, timeout: 300ms}}}}
`

func (s *service) talks() {
	s.t.Helper()
	for name, code := range map[string]string{
		"lengths": `const all = await embeddings.documents('texts', ['a', '', 'bb']); return {items: [], lengths: all.map((v) => v && v.length)}`,
		"caught":  `const code = await embeddings.query('texts', 'a').then(() => 'fine', (e) => e.code); return {items: [], code}`,
		"unknown": `return {items: [], v: await embeddings.query('no-such', 'a')}`,
		// what is looked for is another text each time: vectors are kept
		"near":  `return {items: [], titles: (await search.find('items', crypto.uuid(), {name: 'near'})).map((r) => r.title)}`,
		"short": `return {items: [], v: await embeddings.query('texts', 'a')}`,
	} {
		s.file("shop", name+".js", "module.exports = async (ctx) => { "+code+" }")
	}
	s.configure("shop", vectorConfig+talking)
	s.do("POST", "/api/v1/_/shop/_/admin/reload?wait=true", admin).want(s.t, http.StatusOK)
}

// R11: whatever the server of vectors does, a script is told by a code, and who called it gets 503, which names the group.
func TestR11EmbeddingsOfScripts(t *testing.T) {
	withFaultyServer(t, func(t *testing.T, s *service, f *faultyServer) {
		s.talks()
		s.do("POST", "/api/v1/_/shop/items", json1(map[string]any{"title": "tent"})).want(t, http.StatusCreated)
		s.embedded(1)
		well := func() {
			t.Helper()
			s.shows("/api/v1/_/shop/lengths", `"lengths":[4,null,4]`)
			s.shows("/api/v1/_/shop/caught", `"code":"fine"`)
			s.shows("/api/v1/_/shop/near", `"titles":["tent"]`)
		}
		well()
		s.do("GET", "/api/v1/_/shop/unknown").contains(t, http.StatusServiceUnavailable, "the embedding group no-such is offline: it is not in embedding.groups of the service's settings")
		for _, fault := range faults() {
			f.set(fault)
			for _, collection := range []string{"lengths", "near"} {
				eventually(t, func() string {
					got := s.do("GET", "/api/v1/_/shop/"+collection)
					if !strings.HasPrefix(got.String(), "503 embedding_offline: the embedding group texts is offline: none of its members answers") {
						return collection + " " + *f.fault.Load() + " " + got.String()
					}
					return ""
				})
			}
			s.shows("/api/v1/_/shop/caught", `"code":"embedding_offline"`)
			f.set("")
			well()
		}
	})
}

// A script whose server of vectors does not answer ends with its own time.
func TestEmbeddingsEndWithTheScript(t *testing.T) {
	t.Parallel()
	f := newFaultyServer(t)
	s := run(t, func(c *app.Config) {
		c.Embedding = embedding.Config{
			Providers: []embedding.ProviderConfig{{Name: "far", Type: "openai", Model: "m", BaseURL: f.URL, Dimensions: 4, TimeoutPerAttempt: time.Hour}},
			Groups:    []embedding.GroupConfig{{Name: "texts", Members: []string{"far"}}},
		}
	})
	s.register("shop", vectorConfig)
	s.converged()
	s.talks()
	s.shows("/api/v1/_/shop/caught", `"code":"fine"`)
	f.set("slow")
	if got := s.do("GET", "/api/v1/_/shop/short"); got.status != http.StatusGatewayTimeout {
		t.Errorf("%s %s", got, got.body)
	}
}
