package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/app"
)

// An instance whose files are older than those that another one serves is not ready, and says why, until they have come. What it
// serves it goes on serving.
func TestAnInstanceThatIsBehindIsNotReady(t *testing.T) {
	uri := emptyMongo(t, "svc_shop")
	one := run(t, func(c *app.Config) { c.StoreURI, c.Resync = uri, time.Hour })
	one.register("shop", shopConfig)
	two := run(t, func(c *app.Config) {
		c.StoreURI, c.Resync = uri, time.Hour
		copied := &service{t: t, dir: c.ProjectsDir}
		copied.configure("shop", shopConfig)
	})
	const reload, conditions = "/api/v1/_/shop/_/admin/reload?wait=true", "/api/v1/project/"
	state := func(s *service) string {
		res := s.do("GET", "/readyz", header("X-Forwarded-For", "203.0.113.9"))
		return res.String() + " " + s.do("GET", "/api/v1/_/shop/items").header.Get("X-Svc-Generation") + " " + res.body
	}
	wants := func(s *service, want ...string) {
		t.Helper()
		eventually(t, func() string {
			got := state(s)
			for _, text := range want {
				if !strings.Contains(got, text) {
					return "got " + got + ", want " + text
				}
			}
			return ""
		})
	}
	wants(two, "200 1 ")
	newer := shopConfig + "# newer\n"
	one.configure("shop", newer)
	one.do("POST", reload, admin).want(t, http.StatusOK)
	wants(one, "200 2 ")
	wants(two, "503 1 ", "1 of the projects are behind")
	if strings.Contains(state(two), "shop") {
		t.Error("everybody is told the names of projects")
	}
	two.do("GET", "/readyz").contains(t, http.StatusServiceUnavailable, "1 of the projects are behind [shop]: ", `{"name":"store","status":"ok"}`)
	if got := two.do("GET", conditions+one.projectID()+"/status", admin); !strings.Contains(got.body, `"Behind"`) || !strings.Contains(got.body, "generation 2") {
		t.Errorf("the conditions: %s", got.body)
	}
	two.configure("shop", newer)
	two.do("POST", reload, admin).want(t, http.StatusOK)
	wants(two, "200 2 ")
	wants(one, "200 2 ")
}
