package docs_test

import (
	"strings"
	"testing"
)

// TestAgentLines runs the lines of agents.md against the sample blog.
func TestAgentLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.sample("blog", "medialib", "authors", "articles")
	lines := strings.Join(blocks(t, "agents.md", "sh"), "")
	lines = strings.Replace(lines, "svcctl --context editor", "env -u SVCCTL_ADMIN_TOKEN_FILE svcctl --context editor", 1)
	lines = strings.ReplaceAll(lines, "svcctl mcp ", "env -u SVCCTL_ADMIN_TOKEN_FILE svcctl mcp ")
	printed := d.run(lines)
	d.prints(printed, "svc-server-mcp   v1        2024-11-05   32", "documents_list ", `"title": "`, `"fieldHints"`, "claude mcp add --transport http svc http://", `"SVCCTL_TOKEN_FILE": "/`, `"yourPermissions"`)
}
