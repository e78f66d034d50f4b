package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// TestEventsByHTTP follows what the service does with a project, from the registration to a job that fails.
func TestEventsByHTTP(t *testing.T) {
	t.Parallel()
	s := runPlant(t, nil)
	c, err := client.New(client.Options{Server: s.url, AdminToken: adminToken})
	if err != nil {
		t.Fatal(err)
	}
	// follow reads until there was an event of each reason, and gives the last of them.
	follow := func(after int64, reasons ...string) (last api.ProjectEvent) {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), patience)
		defer stop()
		missing := map[string]bool{}
		for _, r := range reasons {
			missing[r] = true
		}
		errFound := errors.New("found")
		err := c.FollowProjectEvents(ctx, "plant", after, func(e api.ProjectEvent) error {
			if e.ID <= after || e.Count < 1 || e.LastSeen.IsZero() {
				t.Errorf("%+v behind %d", e, after)
			}
			last = e
			if delete(missing, e.Reason); len(missing) == 0 {
				return errFound
			}
			return nil
		})
		if !errors.Is(err, errFound) {
			t.Fatalf("%v, without %v", err, missing)
		}
		return last
	}
	first := follow(0, "Enabled", "Serving", "Converged", "Scheduled")
	s.do("POST", plantJobs+"/broken/run?wait=true", admin).want(t, http.StatusOK)
	failed := follow(first.ID, "JobFailed")
	if failed.Type != "Warning" || failed.Object != "job/broken" || failed.Message == "" || failed.Count != 1 {
		t.Errorf("%+v", failed)
	}
	s.do("POST", plantJobs+"/broken/run?wait=true", admin).want(t, http.StatusOK)
	if again := follow(failed.ID, "JobFailed"); again.Count != 2 || again.Message != failed.Message || !again.FirstSeen.Equal(failed.FirstSeen.Time) {
		t.Errorf("%+v", again)
	}

	const path = "/api/v1/_/plant/_/admin/events"
	res := s.do("GET", path, admin)
	var list api.List[api.ProjectEvent]
	if err := json.Unmarshal([]byte(res.body), &list); err != nil || len(list.Items) < 5 || list.Items[0].Reason != "JobFailed" {
		t.Errorf("%v: %s", err, res.body)
	}
	s.do("HEAD", path+"?watch=true", admin).want(t, http.StatusOK) // and does not wait
	s.do("GET", path+"?watch=maybe", admin).want(t, http.StatusBadRequest)
	s.do("GET", path+"?follow=true", admin).want(t, http.StatusBadRequest)
	s.do("GET", path, admin, header(api.HeaderLastEventID, "x")).want(t, http.StatusBadRequest)

	gone, token := s.user("gone", map[string]any{"scopes": []string{"project.read"}})
	ended := s.follow(path+"?watch=true", session(token))
	s.do("PUT", "/api/v1/user/"+gone, admin, text(`{"active": false}`)).want(t, http.StatusOK)
	over(t, "a deactivated user", ended)
	if strings.Contains(res.body, "canary") {
		t.Error("a secret is in the events")
	}
}
