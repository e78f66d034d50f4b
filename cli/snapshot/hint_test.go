package snapshot

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/api"
)

// TestHintOf has nobody start a restore again that is still to be ended by somebody else, nor take a snapshot anew of a file
// that is damaged where it is served, and be sent to the list of runs for what is about something else.
func TestHintOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		run  api.Run
		want string
	}{
		{api.Run{Kind: api.RunKindSnapshot, Status: api.RunLost, Error: &api.RunError{Code: "run_lost"}}, "snapshot runs blog shows what has gone on since"},
		{api.Run{Kind: api.RunKindRestore, Status: api.RunLost, Error: &api.RunError{Code: "run_lost"}}, "snapshot runs blog shows what has gone on since"}, // it had begun nothing
		{api.Run{Kind: api.RunKindRestore, Status: api.RunLost, Error: &api.RunError{Code: "run_left"}}, "not ended yet: svcctl snapshot runs blog tells"},
		{api.Run{Kind: api.RunKindRestore, Status: api.RunFailed, Error: &api.RunError{Code: "restore_undone"}}, "nothing was changed: start it again"},
		{api.Run{Kind: api.RunKindRestore, Status: api.RunFailed, Error: &api.RunError{Code: "store_full"}}, "nothing that is served was changed"},
		{api.Run{Kind: api.RunKindRestore, Status: api.RunFailed, Error: &api.RunError{Code: "config_foreign"}}, "tar --zstd -xf"},
		{api.Run{Kind: api.RunKindDrill, Status: api.RunFailed, Name: "daily", Error: &api.RunError{Code: "drill_differs"}}, "upload anew what is said to be damaged where it is served, too (its address may change), take another one (svcctl snapshot create blog daily)"},
		{api.Run{Kind: api.RunKindVerify, Status: api.RunFailed, Name: "daily", Error: &api.RunError{Code: "snapshot_damaged"}, Result: json.RawMessage(`{"verified":{"problems":1,"found":[{"path":"indexes.json","text":"it is not what was written"}]}}`)}, "svcctl snapshot list blog shows others; take a new one (svcctl snapshot create blog daily)"},
		{api.Run{Kind: api.RunKindVerify, Status: api.RunFailed, Name: "daily", Error: &api.RunError{Code: "snapshot_damaged"}, Result: json.RawMessage(`{"verified":{"problems":1,"found":[{"path":"media/1","text":"it is not what was written: upload it anew"}]}}`)}, "shows others; upload anew what is said to be damaged"},
		{api.Run{Kind: api.RunKindRestore, Status: api.RunFailed, Name: "backup", Error: &api.RunError{Code: "snapshot_damaged"}}, "svcctl snapshot delete blog ID removes the one that is damaged; then send the archive again"},
	} {
		if got := hintOf(&c.run, "blog"); !strings.Contains(got, c.want) {
			t.Errorf("%s %s %s: %q, want it to have %q", c.run.Kind, c.run.Status, c.run.Error.Code, got, c.want)
		}
	}
}
