package snapshot

import (
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/api"
)

// TestHintOfLost has nobody start a restore again that is still to be ended by somebody else.
func TestHintOfLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		run  api.Run
		want string
	}{
		{api.Run{Kind: api.RunKindSnapshot, Status: api.RunLost, Error: &api.RunError{Code: "run_lost"}}, "nothing half is left: start it again"},
		{api.Run{Kind: api.RunKindRestore, Status: api.RunLost, Error: &api.RunError{Code: "run_lost"}}, "nothing half is left: start it again"}, // it had begun nothing
		{api.Run{Kind: api.RunKindRestore, Status: api.RunLost, Error: &api.RunError{Code: "run_left"}}, "not ended yet: svcctl snapshot runs blog tells"},
		{api.Run{Kind: api.RunKindRestore, Status: api.RunFailed, Error: &api.RunError{Code: "restore_undone"}}, "nothing was changed: start it again"},
	} {
		if got := hintOf(&c.run, "blog"); !strings.Contains(got, c.want) {
			t.Errorf("%s %s %s: %q, want it to have %q", c.run.Kind, c.run.Status, c.run.Error.Code, got, c.want)
		}
	}
}
