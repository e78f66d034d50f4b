package cli_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/svcctl/svc/cli/command"
)

// TestNotFoundNamesIt: a refusal says what kind of thing is not there, and svcctl, which was given it, which one.
func TestNotFoundNamesIt(t *testing.T) {
	t.Parallel()
	const id = "6b01a2b3c4d5e6f708192a3b"
	for _, tc := range []struct{ line, code, detail, want string }{
		{"doc list notes foo", "project_not_found", "project not found", "project not found: notes"},
		{"openapi notes", "project_not_found", "project not found", "project not found: notes"},
		{"snapshot list notes", "project_not_found", "project not found", "project not found: notes"},
		{"doc list blog foo", "collection_not_found", "collection not found", "collection not found: foo"},
		{"doc get blog foo " + id, "collection_not_found", "collection not found", "collection not found: foo"},
		{"collection describe blog foo", "collection_not_found", "collection not found", "collection not found: foo"},
		{"collection stats blog foo", "collection_not_found", "collection not found", "collection not found: foo"},
		{"access explain blog foo", "collection_not_found", "collection not found", "collection not found: foo"},
		{"access explain blog foo --as user:ann", "not_found", "user not found", "user not found: ann"},
		{"access explain blog foo --as pat:" + id, "not_found", "token not found", "token not found: " + id},
		{"doc get blog foo " + id, "not_found", "not found", "not found: foo/" + id},
		{"doc delete blog foo " + id + " --yes", "not_found", "not found", "not found: foo/" + id},
		{"asset get blog pictures cats/a.png", "not_found", "not found", "not found: pictures/cats/a.png"},
		{"job describe blog nightly", "job_not_found", "job not found", "job not found: nightly"},
		{"job run blog nightly", "job_not_found", "job not found", "job not found: nightly"},
		{"job logs blog nightly --run " + id, "run_not_found", "run not found", "run not found: " + id},
		{"action call blog greet", "action_not_found", "action not found", "action not found: greet"},
		{"snapshot attach blog " + id, "run_not_found", "run not found", "run not found: " + id},
		{"snapshot show blog " + snapshotID, "snapshot_not_found", "there is no snapshot of this id in the project: look at the list for those that there are", "there is no snapshot " + snapshotID + " in the project"},
		{"project rollback blog --to 7 --yes", "generation_not_found", "generation not found", "generation not found: 7"},
		{"doc list blog foo", "collection_not_found", `the project has no collection "foo"`, `the project has no collection "foo"`},
		{"api GET /nothing", "no_such_route", "not found", "not found"},
	} {
		t.Run(tc.line+" "+tc.code, func(t *testing.T) {
			t.Parallel()
			p := start(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusNotFound)
				fmt.Fprintf(w, `{"status":404,"code":%q,"detail":%q}`, tc.code, tc.detail)
			}))
			code := p.run(t, strings.Fields(tc.line)...)
			first, _, _ := strings.Cut(p.err.String(), "\n")
			if code != command.ExitNotFound || first != "error: "+tc.want {
				t.Errorf("exit code %d: %s\nwant %s", code, first, tc.want)
			}
		})
	}
}
