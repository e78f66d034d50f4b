package docs_test

import (
	"strings"
	"testing"
)

// TestRecordsDoc runs the lines of records.md in one go, as a reader would.
func TestRecordsDoc(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.sample("shop", "categories", "products")
	printed := d.run(strings.Join(blocks(t, "records.md", "sh"), ""))
	d.prints(printed, "a dry run: nothing was written", "products.csv", "UPDATED", "by_category", "Records:")
}
