package command

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// codeHint is what to do about a refusal with a code, of a request whose path has a part; "": whatever the path is. What stands in braces is taken from
// the path: the {project}, and the {snapshot} in it; a hint about what the path does not name is none.
type codeHint struct{ code, path, hint string }

// codeHints are those that depend on the code alone. Of two for a code, the first one that fits is taken.
func codeHints() []codeHint {
	const admin, ofSnapshots = "/admin/", "/admin/snapshots/"
	return []codeHint{
		{"login_failed", "", "an administrator, who has a context of their own, sets a new password (user passwd USERNAME) and sees whether the user is active (user get)"},
		{"config_outside", "", "svcd serves what is below its projects directory: copy the project there, or start svcd with another --projects.dir"},
		{"project_not_found", "", "svcctl project list shows the registered ones, svcctl project register makes one known"},
		{"generation_not_found", "", "svcctl project history shows the generations that are kept"},
		{"collection_not_found", ofSnapshots, "svcctl snapshot show{project}{snapshot} shows what the snapshot has"},
		{"collection_not_found", ofSnapshots, "svcctl snapshot show{project} ID shows what the snapshot has"},
		{"collection_not_found", "", "svcctl collection list{project} shows what the project has"},
		{"job_not_found", "", "svcctl job list{project} shows what the project has"},
		{"no_search", "", "svcctl explain collection.search tells how the config of the collection declares one"},
		{"embedding_offline", "", "svcctl embedding status{project} shows which provider fails; other searches go on, --search chooses one"},
		{"restoring", "", "svcctl snapshot attach{project} shows how far the restore is"},

		{"snapshot_not_found", "/admin/backup/", "svcctl backup list{project} shows the backups that there are; others are for svcctl snapshot"},
		{"snapshot_not_found", admin, "svcctl snapshot list{project} shows those that there are"},
		{"snapshot_damaged", admin, "svcctl snapshot verify{project}{snapshot} reads all of it, and names each file that is damaged"},
		{"snapshot_exists", admin, "svcctl snapshot list{project} shows it; svcctl snapshot delete{project} ID removes it"},
		{"snapshot_pinned", admin, "svcctl snapshot unpin{project}{snapshot} lets it go"},
		{"snapshots_busy", admin, "svcctl snapshot attach{project} shows how far it is, svcctl snapshot cancel{project} ends it"},
		{"snapshots_full", admin, "svcctl snapshot prune{project} removes what no retention keeps, --dry-run shows which; svcctl snapshot list{project} shows their sizes"},
		{"store_full", admin, "svcctl snapshot delete{project} and svcctl snapshot prune{project} go on, which may make room; so does svcctl snapshot export{project} of what is there"},
		{"backup_invalid", admin, "svcctl backup download and svcctl snapshot export make archives"},
		{"profile_not_found", admin, "svcctl snapshot profiles{project} shows those that the config has"},
		{"run_not_found", ofSnapshots, "svcctl snapshot runs{project} shows those that are kept"},
	}
}

// hintOfCode gives the hint for the code of a refusal, or "".
func hintOfCode(e *client.Error) string {
	project, snapshot := placeOf(e.Path, 1), ""
	if id := snapshotIn(e.Path); id != "" {
		snapshot = " " + id
	}
	for _, h := range codeHints() {
		lacks := project == "" && strings.Contains(h.hint, "{project}") || snapshot == "" && strings.Contains(h.hint, "{snapshot}")
		if h.code == e.Code() && strings.Contains(e.Path, h.path) && !lacks {
			return strings.NewReplacer("{project}", project, "{snapshot}", snapshot).Replace(h.hint)
		}
	}
	return ""
}

// hint says what to do about a refusal.
func (st *State) hint(ctx context.Context, e *client.Error) string {
	anyError := func(is func(f api.FieldError) bool) bool { return slices.ContainsFunc(e.Problem.Errors, is) }
	if hint := hintOfCode(e); hint != "" {
		return hint
	}
	switch {
	case e.Code() == "unique_conflict" && anyError(func(f api.FieldError) bool { return f.Path == "namespace" }):
		return "svcctl project list shows by which config file; each project has a namespace of its own: in a copied one, change namespace: in the project file"
	case e.Status == http.StatusForbidden:
		return st.hintDenied(ctx, e)
	case e.Status == http.StatusNotFound && strings.Contains(e.Path, "/_/assets/"):
		return "svcctl asset list" + placeOf(e.Path, 1) + " shows the folders that there are; the path is that of a file below one"
	case (e.Code() == "unknown_field" || anyError(func(f api.FieldError) bool { return f.Rule == "unknown" })) && placeOf(e.Path, 2) != "":
		return "svcctl collection describe" + placeOf(e.Path, 2) + " shows the fields"
	case placeOf(e.Path, 3) != "" && (e.Code() == "not_found" || e.Code() == "bad_id"):
		return "svcctl doc list" + placeOf(e.Path, 2) + " shows the records that there are"
	case anyError(func(f api.FieldError) bool { return strings.HasPrefix(f.Path, "scopes.") }):
		return "svcctl token scopes lists those that you can give"
	case e.Code() == "query_limit" && strings.HasPrefix(e.Problem.Detail, "limit is ") && placeOf(e.Path, 2) != "":
		return "--all gets every record, page after page"
	case strings.HasPrefix(e.Problem.Detail, "filter: malformed JSON"):
		return `a filter is JSON, as in --filter '{"status": "published", "views": {"$gte": 10}}'`
	case e.Status == http.StatusTooManyRequests && e.RetryAfter > 0:
		return fmt.Sprintf("try again in %s", e.RetryAfter)
	case e.Status == http.StatusRequestEntityTooLarge:
		return "send less at once: a smaller file; of records that are imported, fewer by --batch"
	case e.Status >= http.StatusInternalServerError && e.Problem.RequestID != "":
		return "the service's log has more under request id " + e.Problem.RequestID
	}
	return ""
}

// placeOf gives the first words of a path below those of projects, the namespace and the collection, as arguments: " blog
// articles". It is "" where the path has fewer.
func placeOf(path string, words int) string {
	_, rest, ok := strings.Cut(path, "/_/")
	all := strings.Split(rest, "/")
	if !ok || len(all) < words {
		return ""
	}
	out := " " + strings.Join(all[:words], " ")
	if words > 1 && all[1] == "_" {
		return ""
	}
	return out
}

// snapshotIn is the snapshot that a path names, or "".
func snapshotIn(path string) string {
	for part := range strings.SplitSeq(path, "/") {
		if snapshotID.MatchString(part) {
			return part
		}
	}
	return ""
}
