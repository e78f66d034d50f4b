package app_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestSnapshotRoutes: who has a right on which route of snapshots and backups. Who is let in is told what is wrong with the request; nothing is started.
func TestSnapshotRoutes(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		s.register("other", `
namespace: other
admin: {tokens: [{value: `+strings.Repeat("o", 32)+`, rights: [snapshot]}]}
snapshots: [{name: all}]
`)
		_, ann := s.user("ann", nil)
		_, none := s.user("none", nil)
		_, reader := s.user("reader", map[string]any{"scopes": []string{"project.read", "project.reload", "audit.read"}})
		_, backs := s.user("backs", map[string]any{"scopes": []string{"project.backup"}})
		_, snapper := s.user("snapper", map[string]any{"scopes": []string{"project.snapshot"}})
		posts, daily := s.take("posts").ID, s.take("daily").ID
		backup := resultOf(t, s.run("POST", "/api/v1/_/media/_/admin/backup", ``)).Snapshot
		theirs := s.do("POST", "/api/v1/_/other/_/admin/snapshots", admin, text(`{"profile":"all"}`)).field("id")
		taken := s.run("POST", snaps, `{"profile":"posts"}`).ID
		verified := s.run("POST", snaps+"/"+posts+"/verify", ``).ID

		callers := map[string]option{
			"admin": admin, "snapper": session(snapper), "token": token(projectToken), "posts": session(ann), "backs": session(backs),
			"reader": session(reader), "user": session(none), "nobody": noop, "foreign": token(strings.Repeat("o", 32)),
		}
		const (
			all    = "admin snapper token "
			whole  = all + "posts backs " // who has to do with any snapshot
			posted = all + "posts "
			made   = "admin backs "
		)
		for _, tt := range []struct{ request, body, may, answer string }{
			{"GET /snapshots/profiles", "", whole, "200"},
			{"GET /snapshots?limit=0", "", whole, "400 query_limit"},
			{"POST /snapshots", `{"profile":1}`, whole, "400 validation_failed"},
			{"POST /snapshots", `{"profile":"nowhere"}`, whole, "404 profile_not_found"},
			{"POST /snapshots/prune", `{"x":1}`, all, "400 validation_failed"},
			{"GET /snapshots/runs?limit=0", "", whole, "400 query_limit"},
			{"GET /snapshots/runs/" + taken, "", posted, "200"},
			{"GET /snapshots/runs/" + verified, "", all, "200"},
			{"GET /snapshots/runs/" + theirs, "", "", "404"},
			{"GET /snapshots/" + theirs + "/events", "", "", "404"},
			{"POST /snapshots/" + theirs + "/cancel", "", "", "404"},
			{"GET /snapshots/" + posts, "", posted, "200"},
			{"GET /snapshots/" + daily, "", all, "200"},
			{"PUT /snapshots/" + posts, `{}`, all, "400 validation_failed"},
			{"GET /snapshots/" + taken + "/events", "", posted, "200"},
			{"GET /snapshots/" + verified + "/events", "", all, "200"},
			{"POST /snapshots/" + taken + "/cancel", "", posted, "409 run_ended"},
			{"POST /snapshots/" + verified + "/cancel", "", all, "409 run_ended"},
			{"POST /snapshots/" + daily + "/cancel", "", all, "409 run_ended"},
			{"POST /snapshots/" + posts + "/verify", `{"x":1}`, all, "400 validation_failed"},
			{"GET /snapshots/" + posts + "/diff?limit=-1", "", all, "400 query_limit"},
			{"GET /snapshots/" + posts + "/diff?with=" + theirs, "", all, "404 snapshot_not_found"},
			{"POST /snapshots/" + posts + "/restore", `{"x":1}`, all, "400 validation_failed"},
			{"POST /snapshots/" + posts + "/restore", `{"into":"NO"}`, "admin ", "400 validation_failed"}, // who registers projects may have one made
			{"POST /snapshots/" + posts + "/drill", `{"x":1}`, all, "400 unexpected_body"},
			{"POST /backup/restore?into=NO", `{}`, "admin ", "400 validation_failed"},
			{"GET /snapshots/" + posts + "/download?x=1", "", whole, "400 unknown_parameter"},
			{"GET /snapshots/" + daily + "/download", "", all, "200"},
			{"POST /snapshots/import", `{}`, all, "415 unsupported_media_type"},
			{"DELETE /snapshots/" + posts + "?x=1", "", all, "400 unknown_parameter"},
			{"POST /backup", `{"x":1}`, made, "400"},
			{"GET /backup/analyze-download?id=" + posts, "", made, "404 snapshot_not_found"},
			{"GET /backup/analyze-download?id=" + backup, "", made, "200"},
			{"GET /backup/download?id=" + posts, "", made, "404 snapshot_not_found"},
			{"GET /backup/download?id=" + backup, "", made, "200"},
			{"POST /backup/restore", `{}`, made, "415 unsupported_media_type"},
		} {
			method, path, _ := strings.Cut(tt.request, " ")
			for name, as := range callers {
				options := []option{as}
				if tt.body != "" {
					options = append(options, text(tt.body))
				}
				got := s.do(method, "/api/v1/_/media/_/admin"+path, options...)
				switch may := strings.Contains(tt.may, name+" "); {
				case may && !strings.HasPrefix(got.String()+" ", tt.answer) && !(tt.answer == "200" && got.status == http.StatusOK):
					t.Errorf("%s %s: %.200s, want %s", name, tt.request, got, tt.answer)
				case !may && got.status != http.StatusForbidden && got.status != http.StatusNotFound:
					t.Errorf("%s %s: %.200s", name, tt.request, got)
				}
			}
		}
	})
}
