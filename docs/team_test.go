package docs_test

import (
	"strings"
	"testing"
)

// TestTeamDoc runs the lines of team.md in one go, as a reader would.
func TestTeamDoc(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	printed := d.run("unset SVCCTL_ADMIN_TOKEN_FILE SVCCTL_SERVER\n" + strings.Join(blocks(t, "team.md", "sh"), ""))
	d.prints(printed, d.url, "refused, as it should be", `"username":"ben"`, "Reaches", "Anvils")
}
