package app_test

import (
	"fmt"
	"io"
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

// contentsOf is all that a project's collections have, as an administrator reads them.
func (s *service) contentsOf(namespace string) string {
	s.t.Helper()
	var out strings.Builder
	for _, c := range []string{"open", "other"} {
		got := s.do("GET", "/api/v1/_/"+namespace+"/"+c+"?limit=1000&sort=id", admin)
		got.want(s.t, http.StatusOK)
		out.WriteString(got.body + "\n")
	}
	return out.String()
}

// change changes, removes and adds records, and gives the id of a changed one.
func (s mediaService) change() string {
	s.t.Helper()
	var list api.List[struct {
		ID string `json:"id"`
	}]
	unmarshal(s.t, s.do("GET", "/api/v1/_/media/open?limit=1000&sort=n", admin).body, &list)
	s.do("PUT", "/api/v1/_/media/open/"+list.Items[1].ID, admin, text(`{"n": 100, "secret": "other"}`)).want(s.t, http.StatusOK)
	s.do("DELETE", "/api/v1/_/media/open/"+list.Items[2].ID, admin).want(s.t, http.StatusOK)
	s.do("POST", "/api/v1/_/media/open", admin, text(`{"n": 7}`)).want(s.t, http.StatusCreated)
	s.do("PUT", "/api/v1/_/media/open/"+list.Items[3].ID, admin, form(part{name: "data", content: `{"file": null}`}, part{name: "file", file: "b.txt", content: "another"})).want(s.t, http.StatusOK)
	return list.Items[1].ID
}

// counts of what a collection of a diff has.
func counts(d *api.SnapshotDiff) map[string][3]int64 {
	out := map[string][3]int64{}
	for _, c := range d.Collections {
		out[c.Collection] = [3]int64{c.Added, c.Removed, c.Changed}
	}
	return out
}

// What has changed since a snapshot is told, a dry run tells what a restore would do, and the restore does it.
func TestSnapshotRestore(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		before := s.contentsOf("media")
		id := s.take("daily").ID
		var diff api.SnapshotDiff
		unmarshal(t, s.do("GET", snaps+"/"+id+"/diff", admin).body, &diff)
		if !diff.Same || len(diff.Collections) != 2 || diff.ID != id {
			t.Errorf("%+v", diff)
		}
		changed := s.change()
		after := s.contentsOf("media")

		unmarshal(t, s.do("GET", snaps+"/"+id+"/diff", admin).body, &diff)
		if want := map[string][3]int64{"open": {1, 1, 2}, "other": {0, 0, 0}}; diff.Same || cmp.Diff(want, counts(&diff)) != "" {
			t.Errorf("%+v", diff)
		}
		said := false
		for _, r := range diff.Collections[0].Records {
			if r.ID == changed {
				said = r.Change == api.DiffChanged && strings.Contains(fmt.Sprint(r.Paths), "n") && strings.Contains(fmt.Sprint(r.Paths), "secret")
			}
		}
		if !said {
			t.Errorf("%+v", diff.Collections[0].Records)
		}
		second := s.take("daily").ID
		s.do("GET", snaps+"/"+id+"/diff?with="+second+"&collection=open&limit=1", admin).contains(t, http.StatusOK, `"with":"`+second+`"`, `"added":1,"removed":1,"changed":2`, `"more":true`)
		s.do("GET", snaps+"/"+id+"/diff?collection=other", admin).contains(t, http.StatusOK, `"same":true`)

		dry := resultOf(t, s.run("POST", snaps+"/"+id+"/restore", `{"dryRun": true}`))
		if want := map[string][3]int64{"open": {1, 1, 2}, "other": {0, 0, 0}}; dry.Diff == nil || cmp.Diff(want, counts(dry.Diff)) != "" {
			t.Errorf("%+v", dry)
		}
		would := []api.WouldRestoreCollection{{Name: "open", Documents: 6, FromSnapshot: 6}, {Name: "other", Documents: 6, FromSnapshot: 6}}
		if dry.Restored != nil || dry.Would == nil || dry.Would.Into != "media" || dry.Would.Mode != "replace" || cmp.Diff(would, dry.Would.Collections) != "" {
			t.Errorf("restored %+v, would restore %+v", dry.Restored, dry.Would)
		}
		kinds := map[string]int{}
		for _, r := range dry.Diff.Collections[0].Records {
			kinds[r.Change]++
			if r.ID == changed && (r.Change != api.DiffChanged || !slices.Contains(r.Paths, "n") || !slices.Contains(r.Paths, "secret")) {
				t.Errorf("%+v", r)
			}
			if kept := strings.Contains(after, `"id":"`+r.ID+`"`); kept != (r.Change != api.DiffAdded) { // to what would be
				t.Errorf("%+v", r)
			}
		}
		if want := map[string]int{"added": 1, "removed": 1, "changed": 2}; cmp.Diff(want, kinds) != "" || dry.Diff.Collections[0].More || dry.Diff.Same {
			t.Errorf("%+v", dry.Diff)
		}
		merged := resultOf(t, s.run("POST", snaps+"/"+id+"/restore", `{"dryRun": true, "mode": "merge", "collections": ["open"]}`))
		if want := map[string][3]int64{"open": {1, 0, 2}}; cmp.Diff(want, counts(merged.Diff)) != "" || len(merged.Diff.Collections[0].Records) != 3 {
			t.Errorf("%+v", merged.Diff)
		}
		if got := s.contentsOf("media"); got != after {
			t.Error("a dry run has changed something")
		}
		disk := s.onDisk()
		bare := resultOf(t, s.run("POST", snaps+"/"+id+"/restore", `{"media": false}`))
		if diff := cmp.Diff(before, s.contentsOf("media")); diff != "" || bare.Restored.Files != (api.RestoredFiles{Missing: 2}) {
			t.Errorf("without files: %s, %+v", diff, bare.Restored)
		}
		if diff := cmp.Diff(disk, s.onDisk()); diff != "" {
			t.Errorf("files that were to stay: %s", diff)
		}
		s.run("POST", snaps+"/"+bare.Restored.Safety+"/restore", ``)
		if diff := cmp.Diff(after, s.contentsOf("media")); diff != "" {
			t.Error(diff)
		}

		run := s.run("POST", snaps+"/"+id+"/restore", ``)
		done := resultOf(t, run)
		if r := done.Restored; done.Snapshot != id || r == nil || r.Into != "media" || r.Mode != "replace" || r.Safety == "" || len(r.Collections) != 2 || r.Files.Missing != 0 {
			t.Errorf("%+v", done)
		}
		if diff := cmp.Diff(before, s.contentsOf("media")); diff != "" {
			t.Error(diff)
		}
		s.do("GET", snaps+"/"+done.Restored.Safety, admin).contains(t, http.StatusOK, `"profile":"before-restore"`)
		events := s.do("GET", snaps+"/"+run.ID+"/events", admin).body
		for _, phase := range []string{"verify", "load", "safety", "swap"} {
			if !strings.Contains(events, `"phase":"`+phase+`"`) {
				t.Errorf("no %s in %s", phase, events)
			}
		}
		// Files are there again, with what they had.
		var list api.List[struct {
			File struct{ Src string } `json:"file"`
		}]
		unmarshal(t, s.do("GET", "/api/v1/_/media/open?limit=1000&sort=n", admin).body, &list)
		for i, r := range list.Items {
			if got := s.do("GET", r.File.Src, admin); got.body != fmt.Sprint("file ", i%3) {
				t.Errorf("%s: %s %q", r.File.Src, got, got.body)
			}
		}
		// And back: the safety snapshot has what was there.
		s.run("POST", snaps+"/"+done.Restored.Safety+"/restore", `{"mode": "replace", "media": true}`)
		if diff := cmp.Diff(after, s.contentsOf("media")); diff != "" {
			t.Error(diff)
		}
		merged = resultOf(t, s.run("POST", snaps+"/"+id+"/restore", `{"mode": "merge", "collections": ["open"]}`))
		if r := merged.Restored; len(r.Collections) != 1 || r.Collections[0].Documents != 7 || r.Collections[0].FromSnapshot != 6 {
			t.Errorf("%+v", r)
		}
		s.do("GET", "/api/v1/_/media/open/_count", admin).contains(t, http.StatusOK, `{"count":7}`)
		entries := s.do("GET", `/api/v1/audit?filter={"op":"restore"}&sort=at`, admin)
		if strings.Count(entries.body, `"op":"restore"`) != 7 || !strings.Contains(entries.body, `"recordId":"`+id+`"`) || !strings.Contains(entries.body, `"mode":"merge","media":true,"collections":"open"`) {
			t.Error(entries.body)
		}
	})
}

