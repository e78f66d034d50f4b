package docs_test

import (
	"strings"
	"testing"
)

// TestRecordsDoc runs the lines of records.md in one go, as a reader would.
func TestRecordsDoc(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.sample("shop", "medialib", "categories", "products")
	printed := d.run(strings.Join(blocks(t, "records.md", "sh"), ""))
	d.prints(printed, "a dry run: nothing was written", "products.csv", "UPDATED", "by_category", "Records:", "DEAREST", "of 1", `"event":"update"`, `"weightGrams":321`)
}
