package app_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

const (
	denied     = "403 permission_denied: permission denied"
	noProject  = "404 project_not_found: project not found"
	noRoute    = "404 no_such_route: not found"
	notFound   = "404 not_found: not found"
	badID      = "400 bad_id: invalid id: must be 24 hex digits"
	unknownID  = "650102030405060708090a0b"
	writeToken = collectionToken
)

// Every route, with what it says to those who may and to those who may not.
func TestRoutes(t *testing.T) {
	s := runShop(t, nil)
	project := s.projectID()
	userID, session1 := s.user("ann", nil)
	a := s.item(`{"title": "A", "n": 1, "slug": "a", "secret": "s"}`)
	hidden := s.item(`{"title": "H", "n": -1}`)
	unreadable := s.do("POST", "/api/v1/_/shop/inbox", text(`{"x": 1}`)).field("id")
	writer := token(writeToken)

	for _, tt := range []struct {
		method, path string
		options      []option
		want         string
		body         string // what the answer must contain
	}{
		{"GET", "/healthz", nil, "200", `{"status":"ok"}`},
		{"GET", "/readyz", nil, "200", `{"status":"ok"}`},
		{"GET", "/metrics", nil, "200", "svc_request_duration_seconds"},
		{"GET", "/api/v1/version", nil, "200", `{"version":"v0-test"}`},
		{"GET", "/", nil, noRoute, ""},
		{"GET", "/api/v1", nil, noRoute, ""},
		{"GET", "/api/v1/version/", nil, noRoute, ""},
		{"GET", "/api/version", nil, noRoute, ""},

		{"POST", "/api/v1/login", []option{text(`{"username": "ann", "password": "` + password + `"}`)}, "200", `"token":"`},
		{"POST", "/api/v1/login", []option{text(`{"username": "ann", "password": "x"}`)}, "403 login_failed: wrong username or password", ""},
		{"POST", "/api/v1/login", []option{text(`{"username": "nobody", "password": "x"}`)}, "403 login_failed: wrong username or password", ""},
		{"POST", "/api/v1/login", []option{text(`{"username": {"$gt": ""}, "password": "x"}`)}, "400 validation_failed: username: must be a string", ""},
		{"POST", "/api/v1/login", []option{text(`{"username": "ann"}`)}, "400 validation_failed: password: is required", ""},
		{"POST", "/api/v1/login", []option{text(`{"username": "ann", "password": "x", "otp": 1}`)}, "400 validation_failed: otp: unknown field", ""},
		{"POST", "/api/v1/logout", nil, denied, ""},
		{"GET", "/api/v1/me", nil, denied, ""},
		{"GET", "/api/v1/me", []option{session(session1)}, "200", `"username":"ann"`},
		{"GET", "/api/v1/me", []option{admin}, "200", `"kind":"admin"`},
		{"PUT", "/api/v1/me/password", []option{text(`{}`)}, denied, ""},
		{"PUT", "/api/v1/me/password", []option{session(session1), text(`{"currentPassword": "x", "newPassword": "` + password + `3"}`)}, "403 login_failed: the present password is wrong", ""},
		{"POST", "/api/v1/logout?all=maybe", []option{session(session1)}, "400 bad_parameter: all must be true or false", ""},
		{"POST", "/api/v1/admin/keys/rotate", nil, denied, ""},
		{"POST", "/api/v1/admin/keys/rotate", []option{session(session1)}, denied, ""},
		{"POST", "/api/v1/admin/keys/rotate", []option{token(projectToken)}, "403 permission_denied: permission denied: admin token lacks permission keys.rotate", ""},
		{"POST", "/api/v1/admin/keys/rotate", []option{admin}, "200", `"id":"`},
		{"POST", "/api/v1/admin/shutdown", []option{session(session1)}, denied, ""},
		{"POST", "/api/v1/admin/shutdown", []option{token(projectToken)}, "403 permission_denied: permission denied: admin token lacks permission server.shutdown", ""},

		{"GET", "/api/v1/admin/embedding/status", nil, denied, ""},
		{"GET", "/api/v1/admin/embedding/status", []option{session(session1)}, denied, ""},
		{"GET", "/api/v1/admin/embedding/status", []option{token(projectToken)}, "403 permission_denied: permission denied: admin token lacks permission server.shutdown", ""},
		{"GET", "/api/v1/admin/embedding/status", []option{admin}, "200", `{"groups":[]}`},
		{"GET", "/api/v1/admin/embedding/status?full=true", []option{admin}, "400 unknown_parameter: *", ""},
		{"GET", "/api/v1/_/shop/_/admin/embedding/status", nil, denied, ""},
		{"GET", "/api/v1/_/shop/_/admin/embedding/status", []option{token(projectToken)}, "403 permission_denied: permission denied: admin token lacks permission project.regenerate-search", ""},
		{"GET", "/api/v1/_/shop/_/admin/embedding/status", []option{admin}, "200", `{"groups":[]}`},
		{"GET", "/api/v1/_/none/_/admin/embedding/status", []option{admin}, noProject, ""},

		{"GET", "/api/v1/_meta", nil, "200", `{"models":{"org":[{"name":"name",`},
		{"GET", "/api/v1/_meta/team", nil, "200", `{"name":"scopes","type":"[]string","kind":"slice","validator":"maxItems=1000","sliceOf":"string"}`},
		{"GET", "/api/v1/_meta/none", nil, "404 model_not_found: *", ""},
		{"GET", "/api/v1/_meta?limit=1", nil, "400 unknown_parameter: *", ""},

		{"GET", "/api/v1/user", nil, denied, ""},
		{"GET", "/api/v1/user?limit=1&count=true", []option{admin}, "200", `"total":1`},
		{"GET", "/api/v1/user?limit=1001", []option{admin}, "400 query_limit: limit is 1001, the highest allowed is 1000", ""},
		{"GET", "/api/v1/user?limit=-1", []option{admin}, "400 bad_parameter: limit and offset can't be negative", ""},
		{"POST", "/api/v1/user", []option{text(`{}`)}, denied, ""},
		{"POST", "/api/v1/user", []option{admin, text(`{"username": "ann", "password": "` + password + `"}`)}, "409 *", ""},
		{"GET", "/api/v1/user/" + userID, nil, denied, ""},
		{"GET", "/api/v1/user/" + userID, []option{admin}, "200", `"username":"ann"`},
		{"GET", "/api/v1/user/" + unknownID, []option{admin}, notFound, ""},
		{"GET", "/api/v1/user/x", []option{admin}, "400 bad_id: *", ""},
		{"PUT", "/api/v1/user/" + userID, []option{session(session1), text(`{"isAdmin": true}`)}, denied, ""},
		{"PUT", "/api/v1/user/" + userID, []option{admin, text(`{"name": "Ann"}`)}, "200", `"name":"Ann"`},
		{"DELETE", "/api/v1/user/" + unknownID, []option{admin}, notFound, ""},
		{"DELETE", "/api/v1/user/" + userID, []option{session(session1)}, denied, ""},

		{"GET", "/api/v1/token", nil, denied, ""},
		{"GET", "/api/v1/token", []option{admin}, denied, ""},
		{"GET", "/api/v1/token", []option{writer}, denied, ""},
		{"GET", "/api/v1/token?count=true", []option{session(session1)}, "200", `"total":0`},
		{"POST", "/api/v1/token", []option{admin, text(`{}`)}, denied, ""},
		{"POST", "/api/v1/token", []option{session(session1), text(`{"name": "ci", "scopes": []}`)}, "201", `"token":"svc_pat_`},
		{"POST", "/api/v1/token", []option{session(session1), text(`{"name": "ci", "scopes": ["project.read"]}`)}, "400 validation_failed: scopes.0: is no scope that you may grant: GET /token/_scopes lists them", ""},
		{"GET", "/api/v1/token/_scopes", []option{admin}, denied, ""},
		{"GET", "/api/v1/token/_scopes", []option{session(session1)}, "200", `[]`},
		{"GET", "/api/v1/token/" + unknownID, []option{admin}, denied, ""},
		{"GET", "/api/v1/token/" + unknownID, []option{session(session1)}, notFound, ""},
		{"GET", "/api/v1/token/x", []option{session(session1)}, badID, ""},
		{"PUT", "/api/v1/token/" + unknownID, []option{session(session1), text(`{"name": "x"}`)}, notFound, ""},
		{"PUT", "/api/v1/token/" + unknownID, []option{admin, text(`{"name": "x"}`)}, denied, ""},
		{"DELETE", "/api/v1/token/" + unknownID, []option{session(session1)}, notFound, ""},
		{"DELETE", "/api/v1/token/" + unknownID, nil, denied, ""},

		{"GET", "/api/v1/audit", nil, denied, ""},
		{"GET", "/api/v1/audit?filter[op]=login_failed&limit=1", []option{admin}, "200", `"op":"login_failed","collection":"users"`},
		{"GET", "/api/v1/audit?filter[after]=1", []option{admin}, "400 unknown_field: unknown field: after", ""},
		{"GET", "/api/v1/audit/verify", nil, denied, ""},
		{"GET", "/api/v1/audit/verify", []option{admin}, "200", `{"ok":true,`},
		{"GET", "/api/v1/audit/verify?project=shop", []option{admin}, "200", `{"ok":true,"entries":0,`},
		{"GET", "/api/v1/audit/verify?project=none", []option{admin}, noProject, ""},
		{"GET", "/api/v1/_/shop/_/audit", []option{token(projectToken)}, "403 permission_denied: permission denied: admin token lacks permission audit.read", ""},
		{"GET", "/api/v1/_/shop/_/audit", []option{admin}, "200", `{"items":[],"limit":100,`},
		{"GET", "/api/v1/_/none/_/audit", []option{admin}, noProject, ""},

		{"GET", "/api/v1/project", nil, denied, ""},
		{"GET", "/api/v1/project", []option{admin}, "200", `"namespace":"shop"`},
		{"POST", "/api/v1/project", []option{writer, text(`{}`)}, "403 permission_denied: permission denied: admin token lacks permission project.create", ""},
		{"POST", "/api/v1/project", []option{admin, text(`{"name": "x", "configFile": "../x.yaml", "enabled": true}`)}, "403 config_outside: *", ""},
		{"POST", "/api/v1/project", []option{admin, text(`{"name": "x", "configFile": "/etc/passwd", "enabled": true}`)}, "403 config_outside: *", ""},
		{"POST", "/api/v1/project", []option{admin, text(`{"name": "x", "configFile": "none.yaml", "enabled": true}`)}, "422 config_not_found: *", ""},
		{"POST", "/api/v1/project", []option{admin, text(`{"name": "x", "configFile": "shop/project.yaml", "enabled": true}`)}, "409 *", ""},
		{"GET", "/api/v1/project/" + project, []option{admin}, "200", `"configFile":"shop/project.yaml"`},
		{"GET", "/api/v1/project/" + unknownID, []option{admin}, notFound, ""},
		{"GET", "/api/v1/project/" + project + "/status", []option{admin}, "200", `"phase":"`},
		{"GET", "/api/v1/project/" + project + "/status", []option{token(projectToken)}, "403 permission_denied: permission denied: admin token lacks permission project.read", ""},
		{"PUT", "/api/v1/project/" + project, []option{admin, text(`{"description": "d"}`)}, "200", `"description":"d"`},
		{"PUT", "/api/v1/project/" + project, []option{admin, text(`{"namespace": "x"}`)}, "400 *", ""},
		{"DELETE", "/api/v1/project/" + unknownID, []option{admin}, notFound, ""},
		{"DELETE", "/api/v1/project/" + project, nil, denied, ""},
		{"POST", "/api/v1/_/shop/_/admin/reload", []option{admin}, "202", `"generation":`},
		{"POST", "/api/v1/_/shop/_/admin/reload?wait=true", []option{token(projectToken)}, "200", `"conditions":`},
		{"POST", "/api/v1/_/none/_/admin/reload", []option{admin}, noProject, ""},
		{"POST", "/api/v1/_/shop/_/admin/reload?allow=safe", []option{admin}, "200", `"changed":false`},
		{"POST", "/api/v1/_/shop/_/admin/reload?wait=true&plan=" + strings.Repeat("0", 32), []option{admin}, "409 plan_changed: *", ""},
		{"POST", "/api/v1/_/shop/_/admin/reload?plan=x", []option{admin}, "400 bad_parameter: *", ""},
		{"POST", "/api/v1/_/shop/_/admin/reload?plan=", []option{admin}, "400 bad_parameter: *", ""},
		{"POST", "/api/v1/_/shop/_/admin/reload?allow=all", []option{admin}, "400 bad_parameter: allow is a risk: safe, slow, breaking or destructive", ""},
		{"POST", "/api/v1/_/shop/_/admin/indexes/sync?allow=slow", []option{admin}, "200", `"items":[`},
		{"POST", "/api/v1/_/shop/_/admin/indexes/sync?allow=drops", []option{admin}, "400 bad_parameter: allow is a risk: safe, slow, breaking or destructive", ""},
		{"POST", "/api/v1/_/shop/_/admin/indexes/sync?wait=true", []option{admin}, "400 unknown_parameter: *", ""},
		{"POST", "/api/v1/_/shop/_/admin/plan", nil, denied, ""},
		{"POST", "/api/v1/_/shop/_/admin/plan", []option{token(projectToken)}, "200", `"empty":true`},
		{"POST", "/api/v1/_/shop/_/admin/plan", []option{admin, text("namespace: shop")}, "415 *", ""},
		{"POST", "/api/v1/_/shop/_/admin/plan?wait=true", []option{admin}, "400 unknown_parameter: *", ""},
		{"POST", "/api/v1/_/none/_/admin/plan", []option{admin}, noProject, ""},

		{"GET", "/api/v1/_/shop/_/assets", nil, denied, ""},
		{"GET", "/api/v1/_/shop/_/assets", []option{admin}, "200", `{"items":[],"limit":0,"offset":0,"hasMore":false}`},
		{"GET", "/api/v1/_/none/_/assets", []option{admin}, noProject, ""},
		{"GET", "/api/v1/_/shop/_/assets/none/a.txt", nil, notFound, ""},
		{"GET", "/api/v1/_/shop/_/assets/none/a.txt?download=maybe", nil, notFound, ""},
		{"GET", "/api/v1/_/shop/_/assets/none/a.txt?limit=1", nil, "400 unknown_parameter: *", ""},
		{"GET", "/api/v1/_/shop/_/assets/none/a.txt", []option{token("made up")}, denied, ""},
		{"GET", "/api/v1/_/shop/_/assets/none/a.txt", []option{token(readToken)}, notFound, ""},
		{"GET", "/api/v1/_/none/_/assets/none/a.txt", nil, noProject, ""},
		{"POST", "/api/v1/_/shop/_/assets/none/a.txt", []option{admin, text(`{}`)}, "405 method_not_allowed: *", ""},

		{"GET", "/api/v1/_/shop/_/actions", nil, "200", `{"items":[],"limit":0,"offset":0,"hasMore":false}`},
		{"GET", "/api/v1/_/none/_/actions", nil, noProject, ""},
		{"GET", "/api/v1/_/shop/_/actions?limit=1", nil, "400 unknown_parameter: *", ""},
		{"GET", "/api/v1/_/shop/_/actions/none", nil, "404 action_not_found: action not found", ""},
		{"POST", "/api/v1/_/shop/_/actions/none", []option{admin, text(`{}`)}, "404 action_not_found: *", ""},
		{"GET", "/api/v1/_/shop/_/actions/none/describe", []option{admin}, "404 action_not_found: *", ""},
		{"GET", "/api/v1/_/shop/_/actions/none/runs", []option{admin}, "404 action_not_found: *", ""},
		{"GET", "/api/v1/_/shop/_/actions/none/runs/x", []option{admin}, "404 action_not_found: *", ""},
		{"DELETE", "/api/v1/_/shop/_/actions/none/runs/x", []option{admin}, "404 action_not_found: *", ""},
		{"GET", "/api/v1/_/shop/_/actions/none/runs/x/events", []option{admin}, "404 action_not_found: *", ""},

		{"GET", "/api/v1/_/shop/_/jobs", nil, denied, ""},
		{"GET", "/api/v1/_/shop/_/jobs", []option{admin}, "200", `{"items":[],"limit":0,"offset":0,"hasMore":false}`},
		{"GET", "/api/v1/_/none/_/jobs", []option{admin}, noProject, ""},
		{"GET", "/api/v1/_/shop/_/jobs/none", []option{admin}, "404 job_not_found: job not found", ""},
		{"GET", "/api/v1/_/shop/_/jobs/none/next", []option{admin}, "404 job_not_found: *", ""},
		{"GET", "/api/v1/_/shop/_/jobs/none/next?limit=101", []option{admin}, "400 query_limit: *", ""},
		{"POST", "/api/v1/_/shop/_/jobs/none/suspend", []option{admin}, "404 job_not_found: *", ""},
		{"POST", "/api/v1/_/shop/_/jobs/none/suspend", []option{session(session1)}, denied, ""},
		{"POST", "/api/v1/_/shop/_/jobs/none/resume", []option{admin}, "404 job_not_found: *", ""},
		{"POST", "/api/v1/_/shop/_/jobs/none/run", []option{admin}, "404 job_not_found: *", ""},
		{"POST", "/api/v1/_/shop/_/jobs/none/run?wait=maybe", []option{admin}, "400 bad_parameter: *", ""},
		{"GET", "/api/v1/_/shop/_/jobs/none/runs", []option{admin}, "404 job_not_found: *", ""},
		{"GET", "/api/v1/_/shop/_/jobs/none/runs?status=good", []option{admin}, "400 bad_parameter: status must be queued, *", ""},
		{"GET", "/api/v1/_/shop/_/jobs/none/runs?limit=0", []option{admin}, "400 query_limit: *", ""},
		{"GET", "/api/v1/_/shop/_/jobs/none/runs/x", []option{admin}, "404 job_not_found: *", ""},
		{"DELETE", "/api/v1/_/shop/_/jobs/none/runs/x", []option{admin}, "404 job_not_found: *", ""},
		{"GET", "/api/v1/_/shop/_/jobs/none/runs/x/events", []option{admin}, "404 job_not_found: *", ""},
		{"POST", "/api/v1/_/shop/_/admin/access/explain", []option{admin, text(`{"principal": {"kind": "anonymous"}, "method": "get", "collection": "items"}`)}, "200", `"rule":"public"`},
		{"POST", "/api/v1/_/shop/_/admin/access/explain", []option{admin, text(`[]`)}, "400 bad_json: *", ""},
		{"POST", "/api/v1/_/shop/_/admin/access/explain", []option{session(session1), text(`{}`)}, denied, ""},
		{"POST", "/api/v1/_/none/_/admin/access/explain", []option{admin, text(`{}`)}, noProject, ""},

		{"GET", "/api/v1/_/shop/_/collections", nil, denied, ""},
		{"GET", "/api/v1/_/shop/_/collections", []option{admin}, "200", `"name":"items2"`},
		{"GET", "/api/v1/_/shop/_/collections/items", nil, "200", `"yourPermissions":`},
		{"GET", "/api/v1/_/shop/_/collections/inbox", nil, denied, ""},
		{"GET", "/api/v1/_/shop/_/collections/items/stats", []option{admin}, "200", `"name":"items","records":`},
		{"GET", "/api/v1/_/shop/_/collections/items/stats", nil, denied, ""},
		{"GET", "/api/v1/_/shop/_/collections/items/stats", []option{writer}, "403 permission_denied: permission denied: admin token lacks permission project.read", ""},
		{"GET", "/api/v1/_/shop/_/collections/none/stats", []option{admin}, "404 collection_not_found: collection not found", ""},
		{"GET", "/api/v1/_/shop/_/collections/none", nil, "404 collection_not_found: collection not found", ""},

		{"GET", "/api/v1/_/none/items", nil, noProject, ""},
		{"GET", "/api/v1/_/none/items/x/y/z", nil, noProject, ""},
		{"PATCH", "/api/v1/_/none/items", nil, noProject, ""},
		{"GET", "/api/v1/_/shop/none", nil, "404 collection_not_found: collection not found", ""},
		{"POST", "/api/v1/_/shop/none", []option{text(`{`)}, "404 collection_not_found: collection not found", ""},
		{"GET", "/api/v1/_/shop/items/x/y", nil, noRoute, ""},
		{"GET", "/api/v1/_/shop/items/" + a + "/title/A", nil, notFound, ""},
		{"GET", "/api/v1/_/shop/none/" + a + "/title/A", nil, "404 collection_not_found: collection not found", ""},
		{"POST", "/api/v1/_/shop/items/" + a + "/title/A", []option{admin, text(`{}`)}, "405 method_not_allowed: *", ""},
		{"GET", "/api/v1/_/shop/_/jobs/none/run", []option{admin}, "405 method_not_allowed: *", ""},
		{"GET", "/api/v1/_/shop/_/jobs/none/none/none", []option{admin}, noRoute, ""},
		{"GET", "/api/v1/_/shop/_nope/a/b/c", nil, noRoute, ""},

		{"GET", "/api/v1/_/shop/items", nil, "200", `"items":[{"id":"` + a},
		{"GET", "/api/v1/_/shop/items?count=true&limit=0", nil, "200", `{"items":[],"limit":0,"offset":0,"hasMore":false,"total":1}`},
		{"GET", "/api/v1/_/shop/items?projection=card", nil, "200", `{"items":[{"id":"` + a + `","title":"A"}]`},
		{"GET", "/api/v1/_/shop/items?filter[n][gte]=1&filter[title]=A&select=n&preview=true&pretty=true", nil, "200", "\n  \"items\": [\n"},
		{"GET", "/api/v1/_/shop/items?select=n&select=-id", nil, "400 *", ""},
		{"GET", "/api/v1/_/shop/items?sort=n&sort=-title&select=n&select=title", nil, "200", `"title":"A"`},
		{"GET", "/api/v1/_/shop/items?facet=title&facet=n&filter[title]=A", nil, "200", `{"facets":{"title":[{"value":"A","count":1}],"n":[`},
		{"GET", "/api/v1/_/shop/items?filter[secret]=s", nil, "400 unknown_field: unknown field: secret", ""},
		{"GET", "/api/v1/_/shop/items/_count", nil, "200", `{"count":1}`},
		{"GET", "/api/v1/_/shop/items/_changes", nil, "200", ":"},
		{"GET", "/api/v1/_/shop/items/_changes?limit=1", nil, "400 unknown_parameter: *", ""},
		{"GET", "/api/v1/_/shop/inbox/_changes", nil, denied, ""},
		{"GET", "/api/v1/_/shop/items/_count", []option{admin}, "200", `{"count":2}`},
		{"GET", "/api/v1/_/shop/items/_facet?fields=title", nil, "200", `{"facets":{"title":[{"value":"A","count":1}]},"window":1,"truncated":false}`},
		{"GET", "/api/v1/_/shop/items?facet=title,n&filter[title]=A", nil, "200", `{"facets":{"title":[{"value":"A","count":1}],"n":[`},
		{"GET", "/api/v1/_/shop/items/_facet?fields=secret", nil, "400 unknown_field: unknown field: secret", ""},
		{"GET", "/api/v1/_/shop/inbox/_facet?fields=title", nil, denied, ""},
		{"GET", "/api/v1/_/shop/items?aggregate=[]", nil, denied, ""},
		{"GET", "/api/v1/_/shop/items?aggregate=" + url.QueryEscape(`[{"$sort":{"title":1}},{"$project":{"title":1}}]`) + "&limit=1", []option{admin}, "200", `{"items":[{"_id":"` + a + `","title":"A"}],"limit":1,"offset":0,"hasMore":true}`},
		{"GET", "/api/v1/_/shop/inbox", nil, denied, ""},
		{"GET", "/api/v1/_/shop/inbox/_count", nil, denied, ""},
		{"GET", "/api/v1/_/shop/inbox/" + unreadable, nil, denied, ""},
		{"GET", "/api/v1/_/shop/items/" + a, nil, "200", `"title":"A"`},
		{"GET", "/api/v1/_/shop/items/" + strings.ToUpper(a), nil, "200", `"id":"` + a},
		{"GET", "/api/v1/_/shop/items/" + hidden, nil, notFound, ""},
		{"GET", "/api/v1/_/shop/items/" + unknownID, nil, notFound, ""},
		{"GET", "/api/v1/_/shop/items/x", nil, badID, ""},
		{"GET", "/api/v1/_/shop/items/_nope", nil, noRoute, ""},

		{"POST", "/api/v1/_/shop/items", []option{text(`{`)}, denied, ""}, // the right before the body
		{"POST", "/api/v1/_/shop/items", []option{writer, text(`{"title": "B", "n": 5}`)}, "201", `"title":"B"`},
		{"POST", "/api/v1/_/shop/items", []option{writer, text(`{"title": "B", "slug": "a"}`)}, "409 unique: slug is already taken", `"errors":[{"path":"slug","rule":"unique"`},
		{"POST", "/api/v1/_/shop/items", []option{writer, text(`{}`)}, "400 validation_failed: title: is required", ""},
		{"POST", "/api/v1/_/shop/inbox", []option{text(`{"x": 1}`)}, "201", `{"id":"`},
		{"POST", "/api/v1/_/shop/items", []option{writer, text(`{"items": [{"title": "C", "n": 1}, {"n": 1}]}`)}, "207", `"succeeded":1,"failed":1`},
		{"POST", "/api/v1/_/shop/items", []option{writer, text(`{"items": []}`)}, "201", `"items":[]`},
		{"POST", "/api/v1/_/shop/items", []option{writer, text(`{"items": [{}, {}, {}, {}]}`)}, "422 bulk_limit: 4 items, the limit is 3: send them in several requests", ""},
		{"POST", "/api/v1/_/shop/items2", []option{text(`{"items": [{"x": 1}]}`)}, "201", `"items":[{"x":1}]`}, // a field of that name
		{"POST", "/api/v1/_/shop/items2?bulk=true", []option{text(`{"items": [{"x": 1}]}`)}, "201", `"succeeded":1`},
		{"POST", "/api/v1/_/shop/items2?bulk=true", []option{text(`{"x": 1}`)}, `400 bad_bulk: with bulk=true the body must be {"items": [...]}`, ""},
		{"POST", "/api/v1/_/shop/inbox", []option{text(`{"items": [{"x": 1}]}`)}, denied, ""}, // no bulk right

		{"PUT", "/api/v1/_/shop/items", []option{writer, text(`{"n": 1}`)}, "400 filter_required: filter query parameter is required", ""},
		{"PUT", "/api/v1/_/shop/items?filter=", []option{writer, text(`{"n": 1}`)}, "400 filter_required: filter query parameter is required", ""},
		{"PUT", "/api/v1/_/shop/items?filter[title]=C", []option{writer, text(`{"n": 9}`)}, "200", `"matched":1,"succeeded":1,"failed":0`},
		{"PUT", "/api/v1/_/shop/items?filter=%7B%7D", []option{text(`{"n": 1}`)}, denied, ""},
		{"DELETE", "/api/v1/_/shop/items", []option{writer}, "400 filter_required: filter query parameter is required for bulk delete", ""},
		{"DELETE", "/api/v1/_/shop/items?filter[title]=C", []option{writer}, "200", `"matched":1,"succeeded":1,"failed":0`},
		{"DELETE", "/api/v1/_/shop/items?filter[]=C", []option{writer}, "400 bad_filter: filter[] must look like filter[field]=value or filter[field][gte]=value", ""},
		{"DELETE", "/api/v1/_/shop/items?filter[title]=C", []option{token(readToken)}, denied, ""},

		{"PUT", "/api/v1/_/shop/items/" + a, []option{writer, text(`{"n": 2}`)}, "200", `"n":2`},
		{"PUT", "/api/v1/_/shop/items/" + a + "?replace=true", []option{writer, text(`{"title": "R", "n": 3}`)}, "200", `"title":"R"`},
		{"PUT", "/api/v1/_/shop/items/" + a + "?replace=maybe", []option{writer, text(`{}`)}, "400 bad_parameter: replace must be true or false", ""},
		{"PUT", "/api/v1/_/shop/items/" + unknownID, []option{writer, text(`{"n": 2}`)}, notFound, ""},
		{"PUT", "/api/v1/_/shop/items/" + a, []option{text(`{"n": 2}`)}, denied, ""},
		{"PATCH", "/api/v1/_/shop/items/" + a, []option{writer, header("Content-Type", "application/json-patch+json"), text(`[{"op": "add", "path": "/n", "value": 7}]`)}, "200", `"n":7`},
		{"PATCH", "/api/v1/_/shop/items/" + a, []option{writer, header("Content-Type", "application/merge-patch+json"), text(`{"n": 8}`)}, "200", `"n":8`},
		{"PATCH", "/api/v1/_/shop/items/" + a, []option{writer, header("Content-Type", "text/plain"), text(`{"n": 8}`)}, "415 unsupported_media_type: send the body as Content-Type: application/merge-patch+json", ""},
		{"DELETE", "/api/v1/_/shop/items/" + a, nil, denied, ""},
		{"DELETE", "/api/v1/_/shop/items/" + unknownID, []option{writer}, notFound, ""},
		{"DELETE", "/api/v1/_/shop/items/" + a, []option{writer, header("If-Match", `"1"`)}, "412 stale: *", ""},
		{"DELETE", "/api/v1/_/shop/items/" + strings.ToUpper(a), []option{writer}, "200", `{"id":"` + a + `"}`},
	} {
		got := s.do(tt.method, tt.path, tt.options...)
		prefix, wild := strings.CutSuffix(tt.want, "*")
		if got.String() != tt.want && (!wild || !strings.HasPrefix(got.String(), prefix)) || !strings.Contains(got.body, tt.body) {
			t.Errorf("%s %s\ngot  %s\nwant %s %s\nbody %s", tt.method, tt.path, got, tt.want, tt.body, got.body)
		}
		checkShape(t, tt.method+" "+tt.path, got)
	}
}

