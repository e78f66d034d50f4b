package api

import (
	"net/url"
	"strings"
)

// Prefix is the API root. The Route constants up to the root routes are relative to it.
const Prefix = "/api/v1"

// Routes under Prefix. A {name} is one path segment; the functions below fill it in, escaped.
const (
	RouteLogin      = "/login"
	RouteLogout     = "/logout"
	RouteMe         = "/me"
	RouteMePassword = "/me/password"
	RouteVersion    = "/version"

	RouteUsers         = "/user"
	RouteUser          = "/user/{id}"
	RouteOrgs          = "/org"
	RouteOrg           = "/org/{id}"
	RouteTeams         = "/team"
	RouteTeam          = "/team/{id}"
	RouteTokens        = "/token"
	RouteToken         = "/token/{id}"
	RouteTokenScopes   = "/token/_scopes"
	RouteMeta          = "/_meta"
	RouteModelMeta     = "/_meta/{model}"
	RouteAudit         = "/audit"
	RouteAuditVerify   = "/audit/verify"
	RouteShutdown      = "/admin/shutdown"
	RouteEmbedding     = "/admin/embedding/status"
	RouteRotateKeys    = "/admin/keys/rotate"
	RouteProjects      = "/project"
	RouteProject       = "/project/{id}"
	RouteProjectStatus = "/project/{id}/status"

	RouteOpenAPI = "/_openapi/{project}"
	RouteMCP     = "/mcp"

	RouteRecords       = "/_/{project}/{collection}"
	RouteRecord        = "/_/{project}/{collection}/{id}"
	RouteRecordCount   = "/_/{project}/{collection}/_count"
	RouteRecordFacet   = "/_/{project}/{collection}/_facet"
	RouteRecordQueue   = "/_/{project}/{collection}/_queue"
	RouteRecordChanges = "/_/{project}/{collection}/_changes"
	RouteFile          = "/_/{project}/{collection}/{id}/{field}/*"

	RouteReload        = "/_/{project}/_/admin/reload"
	RoutePlan          = "/_/{project}/_/admin/plan"
	RouteGenerations   = "/_/{project}/_/admin/generations"
	RouteRollback      = "/_/{project}/_/admin/rollback"
	RouteDrift         = "/_/{project}/_/admin/drift"
	RouteProjEmbedding = "/_/{project}/_/admin/embedding/status"
	RouteSyncIndexes   = "/_/{project}/_/admin/indexes/sync"
	RouteSearchWorker  = "/_/{project}/_/admin/search-worker/status"
	RouteRegenerate    = "/_/{project}/_/admin/regenerate-search"
	RouteRegeneration  = "/_/{project}/_/admin/regenerate-search/{id}"
	RouteRegenEvents   = "/_/{project}/_/admin/regenerate-search/{id}/events"
	RouteProjectEvents = "/_/{project}/_/admin/events"

	RouteSnapshots        = "/_/{project}/_/admin/snapshots"
	RouteSnapshotProfiles = "/_/{project}/_/admin/snapshots/profiles"
	RouteSnapshotPrune    = "/_/{project}/_/admin/snapshots/prune"
	RouteSnapshotImport   = "/_/{project}/_/admin/snapshots/import"
	RouteSnapshotRuns     = "/_/{project}/_/admin/snapshots/runs"
	RouteSnapshotRun      = "/_/{project}/_/admin/snapshots/runs/{id}"
	RouteSnapshot         = "/_/{project}/_/admin/snapshots/{id}"
	RouteSnapshotEvents   = "/_/{project}/_/admin/snapshots/{id}/events" // {id} is a run's, or a snapshot's: then its newest run
	RouteSnapshotCancel   = "/_/{project}/_/admin/snapshots/{id}/cancel" // likewise
	RouteSnapshotDiff     = "/_/{project}/_/admin/snapshots/{id}/diff"
	RouteSnapshotVerify   = "/_/{project}/_/admin/snapshots/{id}/verify"
	RouteSnapshotDrill    = "/_/{project}/_/admin/snapshots/{id}/drill"
	RouteSnapshotRestore  = "/_/{project}/_/admin/snapshots/{id}/restore"
	RouteSnapshotDownload = "/_/{project}/_/admin/snapshots/{id}/download"

	RouteBackup         = "/_/{project}/_/admin/backup"
	RouteBackupAnalyze  = "/_/{project}/_/admin/backup/analyze-download"
	RouteBackupDownload = "/_/{project}/_/admin/backup/download"
	RouteBackupRestore  = "/_/{project}/_/admin/backup/restore"

	RouteAccessExplain = "/_/{project}/_/admin/access/explain"
	RouteProjectAudit  = "/_/{project}/_/audit"
	RouteCollections   = "/_/{project}/_/collections"
	RouteCollection    = "/_/{project}/_/collections/{collection}"
	RouteCollStats     = "/_/{project}/_/collections/{collection}/stats"
	RouteAgentGuide    = "/_/{project}/_/agent"

	RouteJobs         = "/_/{project}/_/jobs"
	RouteJob          = "/_/{project}/_/jobs/{job}"
	RouteJobNext      = "/_/{project}/_/jobs/{job}/next"
	RouteJobSuspend   = "/_/{project}/_/jobs/{job}/suspend"
	RouteJobResume    = "/_/{project}/_/jobs/{job}/resume"
	RouteJobStart     = "/_/{project}/_/jobs/{job}/run"
	RouteJobRuns      = "/_/{project}/_/jobs/{job}/runs"
	RouteJobRun       = "/_/{project}/_/jobs/{job}/runs/{id}"
	RouteJobRunEvents = "/_/{project}/_/jobs/{job}/runs/{id}/events"

	RouteAssets = "/_/{project}/_/assets"
	RouteAsset  = "/_/{project}/_/assets/{asset}/*"

	RouteActions         = "/_/{project}/_/actions"
	RouteAction          = "/_/{project}/_/actions/{action}"
	RouteActionDescribe  = "/_/{project}/_/actions/{action}/describe"
	RouteActionRuns      = "/_/{project}/_/actions/{action}/runs"
	RouteActionRun       = "/_/{project}/_/actions/{action}/runs/{id}"
	RouteActionRunEvents = "/_/{project}/_/actions/{action}/runs/{id}/events"
)

