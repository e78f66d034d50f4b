package snapshot

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/api"
)

// TestHintOfLost has nobody start a restore again that was done behind the end of its run, without a look.
func TestHintOfLost(t *testing.T) {
	t.Parallel()
	const id = "20260301T031500Z-k3x9q2"
	for _, c := range []struct {
		run  api.Run
		want string
	}{
		{api.Run{Kind: api.RunKindSnapshot, Subject: id}, "nothing half is left: start it again"},
		{api.Run{Kind: api.RunKindRestore}, "nothing half is left: start it again"}, // it was still coming in
		{api.Run{Kind: api.RunKindRestore, Subject: id, Input: json.RawMessage(`{"snapshot":"` + id + `"}`)}, "svcctl snapshot diff blog " + id + " shows which, before"},
		{api.Run{Kind: api.RunKindRestore, Subject: id, Input: json.RawMessage(`{"into":"shop"}`)}, "look at the records, before"},
	} {
		c.run.Status = api.RunLost
		if got := hintOf(&c.run, "blog"); !strings.Contains(got, c.want) {
			t.Errorf("%s %s %s: %q, want it to have %q", c.run.Kind, c.run.Subject, c.run.Input, got, c.want)
		}
	}
}
