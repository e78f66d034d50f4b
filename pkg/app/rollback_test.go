package app_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/svcctl/svc/pkg/api"
)

// TestRollbackByHTTP lists what a project was served from, and serves it again.
func TestRollbackByHTTP(t *testing.T) {
	t.Parallel()
	s := run(t, nil)
	s.register("notes", auditConfig)
	const base = "/api/v1/_/notes/_/admin/"
	s.file("notes", "project.yaml", auditConfig+"# another\n")
	s.do("POST", base+"reload?wait=true", admin).want(t, http.StatusOK)

	for body, code := range map[string]int{
		`{}`: 400, `{"generation": "1"}`: 400, `{"generation": 0}`: 400, `{"generation": 1.5}`: 400, `{"generation": 1, "force": true}`: 400,
		`[]`: 400, ``: 400, `{"generation": 3}`: 404,
	} {
		s.do("POST", base+"rollback", admin, text(body)).want(t, code)
	}
	s.do("POST", base+"rollback?wait=true", admin, text(`{"generation": 1}`)).want(t, http.StatusBadRequest)
	s.do("POST", base+"rollback", admin, text(`{"generation": 1}`)).want(t, http.StatusOK)
	res := s.do("GET", base+"generations", admin)
	res.want(t, http.StatusOK)
	if got := res.header.Get(api.HeaderGeneration); got != "3" {
		t.Errorf("generation %s answers", got)
	}
	var list api.List[api.Generation]
	if err := json.Unmarshal([]byte(res.body), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 3 {
		t.Fatal(res.body)
	}
	latest, second, first := list.Items[0], list.Items[1], list.Items[2]
	if latest.Number != 3 || latest.RollbackOf != 1 || !latest.Current || latest.By.Kind != "admin" || latest.Revision != first.Revision {
		t.Errorf("the latest: %+v", latest)
	}
	if second.Number != 2 || second.Current || second.RollbackOf != 0 || second.Revision == first.Revision || first.Files != 1 || !first.Kept {
		t.Errorf("those before: %+v, %+v", second, first)
	}
}