// Routes on the service root, without Prefix.
const (
	RootHealth  = "/healthz"
	RootReady   = "/readyz"
	RootMetrics = "/metrics"
)

// UserPath is the path of one user.
func UserPath(id string) string { return fill(RouteUser, id) }

// OrgPath is the path of one organization.
func OrgPath(id string) string { return fill(RouteOrg, id) }

// TeamPath is the path of one team.
func TeamPath(id string) string { return fill(RouteTeam, id) }

// TokenPath is the path of one personal access token.
func TokenPath(id string) string { return fill(RouteToken, id) }

// ModelMetaPath is the path of the metadata of one system model.
func ModelMetaPath(model string) string { return fill(RouteModelMeta, model) }

// ProjectPath is the path of one registration; id is its hex id.
func ProjectPath(id string) string { return fill(RouteProject, id) }

// ProjectStatusPath is the path of the status of one registration.
func ProjectStatusPath(id string) string { return fill(RouteProjectStatus, id) }

// OpenAPIPath is the path of the OpenAPI document of a project.
func OpenAPIPath(namespace string) string { return fill(RouteOpenAPI, namespace) }

// AgentGuidePath is the path of what a project tells agents.
func AgentGuidePath(namespace string) string { return fill(RouteAgentGuide, namespace) }

// RecordsPath is the path of a collection's records.
func RecordsPath(namespace, collection string) string {
	return fill(RouteRecords, namespace, collection)
}

// RecordPath is the path of one record.
func RecordPath(namespace, collection, id string) string {
	return fill(RouteRecord, namespace, collection, id)
}

// RecordChangesPath is the path of the feed of a collection's changes.
func RecordChangesPath(namespace, collection string) string {
	return fill(RouteRecordChanges, namespace, collection)
}

// RecordCountPath is the path of the count of a collection's records.
func RecordCountPath(namespace, collection string) string {
	return fill(RouteRecordCount, namespace, collection)
}

// RecordFacetPath is the path of the values of a collection's fields.
func RecordFacetPath(namespace, collection string) string {
	return fill(RouteRecordFacet, namespace, collection)
}

// ReloadPath is the path that reloads a project's config.
func ReloadPath(namespace string) string { return fill(RouteReload, namespace) }

// PlanPath is the path that tells what a reload of a project's config would change.
func PlanPath(namespace string) string { return fill(RoutePlan, namespace) }

// DriftPath is the path that tells where what a project declares and what there is differ.
func DriftPath(namespace string) string { return fill(RouteDrift, namespace) }

