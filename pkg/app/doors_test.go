package app_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/httpapi"
)

// doorColumns are the callers of the door matrix, in the order of its cells.
var doorColumns = strings.Fields(`
	none
	reads writes query
	collections reload snapshot
	user reader manager
	boss root cookie crossSite
	patReads patWrites patManager
	expired revoked inactive
	patExpired patRevoked patInactive
`)

// doorTable says what each caller gets from each route. The groups of a row are
//
//	no credential | tokens of collections: one that reads, one that writes, the same in the query |
//	project admin tokens: collections, reload, snapshot |
//	users: without scopes, with scopes to read and reload, who manages the users of one organization |
//	administrators: a user, the server admin token, a user by cookie, the cookie sent by another site |
//	personal access tokens: an administrator's that reads shop's items, one with all that can be granted there, the manager's |
//	sessions that are over: expired, revoked, of somebody who isn't active | personal access tokens that are over, likewise
//
// and the cells
//
//	2 it is done              . permission denied       t admin token lacks permission <the route's>
//	4 not found               p project not found       x another site may not write with the cookie
//	b they may, and the body is none of what the route takes
//	m a personal access token is required
//
// {user}, {org}, {team}, {project} and {id} are of the organization that manager belongs to, as the project shop is, and
// {user2} … of another one, as the project away is. A cell _ isn't asked for: what comes after would miss what it ends. {new} makes what a row is to delete.
const doorTable = `
GET    /version                              2 222 222 222 2222 222 ... ...
POST   /login                                2 222 222 222 2222 222 ... ...  {"username": "door-login", "password": "{password}"}
POST   /logout                               . ... ... 222 2.2x ... ... ...
GET    /me                                   . ... ... 222 2222 222 ... ...
PUT    /me/password                          . ... ... 222 2.2x ... ... ...  {"currentPassword": "{password}", "newPassword": "{password}"}
GET    /token                                . ... ... 222 2.22 ... ... ...
POST   /token                                . ... ... 222 2.2x ... ... ...  {"name": "N{n}", "scopes": []}
GET    /token/_scopes                        . ... ... 222 2.22 ... ... ...
GET    /token/{token}                        . ... ... 444 2.22 ... ... ...
PUT    /token/{token}                        . ... ... 444 ...x ... ... ...  {"name": "N{n}"}
DELETE /token/{new}                          . ... ... 444 2.2x ... ... ...

GET    /_meta                                2 222 222 222 2222 222 ... ...
GET    /_meta/user                           2 222 222 222 2222 222 ... ...

GET    /audit                                . ttt ttt ... 2222 .2. ... ...
GET    /audit/verify                         . ttt ttt ... 2222 ... ... ...
GET    /_/shop/_/audit                       . ttt ttt ... 2222 .2. ... ...

POST   /admin/keys/rotate                    . ttt ttt ... 222x ... ... ...
POST   /admin/shutdown                       . ttt ttt ... ___x ._. ... ...
GET    /admin/embedding/status               . ttt ttt ... 2222 .2. ... ...

GET    /user                                 . ttt ttt .22 2222 .22 ... ...
POST   /user                                 . ttt ttt ..2 222x .22 ... ...  {"username": "made{n}", "password": "{password}"}
GET    /user/{user}                          . ttt ttt .22 2222 .22 ... ...
GET    /user/{user2}                         . ttt ttt .24 2222 .24 ... ...
PUT    /user/{user}                          . ttt ttt ..2 222x .22 ... ...  {"name": "N{n}"}
PUT    /user/{user2}                         . ttt ttt ..4 222x .24 ... ...  {"name": "N{n}"}
DELETE /user/{new}                           . ttt ttt ..2 222x .22 ... ...
DELETE /user/{user2}                         . ttt ttt ..4 ___x ._4 ... ...

GET    /org                                  . ttt ttt .22 2222 .22 ... ...
POST   /org                                  . ttt ttt ... 222x ... ... ...  {"name": "made {n}"}
GET    /org/{org}                            . ttt ttt .22 2222 .22 ... ...
GET    /org/{org2}                           . ttt ttt .24 2222 .24 ... ...
PUT    /org/{org}                            . ttt ttt ... 222x ... ... ...  {"name": "N{n}"}
DELETE /org/{new}                            . ttt ttt ... 222x ... ... ...

GET    /team                                 . ttt ttt .22 2222 .22 ... ...
POST   /team                                 . ttt ttt ... 222x ... ... ...  {"name": "made {n}", "orgId": "{org}"}
GET    /team/{team}                          . ttt ttt .22 2222 .22 ... ...
GET    /team/{team2}                         . ttt ttt .24 2222 .24 ... ...
PUT    /team/{team}                          . ttt ttt ... 222x ... ... ...  {"name": "N{n}"}
DELETE /team/{new}                           . ttt ttt ... 222x ... ... ...

GET    /project                              . ttt ttt .22 2222 .22 ... ...
POST   /project                              . ttt ttt ... 222x ... ... ...  {"name": "made", "configFile": "made{n}/project.yaml", "enabled": true}
GET    /project/{project}                    . ttt ttt .22 2222 .22 ... ...
GET    /project/{project2}                   . ttt ttt .24 2222 .24 ... ...
PUT    /project/{project}                    . ttt ttt ... 222x ... ... ...  {"description": "N{n}"}
DELETE /project/{new}                        . ttt ttt ... 222x ... ... ...
GET    /project/{project}/status             . ttt ttt .22 2222 .22 ... ...
GET    /project/{project2}/status            . ttt ttt .24 2222 .24 ... ...

POST   /_/shop/_/admin/reload                . ttt t2t .2. 222x .2. ... ...
POST   /_/away/_/admin/reload                . ttt ttt .2p 222x .2p ... ...
GET    /_/shop/_/admin/generations           . ttt t2t .2. 2222 .2. ... ...
GET    /_/away/_/admin/generations           . ttt ttt .2p 2222 .2p ... ...
POST   /_/shop/_/admin/rollback              . ttt t4t .4. 444x .4. ... ...  {"generation": 999}
POST   /_/away/_/admin/rollback              . ttt ttt .4p 444x .4p ... ...  {"generation": 999}
POST   /_/shop/_/admin/plan                  . ttt t2t .2. 222x .2. ... ...
POST   /_/away/_/admin/plan                  . ttt ttt .2p 222x .2p ... ...
GET    /_/shop/_/admin/drift                 . ttt ttt .22 2222 .22 ... ...
GET    /_/away/_/admin/drift                 . ttt ttt .2p 2222 .2p ... ...
GET    /_/shop/_/admin/embedding/status      . ttt ttt ... 2222 .2. ... ...
GET    /_/away/_/admin/embedding/status      . ttt ttt ..p 2222 .2p ... ...
POST   /_/shop/_/admin/indexes/sync          . ttt t2t .2. 222x .2. ... ...
POST   /_/away/_/admin/indexes/sync          . ttt ttt .2p 222x .2p ... ...
GET    /_/shop/_/admin/search-worker/status  . ttt ttt ... 2222 .2. ... ...
GET    /_/away/_/admin/search-worker/status  . ttt ttt ..p 2222 .2p ... ...
POST   /_/shop/_/admin/regenerate-search     . ttt ttt ... 222x .2. ... ...
GET    /_/shop/_/admin/regenerate-search/x   . ttt ttt ... 4444 .4. ... ...
GET    /_/shop/_/admin/regenerate-search/x/events . ttt ttt ... 4444 .4. ... ...
GET    /_/shop/_/admin/snapshots/profiles    . ttt tt2 ... 2222 .2. ... ...
GET    /_/away/_/admin/snapshots/profiles    . ttt ttt ..p 2222 .2p ... ...
GET    /_/shop/_/admin/snapshots             . ttt tt2 ... 2222 .2. ... ...
GET    /_/away/_/admin/snapshots             . ttt ttt ..p 2222 .2p ... ...
POST   /_/shop/_/admin/snapshots             . ttt tt4 ... 444x .4. ... ...  {"profile": "none"}
POST   /_/away/_/admin/snapshots             . ttt ttt ..p 444x .4p ... ...  {"profile": "none"}
POST   /_/shop/_/admin/snapshots/prune       . ttt tt2 ... 222x .2. ... ...  {"dryRun": true}
POST   /_/away/_/admin/snapshots/prune       . ttt ttt ..p 222x .2p ... ...  {"dryRun": true}
GET    /_/shop/_/admin/snapshots/runs        . ttt tt2 ... 2222 .2. ... ...
GET    /_/away/_/admin/snapshots/runs        . ttt ttt ..p 2222 .2p ... ...
GET    /_/shop/_/admin/snapshots/runs/x      . ttt tt4 ... 4444 .4. ... ...
GET    /_/shop/_/admin/snapshots/x           . ttt tt4 ... 4444 .4. ... ...
GET    /_/away/_/admin/snapshots/x           . ttt ttt ..p 4444 .4p ... ...
PUT    /_/shop/_/admin/snapshots/x           . ttt tt4 ... 444x .4. ... ...  {"pinned": true}
DELETE /_/shop/_/admin/snapshots/x           . ttt tt4 ... 444x .4. ... ...
DELETE /_/away/_/admin/snapshots/x           . ttt ttt ..p 444x .4p ... ...
GET    /_/shop/_/admin/snapshots/x/events    . ttt tt4 ... 4444 .4. ... ...
POST   /_/shop/_/admin/snapshots/x/cancel    . ttt tt4 ... 444x .4. ... ...
POST   /_/shop/_/admin/snapshots/x/verify    . ttt tt4 ... 444x .4. ... ...
POST   /_/shop/_/admin/snapshots/x/drill     . ttt tt4 ... 444x .4. ... ...
POST   /_/shop/_/admin/snapshots/x/restore   . ttt tt4 ... 444x .4. ... ...
POST   /_/away/_/admin/snapshots/x/restore   . ttt ttt ..p 444x .4p ... ...
GET    /_/shop/_/admin/snapshots/x/diff      . ttt tt4 ... 4444 .4. ... ...
GET    /_/shop/_/admin/snapshots/x/download  . ttt tt4 ... 4444 .4. ... ...
GET    /_/away/_/admin/snapshots/x/download  . ttt ttt ..p 4444 .4p ... ...
POST   /_/shop/_/admin/snapshots/import      . ttt ttb ... bbbx .b. ... ...  {}
POST   /_/away/_/admin/snapshots/import      . ttt ttt ..p bbbx .bp ... ...  {}
POST   /_/shop/_/admin/backup                . ttt ttt ... bbbx .b. ... ...  {"all": true}
POST   /_/away/_/admin/backup                . ttt ttt ..p bbbx .bp ... ...  {"all": true}
POST   /_/shop/_/admin/backup/restore        . ttt ttt ... bbbx .b. ... ...  {}
POST   /_/away/_/admin/backup/restore        . ttt ttt ..p bbbx .bp ... ...  {}
GET    /_/shop/_/admin/backup/analyze-download . ttt ttt ... 2222 .2. ... ...
GET    /_/shop/_/admin/backup/download?id=x  . ttt ttt ... 4444 .4. ... ...
GET    /_/away/_/admin/backup/download?id=x  . ttt ttt ..p 4444 .4p ... ...
GET    /_/shop/items/_queue                  . ttt ttt .22 2222 .22 ... ...
GET    /_/shop/_/admin/events                . ttt ttt .22 2222 .22 ... ...
GET    /_/away/_/admin/events                . ttt ttt .2p 2222 .2p ... ...
POST   /_/shop/_/admin/access/explain        . ttt ttt .22 222x .22 ... ...  {"principal": {"kind": "anonymous"}, "method": "get", "collection": "items"}
POST   /_/away/_/admin/access/explain        . ttt ttt .2p 222x .2p ... ...  {"principal": {"kind": "anonymous"}, "method": "get", "collection": "items"}
GET    /_/shop/_/collections                 . ttt ttt .22 2222 .22 ... ...
GET    /_/away/_/collections                 . ttt ttt .2p 2222 .2p ... ...

GET    /_/shop/_/jobs                        . ttt ttt .22 2222 .22 ... ...
GET    /_/away/_/jobs                        . ttt ttt .2p 2222 .2p ... ...
GET    /_/shop/_/jobs/none                   . ttt ttt .44 4444 .44 ... ...
GET    /_/shop/_/jobs/none/next              . ttt ttt .44 4444 .44 ... ...
POST   /_/shop/_/jobs/none/suspend           . ttt t4t .4. 444x .4. ... ...
POST   /_/shop/_/jobs/none/resume            . ttt t4t .4. 444x .4. ... ...
POST   /_/shop/_/jobs/none/run               . ttt t4t .4. 444x .4. ... ...
POST   /_/away/_/jobs/none/run               . ttt ttt .4p 444x .4p ... ...
GET    /_/shop/_/jobs/none/runs              . ttt ttt .44 4444 .44 ... ...
GET    /_/shop/_/jobs/none/runs/x            . ttt ttt .44 4444 .44 ... ...
DELETE /_/shop/_/jobs/none/runs/x            . ttt t4t .4. 444x .4. ... ...
GET    /_/shop/_/jobs/none/runs/x/events     . ttt ttt .44 4444 .44 ... ...

GET    /_/shop/_/assets                      . ttt ttt .22 2222 .22 ... ...
GET    /_/away/_/assets                      . ttt ttt .2p 2222 .2p ... ...
GET    /_/shop/_/assets/none/x               4 444 444 444 4444 444 ... ...
GET    /_/away/_/assets/none/x               4 ... ... 44p 4444 44p ... ...

GET    /mcp                                  m mmm mmm mmm mmmm 222 mmm mmm
POST   /mcp                                  m mmm mmm mmm mmmm 222 mmm mmm  {"jsonrpc": "2.0", "id": 1, "method": "ping"}
GET    /_/shop/_/agent                       . ttt ttt .22 2222 .22 ... ...
GET    /_/away/_/agent                       . ... ... .2p 2222 .2p ... ...
GET    /_/shop/_/agent?collection=items      2 222 2.. 222 2222 222 ... ...
GET    /_/away/_/agent?collection=items      2 ... ... 22p 2222 ..p ... ...
GET    /_/shop/_/agent?action=act            2 222 2.. 222 2222 .2. ... ...
GET    /_openapi/shop                        2 222 222 222 2222 222 ... ...
GET    /_openapi/away                        2 ... ... 22p 2222 22p ... ...
GET    /_/shop/_/actions                     2 222 2.. 222 2222 222 ... ...
GET    /_/away/_/actions                     2 ... ... 22p 2222 22p ... ...
GET    /_/shop/_/actions/act                 2 222 2.. 222 2222 .2. ... ...
GET    /_/away/_/actions/act                 2 ... ... 22p 2222 ..p ... ...
POST   /_/shop/_/actions/act                 . .22 2.. ... 222x .2. ... ...  {}
POST   /_/away/_/actions/act                 . ... ... ..p 222x ..p ... ...  {}
GET    /_/shop/_/actions/act/describe        2 222 2.. 222 2222 .2. ... ...
GET    /_/shop/_/actions/act/runs            2 222 2.. 222 2222 .22 ... ...
GET    /_/away/_/actions/act/runs            2 ... ... 22p 2222 .2p ... ...
GET    /_/shop/_/actions/act/runs/x          4 444 4.. 444 4444 .44 ... ...
DELETE /_/shop/_/actions/act/runs/x          4 444 4.. 444 444x .44 ... ...
GET    /_/shop/_/actions/act/runs/x/events   4 444 4.. 444 4444 .44 ... ...

GET    /_/shop/_/collections/items           2 222 2.. 222 2222 222 ... ...
GET    /_/away/_/collections/items           2 ... ... 22p 2222 ..p ... ...
GET    /_/shop/_/collections/items/stats     . ttt ttt .22 2222 .22 ... ...
GET    /_/away/_/collections/items/stats     . ttt ttt .2p 2222 ..p ... ...
GET    /_/shop/items/_count                  2 222 2.. 222 2222 222 ... ...
GET    /_/shop/items/_facet?fields=title     2 222 2.. 222 2222 222 ... ...
GET    /_/away/items/_facet?fields=title     2 ... ... 22p 2222 ..p ... ...
GET    /_/shop/items?aggregate=[]            . ... 2.. ... 2222 22. ... ...
GET    /_/shop/items/_changes                2 222 2.. 222 2222 222 ... ...
GET    /_/shop/items                         2 222 2.. 222 2222 222 ... ...
POST   /_/shop/items                         . .22 2.. ... 222x .2. ... ...  {"title": "N{n}"}
PUT    /_/shop/items?filter[title]=none      . .22 2.. ... 222x .2. ... ...  {"n": 1}
DELETE /_/shop/items?filter[title]=none      . .22 2.. ... 222x .2. ... ...
GET    /_/shop/items/{id}                    2 222 2.. 222 2222 222 ... ...
PUT    /_/shop/items/{id}                    . .22 2.. ... 222x .2. ... ...  {"n": 1}
PATCH  /_/shop/items/{id}                    . .22 2.. ... 222x .2. ... ...  {"n": 1}
DELETE /_/shop/items/{new}                   . .22 2.. ... 222x .2. ... ...
GET    /_/shop/items/{id}/file/x             4 444 444 444 4444 444 ... ...
GET    /_/away/items/{id}/file/x             4 ... ... 44p 4444 44p ... ...
GET    /_/away/items                         2 ... ... 22p 2222 ..p ... ...
GET    /_/away/items/{id}                    4 ... ... 44p 4444 ..p ... ...
PUT    /_/away/items/{id}                    . ... ... ..p 444x ..p ... ...  {"n": 1}
DELETE /_/away/items/{id}                    . ... ... ..p 444x ..p ... ...
`

