package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/api"
)

const backups = "/api/v1/_/media/_/admin/backup"

// A backup is a snapshot of everything, which is told of before, downloaded, and imported elsewhere.
func TestBackups(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		var before, after api.BackupAnalysis
		unmarshal(t, s.do("GET", backups+"/analyze-download", admin).body, &before)
		if before.ID != "" || before.Documents != 12 || before.MediaFiles != 3 || before.MediaBytes != 18 || len(before.Collections) != 2 || before.ConsistentAt.IsZero() {
			t.Errorf("%+v", before)
		}
		if got := s.snapshotFiles("media"); len(got) != 0 {
			t.Errorf("to look at it has made %q", got)
		}
		run := s.run("POST", backups, ``)
		id := resultOf(t, run).Snapshot
		if run.Kind != "backup" || run.Name != "backup" || run.Subject != id || s.snapshot(id).Profile != "backup" {
			t.Errorf("%+v", run)
		}
		unmarshal(t, s.do("GET", backups+"/analyze-download?id="+id, admin).body, &after)
		if after.ID != id || after.Documents != before.Documents || after.MediaFiles != before.MediaFiles || after.MediaBytes != before.MediaBytes || after.Files != before.Files {
			t.Errorf("%+v, was to be like %+v", after, before)
		}
		got := s.do("GET", backups+"/download?id="+id, admin)
		got.want(t, http.StatusOK)
		if is := got.header.Get("Content-Disposition"); is != `attachment; filename="media-backup-`+id+`.tar.zst"` {
			t.Error(is)
		}
		files := len(s.snapshotFiles("media"))
		if after.Files != int64(files-1) { // without the state: there is none
			if after.Files != int64(files) {
				t.Errorf("%d files, and the analysis says %d", files, after.Files)
			}
		}

		// One that is made for the download does not stay.
		head := s.do("HEAD", backups+"/download", admin)
		if head.status != http.StatusOK || strings.Count(s.do("GET", snaps, admin).body, `"profile":"backup"`) != 1 {
			t.Errorf("HEAD: %+v", head)
		}
		fresh := s.do("GET", backups+"/download", admin)
		fresh.want(t, http.StatusOK)
		eventually(t, func() string {
			if got := s.snapshotFiles("media"); len(got) != files {
				return strings.Join(got, " ")
			}
			return ""
		})
		for namespace, body := range map[string]string{"one": got.body, "two": fresh.body} {
			s.register(namespace, strings.Replace(snapshotsConfig, "namespace: media", "namespace: "+namespace, 1))
			s.do("POST", "/api/v1/_/"+namespace+"/_/admin/snapshots/import", admin, archived(body)).contains(t, http.StatusCreated, `"profile":"backup"`, `"documents":12`)
		}

		daily := s.take("daily").ID
		for path, want := range map[string]string{
			"/download?id=" + daily:         "404 snapshot_not_found: *", // it is none
			"/download?id=none":             "404 snapshot_not_found: *",
			"/analyze-download?id=" + daily: "404 snapshot_not_found: *",
			"/download?ids=none":            "400 unknown_parameter: *",
		} {
			if got := s.do("GET", backups+path, admin).String(); !strings.HasPrefix(got, strings.TrimSuffix(want, "*")) {
				t.Errorf("%s: %s", path, got)
			}
		}
		for _, name := range []string{"dryRun", "into", "mode", "media"} { // as a shell sends a variable that is not set
			got := s.do("POST", backups+"/restore?"+name+"=", admin, archived("")).String()
			if want := "400 bad_parameter: " + name + " is empty: "; !strings.HasPrefix(got, want) {
				t.Errorf("%s, want %s", got, want)
			}
		}
		if got := s.do("POST", backups, admin, text(`{"collections": []}`)).String(); !strings.HasPrefix(got, "400 unexpected_body: ") {
			t.Error(got)
		}
	})
}

// An archive whose backup is there, and damaged, is not what is restored: it is told so, and what to do has the archive restored.
func TestBackupDamagedHere(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		id := resultOf(t, s.run("POST", backups, ``)).Snapshot
		archive := s.download(id, admin)
		files, err := filepath.Glob(filepath.Join(s.dir, "media", "snapshots", "backup", id, "collections", "open.*"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		if err := os.WriteFile(files[0], []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
		restores := func() (run api.Run) {
			begun := s.do("POST", backups+"/restore", admin, archived(archive))
			begun.want(t, http.StatusAccepted)
			unmarshal(t, s.ended(begun.header.Get("Location"), admin), &run)
			return run
		}
		if e := restores().Error; e == nil || e.Code != "snapshot_damaged" || !strings.HasSuffix(e.Message, "; that is the snapshot "+id+", which the project has already: to restore what the archive has, delete it, and send the archive again") {
			t.Fatalf("%+v", e)
		}
		checked := s.do("POST", snaps+"/"+id+"/verify", admin, text(`{}`))
		checked.want(t, http.StatusAccepted)
		s.ended(checked.header.Get("Location"), admin)
		s.do("POST", snaps+"/import", admin, archived(archive)).contains(t, http.StatusConflict, "the project has the snapshot "+id+" already: it is damaged: delete it")
		s.do("DELETE", snaps+"/"+id, admin).want(t, http.StatusNoContent)
		if run := restores(); run.Status != api.RunSucceeded {
			t.Errorf("%+v", run.Error)
		}
	})
}
