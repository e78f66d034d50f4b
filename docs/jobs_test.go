package docs_test

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/script"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// jobFiles is the project of jobs.md.
func jobFiles(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"project.yaml": "namespace: blog\n" + blocks(t, "jobs.md", "yaml")[0] + `
collections:
- name: articles
  fields: [{name: draft, type: boolean}]
  permissions: {public: {methods: {}}, user: {methods: {}}}
`,
		"jobs/cleanup.js": blocks(t, "jobs.md", "js")[0],
		"jobs/import.js":  "module.exports = () => {}",
	}
}

// TestJobLines runs the lines of jobs.md against the sample shop.
func TestJobLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.sample("shop", "medialib", "categories", "products", "orders")
	printed := d.run(strings.Join(blocks(t, "jobs.md", "sh"), ""))
	d.prints(printed, "cancel-unpaid", "manual", "succeeded", "suspended")
}

// TestJobExample loads the config of jobs.md, and runs its script.
func TestJobExample(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, jobFiles(t))
	p, problems := project.Load(dir, "project.yaml", func(string) (string, bool) { return "", false })
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if a, b := p.Jobs[0], p.Jobs[1]; a.Name != "cleanup" || a.Timeout != 2*time.Minute || a.Schedule == nil || b.Name != "import-once" || b.Schedule != nil {
		t.Errorf("jobs %+v, %+v", a, b)
	}

	now := teststore.NewClock(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC))
	engine, service := newRecords(t, now.Now)
	host := service.Host(p, records.Caller{}, "jobs/cleanup.js")
	defer host.Close()
	for range 3 { // drafts of March, April and May
		now.Pass(31 * 24 * time.Hour)
		record := bson.D{{Key: "draft", Value: true}}
		if _, err := host.Call(t.Context(), "db.insert", bson.A{bson.D{{Key: "collection", Value: "articles"}}, record}); err != nil {
			t.Fatal(err)
		}
	}
	result, err := engine.Run(t.Context(), script.Call{
		Program: p.Jobs[0].Script.Program, Host: host, Ctx: []script.Member{{Name: "now", Value: now.Now()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	removed, ok := result.Value.(bson.D)
	if !ok || len(removed) != 1 || removed[0].Value != int64(2) && removed[0].Value != int32(2) && removed[0].Value != 2.0 {
		t.Errorf("the script gave %v", result.Value)
	}
}
