package app_test

import (
	"strings"
	"testing"
)

// A field that a hook computes goes out where it is declared. Another one stays inside, as does what is stored and hidden, or
// left over from another config; the log names what the hook gave in vain.
func TestComputedFields(t *testing.T) {
	s := run(t, nil)
	const fields = `
namespace: calc
collections:
- name: items
  strictFields: STRICT
  permissions: {public: {methods: {get: true, post: true}}, user: {methods: {}}}
  fields:
  - {name: title, type: string}
  - {name: secret, type: string, hidden: true}
`
	const hooked = fields + `
  - {name: length, type: number, readonly: true}
  hooks:
    get: {read: {type: javascript, file: read.js}, return: {type: javascript, file: return.js}}
`
	s.file("calc", "read.js", `module.exports = (ctx) => { for (const d of ctx.docs || [ctx.doc]) { d.length = d.title.length; d.extra = 1; d.title += '!' } }`)
	s.file("calc", "return.js", `module.exports = (ctx) => { for (const d of ctx.result.items || [ctx.result]) d.last = d.secret === undefined && d.gone === undefined }`)
	s.register("calc", strings.Replace(fields, "STRICT", "false", 1))
	id := s.do("POST", "/api/v1/_/calc/items", admin, text(`{"title": "abc", "gone": "left over"}`)).field("id")
	s.do("PUT", "/api/v1/_/calc/items/"+id, admin, text(`{"secret": "hush"}`))
	s.configure("calc", strings.Replace(hooked, "STRICT", "true", 1))
	s.do("POST", "/api/v1/_/calc/_/admin/reload?wait=true", admin).want(t, 200)
	for range 2 {
		for _, path := range []string{"/api/v1/_/calc/items", "/api/v1/_/calc/items/" + id} {
			got := s.do("GET", path)
			got.contains(t, 200, `"title":"abc!"`, `"length":3`)
			for _, inside := range []string{"extra", "gone", "secret", "last", "left over", "hush"} {
				if strings.Contains(got.body, inside) {
					t.Errorf("%s has %s: %s", path, inside, got.body)
				}
			}
		}
	}
	for want, times := range map[string]int{"script=read.js field=extra": 1, "script=return.js field=last": 1, "field=length": 0, "field=gone": 0} {
		if n := strings.Count(s.logs.String(), want); n != times {
			t.Errorf("the log has %q %d times", want, n)
		}
	}
}
