package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/app"
)

// restored starts a restore into a project, and gives it when it has ended.
func (s mediaService) restored(path, body string) (api.Run, api.SnapshotResult) {
	s.t.Helper()
	begun := s.do("POST", path, admin, text(body))
	begun.want(s.t, http.StatusAccepted)
	var run api.Run
	unmarshal(s.t, s.ended(begun.header.Get("Location"), admin), &run)
	var result api.SnapshotResult
	if len(run.Result) > 0 {
		result = resultOf(s.t, run)
	}
	return run, result
}

// left lists what is in the directory of projects, and the registrations.
func (s mediaService) left() (dirs, registered []string) {
	s.t.Helper()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		dirs = append(dirs, e.Name())
	}
	var list api.List[api.Project]
	unmarshal(s.t, s.do("GET", "/api/v1/project?sort=namespace", admin).body, &list)
	for _, p := range list.Items {
		registered = append(registered, p.Namespace)
	}
	return dirs, registered
}

// A snapshot is restored into a project that is made for it: with records, files and config, and nobody's rights.
func TestRestoreMakesProject(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		before := s.contentsOf("media")
		id := s.take("daily").ID
		s.change()

		run, dry := s.restored(snaps+"/"+id+"/restore", `{"into": "copy", "dryRun": true}`)
		if run.Status != "succeeded" || dry.Restored != nil || !dry.Would.Made || dry.Diff.Collections[0].Added != 6 || len(dry.Would.Drift) > 0 {
			t.Errorf("%+v\n%+v", run, dry)
		}
		if dirs, registered := s.left(); slices.Contains(dirs, "copy") || len(registered) != 1 {
			t.Errorf("a dry run has left %v, %v", dirs, registered)
		}

		run, done := s.restored(snaps+"/"+id+"/restore", `{"into": "copy"}`)
		if run.Status != "succeeded" || !done.Restored.Made || done.Restored.Into != "copy" || done.Restored.Safety != "" || len(done.Restored.Drift) > 0 {
			t.Fatalf("%+v %+v\n%+v", run, run.Error, done)
		}
		if len(done.Warnings) != 1 || !strings.Contains(done.Warnings[0], "tokens") {
			t.Errorf("warnings %q", done.Warnings)
		}
		if diff := cmp.Diff(before, strings.ReplaceAll(s.contentsOf("copy"), "/copy/", "/media/")); diff != "" {
			t.Error(diff)
		}
		var list api.List[struct {
			File struct{ Src string } `json:"file"`
		}]
		unmarshal(t, s.do("GET", "/api/v1/_/copy/open?limit=1&sort=n", admin).body, &list)
		if got := s.do("GET", list.Items[0].File.Src, admin); got.body != "file 0" || !strings.Contains(list.Items[0].File.Src, "/copy/") {
			t.Errorf("%s: %s", list.Items[0].File.Src, got)
		}
		config, err := os.ReadFile(filepath.Join(s.dir, "copy", "project.yaml"))
		if err != nil || strings.Contains(string(config), projectToken) || !strings.Contains(string(config), `namespace: "copy"`) {
			t.Errorf("%v %s", err, config)
		}
		if _, err := os.Stat(filepath.Join(s.dir, "copy", ".founding")); !os.IsNotExist(err) {
			t.Errorf("it is marked still: %v", err)
		}
		if got := s.do("GET", "/api/v1/_/copy/_/admin/snapshots", token(projectToken)); got.status == http.StatusOK {
			t.Error("the token of the other project lets in")
		}
		// It is a project as others: changed, reloaded, and let go.
		s.do("POST", "/api/v1/_/copy/open", admin, text(`{"n": 9}`)).want(t, http.StatusCreated)
		s.do("POST", "/api/v1/_/copy/_/admin/reload?wait=true", admin).contains(t, http.StatusOK, `"changed":false`)
		s.do("GET", `/api/v1/audit?filter={"namespace":"copy","op":"restore"}`, admin).contains(t, http.StatusOK, `"from":"media"`, `"into":"copy"`, `"made":true`)
		if got := s.contentsOf("media"); got == before {
			t.Error("the project itself was restored")
		}
	})
}

