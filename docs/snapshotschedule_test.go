package docs_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/snapshot"
)

// TestSnapshotProfiles loads the profiles of snapshots.md.
func TestSnapshotProfiles(t *testing.T) {
	t.Parallel()
	found := false
	for _, block := range blocks(t, "snapshots.md", "yaml") {
		if !strings.HasPrefix(block, "snapshots:") {
			continue
		}
		dir := t.TempDir()
		writeFiles(t, dir, map[string]string{"project.yaml": "namespace: shop\n" + block + `
collections:
- {name: orders, fields: [], permissions: {public: {methods: {}}, user: {methods: {}}}}
- {name: customers, fields: [], permissions: {public: {methods: {}}, user: {methods: {}}}}
`})
		p, problems := project.Load(dir, "project.yaml", func(string) (string, bool) { return "", false })
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		for _, s := range p.Snapshots {
			found = found || s.Enabled() && s.Take != nil && s.Verify != nil && s.Drill != nil && s.Zone.String() == "Europe/Berlin" && s.Config.Retention.KeepMonthly == 12
		}
	}
	if !found {
		t.Error("snapshots.md has no profile with schedules")
	}
}

// TestOwnRetention: config.md says of the service's own profiles how long they keep what.
func TestOwnRetention(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("config.md")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(doc), "| `snapshots` | ")
	line, _, _ = strings.Cut(line, "\n")
	for _, own := range snapshot.OwnProfiles() {
		keep := own.Config.Retention
		for _, want := range []string{own.Name, fmt.Sprintf("the newest %d, all of the %d days before the newest", keep.KeepLast, keep.KeepWithin.Days), "checked or imported in the last"} {
			if !strings.Contains(line, want) {
				t.Errorf("config.md does not say %q of snapshots: %s", want, line)
			}
		}
		if *keep != (schema.Retention{KeepLast: keep.KeepLast, KeepWithin: schema.Span{Days: keep.KeepWithin.Days}}) {
			t.Errorf("%s has rules that config.md does not tell of: %+v", own.Name, keep)
		}
	}
}

// TestSnapshotMetrics finds each metric of snapshots in operations.md, and none that is not there.
func TestSnapshotMetrics(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../pkg/snapshot/due/metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("operations.md")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`svc_snapshot[a-z_]*`)
	in := func(text string) map[string]bool {
		out := map[string]bool{}
		for _, n := range name.FindAllString(text, -1) {
			out[n] = true
		}
		return out
	}
	there, told := in(string(source)), in(string(text))
	for n := range there {
		if !told[n] {
			t.Errorf("operations.md does not tell of %s", n)
		}
	}
	for n := range told {
		if !there[n] {
			t.Errorf("there is no metric %s", n)
		}
	}
	if len(there) < 5 {
		t.Errorf("only %d metrics: where are the others?", len(there))
	}
}