// GenerationsPath is the path of the generations of a project.
func GenerationsPath(namespace string) string { return fill(RouteGenerations, namespace) }

// ProjectEmbeddingPath is the path of the embedding groups, as who runs a project sees them.
func ProjectEmbeddingPath(namespace string) string { return fill(RouteProjEmbedding, namespace) }

// SyncIndexesPath is the path that makes the indexes of a project as they are declared.
func SyncIndexesPath(namespace string) string { return fill(RouteSyncIndexes, namespace) }

// RollbackPath is the path that serves an earlier generation of a project again.
func RollbackPath(namespace string) string { return fill(RouteRollback, namespace) }

// ProjectEventsPath is the path of the events of a project.
func ProjectEventsPath(namespace string) string { return fill(RouteProjectEvents, namespace) }

// SnapshotsPath is the path of a project's snapshots.
func SnapshotsPath(namespace string) string { return fill(RouteSnapshots, namespace) }

// SnapshotProfilesPath is the path of the profiles that snapshots are taken by.
func SnapshotProfilesPath(namespace string) string { return fill(RouteSnapshotProfiles, namespace) }

// SnapshotPrunePath is the path that removes the snapshots which no retention keeps.
func SnapshotPrunePath(namespace string) string { return fill(RouteSnapshotPrune, namespace) }

// SnapshotImportPath is the path that takes in an archive of a snapshot.
func SnapshotImportPath(namespace string) string { return fill(RouteSnapshotImport, namespace) }

// SnapshotRunsPath is the path of the runs of a project's snapshots and backups.
func SnapshotRunsPath(namespace string) string { return fill(RouteSnapshotRuns, namespace) }

// SnapshotRunPath is the path of one such run.
func SnapshotRunPath(namespace, id string) string { return fill(RouteSnapshotRun, namespace, id) }

// SnapshotPath is the path of one snapshot.
func SnapshotPath(namespace, id string) string { return fill(RouteSnapshot, namespace, id) }

// SnapshotEventsPath is the path of the events of a run; id is the run's, or a snapshot's: then of its newest run.
func SnapshotEventsPath(namespace, id string) string { return fill(RouteSnapshotEvents, namespace, id) }

// SnapshotCancelPath is the path that cancels a run, by an id as SnapshotEventsPath has it.
func SnapshotCancelPath(namespace, id string) string { return fill(RouteSnapshotCancel, namespace, id) }

// SnapshotDiffPath is the path that compares a snapshot.
func SnapshotDiffPath(namespace, id string) string { return fill(RouteSnapshotDiff, namespace, id) }

// SnapshotVerifyPath is the path that checks a snapshot.
func SnapshotVerifyPath(namespace, id string) string { return fill(RouteSnapshotVerify, namespace, id) }

// SnapshotDrillPath is the path that restores a snapshot on trial.
func SnapshotDrillPath(namespace, id string) string { return fill(RouteSnapshotDrill, namespace, id) }

// SnapshotRestorePath is the path that restores a snapshot.
func SnapshotRestorePath(namespace, id string) string {
	return fill(RouteSnapshotRestore, namespace, id)
}

// SnapshotDownloadPath is the path of a snapshot as one archive.
func SnapshotDownloadPath(namespace, id string) string {
	return fill(RouteSnapshotDownload, namespace, id)
}

// BackupPath is the path that makes a backup.
func BackupPath(namespace string) string { return fill(RouteBackup, namespace) }

// BackupAnalyzePath is the path that tells what a download of a backup has.
func BackupAnalyzePath(namespace string) string { return fill(RouteBackupAnalyze, namespace) }

// BackupDownloadPath is the path of a backup as one archive.
func BackupDownloadPath(namespace string) string { return fill(RouteBackupDownload, namespace) }

// BackupRestorePath is the path that restores a backup.
func BackupRestorePath(namespace string) string { return fill(RouteBackupRestore, namespace) }

// AccessExplainPath is the path that explains who may do what with a project's records.
func AccessExplainPath(namespace string) string { return fill(RouteAccessExplain, namespace) }

// CollectionsPath is the path of the descriptions of a project's collections.
func CollectionsPath(namespace string) string { return fill(RouteCollections, namespace) }

// CollectionPath is the path of the description of one collection.
func CollectionPath(namespace, collection string) string {
	return fill(RouteCollection, namespace, collection)
}

// CollectionStatsPath is the path of the figures of one collection.
func CollectionStatsPath(namespace, collection string) string {
	return fill(RouteCollStats, namespace, collection)
}

