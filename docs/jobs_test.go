package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/script"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// TestJobExample loads the config of jobs.md, and runs its script.
func TestJobExample(t *testing.T) {
	text, err := os.ReadFile("jobs.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(language string) string {
		_, rest, _ := strings.Cut(string(text), "```"+language+"\n")
		code, _, _ := strings.Cut(rest, "```")
		return code
	}
	config := "namespace: blog\n" + block("yaml") + `
collections:
- name: articles
  fields: [{name: draft, type: boolean}]
  permissions: {public: {methods: {}}, user: {methods: {}}}
`
	dir := t.TempDir()
	for name, text := range map[string]string{"project.yaml": config, "jobs/cleanup.js": block("js"), "jobs/import.js": "module.exports = () => {}"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, problems := project.Load(dir, "project.yaml", func(string) (string, bool) { return "", false })
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if a, b := p.Jobs[0], p.Jobs[1]; a.Name != "cleanup" || a.Timeout != 2*time.Minute || a.Schedule == nil || b.Name != "import-once" || b.Schedule != nil {
		t.Errorf("jobs %+v, %+v", a, b)
	}

	engine := script.NewEngine(script.Options{})
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	runner, err := hooks.New(hooks.Options{Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	st, now := teststore.Memory(t), teststore.NewClock(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC))
	service := records.New(st, now.Now, audit.New(audit.Options{Store: st, Now: now.Now, SystemDatabase: "svc"}), runner)
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
