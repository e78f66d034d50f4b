package app_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/app"
)

// The record of a singleton is at the collection's own path.
func TestSingleton(t *testing.T) {
	onStores(t, func(t *testing.T, cfg app.Config) {
		s := run(t, func(c *app.Config) { c.StoreURI = cfg.StoreURI })
		s.register("desk", `
namespace: desk
collections:
  - name: settings
    meta: {singleton: true}
    fields: [{name: title, type: string}, {name: n, type: number}]
    permissions: {public: {methods: {get: true, post: true, put: {bulk: true}, delete: true}}, user: {methods: {}}}
  - name: items
    permissions: {public: {methods: {get: true, put: {bulk: true}}}, user: {methods: {}}}
`[1:])
		const path = "/api/v1/_/desk/settings"
		s.do("GET", path).want(t, http.StatusNotFound)
		if got := s.do("PUT", path+"?dryRun=true", text(`{"title": "a"}`)); got.status != http.StatusOK || !strings.Contains(got.body, `"dryRun":true`) {
			t.Error(got)
		}
		s.do("GET", path).want(t, http.StatusNotFound)
		s.do("PUT", path, text(`{"n": 1}`), header("If-Match", "*")).want(t, http.StatusPreconditionFailed)
		s.do("PUT", path+"?maxAffected=0", text(`{"n": 1}`)).want(t, http.StatusUnprocessableEntity)
		s.do("GET", path).want(t, http.StatusNotFound)
		made := s.do("PUT", path, text(`{"title": "a", "n": 1}`))
		made.want(t, http.StatusCreated)
		if made.header.Get("Location") != path || made.header.Get("ETag") != `"1"` {
			t.Error(made.header)
		}
		changed := s.do("PUT", path, text(`{"n": 2}`), header("If-Match", `"1"`))
		if changed.want(t, http.StatusOK); !strings.Contains(changed.body, `"title":"a","n":2`) {
			t.Error(changed)
		}
		s.do("PUT", path, text(`{"n": 3}`), header("If-Match", `"1"`)).want(t, http.StatusPreconditionFailed)
		if got := s.do("PUT", path+"?replace=true", text(`{"n": 4}`)); got.status != http.StatusOK || strings.Contains(got.body, "title") {
			t.Error(got)
		}
		one := s.do("GET", path+"?select=n")
		if one.want(t, http.StatusOK); !strings.HasPrefix(one.body, `{"id":"`+made.field("id")+`","n":4`) || one.header.Get("ETag") != `"3"` {
			t.Error(one)
		}
		s.do("GET", path, header("If-None-Match", `"3"`)).want(t, http.StatusNotModified)
		s.do("GET", path+"/"+made.field("id")).want(t, http.StatusOK)
		for _, list := range []string{"?limit=5", "?sort=n", "?filter[n]=4", "?count=true", "?offset=0"} {
			if got := s.do("GET", path+list); !strings.HasPrefix(got.body, `{"items":[{"id"`) {
				t.Errorf("%s: %s", list, got)
			}
		}
		if got := s.do("POST", path, text(`{"n": 1}`)); got.String() != "409 singleton: the collection has one record, which is there already: change it by PUT" {
			t.Error(got)
		}
		if got := s.do("PUT", path+"?filter[n]=4", text(`{"n": 5}`)); !strings.Contains(got.body, `"matched":1`) {
			t.Error(got)
		}
		if got := s.do("DELETE", path); got.status != http.StatusBadRequest {
			t.Error(got)
		}
		if got := s.do("PUT", "/api/v1/_/desk/items?replace=true&filter[n]=1", text(`{}`)); got.String() != "400 unknown_parameter: unknown query parameter: replace" {
			t.Error(got)
		}
		if got := s.do("GET", "/api/v1/_/desk/_/collections/settings"); !strings.Contains(got.body, `"singleton":true`) {
			t.Error(got)
		}
		s.do("DELETE", path+"/"+made.field("id")).want(t, http.StatusOK)
		s.do("POST", path, text(`{"n": 1}`)).want(t, http.StatusCreated)
	})
}