// AssetsPath is the path of a project's assets.
func AssetsPath(namespace string) string { return fill(RouteAssets, namespace) }

// AssetPath is the path of a file of an asset; file is slash-separated.
func AssetPath(namespace, asset, file string) string {
	parts := strings.Split(file, "/")
	for i, part := range parts {
		parts[i] = escape(part)
	}
	return fill(strings.TrimSuffix(RouteAsset, "*"), namespace, asset) + strings.Join(parts, "/")
}

// ActionsPath is the path of a project's actions.
func ActionsPath(namespace string) string { return fill(RouteActions, namespace) }

// ActionPath is the path that calls an action.
func ActionPath(namespace, action string) string { return fill(RouteAction, namespace, action) }

// ActionDescribePath is the path of the description of an action.
func ActionDescribePath(namespace, action string) string {
	return fill(RouteActionDescribe, namespace, action)
}

// ActionRunsPath is the path of an action's runs.
func ActionRunsPath(namespace, action string) string { return fill(RouteActionRuns, namespace, action) }

// ActionRunPath is the path of one run of an action.
func ActionRunPath(namespace, action, id string) string {
	return fill(RouteActionRun, namespace, action, id)
}

// ActionRunEventsPath is the path of the events of a run of an action.
func ActionRunEventsPath(namespace, action, id string) string {
	return fill(RouteActionRunEvents, namespace, action, id)
}

// ProjectAuditPath is the path of the audit log of a project's records.
func ProjectAuditPath(namespace string) string { return fill(RouteProjectAudit, namespace) }

// JobsPath is the path of a project's jobs.
func JobsPath(namespace string) string { return fill(RouteJobs, namespace) }

// JobPath is the path of one job.
func JobPath(namespace, job string) string { return fill(RouteJob, namespace, job) }

// JobNextPath is the path of the times at which a job is due next.
func JobNextPath(namespace, job string) string { return fill(RouteJobNext, namespace, job) }

// JobSuspendPath is the path that suspends a job.
func JobSuspendPath(namespace, job string) string { return fill(RouteJobSuspend, namespace, job) }

// JobResumePath is the path that resumes a job.
func JobResumePath(namespace, job string) string { return fill(RouteJobResume, namespace, job) }

// JobStartPath is the path that starts a run of a job.
func JobStartPath(namespace, job string) string { return fill(RouteJobStart, namespace, job) }

// JobRunsPath is the path of a job's runs.
func JobRunsPath(namespace, job string) string { return fill(RouteJobRuns, namespace, job) }

// JobRunPath is the path of one run of a job.
func JobRunPath(namespace, job, id string) string { return fill(RouteJobRun, namespace, job, id) }

// JobRunEventsPath is the path of the events of a run of a job.
func JobRunEventsPath(namespace, job, id string) string {
	return fill(RouteJobRunEvents, namespace, job, id)
}

// QueuePath is the path that tells what a collection has to index yet.
func QueuePath(namespace, collection string) string {
	return fill(RouteRecordQueue, namespace, collection)
}

// SearchWorkerPath is the path that tells what a project has to index yet.
func SearchWorkerPath(namespace string) string { return fill(RouteSearchWorker, namespace) }

// RegeneratePath is the path that makes search indexes of a project anew.
func RegeneratePath(namespace string) string { return fill(RouteRegenerate, namespace) }

// RegenerationPath is the path of a run that makes search indexes anew.
func RegenerationPath(namespace, id string) string { return fill(RouteRegeneration, namespace, id) }

// RegenerationEventsPath is the path of its events.
func RegenerationEventsPath(namespace, id string) string {
	return fill(RouteRegenEvents, namespace, id)
}

// escape escapes one segment of a path. One that a server would read as a step (".", "..") is kept from being one.
func escape(v string) string {
	if v == "." || v == ".." {
		return strings.ReplaceAll(v, ".", "%2E")
	}
	return url.PathEscape(v)
}

// fill puts Prefix before route and values, escaped, in the place of its {names}, in order.
func fill(route string, values ...string) string {
	var b strings.Builder
	b.WriteString(Prefix)
	for _, v := range values {
		open := strings.IndexByte(route, '{')
		end := strings.IndexByte(route, '}')
		b.WriteString(route[:open])
		b.WriteString(escape(v))
		route = route[end+1:]
	}
	b.WriteString(route)
	return b.String()
}
