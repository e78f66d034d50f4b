package app_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/app"
)

// What is registered, moved to another org, switched off or unregistered on one instance is so on the other one, long
// before that looks at all registrations again.
func TestRegistrationsReachOtherInstances(t *testing.T) {
	uri := emptyMongo(t, "svc_shop")
	one := run(t, func(c *app.Config) { c.StoreURI, c.Resync = uri, time.Hour })
	two := run(t, func(c *app.Config) { c.StoreURI, c.Resync, c.ProjectsDir = uri, time.Hour, one.dir })
	var orgs, members []string
	for _, name := range []string{"acme", "beta"} {
		org := one.do("POST", "/api/v1/org", admin, json1(map[string]any{"name": name})).field("id")
		_, member := one.user(name, map[string]any{"orgIds": []string{org}, "scopes": []string{"project.read"}})
		orgs, members = append(orgs, org), append(members, member)
	}
	const here, gone = "200", noProject
	settle := func(what, acme, beta string) {
		t.Helper()
		eventually(t, func() string {
			for i, want := range []string{acme, beta} {
				for _, path := range []string{"items", "_/collections"} {
					if got := two.do("GET", "/api/v1/_/shop/"+path, session(members[i])).String(); got != want {
						return what + ": " + got + ", want " + want
					}
				}
			}
			return ""
		})
	}
	put := func(body map[string]any) {
		t.Helper()
		one.do("PUT", "/api/v1/project/"+one.projectID(), admin, json1(body)).want(t, http.StatusOK)
	}
	settle("before", gone, gone)
	one.register("shop", shopConfig)
	settle("of no org", gone, gone)
	put(map[string]any{"orgId": orgs[0]})
	settle("acme's", here, gone)
	put(map[string]any{"orgId": orgs[1]})
	settle("beta's", gone, here)
	put(map[string]any{"enabled": false})
	settle("disabled", gone, gone)
	put(map[string]any{"enabled": true})
	settle("enabled", gone, here)
	one.do("DELETE", "/api/v1/project/"+one.projectID(), admin).want(t, http.StatusOK)
	settle("unregistered", gone, gone)
}