func TestSnapshotRestoreRefuses(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		id := s.take("daily").ID
		before := s.contentsOf("media")
		s.register("copy", strings.Replace(snapshotsConfig, "namespace: media", "namespace: copy", 1))
		org := s.make("org", map[string]any{"name": "acme"})
		_, ann := s.user("snapper", map[string]any{"scopes": []string{"project.snapshot"}, "orgIds": []string{org}})
		for _, rt := range []struct {
			as               option
			path, body, want string
		}{
			{admin, "/" + id + "/restore", `{"mode": "all"}`, "400 validation_failed: mode: *"},
			{admin, "/" + id + "/restore", `{"collections": "open"}`, "400 validation_failed: collections: must be a list of strings"},
			{admin, "/" + id + "/restore", `{"collections": [""]}`, "400 validation_failed: collections: *"},
			{admin, "/" + id + "/restore", `{"collections": []}`, "400 validation_failed: collections: must name a collection, or be left out*"},
			{admin, "/" + id + "/restore", `{"collections": null}`, "400 validation_failed: collections: must be a list of strings"},
			{admin, "/" + id + "/restore", `{"dryRun": null}`, "400 validation_failed: dryRun: must be true or false"},
			{admin, "/" + id + "/restore", `{"into": null}`, "400 validation_failed: into: must be a string"},
			{admin, "/" + id + "/restore", `{"into": ""}`, "400 validation_failed: into: is empty: give it a value, or leave it out"},
			{admin, "/" + id + "/restore", `{"mode": ""}`, "400 validation_failed: mode: is empty: *"},
			{admin, "/prune", `{"profile": ""}`, "400 validation_failed: profile: is empty: *"},
			{admin, "/prune", `{"dryRun": null}`, "400 validation_failed: dryRun: must be true or false"},
			{admin, "/" + id + "/restore", `{"collections": ["open", "none"]}`, "404 collection_not_found: *"},
			{admin, "/" + id + "/restore", `{"users": true}`, "400 validation_failed: users: unknown field"},
			{admin, "/none/restore", ``, "404 snapshot_not_found: *"},
			{token(projectToken), "/" + id + "/restore", `{"into": "copy"}`, "202"}, // it has the same token
			{session(ann), "/" + id + "/restore", `{}`, noProject},                  // of no org
		} {
			got := s.do("POST", snaps+rt.path, rt.as, text(rt.body))
			prefix, wild := strings.CutSuffix(rt.want, "*")
			if got.String() != rt.want && (!wild || !strings.HasPrefix(got.String(), prefix)) {
				t.Errorf("%s %s: %s, want %s", rt.path, rt.body, got, rt.want)
			}
			if at := got.header.Get("Location"); at != "" {
				if end := s.ended(at, admin); !strings.Contains(end, `"succeeded"`) {
					t.Error(end)
				}
			}
		}
		for path, want := range map[string]string{
			"/" + id + "/diff?limit=-1":  "400 query_limit: *",
			"/" + id + "/diff?with=none": "404 snapshot_not_found: *",
			"/none/diff":                 "404 snapshot_not_found: *",
		} {
			if got := s.do("GET", snaps+path, admin).String(); !strings.HasPrefix(got, strings.TrimSuffix(want, "*")) {
				t.Errorf("%s: %s", path, got)
			}
		}
		// Only who has the right on both.
		s.do("PUT", "/api/v1/project/"+s.projectID(), admin, json1(map[string]any{"orgId": org})).want(t, http.StatusOK)
		if got := s.do("POST", snaps+"/"+id+"/restore", session(ann), text(`{"into": "copy"}`)).String(); got != noProject {
			t.Error(got)
		}
		if got := s.contentsOf("media"); got != before {
			t.Error("something has changed")
		}
		if strings.ReplaceAll(s.contentsOf("copy"), "/copy/", "/media/") != before {
			t.Error("it is not what was restored into it")
		}
		// The audit log has it of that project, too.
		s.do("GET", `/api/v1/audit?filter={"namespace":"copy","op":"restore"}`, admin).contains(t, http.StatusOK, `"from":"media"`, `"into":"copy"`, `"recordId":"`+id+`"`)
	})
}

