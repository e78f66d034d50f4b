package backup

import (
	"testing"

	"github.com/svcctl/svc/cli/command/commandtest"
	"github.com/svcctl/svc/cli/snapshot"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	commandtest.Options(t, map[string]commandtest.Verb{"restore": commandtest.Of(newRestore)}, map[string]any{
		"restore blog a.tar.zst":           restoreOptions{Namespace: "blog", File: "a.tar.zst", How: snapshot.How{Mode: "replace"}},
		"restore -n blog - --yes":          restoreOptions{Namespace: "blog", File: "-", How: snapshot.How{Mode: "replace", Yes: true}},
		"restore blog - --dry-run":         restoreOptions{Namespace: "blog", File: "-", How: snapshot.How{Mode: "replace", DryRun: true}},
		"restore blog -":                   nil,
		"restore blog a.tar.zst --mode no": nil,
		"restore a.tar.zst":                nil,
	})
}