// Every route on both stores with every kind of caller.
func TestDoorMatrix(t *testing.T) {
	t.Run("embedded", func(t *testing.T) { newDoors(t, "", nil).check() })
	t.Run("mongodb", func(t *testing.T) { newDoors(t, emptyMongo(t, "svc_shop", "svc_away"), nil).check() })
}

// A route that the matrix says nothing about, or a row for what is no route, is a mistake.
func TestDoorMatrixHasEveryRoute(t *testing.T) {
	missing := map[string]bool{}
	for _, rt := range httpapi.Routes() {
		missing[rt.Method+" "+rt.Pattern] = true
	}
	for _, row := range doorRows(t) {
		delete(missing, row.route.Method+" "+row.route.Pattern)
	}
	for rt := range missing {
		t.Errorf("doorTable has no row for %s", rt)
	}
}

// doorRow is one row of doorTable.
type doorRow struct {
	method, path, cells, body string
	route                     httpapi.Route
}

func doorRows(t *testing.T) []doorRow {
	t.Helper()
	const groups = 8
	var rows []doorRow
	for line := range strings.Lines(doorTable) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		row := doorRow{
			method: f[0], path: "/api/v1" + f[1], cells: strings.Join(f[2:2+groups], ""), body: strings.Join(f[2+groups:], " "),
		}
		if len(row.cells) != len(doorColumns) {
			t.Fatalf("%s has %d cells for %d callers", line, len(row.cells), len(doorColumns))
		}
		path, _, _ := strings.Cut(row.path, "?")
		best := 99
		for _, rt := range httpapi.Routes() { // the one with the fewest placeholders is the one that serves it
			pattern := "^" + regexp.MustCompile(`\\\{[a-z]+\\\}|\\\*$`).ReplaceAllString(regexp.QuoteMeta(rt.Pattern), "[^/]+") + "$"
			if n := strings.Count(rt.Pattern, "{"); rt.Method == row.method && n < best && regexp.MustCompile(pattern).MatchString(path) {
				row.route, best = rt, n
			}
		}
		if best == 99 {
			t.Fatalf("%s %s is no route", row.method, row.path)
		}
		rows = append(rows, row)
	}
	return rows
}

