package records_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// A description has what a caller may know, and says what they can't write, wherever that is declared.
func TestDescribe(t *testing.T) {
	w := newWorld(t, teststore.Memory(t), collections(`
name: items
fields:
  - {name: title, type: string}
  - {name: code, type: string, readonly: true}
  - {name: slug, type: string}
  - {name: margin, type: string, hidden: true}
  - {name: seo, type: object, subFields: [{name: title, type: string}, {name: rank, type: string}]}
readonlyFields: [slug]
search:
  - {name: words, mode: text, fields: [title, margin, seo.rank], meta: {label: Words}}
  - {name: inside, mode: ngram, fields: [margin]}
  - {name: all, mode: rrf, rrf: {sources: [inside, words]}}
  - {name: more, mode: rrf, rrf: {sources: [inside]}}
projections: {card: {select: {title: 1}}, full: {select: {margin: 1}}}
meta: {label: Things, defaultSort: "-margin"}
permissions:
  public: {methods: {get: true}, hiddenFields: [seo.rank], validProjections: [card]}
  user: {methods: {get: {count: true}, put: {bulk: true}}, readonlyFields: [seo.rank], validProjections: []}
  "token:t": {methods: {post: true}}
`))
	for who, want := range map[string]string{
		"public":      "title code! slug! seo(title) [card] text words(title) label=Words, rrf all(words) label get+count",
		"alice":       "title code! slug! seo(title rank!) [] text words(title seo.rank) label=Words, rrf all(words) label get+count put+count+bulk",
		"admin":       "title code! slug! margin seo(title rank) [card full] text words(title margin seo.rank) label=Words, ngram inside(margin), rrf all(inside words), rrf more(inside) label defaultSort get+count+bulk post+count+bulk put+count+bulk delete+count+bulk",
		"token:t":     "permission_denied: permission denied",
		"token:other": "permission_denied: permission denied",
	} {
		if got := described(w.service.Describe(t.Context(), w.call(who))); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", who, got, want)
		}
	}
	d, err := w.service.Describe(t.Context(), w.call("public"))
	if err != nil || d.Shows("margin") || d.Shows("seo.rank") || !d.Shows("seo.title") {
		t.Error("paths", err)
	}
}

// Those whom a filter keeps records from are told so apart: what is about all records is not for them.
func TestDescribeReadsAll(t *testing.T) {
	w := newWorld(t, teststore.Memory(t), collections(`
name: items
fields: [{name: n, type: number}]
permissions:
  public: {methods: {get: true}, filter: {n: {$gt: 1}}}
  user: {methods: {get: true}}
`))
	for who, want := range map[string]bool{"admin": true, "alice": true, "public": false} {
		if d, err := w.service.Describe(t.Context(), w.call(who)); err != nil || d.ReadsAll != want {
			t.Errorf("%s: %v, %v", who, d, err)
		}
	}
}

// described is a description in one line: fields, ! behind those that are readonly, projections, searches, meta, methods.
func described(d *records.Description, err error) string {
	if err != nil {
		return show(err)
	}
	parts := []string{describedFields(d.Fields), fmt.Sprint(d.Projections), describedSearches(d.Searches)}
	for _, e := range d.Meta {
		parts = append(parts, e.Key)
	}
	for _, m := range []access.Method{access.Get, access.Post, access.Put, access.Delete} {
		for _, r := range d.Rights {
			if r.Method != m || !r.Allowed {
				continue
			}
			text := m.String()
			if r.Grant.Count {
				text += "+count"
			}
			if r.Grant.Bulk {
				text += "+bulk"
			}
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, " ")
}

func describedSearches(searches []records.DescribedSearch) string {
	parts := make([]string, len(searches))
	for i, s := range searches {
		parts[i] = s.Mode + " " + s.Name + "(" + strings.Join(append(s.Fields, s.Sources...), " ") + ")"
		for _, e := range s.Meta {
			parts[i] += fmt.Sprintf(" %s=%v", e.Key, e.Value)
		}
	}
	return strings.Join(parts, ", ")
}

func describedFields(fields []records.DescribedField) string {
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = f.Name
		if f.Readonly {
			parts[i] += "!"
		}
		if len(f.Sub) > 0 {
			parts[i] += "(" + describedFields(f.Sub) + ")"
		}
	}
	return strings.Join(parts, " ")
}

// What is decided for a request is decided once.
func TestACallIsDecidedOnce(t *testing.T) {
	w := newWorld(t, teststore.Memory(t), collections("name: items\n"+open))
	c := w.call("alice")
	if err := w.service.May(t.Context(), c, access.Get); err != nil {
		t.Fatal(err)
	}
	c.Principal = as("token:nobody")
	if err := w.service.May(t.Context(), c, access.Get); err != nil {
		t.Error("decided again:", err)
	}
	if err := w.service.May(t.Context(), c, access.Put); show(err) != "permission_denied: permission denied" {
		t.Error("another method has the same answer:", show(err))
	}
}

// An admin token of a project has what its rights say, until it expires by the service's clock.
func TestMayOperate(t *testing.T) {
	w := newWorld(t, teststore.Memory(t), `
admin:
  tokens:
    - {name: deploy, value: deploy-token-0123456789, rights: [reload], expiresAt: "2026-03-01T12:00:03Z"}
    - {name: other, value: other-token-0123456789, rights: [snapshot]}
collections: []
`)
	for _, tt := range []struct{ who, right, want string }{
		{"token:deploy-token-0123456789", access.ProjectReload, "ok"},
		{"token:deploy-token-0123456789", access.ProjectRead, "permission_denied: permission denied: admin token lacks permission project.read"},
		{"token:deploy-token-0123456789", access.ProjectReload, "permission_denied: permission denied: admin token lacks permission project.reload"}, // the third second
		{"token:other-token-0123456789", access.ProjectReload, "permission_denied: permission denied: admin token lacks permission project.reload"},
		{"public", access.ProjectReload, "permission_denied: permission denied"},
		{"alice", access.ProjectReload, "permission_denied: permission denied"},
		{"admin", access.ProjectReload, "ok"},
	} {
		if got := show(w.service.MayOperate(w.project, as(tt.who), tt.right)); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.who, tt.right, got, tt.want)
		}
	}
}
