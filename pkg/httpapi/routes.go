package httpapi

import (
	"net/http"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
)

// right says what a caller needs for a route. Every route names one; the zero value lets nobody in.
type right struct {
	kind   rightKind
	name   string        // of kind system and project: the right, such as "project.reload"
	method access.Method // of kind records and action: what the route does with them
}

type rightKind uint8

const (
	rightNobody     rightKind = iota
	rightPublic               // anyone, with no credential or a valid one
	rightCredential           // anyone with a credential that the service itself knows: no Token
	rightLogin                // a logged-in user by their session: no personal access token
	rightSystem               // the named right, for a user, or the server admin token
	rightProject              // the named right on the project of the path; a project admin token may have it too
	rightRecords              // the collection's permission sets decide (pkg/records)
	rightFile                 // the same as rightAsset; who may not read the record finds nothing (pkg/records)
	rightAsset                // anyone, unless they show a token that is none of the project's
	rightDescribed            // the same: what is told, is told of what they may
	rightMCP                  // a personal access token, and nothing else; each tool takes what its request takes
	rightActions              // anyone, unless they show a token that is of no action: they get what they may call
	rightAction               // the action's permission sets decide (pkg/actions), by the method, or by any if there is none
	rightActionRuns           // the same by any method, or project.read
	rightServed               // rightProject on a project that is served
	rightSnapshots            // project.snapshot, a profile of snapshots whose permissions let the caller, or project.backup: the handler looks at what
)

// handler answers a request or gives the error to answer with.
type handler func(s *Server, w http.ResponseWriter, r *request) error

type route struct {
	method   string
	pattern  string // below api.Prefix
	right    right
	query    []string // the parameters it has, beside those of every route
	handle   handler
	noCookie bool // the session cookie is not read: the route gives a new one
	key      keyed
	spare    func(r *request) bool // says of a request with a key, whose body has come, that it only reads or makes room; nil: none does
	long     bool                  // it may take as long as what it tells of
	body     int64                 // most bytes of a body where that is no record; 0: maxSystemBody
	anyQuery bool                  // parameters that it does not have are no error: for probes and for paths that are no route

	labels    bool // its answer has texts for people, of which lang picks those of a language
	probe     bool // machinery asks it all the time, and there are no traces of that
	preflight bool // browsers ask here what pages of other origins may do
}

