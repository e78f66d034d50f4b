package docs_test

import (
	"strings"
	"testing"
)

// TestSvcctlLines runs the lines of svcctl.md against the sample.
func TestSvcctlLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.sample("blog", "medialib", "authors", "articles")
	printed := d.run(strings.Join(blocks(t, "svcctl.md", "sh"), ""))
	d.prints(printed, "identity         ok       admin", "blog        True    Ready", "├── collection/articles", "collections   col,cols", "collection/settings\ncollection/pages", "authors    slug,name,", "\ntest\n")
}