func TestRestoreMakesProjectRefuses(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		id := s.take("daily").ID
		s.register("asleep", strings.Replace(snapshotsConfig, "namespace: media", "namespace: asleep", 1))
		var list api.List[api.Project]
		unmarshal(t, s.do("GET", `/api/v1/project?filter={"namespace":"asleep"}`, admin).body, &list)
		s.do("PUT", "/api/v1/project/"+list.Items[0].ID, admin, text(`{"enabled": false}`)).want(t, http.StatusOK)
		_, ann := s.user("ann", map[string]any{"scopes": []string{"project.snapshot"}})
		for _, rt := range []struct {
			as         option
			into, want string
		}{
			{session(ann), "copy", noProject},
			{session(ann), "asleep", noProject},
			{token(projectToken), "copy", noProject},
			{admin, "asleep", "409 project_not_served: *"},
			{admin, "Copy", "400 validation_failed: into: *"},
			{admin, "../copy", "400 validation_failed: into: *"},
		} {
			got := s.do("POST", snaps+"/"+id+"/restore", rt.as, text(`{"into": "`+rt.into+`"}`)).String()
			if prefix, wild := strings.CutSuffix(rt.want, "*"); got != rt.want && (!wild || !strings.HasPrefix(got, prefix)) {
				t.Errorf("into %s: %s, want %s", rt.into, got, rt.want)
			}
		}
		fails := func(into, code string) {
			t.Helper()
			for _, more := range []string{`, "dryRun": true`, ""} { // which tell the same
				run, _ := s.restored(snaps+"/"+id+"/restore", `{"into": "`+into+`"`+more+`}`)
				if run.Status != "failed" || run.Error == nil || run.Error.Code != code {
					t.Errorf("into %s%s: %s %+v, want %s", into, more, run.Status, run.Error, code)
				}
			}
		}
		s.file("taken", "notes.txt", "mine")
		fails("taken", "folder_exists")
		s.register("past", strings.Replace(snapshotsConfig, "namespace: media", "namespace: past", 1))
		s.do("POST", "/api/v1/_/past/open", admin, text(`{"n": 1}`)).want(t, http.StatusCreated)
		unmarshal(t, s.do("GET", `/api/v1/project?filter={"namespace":"past"}`, admin).body, &list)
		s.do("DELETE", "/api/v1/project/"+list.Items[0].ID, admin).want(t, http.StatusOK)
		fails("past", "namespace_used")
		if os.Getuid() != 0 {
			if err := os.Chmod(s.dir, 0o500); err != nil { //nolint:gosec // a folder
				t.Fatal(err)
			}
			fails("copy", "no_projects_dir")
			if err := os.Chmod(s.dir, 0o700); err != nil { //nolint:gosec // a folder
				t.Fatal(err)
			}
		}
		if dirs, registered := s.left(); cmp.Diff([]string{"asleep", "media", "past", "taken"}, dirs) != "" || cmp.Diff([]string{"asleep", "media"}, registered) != "" {
			t.Errorf("left: %v, %v", dirs, registered)
		}
		run, _ := s.restored(snaps+"/"+id+"/restore", `{"into": "copy"}`) // nothing of what has failed is in the way
		if run.Status != "succeeded" {
			t.Errorf("%+v", run.Error)
		}
	})
}