// routes is every route of the API with the right that it needs.
func routes() []route {
	anyone, user := right{kind: rightPublic}, right{kind: rightLogin}
	sys := func(name string) right { return right{kind: rightSystem, name: name} }
	prj := func(name string) right { return right{kind: rightProject, name: name} }
	served, snaps := func(name string) right { return right{kind: rightServed, name: name} }, right{kind: rightSnapshots, name: access.ProjectSnapshot}
	rec := func(m access.Method) right { return right{kind: rightRecords, method: m} }
	act := func(m access.Method) right { return right{kind: rightAction, method: m} }
	page := []string{api.ParamFilter, api.ParamSort, api.ParamLimit, api.ParamOffset, api.ParamAfter, api.ParamCount}
	list := append([]string{api.ParamSelect, api.ParamProjection, api.ParamLookup}, page...)
	one := []string{api.ParamSelect, api.ParamProjection, api.ParamLookup}
	runs := []string{api.ParamLimit, api.ParamOffset, api.ParamStatus}
	records := append([]string{
		api.ParamAggregate, api.ParamFacet, api.ParamQ, api.ParamQName, api.ParamQLimit, api.ParamHighlight, api.ParamExplain,
	}, list...)
	filter, replace := []string{api.ParamFilter}, []string{api.ParamReplace, api.ParamDryRun}
	bulk := []string{api.ParamFilter, api.ParamDryRun, api.ParamMaxAffected}
	dryRun := []string{api.ParamDryRun}
	return []route{
		{method: "GET", pattern: api.RouteVersion, right: anyone, handle: (*Server).version},
		{method: "POST", pattern: api.RouteLogin, right: anyone, handle: (*Server).login, noCookie: true},
		{method: "POST", pattern: api.RouteLogout, right: user, handle: (*Server).logout, query: []string{api.ParamAll}},
		{method: "GET", pattern: api.RouteMe, right: right{kind: rightCredential}, handle: (*Server).me},
		{method: "PUT", pattern: api.RouteMePassword, right: user, handle: (*Server).changePassword},

		{method: "GET", pattern: api.RouteMeta, right: anyone, handle: (*Server).meta},
		{method: "GET", pattern: api.RouteModelMeta, right: anyone, handle: (*Server).modelMeta},
		{method: "POST", pattern: api.RouteRotateKeys, right: sys(access.KeysRotate), handle: (*Server).rotateKeys},
		{method: "POST", pattern: api.RouteShutdown, right: sys(access.ServerShutdown), handle: (*Server).shutdown},
		{method: "GET", pattern: api.RouteEmbedding, right: sys(access.ServerShutdown), handle: (*Server).embeddingStatus},

		{method: "GET", pattern: api.RouteUsers, right: sys(access.UserRead), handle: (*Server).listUsers, query: page},
		{method: "POST", pattern: api.RouteUsers, right: sys(access.UserCreate), handle: (*Server).createUser, key: keyOnce},
		{method: "GET", pattern: api.RouteUser, right: sys(access.UserRead), handle: (*Server).getUser},
		{method: "PUT", pattern: api.RouteUser, right: sys(access.UserUpdate), handle: (*Server).updateUser},
		{method: "DELETE", pattern: api.RouteUser, right: sys(access.UserDelete), handle: (*Server).deleteUser},

		{method: "GET", pattern: api.RouteOrgs, right: sys(access.OrgRead), handle: (*Server).listOrgs, query: page},
		{method: "POST", pattern: api.RouteOrgs, right: sys(access.OrgCreate), handle: (*Server).createOrg, key: keyOnce},
		{method: "GET", pattern: api.RouteOrg, right: sys(access.OrgRead), handle: (*Server).getOrg},
		{method: "PUT", pattern: api.RouteOrg, right: sys(access.OrgUpdate), handle: (*Server).updateOrg},
		{method: "DELETE", pattern: api.RouteOrg, right: sys(access.OrgDelete), handle: (*Server).deleteOrg},

		{method: "GET", pattern: api.RouteTeams, right: sys(access.TeamRead), handle: (*Server).listTeams, query: page},
		{method: "POST", pattern: api.RouteTeams, right: sys(access.TeamCreate), handle: (*Server).createTeam, key: keyOnce},
		{method: "GET", pattern: api.RouteTeam, right: sys(access.TeamRead), handle: (*Server).getTeam},
		{method: "PUT", pattern: api.RouteTeam, right: sys(access.TeamUpdate), handle: (*Server).updateTeam},
		{method: "DELETE", pattern: api.RouteTeam, right: sys(access.TeamDelete), handle: (*Server).deleteTeam},

		{method: "GET", pattern: api.RouteTokens, right: user, handle: (*Server).listTokens, query: page},
		{method: "POST", pattern: api.RouteTokens, right: user, handle: (*Server).createToken, key: keySecret},
		{method: "GET", pattern: api.RouteTokenScopes, right: user, handle: (*Server).tokenScopes},
		{method: "GET", pattern: api.RouteToken, right: user, handle: (*Server).getToken},
		{method: "PUT", pattern: api.RouteToken, right: user, handle: (*Server).updateToken},
		{method: "DELETE", pattern: api.RouteToken, right: user, handle: (*Server).deleteToken},

		{method: "GET", pattern: api.RouteAudit, right: sys(access.AuditRead), handle: (*Server).listAudit, query: page},
		{method: "GET", pattern: api.RouteAuditVerify, right: sys(access.AuditVerify), handle: (*Server).verifyAudit, query: []string{api.ParamProject, api.ParamExpect}},
		{method: "GET", pattern: api.RouteProjectAudit, right: prj(access.AuditRead), handle: (*Server).listProjectAudit, query: page},

		{method: "GET", pattern: api.RouteProjects, right: sys(access.ProjectRead), handle: (*Server).listProjects, query: page},
		{method: "POST", pattern: api.RouteProjects, right: sys(access.ProjectCreate), handle: (*Server).registerProject, key: keyOnce},
		{method: "GET", pattern: api.RouteProject, right: sys(access.ProjectRead), handle: (*Server).getProject},
		{method: "PUT", pattern: api.RouteProject, right: sys(access.ProjectUpdate), handle: (*Server).updateProject},
		{method: "DELETE", pattern: api.RouteProject, right: sys(access.ProjectDelete), handle: (*Server).unregisterProject},
		{method: "GET", pattern: api.RouteProjectStatus, right: sys(access.ProjectRead), handle: (*Server).projectStatus},
		{method: "POST", pattern: api.RouteReload, right: prj(access.ProjectReload), handle: (*Server).reload, query: []string{api.ParamWait, api.ParamPlan, api.ParamAllow}},
		{method: "POST", pattern: api.RoutePlan, right: prj(access.ProjectReload), handle: (*Server).plan, body: maxBundle},
		{method: "GET", pattern: api.RouteGenerations, right: prj(access.ProjectReload), handle: (*Server).listGenerations},
		{method: "POST", pattern: api.RouteRollback, right: prj(access.ProjectReload), handle: (*Server).rollBack},
		{method: "GET", pattern: api.RouteDrift, right: prj(access.ProjectRead), handle: (*Server).drift},
		{method: "POST", pattern: api.RouteSyncIndexes, right: prj(access.ProjectReload), handle: (*Server).syncIndexes, long: true, query: []string{api.ParamAllow}},
		{method: "GET", pattern: api.RouteSearchWorker, right: prj(access.ProjectRegenerateSearch), handle: (*Server).searchWorker},
		{method: "POST", pattern: api.RouteRegenerate, right: prj(access.ProjectRegenerateSearch), handle: (*Server).regenerateSearch, long: true, query: []string{api.ParamCollection, api.ParamSearch}},
		{method: "GET", pattern: api.RouteRegeneration, right: prj(access.ProjectRegenerateSearch), handle: (*Server).getRegeneration},
		{method: "GET", pattern: api.RouteRegenEvents, right: prj(access.ProjectRegenerateSearch), handle: (*Server).followRegeneration, long: true},
		{method: "GET", pattern: api.RouteProjEmbedding, right: prj(access.ProjectRegenerateSearch), handle: (*Server).projectEmbeddingStatus},
		{method: "GET", pattern: api.RouteProjectEvents, right: prj(access.ProjectRead), handle: (*Server).projectEvents, query: []string{api.ParamWatch}, long: true},
		{method: "POST", pattern: api.RouteAccessExplain, right: prj(access.ProjectRead), handle: (*Server).explainAccess},

		{method: "GET", pattern: api.RouteSnapshotProfiles, right: snaps, handle: (*Server).listProfiles},
		{method: "GET", pattern: api.RouteSnapshots, right: snaps, handle: (*Server).listSnapshots, query: []string{api.ParamProfile, api.ParamLimit, api.ParamOffset}},
		{method: "POST", pattern: api.RouteSnapshots, right: snaps, handle: (*Server).createSnapshot, key: keyOnce, long: true},
		{method: "POST", pattern: api.RouteSnapshotPrune, right: served(access.ProjectSnapshot), handle: (*Server).pruneSnapshots, key: keyOnce, spare: always, long: true},
		{method: "GET", pattern: api.RouteSnapshotRuns, right: snaps, handle: (*Server).listSnapshotRuns, query: append([]string{api.ParamKind, api.ParamProfile}, runs...)},
		{method: "GET", pattern: api.RouteSnapshotRun, right: snaps, handle: (*Server).getSnapshotRun},
		{method: "GET", pattern: api.RouteSnapshot, right: snaps, handle: (*Server).getSnapshot, query: []string{api.ParamFiles}},
		{method: "PUT", pattern: api.RouteSnapshot, right: served(access.ProjectSnapshot), handle: (*Server).changeSnapshot},
		{method: "DELETE", pattern: api.RouteSnapshot, right: served(access.ProjectSnapshot), handle: (*Server).deleteSnapshot, long: true},
		{method: "GET", pattern: api.RouteSnapshotEvents, right: snaps, handle: (*Server).followSnapshotRun, long: true},
		{method: "POST", pattern: api.RouteSnapshotCancel, right: snaps, handle: (*Server).cancelSnapshotRun},
		{method: "POST", pattern: api.RouteSnapshotVerify, right: served(access.ProjectSnapshot), handle: (*Server).verifySnapshot, key: keyOnce, spare: always, long: true},
		{method: "POST", pattern: api.RouteSnapshotDrill, right: served(access.ProjectSnapshot), handle: (*Server).drillSnapshot, key: keyOnce, long: true},
		{method: "GET", pattern: api.RouteSnapshotDiff, right: served(access.ProjectSnapshot), handle: (*Server).diffSnapshot, query: []string{api.ParamWith, api.ParamCollection, api.ParamLimit}, long: true},
		{method: "POST", pattern: api.RouteSnapshotRestore, right: served(access.ProjectSnapshot), handle: (*Server).restoreSnapshot, key: keyOnce, spare: (*request).asksDryRun, long: true},
		{method: "GET", pattern: api.RouteSnapshotDownload, right: snaps, handle: (*Server).downloadSnapshot, long: true},
		{method: "POST", pattern: api.RouteSnapshotImport, right: served(access.ProjectSnapshot), handle: (*Server).importSnapshot, query: []string{api.ParamProfile}, long: true},
		{method: "POST", pattern: api.RouteBackup, right: served(access.ProjectBackup), handle: (*Server).createBackup, key: keyOnce, long: true},
		{method: "GET", pattern: api.RouteBackupAnalyze, right: served(access.ProjectBackup), handle: (*Server).analyzeBackup, query: []string{api.ParamID}, long: true},
		{method: "GET", pattern: api.RouteBackupDownload, right: served(access.ProjectBackup), handle: (*Server).downloadBackup, query: []string{api.ParamID}, long: true},
		{method: "POST", pattern: api.RouteBackupRestore, right: served(access.ProjectBackup), handle: (*Server).restoreBackup, query: []string{api.ParamCollections, api.ParamMedia, api.ParamMode, api.ParamInto, api.ParamDryRun}, long: true},

		{method: "GET", pattern: api.RouteCollections, right: prj(access.ProjectRead), handle: (*Server).listCollections, labels: true},
		{method: "GET", pattern: api.RouteCollection, right: rec(access.Get), handle: (*Server).describeCollection, labels: true},
		{method: "GET", pattern: api.RouteCollStats, right: prj(access.ProjectRead), handle: (*Server).collectionStats},

		{method: "GET", pattern: api.RouteMCP, right: right{kind: rightMCP}, handle: (*Server).probeMCP, noCookie: true},
		{method: "POST", pattern: api.RouteMCP, right: right{kind: rightMCP}, handle: (*Server).answerMCP, noCookie: true, long: true, body: maxAgentBody},

		{method: "GET", pattern: api.RouteAgentGuide, right: right{kind: rightDescribed}, handle: (*Server).agentGuide, query: []string{api.ParamCollection, api.ParamAction}, labels: true},
		{method: "GET", pattern: api.RouteOpenAPI, right: right{kind: rightDescribed}, handle: (*Server).openAPI, query: []string{api.ParamFormat}, labels: true},

		{method: "GET", pattern: api.RouteJobs, right: prj(access.ProjectRead), handle: (*Server).listJobs},
		{method: "GET", pattern: api.RouteJob, right: prj(access.ProjectRead), handle: (*Server).getJob},
		{method: "GET", pattern: api.RouteJobNext, right: prj(access.ProjectRead), handle: (*Server).nextJobTimes, query: []string{api.ParamLimit}},
		{method: "POST", pattern: api.RouteJobSuspend, right: prj(access.ProjectReload), handle: (*Server).suspendJob},
		{method: "POST", pattern: api.RouteJobResume, right: prj(access.ProjectReload), handle: (*Server).resumeJob},
		{method: "POST", pattern: api.RouteJobStart, right: prj(access.ProjectReload), handle: (*Server).runJob, key: keyOnce, query: []string{api.ParamWait}, long: true},
		{method: "GET", pattern: api.RouteJobRuns, right: prj(access.ProjectRead), handle: (*Server).listJobRuns, query: runs},
		{method: "GET", pattern: api.RouteJobRun, right: prj(access.ProjectRead), handle: (*Server).getJobRun},
		{method: "DELETE", pattern: api.RouteJobRun, right: prj(access.ProjectReload), handle: (*Server).cancelJobRun},
		{method: "GET", pattern: api.RouteJobRunEvents, right: prj(access.ProjectRead), handle: (*Server).followJobRun, long: true},

		{method: "GET", pattern: api.RouteAssets, right: prj(access.ProjectRead), handle: (*Server).listAssets},
		{method: "GET", pattern: api.RouteAsset, right: right{kind: rightAsset}, handle: (*Server).getAsset, query: []string{api.ParamDownload, paramVersion}},
		{method: "GET", pattern: api.RouteFile, right: right{kind: rightFile}, handle: (*Server).getFile, query: []string{api.ParamFilter, api.ParamDownload}},

		{method: "GET", pattern: api.RouteActions, right: right{kind: rightActions}, handle: (*Server).listActions, labels: true},
		{method: "GET", pattern: api.RouteAction, right: act(access.Get), handle: (*Server).callAction, long: true},
		{method: "POST", pattern: api.RouteAction, right: act(access.Post), handle: (*Server).callAction, key: keyOnce, long: true},
		{method: "GET", pattern: api.RouteActionDescribe, right: act(0), handle: (*Server).describeAction, labels: true},
		{method: "GET", pattern: api.RouteActionRuns, right: right{kind: rightActionRuns}, handle: (*Server).listActionRuns, query: runs},
		{method: "GET", pattern: api.RouteActionRun, right: right{kind: rightActionRuns}, handle: (*Server).getActionRun, query: []string{api.ParamResult}},
		{method: "DELETE", pattern: api.RouteActionRun, right: right{kind: rightActionRuns}, handle: (*Server).cancelActionRun},
		{method: "GET", pattern: api.RouteActionRunEvents, right: right{kind: rightActionRuns}, handle: (*Server).followActionRun, long: true},

		{method: "GET", pattern: api.RouteRecordCount, right: rec(access.Get), handle: (*Server).countRecords, query: append([]string{api.ParamQ, api.ParamQName}, filter...)},
		{method: "GET", pattern: api.RouteRecordFacet, right: rec(access.Get), handle: (*Server).facetRecords, query: []string{api.ParamFields, api.ParamFilter, api.ParamQ, api.ParamQName, api.ParamQLimit}},
		{method: "GET", pattern: api.RouteRecordQueue, right: prj(access.ProjectRead), handle: (*Server).searchQueue},
		{method: "GET", pattern: api.RouteRecordChanges, right: rec(access.Get), handle: (*Server).followChanges, query: []string{api.ParamFilter, api.ParamSelect}, long: true},
		{method: "GET", pattern: api.RouteRecords, right: rec(access.Get), handle: (*Server).listRecords, query: records},
		{method: "POST", pattern: api.RouteRecords, right: rec(access.Post), handle: (*Server).createRecords, key: keyRepeatable, query: []string{api.ParamBulk, api.ParamDryRun, api.ParamMaxAffected}},
		{method: "PUT", pattern: api.RouteRecords, right: rec(access.Put), handle: (*Server).bulkUpdate, query: append([]string{api.ParamReplace}, bulk...)},
		{method: "DELETE", pattern: api.RouteRecords, right: rec(access.Delete), handle: (*Server).bulkDelete, query: bulk},
		{method: "GET", pattern: api.RouteRecord, right: rec(access.Get), handle: (*Server).getRecord, query: one},
		{method: "PUT", pattern: api.RouteRecord, right: rec(access.Put), handle: (*Server).updateRecord, query: replace},
		{method: "PATCH", pattern: api.RouteRecord, right: rec(access.Put), handle: (*Server).patchRecord, query: dryRun},
		{method: "DELETE", pattern: api.RouteRecord, right: rec(access.Delete), handle: (*Server).deleteRecord, query: dryRun},
	}
}

