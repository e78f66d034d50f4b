package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The lines of api.md run as they are, but for what they ask of a user who logs in.
func TestAPI(t *testing.T) {
	d := newDesk(t)
	d.sample("blog", "medialib", "authors", "articles", "pages")
	d.sample("shop", "medialib", "categories", "products")
	if err := os.WriteFile(filepath.Join(d.dir, "data", "admin.password"), []byte("long enough for docs"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.run(`svcctl user create admin --admin --password-file data/admin.password`)
	var lines strings.Builder
	for _, block := range blocks(t, "api.md", "sh") {
		if !strings.Contains(block, "fliter") { // which shows a refusal
			lines.WriteString(block)
		}
	}
	printed := d.run(lines.String())
	d.prints(printed, `"dryRun":true`, `"title":"Once"`, `"count":`, `svc_pat_`, `"articles":`, `"by":[{"name":`, `"facets":{"section":[{"value":`)
}
