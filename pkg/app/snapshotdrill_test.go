package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A snapshot is restored on trial by hand: nothing that is served changes, its run tells how far it is, and what is damaged fails.
func TestSnapshotDrill(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		id := s.take("daily").ID
		s.change()
		before := s.contentsOf("media")
		run := s.run("POST", snaps+"/"+id+"/drill", ``)
		if d := resultOf(t, run).Drill; run.Kind != "drill" || run.Subject != id || d == nil || d.Documents != 12 || d.Files != 3 {
			t.Errorf("%+v %+v", run, resultOf(t, run))
		}
		if got := s.contentsOf("media"); got != before {
			t.Error("a drill has changed something")
		}
		events := s.do("GET", snaps+"/"+run.ID+"/events", admin).body
		for _, phase := range []string{"verify", "load"} {
			if !strings.Contains(events, `"phase":"`+phase+`"`) {
				t.Errorf("no %s in %s", phase, events)
			}
		}
		s.do("GET", `/api/v1/audit?filter={"op":"drill"}`, admin).contains(t, http.StatusOK, `"recordId":"`+id+`"`, `"run":"`+run.ID+`"`)
		_, ann := s.user("ann", map[string]any{"isAdmin": false})
		for path, want := range map[string]struct {
			as   option
			want string
		}{
			snaps + "/none/drill":        {admin, "404 snapshot_not_found"},
			snaps + "/" + id + "/drill":  {session(ann), "403 permission_denied"},
			snaps + "/" + id + "/drill ": {admin, "404"},
		} {
			if got := s.do("POST", strings.ReplaceAll(path, " ", "%20"), want.as).String(); !strings.HasPrefix(got, want.want) {
				t.Errorf("%s: %s, want %s", path, got, want.want)
			}
		}
		name := filepath.Join(s.dir, "media", "snapshots", "daily", id, "collections", "other.jsonl.zst")
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		failed, _ := s.restored(snaps+"/"+id+"/drill", ``)
		if failed.Status != "failed" || failed.Error.Code != "drill_differs" {
			t.Errorf("%+v", failed.Error)
		}
		if d := resultOf(t, failed).Drill; d == nil || d.Problems != 1 || len(d.Found) != 1 || d.Found[0].Path != "collections/other.jsonl.zst" || d.Documents != 6 {
			t.Errorf("it has found %+v", d)
		}
	})
}
