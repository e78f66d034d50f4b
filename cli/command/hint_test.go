package command_test

import (
	"testing"

	"github.com/svcctl/svc/cli/command/commandtest"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// TestHints: what is said of a refusal leads on to the project and the snapshot that it was about.
func TestHints(t *testing.T) {
	t.Parallel()
	const (
		admin    = "/api/v1/_/blog/_/admin"
		snapshot = admin + "/snapshots/20260301T031500Z-k3x9q2"
	)
	unique := func(path string) api.Problem {
		return api.Problem{Code: "unique_conflict", Errors: []api.FieldError{{Path: path}}}
	}
	for _, tc := range []struct {
		status  int
		path    string
		problem api.Problem
		want    string
	}{
		{409, "/api/v1/project", unique("namespace"), "svcctl project list shows by which config file; each project has a namespace of its own: in a copied one, change namespace: in the project file"},
		{409, "/api/v1/user", unique("username"), ""},
		{404, "/api/v1/_/blog/posts", api.Problem{Code: "collection_not_found"}, "svcctl collection list blog shows what the project has"},
		{404, snapshot + "/diff", api.Problem{Code: "collection_not_found"}, "svcctl snapshot show blog 20260301T031500Z-k3x9q2 shows what the snapshot has"},
		{404, admin + "/snapshots/nightly", api.Problem{Code: "collection_not_found"}, "svcctl snapshot show blog ID shows what the snapshot has"},
		{404, admin + "/backup/restore", api.Problem{Code: "snapshot_not_found"}, "svcctl backup list blog shows the backups that there are; others are for svcctl snapshot"},
		{404, snapshot, api.Problem{Code: "snapshot_not_found"}, "svcctl snapshot list blog shows those that there are"},
		{409, snapshot, api.Problem{Code: "snapshot_damaged"}, "svcctl snapshot verify blog 20260301T031500Z-k3x9q2 reads all of it, and names each file that is damaged"},
		{409, admin + "/snapshots/import", api.Problem{Code: "snapshot_damaged"}, ""},
		{507, admin + "/snapshots", api.Problem{Code: "store_full"}, "svcctl snapshot delete blog and svcctl snapshot prune blog go on, which may make room; so does svcctl snapshot export blog of what is there"},
		{507, "/api/v1/_/blog/posts", api.Problem{Code: "store_full", RequestID: "r1"}, "the service's log has more under request id r1"},
		{500, admin + "/reload", api.Problem{Code: "internal", RequestID: "r1"}, "the service's log has more under request id r1"},
		{404, admin + "/jobs/runs/1", api.Problem{Code: "run_not_found"}, ""},
		{400, "/api/v1/_/blog/posts", api.Problem{Code: "unknown_field"}, "svcctl collection describe blog posts shows the fields"},
		{400, "/api/v1/_/blog/posts", api.Problem{Code: "query_limit", Detail: "limit is 5000, the highest allowed is 1000"}, "--all gets every record, page after page"},
		{400, admin + "/jobs/next", api.Problem{Code: "query_limit", Detail: "limit is 5000, the highest allowed is 100"}, ""},
		{413, "/api/v1/_/blog/posts", api.Problem{}, "send less at once: a smaller file; of records that are imported, fewer by --batch"},
	} {
		_, hint := commandtest.State(t).Explain(t.Context(), &client.Error{Status: tc.status, Path: tc.path, Problem: tc.problem})
		if hint != tc.want {
			t.Errorf("%d %s of %s: %q, want %q", tc.status, tc.problem.Code, tc.path, hint, tc.want)
		}
	}
}
