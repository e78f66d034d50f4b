package app_test

import (
	"net/http"
	"strings"
	"testing"
)

// What the parameters of writes do to answers, and that dry runs change nothing.
func TestParametersOfWrites(t *testing.T) {
	s := runShop(t, nil)
	a := s.item(`{"title": "A", "n": 1, "slug": "a"}`)
	b := s.item(`{"title": "B", "n": 2, "slug": "b"}`)
	writer := token(writeToken)
	patch := header("Content-Type", "application/json-patch+json")
	one := `{"dryRun":true,"succeeded":1,"failed":0,"ids":["` + a + `"]}`
	for _, tt := range []struct {
		method, path string
		options      []option
		want, body   string
	}{
		{"POST", "?dryRun=true", []option{text(`{"title": "C"}`)}, "200", `{"dryRun":true,"succeeded":1,"failed":0,"ids":[]}`},
		{"POST", "?dryRun=true", []option{text(`{"title": "C", "slug": "a"}`)}, "409 unique: slug is already taken", ""},
		{"POST", "?dryRun=true", []option{text(`{}`)}, "400 validation_failed: title: is required", ""},
		{"POST", "?dryRun=maybe", []option{text(`{}`)}, "400 bad_parameter: dryRun must be true or false", ""},
		{"POST", "?dryRun=true", []option{text(`{"items": [{"title": "C"}, {}, {"title": "D", "slug": "b"}]}`)}, "200", `{"dryRun":true,"succeeded":1,"failed":2,"ids":[],"items":[{"index":1,"status":400,"error":{`},
		{"PUT", "/" + a + "?dryRun=true", []option{text(`{"title": "C"}`)}, "200", one},
		{"PUT", "/" + a + "?dryRun=true&replace=true", []option{text(`{"title": "C"}`)}, "200", one},
		{"PUT", "/" + a + "?dryRun=true", []option{text(`{"title": "C"}`), header("If-Match", `"7"`)}, "412 stale: *", ""},
		{"PATCH", "/" + a + "?dryRun=true", []option{patch, text(`[{"op": "replace", "path": "/title", "value": "C"}]`)}, "200", one},
		{"DELETE", "/" + a + "?dryRun=true", nil, "200", one},
		{"DELETE", "/" + unknownID + "?dryRun=true", nil, notFound, ""},
		{"PUT", "?filter[n][gte]=1&dryRun=true", []option{text(`{"title": "C"}`)}, "200", `{"dryRun":true,"matched":2,"succeeded":2,"failed":0,"ids":["` + a + `","` + b + `"]}`},
		{"PUT", "?filter[n][gte]=1&dryRun=true", []option{text(`{"slug": "z"}`)}, "200", `{"dryRun":true,"matched":2,"succeeded":1,"failed":1,"ids":["` + a + `"],"items":[{"index":1,"id":"` + b + `","status":409,`},
		{"DELETE", "?filter[n]=9&dryRun=true", nil, "200", `{"dryRun":true,"matched":0,"succeeded":0,"failed":0,"ids":[]}`},
		{"DELETE", "?dryRun=true", nil, "400 filter_required: *", ""},
		{"DELETE", "?filter[n][gte]=1&maxAffected=1", nil, "422 max_affected: this would write more than 1 records, the maxAffected of the request: nothing was written", ""},
		{"PUT", "?filter[n][gte]=1&maxAffected=0", []option{text(`{"title": "C"}`)}, "422 max_affected: *", ""},
		{"PUT", "?filter[n][gte]=1&maxAffected=1&dryRun=true", []option{text(`{"title": "C"}`)}, "422 max_affected: *", ""},
		{"POST", "?maxAffected=1", []option{text(`{"items": [{"title": "C"}, {"title": "D"}]}`)}, "422 max_affected: *", ""},
		{"POST", "?maxAffected=0", []option{text(`{"title": "C"}`)}, "422 max_affected: *", ""},
		{"POST", "?maxAffected=-1", []option{text(`{"title": "C"}`)}, "400 bad_parameter: maxAffected can't be negative", ""},
		{"POST", "?maxAffected=x", []option{text(`{"title": "C"}`)}, "400 bad_parameter: maxAffected must be a whole number", ""},
		{"PUT", "/" + a + "?maxAffected=1", []option{text(`{"title": "C"}`)}, "400 unknown_parameter: *", ""},
		{"GET", "?dryRun=true", nil, "400 unknown_parameter: *", ""},
		{"PUT", "?filter[n]=1", []option{text(`{"title": "C"}`), header("If-Match", `"1"`)}, "400 unsupported: If-Match is for the update or delete of one record: *", ""},
		{"DELETE", "?filter[n]=1", []option{header("If-Match", `"7"`)}, "400 unsupported: *", ""},
		{"POST", "", []option{text(`{"title": "C"}`), header("If-Match", `"1"`)}, "400 unsupported: *", ""},
		{"POST", "", []option{text(`{"items": [{"title": "C"}]}`), header("If-Match", `"1"`)}, "400 unsupported: *", ""},
	} {
		before := s.contents()
		got := s.do(tt.method, "/api/v1/_/shop/items"+tt.path, append([]option{writer}, tt.options...)...)
		prefix, open := strings.CutSuffix(tt.want, "*")
		if got.String() != tt.want && (!open || !strings.HasPrefix(got.String(), prefix)) || !strings.Contains(got.body, tt.body) {
			t.Errorf("%s %s: %s\n%s\nwant %s %s", tt.method, tt.path, got, got.body, tt.want, tt.body)
		}
		if s.contents() != before {
			t.Errorf("%s %s has written", tt.method, tt.path)
		}
	}
}