// The system models answer alike: where a new one is, and its id as it is kept, however the path writes it.
func TestSystemModelsAnswerAlike(t *testing.T) {
	s := run(t, nil)
	_, root := s.user("root", map[string]any{"isAdmin": true})
	for model, body := range map[string]string{
		"user":  `{"username": "ben", "password": "` + password + `"}`,
		"org":   `{"name": "acme"}`,
		"team":  `{"name": "crew"}`,
		"token": `{"name": "ci", "scopes": []}`,
	} {
		made := s.do("POST", "/api/v1/"+model, session(root), text(body))
		made.want(t, http.StatusCreated)
		id := made.field("id")
		if at := made.header.Get("Location"); at != "/api/v1/"+model+"/"+id {
			t.Errorf("%s %s is at %q", model, id, at)
		}
		path := "/api/v1/" + model + "/" + strings.ToUpper(id)
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			got := s.do(method, path, session(root), text(`{"name": "x"}`))
			if got.status != http.StatusOK || got.field("id") != id {
				t.Errorf("%s %s: %s %s", method, path, got, got.body)
			}
		}
		if got := s.do("GET", path, session(root)); got.String() != notFound {
			t.Errorf("%s is still there: %s", model, got)
		}
	}
}

// checkShape holds for every answer.
func checkShape(t *testing.T, what string, a answer) {
	t.Helper()
	if len(a.header.Get("X-Request-Id")) != 16 {
		t.Errorf("%s: X-Request-Id %q", what, a.header.Get("X-Request-Id"))
	}
	if a.status < 400 || a.status == http.StatusServiceUnavailable {
		return
	}
	if a.header.Get("Content-Type") != "application/problem+json" || a.field("requestId") != a.header.Get("X-Request-Id") ||
		a.field("title") != http.StatusText(a.status) || a.field("type") != "about:blank" || a.header.Get("Cache-Control") != "no-store" ||
		!strings.Contains(a.body, fmt.Sprintf(`"status":%d,`, a.status)) {
		t.Errorf("%s: no proper problem: %v %s", what, a.header, a.body)
	}
	for _, leak := range []string{"goroutine", ".go:", "pebble", "mongo", "bson", "/tmp", "panic"} {
		if strings.Contains(a.body, leak) {
			t.Errorf("%s: the answer says %q: %s", what, leak, a.body)
		}
	}
}