// What fails when the project was made already leaves nothing of it.
func TestRestoreMakesProjectFails(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		id := s.take("daily").ID
		for _, name := range s.snapshotFiles("media") {
			if strings.HasSuffix(name, "/collections/other.jsonl.zst") {
				if err := os.WriteFile(filepath.Join(s.dir, "media", "snapshots", name), []byte("damaged"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 2 {
			if run, _ := s.restored(snaps+"/"+id+"/restore", `{"into": "copy"}`); run.Status != "failed" || run.Error == nil || run.Error.Code != "snapshot_damaged" {
				t.Errorf("%s, %+v", run.Status, run.Error)
			}
			if dirs, registered := s.left(); cmp.Diff([]string{"media"}, dirs) != "" || cmp.Diff([]string{"media"}, registered) != "" {
				t.Errorf("left: %v, %v", dirs, registered)
			}
		}
	})
}

// A config that reads secrets in the folder of its project makes a project that has them, too; one that came with an archive does not get them.
func TestRestoreMakesProjectWithSecrets(t *testing.T) {
	config := strings.Replace(snapshotsConfig, "{name: secret,", `{meta: {label: "${file:label.txt}"}, name: secret,`, 1)
	onMediaWith(t, snapshotsConfig, func(t *testing.T, s mediaService) {
		s.do("POST", "/api/v1/_/media/open", admin, text(`{"n": 1}`)).want(t, http.StatusCreated)
		s.file("media", "label.txt", "a label that is secret")
		s.file("media", "project.yaml", config)
		s.do("POST", "/api/v1/_/media/_/admin/reload?wait=true", admin).want(t, http.StatusOK)
		id := s.take("daily").ID
		archive := s.do("GET", snaps+"/"+id+"/download", admin)
		for _, more := range []string{`, "dryRun": true`, ""} {
			run, done := s.restored(snaps+"/"+id+"/restore", `{"into": "copy"`+more+`}`)
			if run.Status != "succeeded" || len(done.Warnings) != 2 || !strings.HasSuffix(done.Warnings[1], `secrets from: "label.txt"`) {
				t.Errorf("%s, %+v, %q", run.Status, run.Error, done.Warnings)
			}
		}
		s.do("GET", "/api/v1/_/copy/_/collections/open", admin).contains(t, http.StatusOK, "a label that is secret")
		if secret, err := os.ReadFile(filepath.Join(s.dir, "copy", "label.txt")); err != nil || string(secret) != "a label that is secret" {
			t.Errorf("%q, %v", secret, err)
		}

		s.do("DELETE", snaps+"/"+id, admin).want(t, http.StatusNoContent)
		s.do("POST", snaps+"/import", admin, archived(archive.body)).want(t, http.StatusCreated)
		for _, more := range []string{`, "dryRun": true`, ""} {
			if run, _ := s.restored(snaps+"/"+id+"/restore", `{"into": "other"`+more+`}`); run.Status != "failed" || run.Error == nil || run.Error.Code != "config_foreign" {
				t.Errorf("%s, %+v", run.Status, run.Error)
			}
		}
	})
}

// A backup makes a project on a server that does not know it.
func TestBackupMakesProject(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		before := s.contentsOf("media")
		backup := s.do("GET", backups+"/download", admin)
		backup.want(t, http.StatusOK)
		other := mediaService{service: run(t, func(*app.Config) {})}
		other.register("host", strings.Replace(snapshotsConfig, "namespace: media", "namespace: host", 1))
		for _, more := range []string{"&dryRun=true", ""} {
			begun := other.do("POST", "/api/v1/_/host/_/admin/backup/restore?into=media"+more, admin, archived(backup.body))
			begun.want(t, http.StatusAccepted)
			var run api.Run
			unmarshal(t, other.ended(begun.header.Get("Location"), admin), &run)
			if run.Status != "succeeded" {
				t.Fatalf("%+v", run.Error)
			}
			const gives = "the config that came with the archive gives rights to the "
			want := []string{ // nobody on this server has chosen these names
				"the tokens of the config are left out of that of media: give it some of its own",
				gives + `scope "namespace.media" of this service: snapshots rest`,
				gives + `scope "namespace.media.open.read" of this service: snapshots posts`,
				gives + `user or team "Ann" of this service: snapshots posts`,
				gives + `user or team "crew" of this service: snapshots posts`,
			}
			if diff := cmp.Diff(want, resultOf(t, run).Warnings); diff != "" {
				t.Error(diff)
			}
			if run.Progress.Warnings != int64(len(want)) {
				t.Errorf("the run tells of %d warnings", run.Progress.Warnings)
			}
		}
		if diff := cmp.Diff(before, other.contentsOf("media")); diff != "" {
			t.Error(diff)
		}
	})
}