// Prefer: return=minimal (RFC 7240) leaves records out of the answers to writes.
func TestPreferMinimal(t *testing.T) {
	s := runShop(t, nil)
	writer, minimal := token(writeToken), header("Prefer", "respond-async, return=minimal; x=1")
	created := s.do("POST", "/api/v1/_/shop/items", writer, minimal, text(`{"title": "A", "n": 1}`))
	id := created.field("id")
	if created.status != http.StatusCreated || created.body != `{"id":"`+id+`"}` || created.header.Get("ETag") != `"1"` ||
		created.header.Get("Preference-Applied") != "return=minimal" || created.header.Get("Location") != "/api/v1/_/shop/items/"+id {
		t.Errorf("%s %s %v", created, created.body, created.header)
	}
	for _, tt := range []struct {
		prefer, applied, method, path, body, want string
	}{
		{"return=minimal", "return=minimal", "PUT", "/" + id, `{"n": 2}`, `{"id":"` + id + `"}`},
		{`RETURN="minimal"`, "return=minimal", "PUT", "/" + id, `{"n": 2}`, `{"id":"` + id + `"}`},
		{"return=minimal", "return=minimal", "PATCH", "/" + id, `{"n": 2}`, `{"id":"` + id + `"}`},
		{"return=representation, return=minimal", "return=representation", "PUT", "/" + id, `{"n": 2}`, `{"id":"` + id + `","title":"A","n":2,`},
		{"return=nothing", "", "PUT", "/" + id, `{"n": 2}`, `"title":"A"`},
		{"wait=10", "", "PUT", "/" + id, `{"n": 2}`, `"title":"A"`},
		{"return=minimal", "return=minimal", "POST", "", `{"items": [{"title": "B"}, {}]}`, `","status":201},{"status":400,"error":{`},
		{"return=minimal", "return=minimal", "PUT", "?filter[title]=B", `{"n": 3}`, `{"matched":1,"succeeded":1,"failed":0,"items":[{"id":"`},
		{"return=minimal", "return=minimal", "DELETE", "/" + id, "", `{"id":"` + id + `"}`},
	} {
		got := s.do(tt.method, "/api/v1/_/shop/items"+tt.path, writer, header("Prefer", tt.prefer), func(r *http.Request) {
			if tt.method == "PATCH" {
				r.Header.Set("Content-Type", "application/merge-patch+json")
			}
		}, text(tt.body))
		if got.status >= 300 || !strings.Contains(got.body, tt.want) || got.header.Get("Preference-Applied") != tt.applied {
			t.Errorf("%s %s %s: %s %s %q", tt.prefer, tt.method, tt.path, got, got.body, got.header.Get("Preference-Applied"))
		}
	}
}
