package docs_test

import (
	"strings"
	"testing"
)

// TestSearchDoc runs the lines of search.md.
func TestSearchDoc(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.sample("blog", "medialib", "authors", "articles")
	printed := d.run(strings.Join(blocks(t, "search.md", "sh"), ""))
	d.prints(printed, `"_score":`, `<mark>garden</mark>`, "articles/main", "ready", "succeeded", "✓ golden queries of articles/main", "held", "articles/shelf", "Reaches")
}
