package app_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/app"
)

const scheduledConfig = `
namespace: media
snapshots:
  - name: auto
    enabled: true
    schedule: every 1s
    retention: {keepLast: 2}
    verify: {schedule: every 1s}
    drill: {schedule: every 2s}
collections:
  - name: open
    fields: [{name: n, type: number}, {name: file, type: file}]
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
`

// What a profile says is done by itself: as runs that the API lists and shows, told by conditions and metrics.
func TestScheduledSnapshots(t *testing.T) {
	onMediaWith(t, scheduledConfig, func(t *testing.T, s mediaService) {
		for range 3 {
			s.do("POST", "/api/v1/_/media/open", admin, form(part{name: "data", content: `{"n": 1}`}, part{name: "file", file: "a.txt", content: "a"})).want(t, http.StatusCreated)
		}
		conditions := "/api/v1/project/" + s.projectID() + "/status"
		want := []string{`{"type":"SnapshotsScheduled","status":"True","reason":"Scheduled"`, `{"type":"SnapshotsVerified","status":"True","reason":"Verified"`}
		eventually(t, func() string {
			body := s.do("GET", conditions, admin).body
			for _, c := range want {
				if !strings.Contains(strings.ReplaceAll(body, ": ", ":"), c) {
					return body
				}
			}
			return ""
		})
		eventually(t, func() string {
			var runs api.List[api.Run]
			got := s.do("GET", snaps+"/runs", admin)
			unmarshal(t, got.body, &runs)
			seen := map[string]bool{}
			for _, run := range runs.Items {
				if run.Trigger != "schedule" || run.Name != "auto" || run.Slot.IsZero() {
					t.Fatalf("%+v", run)
				}
				if run.Status == "succeeded" {
					seen[run.Kind] = true
				}
			}
			for _, kind := range []string{"snapshot", "verify", "drill", "prune"} {
				if !seen[kind] {
					return "no run of kind " + kind + " has succeeded: " + got.body
				}
			}
			return ""
		})
		metrics := s.do("GET", "/metrics", admin).body
		for _, name := range []string{"svc_snapshots", "svc_snapshot_bytes", "svc_snapshot_last_success_timestamp_seconds", "svc_snapshot_last_verified_timestamp_seconds"} {
			if !regexp.MustCompile(`(?m)^` + name + `\{namespace="media",profile="auto"\} [1-9]`).MatchString(metrics) {
				t.Errorf("there is no %s", name)
			}
		}
		if !strings.Contains(metrics, `svc_snapshots_damaged{namespace="media",profile="auto"} 0`) {
			t.Error("snapshots are damaged")
		}
	})
}

// Two instances with one MongoDB and one folder take one snapshot at each time, which both of them know.
func TestScheduledSnapshotsOfInstances(t *testing.T) {
	uri := emptyMongo(t, "svc_media")
	one := run(t, func(c *app.Config) { c.StoreURI = uri })
	two := run(t, func(c *app.Config) { c.StoreURI, c.ProjectsDir = uri, one.dir })
	one.register("media", strings.Replace(scheduledConfig, "keepLast: 2", "keepLast: 100", 1))
	var runs api.List[api.Run]
	eventually(t, func() string {
		got := two.do("GET", snaps+"/runs", admin)
		if got.status != http.StatusOK {
			return got.String()
		}
		unmarshal(t, got.body, &runs)
		n := 0
		for _, run := range runs.Items {
			if run.Kind == "snapshot" && run.Status == "succeeded" {
				n++
			}
		}
		if n < 5 {
			return got.body
		}
		return ""
	})
	slots := map[string]bool{}
	for _, run := range runs.Items {
		slot := run.Kind + " " + run.Slot.String()
		if slots[slot] || run.Status == "failed" || run.Status == "lost" {
			t.Errorf("%s: %+v", slot, run)
		}
		slots[slot] = true
	}
	for _, s := range []*service{one, two} {
		var list api.List[api.Snapshot]
		unmarshal(t, s.do("GET", snaps, admin).body, &list)
		if len(list.Items) < 5 {
			t.Errorf("an instance knows of %d snapshots", len(list.Items))
		}
	}
}