// A backup goes live onto another server, and the other store, with records and files, and nothing else.
func TestBackupRestore(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		s.user("ann", map[string]any{"isAdmin": true})
		before := s.contentsOf("media")
		backup := s.do("GET", backups+"/download", admin)
		backup.want(t, http.StatusOK)
		other := mediaService{service: run(t, func(c *app.Config) {})}
		other.register("media", strings.Replace(snapshotsConfig, "[{value: "+projectToken+", rights: [snapshot]}]", "[{value: another}]", 1))
		other.do("POST", "/api/v1/_/media/open", admin, text(`{"n": 55}`)).want(t, http.StatusCreated)
		there := other.contentsOf("media")

		restore := func(query string) api.Run {
			t.Helper()
			begun := other.do("POST", backups+"/restore"+query, admin, archived(backup.body))
			begun.want(t, http.StatusAccepted)
			var run api.Run
			unmarshal(t, other.ended(begun.header.Get("Location"), admin), &run)
			if run.Status != "succeeded" || run.Kind != "restore" || run.Name != "backup" {
				t.Fatalf("%+v", run)
			}
			return run
		}
		dry := resultOf(t, restore("?dryRun=true"))
		if want := map[string][3]int64{"open": {6, 1, 0}, "other": {6, 0, 0}}; dry.Diff == nil || cmp.Diff(want, counts(dry.Diff)) != "" {
			t.Errorf("%+v", dry.Diff)
		}
		eventually(t, func() string {
			if got := other.snapshotFiles("media"); len(got) != 0 {
				return strings.Join(got, " ")
			}
			return ""
		})
		if other.contentsOf("media") != there {
			t.Error("a dry run has changed something")
		}
		done := resultOf(t, restore("?mode=merge&collections=open&media=false"))
		if r := done.Restored; r.Mode != "merge" || len(r.Collections) != 1 || r.Collections[0].Documents != 7 {
			t.Errorf("%+v", r)
		}
		again := resultOf(t, restore("")) // it has come before, and is not taken in again
		if again.Snapshot != done.Snapshot || again.Restored.Mode != "replace" {
			t.Errorf("%+v", again)
		}
		if diff := cmp.Diff(before, other.contentsOf("media")); diff != "" {
			t.Error(diff)
		}
		var list api.List[struct {
			File struct{ Src string } `json:"file"`
		}]
		unmarshal(t, other.do("GET", "/api/v1/_/media/open?limit=1000&sort=n", admin).body, &list)
		for i, r := range list.Items {
			if got := other.do("GET", r.File.Src, admin); got.body != fmt.Sprint("file ", i%3) {
				t.Errorf("%s: %s", r.File.Src, got)
			}
		}
		// S53: no users and no rights come along.
		other.do("GET", "/api/v1/user?count=true", admin).contains(t, http.StatusOK, `"total":0`)
		if got := other.do("GET", snaps, token(projectToken)); got.status != http.StatusForbidden {
			t.Errorf("a token of the backup's config is one: %s", got)
		}
		other.do("GET", snaps, token("another")).want(t, http.StatusOK)

		for query, want := range map[string]string{
			"?mode=all":     "400 validation_failed: mode: *",
			"?collections=": "400 validation_failed: collections: *",
			"?dryRun=maybe": "400 bad_parameter: dryRun must be true or false",
			"?to=elsewhere": "400 unknown_parameter: *",
		} {
			got := other.do("POST", backups+"/restore"+query, admin, archived(backup.body)).String()
			if prefix, wild := strings.CutSuffix(want, "*"); got != want && (!wild || !strings.HasPrefix(got, prefix)) {
				t.Errorf("%s: %s", query, got)
			}
		}
		for name, body := range map[string]string{"nothing": "", "half": backup.body[:len(backup.body)/2], "something else": "PK"} {
			got := other.do("POST", backups+"/restore", admin, archived(body))
			if got.status != http.StatusBadRequest {
				t.Errorf("%s: %s", name, got)
			}
		}
		if diff := cmp.Diff(before, other.contentsOf("media")); diff != "" {
			t.Error(diff)
		}
		// With events: they begin when all has come, with what was before.
		streamed := other.do("POST", backups+"/restore?collections=other", admin, archived(backup.body), header("Accept", "text/event-stream"))
		streamed.contains(t, http.StatusOK, `"phase":"import"`, `"phase":"swap"`, "event: done\n")
	})
}