// doors is a service with somebody of each kind, and two organizations.
type doors struct {
	*service

	callers map[string]option
	ids     map[string]string // by placeholder
	owners  map[string]string // sessions of those who have personal access tokens
	secrets []string          // all that was given to a caller to show
	n       int
}

const doorActions = `
actions:
  - name: act
    hooks: {handle: {type: javascript, file: act.js}}
    permissions:
      public: {methods: {get: true}}
      user: {methods: {get: true}}
`

const doorCollections = `
collections:
  - name: items
    fields: [{name: title, type: string}, {name: n, type: number}]
    search: [{name: main, mode: text}]
    permissions:
      public: {methods: {get: true}}
      user: {methods: {get: true}}
`

// doorKey signs the sessions.
const doorKey = "canary-signing-key-of-32-bytes-and-more-9Zx"

// doorSecret is a token that the config takes from the environment.
const doorSecret = "canary-environment-token-4Kd"

const doorConfig = `
namespace: shop
admin: {tokens: [{value: door-collections, rights: [collections]}, {value: door-reload, rights: [reload]}, {value: door-snapshot, rights: [snapshot]}]}` + doorActions + `
      "token:door-reads": {methods: {get: true}}
      "token:door-writes": {methods: {get: true, post: true}}
` + doorCollections + `
      "token:${env:DOOR_TOKEN}": {methods: {get: true}}
      "token:door-reads": {methods: {get: true}}
      "token:door-writes": {methods: {get: true, post: true, put: {bulk: true}, delete: {bulk: true}}}
`

