package app_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/app"
)

// The scripts of the sample projects do what their comments say.
func TestScriptsOfTheSamples(t *testing.T) {
	dir, err := filepath.Abs("../../projects")
	if err != nil {
		t.Fatal(err)
	}
	s := run(t, func(c *app.Config) {
		c.ProjectsDir = dir
		c.Env = func(name string) (string, bool) { return "key", name == "BLOG_PREVIEW" }
	})
	for _, name := range []string{"blog", "shop"} {
		s.do("POST", "/api/v1/project", admin, text(`{"name": "`+name+`", "configFile": "`+name+`", "enabled": true}`)).want(t, http.StatusCreated)
	}

	s.do("POST", "/api/v1/_/blog/authors", admin, text(`{"slug": "ann", "name": "Ann", "email": "ann@mail.example"}`)).want(t, http.StatusCreated)
	for _, want := range []string{"a-long-walk", "a-long-walk-2", "a-long-walk-3"} {
		res := s.do("POST", "/api/v1/_/blog/articles", admin, text(`{"title": "A long Walk!", "body": "x", "author": "ann", "section": "walking"}`))
		if res.want(t, http.StatusCreated); res.field("slug") != want {
			t.Errorf("slug %s, want %s", res.field("slug"), want)
		}
	}
	for _, page := range []string{`{"slug": "about", "title": "About"}`, `{"slug": "draft", "title": "Draft", "active": false}`} {
		s.do("POST", "/api/v1/_/blog/pages", admin, text(page)).want(t, http.StatusCreated)
	}
	for query, want := range map[string]int{"": 1, "?preview=wrong": 1, "?preview=key": 2} {
		res := s.do("GET", "/api/v1/_/blog/pages"+query)
		if got := strings.Count(res.body, `"slug"`); got != want {
			t.Errorf("pages%s: %s", query, res.body)
		}
	}

	s.do("POST", "/api/v1/_/shop/categories", admin, text(`{"slug": "tents", "name": "Tents"}`)).want(t, http.StatusCreated)
	s.do("POST", "/api/v1/_/shop/products", admin, text(`{"sku": "TEN-0001", "name": "Tent", "slug": "tent", "category": "tents", "brand": "B",
		"price": {"amount": 100}, "variants": [{"sku": "TEN-0001-1", "stock": 3}, {"sku": "TEN-0001-2", "stock": 5, "price": {"amount": 70, "currency": "EUR"}}]}`)).want(t, http.StatusCreated)
	order := func(number, lines string) answer {
		return s.do("POST", "/api/v1/_/shop/orders", text(`{"number": "`+number+`", "email": "a@b.example", "lines": [`+lines+`],
			"shipTo": {"name": "n", "street": "s", "postcode": "p", "city": "c", "country": "DE"}}`))
	}
	order("O-00001", `{"product": "tent", "variant": "TEN-0001-1", "quantity": 2}, {"product": "tent", "variant": "TEN-0001-2", "quantity": 1}`).want(t, http.StatusCreated)
	if got := order("O-00002", `{"product": "tent", "variant": "TEN-0001-2", "quantity": 4}, {"product": "tent", "variant": "TEN-0001-1", "quantity": 2}`); got.String() != "409 script_error: out of stock" ||
		!strings.Contains(got.body, `"lines.1.quantity"`) {
		t.Errorf("%s %s", got, got.body)
	}
	if got := s.do("GET", "/api/v1/_/shop/products", admin); !strings.Contains(got.body, `"stock":1}`) || !strings.Contains(got.body, `"stock":4`) {
		t.Errorf("stock: %s", got.body)
	}
	if got := s.do("GET", "/api/v1/_/shop/orders", admin); strings.Count(got.body, `"number"`) != 1 || !strings.Contains(got.body, `"amount":270`) {
		t.Errorf("orders: %s", got.body)
	}
	if got := s.do("GET", "/metrics", admin); !strings.Contains(got.body, `svc_hook_duration_seconds_count{collection="orders",namespace="shop",stage="post.create"} `) {
		t.Error("runs are not measured")
	}
}

// An answer has nothing of a script that failed; the log has its file and line, its stack and the request.
func TestScriptErrorsInLogAndAnswer(t *testing.T) {
	s := run(t, nil)
	s.configure("notes", `
namespace: notes
collections:
- name: items
  permissions: {public: {methods: {post: true}}, user: {methods: {}}}
  hooks: {post: {bind: {type: javascript, file: bind.ts}}}
`)
	s.write("notes/bind.ts", "const inner = (x: any) => x.secretMember.y;\n\nexport default (ctx: any) => {\n  if (ctx.data.status) throw ctx.error(ctx.data.status, 'no ' + ctx.headers['x-color'], [{path: 'a', message: 'b'}]);\n  inner({});\n};\n")
	s.do("POST", "/api/v1/project", admin, text(`{"configFile": "notes"}`)).want(t, http.StatusCreated)
	got := s.do("POST", "/api/v1/_/notes/items", text(`{}`), header("X-Request-Id", "request-7"))
	if got.String() != "500 script_failed: a script of the project failed" || strings.Contains(got.body, "bind.ts") || strings.Contains(got.body, "secretMember") {
		t.Errorf("%s %s", got, got.body)
	}
	for _, want := range []string{"at=bind.ts:1:", "request_id=request-7", "stage=post.bind", "collection=items", "reason=exception", "inner (bind.ts:1:"} {
		if !strings.Contains(s.logs.String(), want) {
			t.Errorf("the log has no %q", want)
		}
	}
	if n := strings.Count(s.logs.String(), "level=ERROR"); n != 1 {
		t.Errorf("%d lines of the log are about one failure:\n%s", n, s.logs)
	}
	for status, want := range map[string]string{"402": "402 script_error: no red", "418": "418 script_error: no red", "503": "503 script_error: no red", "507": "507 script_error: no red"} {
		got := s.do("POST", "/api/v1/_/notes/items", text(`{"status": `+status+`}`), header("X-Color", "red"))
		if got.String() != want || !strings.Contains(got.body, `"errors":[{"path":"a"`) {
			t.Errorf("%s: %s %s", status, got, got.body)
		}
	}
}