// An archive goes from a service on one store to one on the other, and what that exports is the same to the bit.
func TestBackupAcross(t *testing.T) {
	onStore := func(t *testing.T, name string) mediaService {
		t.Helper()
		s := mediaService{data: t.TempDir()}
		uri := ""
		if name == "mongodb" {
			uri = emptyMongo(t, "svc_media")
		}
		s.service = run(t, func(c *app.Config) { c.StoreURI, c.DataDir = uri, s.data })
		s.register("media", snapshotsConfig)
		return s
	}
	backup := func(s mediaService) (archive string, exported map[string]string) {
		s.t.Helper()
		id := resultOf(s.t, s.run("POST", backups, ``)).Snapshot
		root := filepath.Join(s.dir, "media", "snapshots", "backup", id)
		exported = map[string]string{}
		for _, name := range s.snapshotFiles("media") {
			if name, ok := strings.CutPrefix(name, "/backup/"+id+"/"); ok && !strings.HasPrefix(name, "manifest.json") { // which says when it was
				text, err := os.ReadFile(filepath.Join(root, name))
				if err != nil {
					s.t.Fatal(err)
				}
				exported[name] = string(text)
			}
		}
		return s.download(id, admin), exported
	}
	for from, to := range map[string]string{"embedded": "mongodb", "mongodb": "embedded"} {
		t.Run(from+" to "+to, func(t *testing.T) {
			here, there := onStore(t, from), onStore(t, to)
			for i := range 6 {
				here.do("POST", "/api/v1/_/media/open", admin, form(
					part{name: "data", content: fmt.Sprintf(`{"n": %d.5, "secret": "s%d"}`, i, i)}, part{name: "file", file: "a.txt", content: fmt.Sprint("file ", i%3)},
				)).want(t, http.StatusCreated)
			}
			here.do("POST", "/api/v1/_/media/other", admin, text(`{"n": 9007199254740993}`)).want(t, http.StatusCreated)
			archive, exported := backup(here)
			if len(exported) < 7 || exported["media/"+hashOf("file 1")] != "file 1" {
				t.Fatalf("exported are %d files", len(exported))
			}
			there.do("POST", "/api/v1/_/media/open", admin, text(`{"n": 55}`)).want(t, http.StatusCreated)
			begun := there.do("POST", backups+"/restore", admin, archived(archive))
			begun.want(t, http.StatusAccepted)
			if end := there.ended(begun.header.Get("Location"), admin); !strings.Contains(end, `"status":"succeeded"`) {
				t.Fatal(end)
			}
			if diff := cmp.Diff(here.contentsOf("media"), there.contentsOf("media")); diff != "" {
				t.Error(diff)
			}
			_, again := backup(there)
			if diff := cmp.Diff(exported, again); diff != "" {
				t.Errorf("its export is another: %s", diff)
			}
		})
	}
}

// A sender who goes while a backup comes in leaves everything as it was.
func TestBackupRestoreSenderGoes(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		before := s.contentsOf("media")
		backup := s.do("GET", backups+"/download", admin)
		backup.want(t, http.StatusOK)
		eventually(t, func() string { return strings.Join(s.snapshotFiles("media"), " ") })
		conn := s.hangOn("POST "+backups+"/restore", fmt.Sprintf("Content-Type: application/zstd\r\nContent-Length: %d\r\n\r\n", len(backup.body)))
		if _, err := io.WriteString(conn, backup.body[:len(backup.body)/2]); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() string {
			if got := s.do("GET", snaps+"/runs?status=running", admin).body; !strings.Contains(got, `"kind":"restore"`) {
				return got
			}
			return ""
		})
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		eventually(t, func() string {
			if got := s.do("GET", snaps+"/runs?limit=1", admin).body; !strings.Contains(got, `"status":"cancelled"`) && !strings.Contains(got, `"status":"failed"`) {
				return got
			}
			return strings.Join(s.snapshotFiles("media"), " ")
		})
		if s.contentsOf("media") != before {
			t.Error("something has changed")
		}
	})
}