// newDoors starts a service on a store; "" is an embedded one.
func newDoors(t *testing.T, uri string, change func(*app.Config)) *doors {
	t.Helper()
	var ahead atomic.Int64 // of the clock
	s := run(t, func(c *app.Config) {
		c.StoreURI = uri
		c.Env = func(name string) (string, bool) { return doorSecret, name == "DOOR_TOKEN" }
		if change != nil {
			change(c)
		}
		c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	d := &doors{service: s, ids: map[string]string{}, owners: map[string]string{}}
	ahead.Store(int64(-24 * time.Hour))
	_, expired := s.user("expired", map[string]any{"isAdmin": true})
	s.user("owner", map[string]any{"isAdmin": true})
	_, patExpired := d.pat("owner", map[string]any{"expiresAt": time.Now().Add(-23 * time.Hour)})
	ahead.Store(0)
	clear(d.owners)

	for _, suffix := range []string{"", "2"} {
		d.ids["org"+suffix] = d.made("org", map[string]any{"name": "Org" + suffix})
		d.ids["team"+suffix] = d.made("team", map[string]any{"name": "Team" + suffix, "orgId": d.ids["org"+suffix]})
		d.ids["user"+suffix], _ = s.user("target"+suffix, map[string]any{"orgIds": []string{d.ids["org"+suffix]}})
	}
	for _, name := range []string{"shop", "away"} {
		s.file(name, "act.js", "module.exports = (ctx) => ({by: ctx.user && ctx.user.name})")
	}
	d.ids["project"] = s.register("shop", doorConfig)
	d.ids["project2"] = s.register("away", "namespace: away"+doorActions+doorCollections)
	for suffix := range map[string]bool{"": true, "2": true} {
		s.do("PUT", "/api/v1/project/"+d.ids["project"+suffix], admin, json1(map[string]any{"orgId": d.ids["org"+suffix]})).want(t, http.StatusOK)
	}
	d.ids["id"] = s.item(`{"title": "A", "n": 1}`)

	manages := []string{"project.read", "user.read", "user.create", "user.update", "user.delete", "org.read", "team.read", "namespace.shop.items.read"}
	s.user("door-login", nil)
	s.user("user", nil)
	s.user("reader", map[string]any{"scopes": []string{"project.read", "project.reload", "user.read", "org.read", "team.read"}})
	s.user("manager", map[string]any{
		"scopes": manages,
		"orgIds": []string{d.ids["org"]},
	})
	s.user("boss", map[string]any{"isAdmin": true})
	s.user("browser", map[string]any{"isAdmin": true})
	_, revoked := s.user("revoked", map[string]any{"isAdmin": true})
	s.do("POST", "/api/v1/logout", session(revoked)).want(t, http.StatusNoContent)
	id, inactive := s.user("inactive", map[string]any{"isAdmin": true})
	_, patInactive := d.pat("inactive", nil)
	s.do("PUT", "/api/v1/user/"+id, admin, text(`{"active": false}`)).want(t, http.StatusOK)
	d.user("manager2", map[string]any{"scopes": manages, "orgIds": []string{d.ids["org"]}})
	gone, patRevoked := d.pat("owner", nil)
	s.do("DELETE", "/api/v1/token/"+gone, session(s.login("owner"))).want(t, http.StatusOK)
	d.ids["token"], _ = d.pat("owner", nil)
	_, patReads := d.pat("owner", map[string]any{"scopes": []string{"namespace.shop.items.read"}})
	_, patWrites := d.pat("owner", map[string]any{"scopes": append(api.Scopes(), "namespace.shop")})
	_, patManager := d.pat("manager2", map[string]any{"scopes": manages})
	d.callers = map[string]option{
		"patReads": session(patReads), "patWrites": header("Authorization", "Bearer "+patWrites), "patManager": session(patManager),
		"patExpired": session(patExpired), "patRevoked": session(patRevoked), "patInactive": session(patInactive),
		"none": noop, "reads": token("door-reads"), "writes": token("door-writes"), "query": query("token=door-writes"),
		"collections": token("door-collections"), "reload": token("door-reload"), "snapshot": token("door-snapshot"), "root": admin,
		"expired": session(expired), "revoked": session(revoked), "inactive": session(inactive),
	}
	d.logIn("user", "reader", "manager", "boss", "cookie")
	return d
}

// logIn gives callers a new session.
func (d *doors) logIn(names ...string) {
	d.t.Helper()
	for _, name := range names {
		switch name {
		case "user", "reader", "manager", "boss":
			jwt := d.login(name)
			d.secrets = append(d.secrets, jwt)
			d.callers[name] = session(jwt)
		case "cookie":
			cookie := byCookie(d.login("browser"))
			d.callers["cookie"] = options(cookie, header("Sec-Fetch-Site", "same-origin"))
			d.callers["crossSite"] = options(cookie, header("Sec-Fetch-Site", "cross-site"))
		}
	}
}

// made makes something of a system model and gives its id.
func (d *doors) made(model string, body map[string]any) string {
	d.t.Helper()
	res := d.do("POST", "/api/v1/"+model, admin, json1(body))
	res.want(d.t, http.StatusCreated)
	return res.field("id")
}

// pat makes a personal access token of a user and gives its id and value; without scopes it has project.read.
func (d *doors) pat(owner string, more map[string]any) (id, value string) {
	d.t.Helper()
	body := map[string]any{"name": "pat", "scopes": []string{"project.read"}}
	maps.Copy(body, more)
	if d.owners[owner] == "" {
		d.owners[owner] = d.login(owner)
	}
	res := d.do("POST", "/api/v1/token", session(d.owners[owner]), json1(body))
	res.want(d.t, http.StatusCreated)
	d.secrets = append(d.secrets, res.field("token"))
	return res.field("id"), res.field("token")
}

// toDelete makes what a row is to delete, and gives its id.
func (d *doors) toDelete(path string) string {
	d.t.Helper()
	name := fmt.Sprintf("gone%d", d.n)
	switch {
	case strings.Contains(path, "/user/"):
		return d.made("user", map[string]any{"username": name, "password": password, "orgIds": []string{d.ids["org"]}})
	case strings.Contains(path, "/token/"):
		id, _ := d.pat("owner", nil)
		return id
	case strings.Contains(path, "/org/"):
		return d.made("org", map[string]any{"name": name})
	case strings.Contains(path, "/team/"):
		return d.made("team", map[string]any{"name": name, "orgId": d.ids["org"]})
	case strings.Contains(path, "/project/"):
		return d.register(name, "namespace: "+name+doorCollections)
	}
	return d.item(`{"title": "gone"}`)
}

// check goes through the matrix.
func (d *doors) check() {
	for _, row := range doorRows(d.t) {
		for i, caller := range doorColumns {
			if want := row.cells[i]; want != '_' {
				d.cell(row, caller, want)
			}
		}
	}
}

// cell sends one request and holds the answer against its cell.
func (d *doors) cell(row doorRow, caller string, want byte) {
	d.t.Helper()
	d.n++
	if strings.Contains(row.path, "{new}") {
		d.ids["new"] = d.toDelete(row.path)
	}
	if row.route.Method+row.route.Pattern == "POST/api/v1/project" && want == '2' {
		d.configure(fmt.Sprintf("made%d", d.n), fmt.Sprintf("namespace: made%d%s", d.n, doorCollections))
	}
	fill := strings.NewReplacer("{password}", password, "{n}", strconv.Itoa(d.n))
	for name, id := range d.ids {
		row.path, row.body = strings.ReplaceAll(row.path, "{"+name+"}", id), strings.ReplaceAll(row.body, "{"+name+"}", id)
	}
	path, params, _ := strings.Cut(row.path, "?")
	show := []option{query(params), d.callers[caller]}
	if row.method == "PATCH" {
		show = append(show, header("Content-Type", "application/merge-patch+json"))
	}
	if row.body != "" {
		show = append(show, text(fill.Replace(row.body)))
	}
	got := d.do(row.method, path, show...)
	if kind := doorCell(got, row.route.Right); kind != want {
		d.t.Errorf("%-6s %s by %s: %c, want %c: %s", row.method, row.path, caller, kind, want, got)
	}
	if strings.HasSuffix(row.path, "/logout") || strings.HasSuffix(row.path, "/me/password") {
		d.logIn(caller)
	}
}

// doorCell is the cell that an answer fits.
func doorCell(a answer, right string) byte {
	right = strings.TrimPrefix(right, "project ")
	if right == "described" { // of the project as a whole
		right = "project.read"
	}
	for cell, text := range map[byte]string{
		'.': denied, 't': denied + ": admin token lacks permission " + right, '4': notFound, 'p': noProject,
		'x': "403 cross_origin: another site may not write with this one's session cookie; send the token in X-Auth-Token",
	} {
		if a.String() == text {
			return cell
		}
	}
	switch {
	case a.status/100 == 2:
		return '2'
	case a.status == http.StatusForbidden && strings.HasPrefix(a.body, `{"jsonrpc":"2.0","id":`) && strings.Contains(a.body, `"message":"a personal access token is required: `):
		return 'm'
	case a.status == http.StatusUnsupportedMediaType, strings.HasPrefix(a.String(), "400 unexpected_body: "):
		return 'b'
	case strings.HasPrefix(a.String(), "404 snapshot_not_found: "), strings.HasPrefix(a.String(), "404 profile_not_found: "):
		return '4'
	case strings.HasPrefix(a.String(), "404 job_not_found: "), strings.HasPrefix(a.String(), "404 run_not_found: "), strings.HasPrefix(a.String(), "404 generation_not_found: "):
		return '4'
	}
	return '?'
}
