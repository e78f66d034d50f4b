package docs_test

import (
	"strings"
	"testing"
)

// TestQueryLines runs the lines of queries.md against the samples.
func TestQueryLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.sample("blog", "medialib", "authors", "articles")
	d.sample("shop", "medialib", "categories", "products")
	printed := d.run(strings.Join(blocks(t, "queries.md", "sh"), ""))
	d.prints(printed, `"author":{"id":"`, `"name":"Vera Ueda"}`, `{"count":`, `"parent":{"id":"`, `"name":"Clothing"`, `"products":[{"id":"`, `"slug":"boots"`)
	if strings.Contains(printed, `{"count":0}`) || strings.Contains(printed, "fieldnotes.example") {
		t.Error(printed)
	}
}
