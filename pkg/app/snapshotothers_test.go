package app_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSnapshotsOfOthersUnnamed: who sees the snapshots of one profile is not told the ids of others, wherever these help to say what is wrong; who sees all is.
func TestSnapshotsOfOthersUnnamed(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		_, backs := s.user("backs", map[string]any{"scopes": []string{"project.backup"}})
		daily := s.take("daily").ID
		backup := resultOf(t, s.run("POST", "/api/v1/_/media/_/admin/backup", ``)).Snapshot
		damaged, spoilt := 0, ""
		err := filepath.WalkDir(filepath.Join(s.dir, "media", "snapshots", "daily", daily, "media"), func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || damaged > 0 {
				return err
			}
			damaged++
			spoilt = e.Name()
			return os.WriteFile(name, []byte("FILE 0"), 0o600) // in place: all that are links to it have it
		})
		if err != nil || damaged != 1 {
			t.Fatal(err, damaged)
		}
		checked := s.do("POST", snaps+"/"+daily+"/verify", admin, text(`{}`))
		checked.want(t, http.StatusAccepted)
		s.ended(checked.header.Get("Location"), admin)

		const why = "it is the same file as in "
		for _, path := range []string{"/" + backup, "", "/profiles"} {
			if got := s.do("GET", snaps+path, admin).body; !strings.Contains(got, why+daily+", where") {
				t.Errorf("%s as an administrator: %s", path, got)
			}
			if got := s.do("GET", snaps+path, session(backs)).body; !strings.Contains(got, why+"another snapshot, where") || strings.Contains(got, daily) || !strings.Contains(got, `"id":"`+backup+`"`) {
				t.Errorf("%s as one who sees backups: %s", path, got)
			}
		}
		s.do("DELETE", snaps+"/"+backup, admin).want(t, http.StatusNoContent) // it has them, too, and of two of one second either may be named
		for _, name := range s.uploaded() {                                   // those that daily has whole are lost
			content, err := os.ReadFile(name)
			if err == nil && fmt.Sprintf("%x", sha256.Sum256(content)) != spoilt && strings.HasPrefix(string(content), "file") {
				err = os.Remove(name)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		made := s.do("POST", "/api/v1/_/media/_/admin/backup", session(backs))
		made.want(t, http.StatusAccepted)
		at := made.header.Get("Location")
		s.ended(at, session(backs))
		events := strings.Replace(at, "/runs/", "/", 1) + "/events"
		if got := s.do("GET", events, admin).body; !strings.Contains(got, "; "+daily+" has it whole") {
			t.Errorf("events as an administrator: %s", got)
		}
		if got := s.do("GET", events, session(backs)).body; !strings.Contains(got, "; another snapshot has it whole") || strings.Contains(got, daily) {
			t.Errorf("events as one who sees backups: %s", got)
		}
		for _, path := range []string{at, snaps + "/runs"} {
			if got := s.do("GET", path, session(backs)).body; strings.Contains(got, daily) {
				t.Errorf("%s: %s", path, got)
			}
		}
	})
}