// inProject says that the path of a route with this right names a project.
func (r right) inProject() bool {
	switch r.kind {
	case rightProject, rightServed, rightSnapshots, rightRecords, rightFile, rightAsset, rightDescribed, rightActions, rightAction, rightActionRuns:
		return true
	default:
		return false
	}
}

// Route is one row of the table of routes, for tests and tools that go through all of them.
type Route struct {
	Method, Pattern string
	// Right is what it takes: "anyone", "credential" (any), "login" (a session), the name of a system right, "project"
	// and the name of a right on the project (of some snapshots, a profile may give it), or "records" and a method of permission sets. "" lets nobody in.
	Right string
}

// Routes tells of every route of the API, and what it needs.
func Routes() []Route {
	var out []Route
	for _, rt := range routes() {
		out = append(out, Route{Method: rt.method, Pattern: api.Prefix + rt.pattern, Right: rt.right.String()})
	}
	return out
}

func (r right) String() string {
	switch r.kind {
	case rightPublic:
		return "anyone"
	case rightCredential:
		return "credential"
	case rightLogin:
		return "login"
	case rightSystem:
		return r.name
	case rightProject, rightServed, rightSnapshots:
		return "project " + r.name
	case rightRecords:
		return "records " + r.method.String()
	case rightFile:
		return "file"
	case rightAsset:
		return "asset"
	case rightDescribed:
		return "described"
	case rightMCP:
		return "personal access token"
	case rightActions:
		return "actions"
	case rightAction:
		if r.method == 0 {
			return "action any"
		}
		return "action " + r.method.String()
	case rightActionRuns:
		return "action runs"
	case rightNobody:
	}
	return ""
}
