package docs_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestActionLines runs the lines of actions.md against the sample shop.
func TestActionLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.sample("shop", "medialib", "categories", "products")
	printed := d.run(strings.Join(blocks(t, "actions.md", "sh"), "") + "cat data/products.csv\n")
	d.prints(printed, `"execution":"stream"`, "event: progress", "event: done", `"status":"succeeded"`, "post", "sku,name,category", ",repair-kits,")
}

// TestActionExample serves the config of actions.md, and calls its script.
func TestActionExample(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	writeFiles(t, filepath.Join(d.dir, "projects", "store"), map[string]string{
		"actions/restock.js": blocks(t, "actions.md", "js")[0],
		"project.yaml": "namespace: store\n" + blocks(t, "actions.md", "yaml")[0] + `
collections:
- name: products
  fields: [{name: sku, type: string}, {name: stock, type: number}]
  permissions: {public: {methods: {}}, user: {methods: {}}}
`,
	})
	d.register("store")
	printed := d.run(`svcctl doc create store products -d '{"sku": "A-1", "stock": 2}'
svcctl action call store restock -d '{"sku": "A-1", "count": 5}'
svcctl action call store restock -d '{"sku": "A-2", "count": 5}' || echo "exit code $?"
svcctl action call store restock -d '{"sku": "A-1"}' || echo "exit code $?"
`)
	d.prints(printed, `"stock": 7`, "there is no such product", "exit code 5", "data.count")
}
