package app_test

import (
	"encoding/json"
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
)

const snapshotsConfig = `
namespace: media
admin: {tokens: [{value: ` + projectToken + `, rights: [snapshot]}]}
snapshots:
  - {name: daily, collectionDedup: true, description: every day, retention: {keepDaily: 7, keepWithin: 1m}, schedule: "30 2 * * *"}
  - {name: posts, collections: [open], includeMedia: false, permissions: [Ann, crew, namespace.media.open.read]}
  - {name: rest, collections: [{name: open, mode: exclude}], mode: both, permissions: [namespace.media]}
collections:
  - name: open
    fields: [{name: n, type: number}, {name: secret, type: string, hidden: true}, {name: file, type: file}]
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
  - {name: other, fields: [{name: n, type: number}], permissions: {public: {methods: {get: true}}, user: {methods: {}}}}
`

const snaps = "/api/v1/_/media/_/admin/snapshots"

// onSnapshots runs a test with a project that has some records and files.
func onSnapshots(t *testing.T, test func(t *testing.T, s mediaService)) {
	t.Helper()
	onMediaWith(t, snapshotsConfig, func(t *testing.T, s mediaService) {
		for i := range 6 {
			s.do("POST", "/api/v1/_/media/open", admin, form(
				part{name: "data", content: fmt.Sprintf(`{"n": %d, "secret": "s%d"}`, i, i)}, part{name: "file", file: "a.txt", content: fmt.Sprint("file ", i%3)},
			)).want(t, http.StatusCreated)
			s.do("POST", "/api/v1/_/media/other", admin, text(fmt.Sprintf(`{"n": %d}`, i))).want(t, http.StatusCreated)
		}
		test(t, s)
	})
}

// take takes a snapshot and gives it.
func (s mediaService) take(profile string) api.Snapshot {
	s.t.Helper()
	run := s.run("POST", snaps, `{"profile": "`+profile+`"}`)
	return s.snapshot(resultOf(s.t, run).Snapshot)
}

// run starts a run and gives it when it has ended well.
func (s mediaService) run(method, path, body string) api.Run {
	s.t.Helper()
	begun := s.do(method, path, admin, text(body))
	begun.want(s.t, http.StatusAccepted)
	if at := begun.header.Get("Location"); at != snaps+"/runs/"+begun.field("id") {
		s.t.Errorf("it is at %s", at)
	}
	var run api.Run
	unmarshal(s.t, s.ended(begun.header.Get("Location"), admin), &run)
	if run.Status != "succeeded" {
		s.t.Fatalf("%s %s ended as %+v", method, path, run)
	}
	return run
}

func (s mediaService) snapshot(id string) (out api.Snapshot) {
	s.t.Helper()
	got := s.do("GET", snaps+"/"+id, admin)
	got.want(s.t, http.StatusOK)
	unmarshal(s.t, got.body, &out)
	return out
}

// listed is a snapshot as lists have it, which don't look at its files.
func listed(s api.Snapshot) api.Snapshot {
	s.Collections = slices.Clone(s.Collections)
	for i := range s.Collections {
		s.Collections[i].DiskBytes = 0
	}
	return s
}

func (s mediaService) download(id string, as option) string {
	s.t.Helper()
	got := s.do("GET", snaps+"/"+id+"/download", as)
	got.want(s.t, http.StatusOK)
	return got.body
}

func unmarshal(t *testing.T, text string, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), to); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

func resultOf(t *testing.T, run api.Run) (out api.SnapshotResult) {
	t.Helper()
	unmarshal(t, string(run.Result), &out)
	return out
}

// archived is an archive as the body of a request.
func archived(body string) option {
	return func(r *http.Request) {
		r.Header.Set("Content-Type", "application/zstd")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	}
}

// snapshotFiles lists the files of a project's snapshots.
func (s *service) snapshotFiles(project string) []string {
	s.t.Helper()
	var out []string
	root := filepath.Join(s.dir, project, "snapshots")
	err := filepath.WalkDir(root, func(name string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() != ".lock" { // by which instances that share the folder keep out of each other's way
			out = append(out, strings.TrimPrefix(name, root))
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return out
}

// A snapshot from its profile to its end, and to another project.
func TestSnapshots(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		s.do("GET", snaps, admin).contains(t, http.StatusOK, `{"items":[],"limit":100,"offset":0,"hasMore":false}`)
		info := s.take("daily")
		if info.Profile != "daily" || info.Counts.Documents != 12 || info.Counts.MediaFiles != 3 || info.Counts.Linked != 3 || len(info.Collections) != 2 ||
			info.Project != "media" || info.Tool != "v0-test" || info.Verified != nil || info.Pinned || info.Files != nil || info.Collections[0].DiskBytes == 0 {
			t.Errorf("%+v", info)
		}
		s.take("posts")
		last := s.take("daily")
		if last.Counts.Deduplicated == 0 {
			t.Errorf("%+v", last.Counts)
		}

		var list api.List[api.Snapshot]
		unmarshal(t, s.do("GET", snaps+"?profile=daily", admin).body, &list)
		if diff := cmp.Diff([]api.Snapshot{listed(last), listed(info)}, list.Items); diff != "" {
			t.Error(diff)
		}
		s.do("GET", snaps+"?limit=1&offset=1", admin).contains(t, http.StatusOK, `"profile":"posts"`, `"limit":1,"offset":1,"hasMore":true}`)
		s.do("GET", snaps+"?limit=1&offset=5", admin).contains(t, http.StatusOK, `{"items":[],"limit":1,"offset":5,"hasMore":false}`)
		s.do("GET", snaps+"/profiles", admin).contains(t, http.StatusOK,
			`{"name":"daily","description":"every day","enabled":false,"schedule":"30 2 * * *","nextAt":null,"collections":[],"excluded":[],"includeMedia":true,"collectionDedup":true,"mode":"json",`+
				`"retention":{"keepDaily":7,"keepWithin":"1m"},"lastSnapshot":{"id":"`+last.ID+`"`, `"snapshots":2}`,
			`"name":"rest"`, `"excluded":["open"]`, `"lastSnapshot":null,"snapshots":0}`)
		s.do("GET", snaps+"/"+info.ID+"?files=true", admin).contains(t, http.StatusOK, `{"path":"collections/open.jsonl.zst"`, `"how":"linked"`)

		checked := resultOf(t, s.run("POST", snaps+"/"+info.ID+"/verify", `{}`))
		if v := checked.Verified; checked.Snapshot != info.ID || v == nil || v.Problems != 0 || v.Sample != 0 || v.Files < 6 {
			t.Errorf("%+v", checked)
		}
		if v := s.snapshot(info.ID).Verified; v == nil || v.Files != checked.Verified.Files {
			t.Errorf("%+v", v)
		}
		if v := resultOf(t, s.run("POST", snaps+"/"+info.ID+"/verify", `{"sample": 0.01}`)).Verified; v.Sample != 0.01 || v.Files != 1 && v.Files != 2 {
			t.Errorf("%+v", v)
		}

		s.do("PUT", snaps+"/"+info.ID, admin, text(`{"pinned": true}`)).contains(t, http.StatusOK, `"pinned":true`)
		if got := s.do("DELETE", snaps+"/"+info.ID, admin).String(); got != "409 snapshot_pinned: the snapshot is pinned: unpin it to delete it" {
			t.Error(got)
		}
		s.do("PUT", snaps+"/"+info.ID, admin, text(`{"pinned": false}`)).contains(t, http.StatusOK, `"pinned":false`)

		got := s.do("GET", snaps+"/"+info.ID+"/download", admin)
		got.want(t, http.StatusOK)
		for name, want := range map[string]string{
			"Content-Type": "application/zstd", "Content-Disposition": `attachment; filename="media-daily-` + info.ID + `.tar.zst"`, "Cache-Control": "private, no-store",
		} {
			if is := got.header.Get(name); is != want {
				t.Errorf("%s: %s", name, is)
			}
		}
		if head := s.do("HEAD", snaps+"/"+info.ID+"/download", admin); head.status != http.StatusOK || head.header.Get("Content-Type") != "application/zstd" {
			t.Errorf("HEAD: %+v", head)
		}
		s.do("DELETE", snaps+"/"+info.ID, admin).want(t, http.StatusNoContent)
		if got := s.do("GET", snaps+"/"+info.ID, admin).String(); got != "404 snapshot_not_found: there is no snapshot of this id in the project: look at the list for those that there are" {
			t.Error(got)
		}

		s.register("copy", strings.Replace(snapshotsConfig, "namespace: media", "namespace: copy", 1))
		const there = "/api/v1/_/copy/_/admin/snapshots"
		in := s.do("POST", there+"/import", admin, archived(got.body))
		in.contains(t, http.StatusCreated, `"id":"`+info.ID+`","profile":"daily","project":"media"`, `"problems":0`)
		if at := in.header.Get("Location"); at != there+"/"+info.ID {
			t.Error(at)
		}
		if again := s.do("GET", there+"/"+info.ID+"/download", admin); again.body != got.body {
			t.Error("what was imported is not what was downloaded")
		}
		if got := s.do("POST", there+"/import?profile=else", admin, archived(got.body)).String(); !strings.HasPrefix(got, "409 snapshot_exists: ") {
			t.Error(got)
		}
		s.do("GET", there+"/runs", admin).contains(t, http.StatusOK, `"kind":"import","name":"import","subject":"`+info.ID+`","status":"succeeded"`, `"code":"snapshot_exists"`)
		s.do("POST", snaps+"/import?profile=dialy", admin, archived(got.body)).contains(t, http.StatusNotFound, "profile_not_found", `leave it out, for that of the archive, \"daily\", or name one of \"backup\", \"before-restore\", \"daily\", \"posts\", \"rest\"`)
		s.do("POST", snaps+"/import?profile=rest", admin, archived(got.body)).contains(t, http.StatusCreated, `"profile":"rest"`)

		var ops []string
		var entries api.List[api.AuditEntry]
		unmarshal(t, s.do("GET", `/api/v1/audit?filter={"collection":"_snapshots.daily"}&sort=at`, admin).body, &entries)
		for _, e := range entries.Items {
			ops = append(ops, e.Op)
			if e.Actor.Kind != "admin" || e.RequestID == "" || e.Address == "" {
				t.Errorf("%s: by %+v, request %q, from %q", e.Op, e.Actor, e.RequestID, e.Address)
			}
		}
		want := []string{"snapshot", "snapshot", "verify-snapshot", "verify-snapshot", "pin", "delete-snapshot", "unpin", "download", "delete-snapshot", "download"}
		if diff := cmp.Diff(want, ops); diff != "" {
			t.Error(diff)
		}
	})
}

// What is wrong with a request is said, and nothing comes of it.
func TestSnapshotsRefuse(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		id := s.take("daily").ID
		for _, tt := range []struct{ method, path, body, want string }{
			{"POST", "", `{}`, "400 validation_failed: profile: must be the name of a profile, which GET …/admin/snapshots/profiles lists"},
			{"POST", "", `{"profile": 1}`, "400 validation_failed: profile: must be a string"},
			{"POST", "", `{"profile": "daily", "all": true}`, "400 validation_failed: all: unknown field"},
			{"POST", "", `{"profile": "none"}`, `404 profile_not_found: the project has no snapshot profile "none": the key snapshots of its config declares them`},
			{"POST", "", `{"profile": "backup"}`, `404 profile_not_found: *`},
			{"POST", "/" + id + "/verify", `{"sample": 2}`, "400 validation_failed: sample: must be above 0 and at most 1: the part of the files that is read"},
			{"POST", "/" + id + "/verify", `{"sample": 0}`, "400 validation_failed: sample: *"},
			{"POST", "/" + id + "/verify", `{"sample": "all"}`, "400 validation_failed: sample: must be a number"},
			{"POST", "/20260301T031500Z-k3x9q2/verify", `{}`, "404 snapshot_not_found: *"},
			{"PUT", "/" + id, `{}`, "400 validation_failed: pinned: *"},
			{"PUT", "/" + id, `{"pinned": "yes"}`, "400 validation_failed: pinned: must be true or false"},
			{"PUT", "/none", `{"pinned": true}`, "404 snapshot_not_found: *"},
			{"GET", "/none", "", "404 snapshot_not_found: *"},
			{"GET", "/..%2f" + id, "", "404 snapshot_not_found: *"},
			{"GET", "/" + id + "?file=true", "", "400 unknown_parameter: *"},
			{"GET", "?limit=0", "", "400 query_limit: *"},
			{"GET", "?offset=-1", "", "400 bad_parameter: limit and offset can't be negative"},
			{"GET", "/runs?status=good", "", "400 bad_parameter: *"},
			{"GET", "/runs/none", "", "404 run_not_found: run not found"},
			{"GET", "/none/events", "", "404 run_not_found: run not found"},
			{"GET", "/%ff/events", "", "404 run_not_found: run not found"},
			{"POST", "/%ff/cancel", "", "404 run_not_found: run not found"},
			{"GET", "/%ff", "", "404 snapshot_not_found: *"},
			{"POST", "/none/cancel", "", "404 run_not_found: run not found"},
			{"POST", "/" + id + "/cancel", "", "409 run_ended: the run has ended already"},
			{"GET", "/none/download", "", "404 snapshot_not_found: *"},
			{"POST", "/import", `{}`, "415 unsupported_media_type: send the body as Content-Type: application/zstd"},
			{"DELETE", "/none", "", "404 snapshot_not_found: *"},
		} {
			options := []option{admin}
			if tt.body != "" {
				options = append(options, text(tt.body))
			}
			got := s.do(tt.method, snaps+tt.path, options...)
			prefix, wild := strings.CutSuffix(tt.want, "*")
			if got.String() != tt.want && (!wild || !strings.HasPrefix(got.String(), prefix)) {
				t.Errorf("%s %s %s\ngot  %s\nwant %s", tt.method, tt.path, tt.body, got, tt.want)
			}
			checkShape(t, tt.method+" "+tt.path, got)
		}
		// What can't be the name of a profile comes into no run.
		for _, profile := range []string{"..", "%00", "a%0Ab", strings.Repeat("x", 5000)} {
			if got := s.do("POST", snaps+"/import?profile="+profile, admin, archived("x")); got.status != http.StatusBadRequest || got.field("code") != "bad_profile" {
				t.Errorf("%.10s: %s", profile, got)
			}
		}
		if got := s.do("GET", snaps+"/runs", admin).body; strings.Contains(got, `"kind":"import"`) {
			t.Errorf("runs: %s", got)
		}
		// A damaged one shows what is wrong, and the run that checks it fails with that.
		name := filepath.Join(s.dir, "media", "snapshots", "daily", id, "indexes.json")
		if err := os.WriteFile(name, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		begun := s.do("POST", snaps+"/"+id+"/verify", admin)
		if run := s.ended(begun.header.Get("Location"), admin); !strings.Contains(run, `"error":{"code":"snapshot_damaged","message":"the snapshot `+id+` is damaged: indexes.json: `) {
			t.Error(run)
		}
		if v := s.snapshot(id).Verified; v == nil || v.Problems == 0 || v.Found[0].Path != "indexes.json" {
			t.Errorf("%+v", v)
		}
		if err := os.WriteFile(filepath.Join(filepath.Dir(name), "manifest.json"), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if info := s.snapshot(id); !strings.HasPrefix(info.Problem, "the snapshot is damaged: manifest.json") || info.ID != id || info.Profile != "daily" {
			t.Errorf("%+v", info)
		}
		if got := s.do("GET", snaps+"/"+id+"/download", admin).String(); !strings.HasPrefix(got, "409 snapshot_damaged: ") {
			t.Error(got)
		}
	})
}

// TestSnapshotStanding: what checks have found is told of a snapshot: by a part of it, by all, damage until all is whole again.
func TestSnapshotStanding(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		id := s.take("daily").ID
		check := func(body, status string) (run api.Run) {
			t.Helper()
			begun := s.do("POST", snaps+"/"+id+"/verify", admin, text(body))
			begun.want(t, http.StatusAccepted)
			unmarshal(t, s.ended(begun.header.Get("Location"), admin), &run)
			if run.Status != status || run.Subject != id || run.Name != "daily" {
				t.Errorf("%+v", run)
			}
			return run
		}
		standing := func() api.Snapshot {
			t.Helper()
			info := s.snapshot(id)
			var list api.List[api.Snapshot]
			unmarshal(t, s.do("GET", snaps+"?profile=daily", admin).body, &list)
			if diff := cmp.Diff([]api.Snapshot{listed(info)}, list.Items); diff != "" {
				t.Error(diff)
			}
			return info
		}
		if info := standing(); info.Verified != nil || !info.WholeAt.IsZero() || info.Damage != nil {
			t.Errorf("%+v", info)
		}
		check(`{"sample": 0.5}`, "succeeded")
		if info := standing(); info.Verified == nil || info.Verified.Sample != 0.5 || !info.WholeAt.IsZero() || info.Damage != nil {
			t.Errorf("by a part: %+v", info)
		}
		check(``, "succeeded")
		whole := standing()
		if whole.Verified.Sample != 0 || !whole.WholeAt.Equal(whole.Verified.At.Time) || whole.Damage != nil {
			t.Errorf("by all: %+v", whole)
		}
		check(`{"sample": 0.5}`, "succeeded")
		if info := standing(); info.Verified.Sample != 0.5 || !info.WholeAt.Equal(whole.WholeAt.Time) {
			t.Errorf("by a part, again: %+v", info)
		}

		dir := filepath.Join(s.dir, "media", "snapshots", "daily", id)
		names := []string{"collections/open.jsonl.zst", "indexes.json"}
		texts := map[string][]byte{}
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			texts[name] = text
			s.write("media/snapshots/daily/"+id+"/"+name, strings.Repeat("x", len(text)))
		}
		run := check(``, "failed")
		info := standing()
		if v := info.Damage; v == nil || v.Problems != 2 || len(v.Found) != 2 || v.Found[0].Path != names[0] || v.Found[1].Path != names[1] || v.Found[0].Text == "" ||
			cmp.Diff(v, info.Verified) != "" || !info.WholeAt.IsZero() {
			t.Errorf("damaged: %+v, %+v", info, v)
		}
		if want := "the snapshot " + id + " is damaged: " + names[0] + ": it is not what was written; " + names[1] + ": it is not what was written"; run.Error == nil || run.Error.Code != "snapshot_damaged" || run.Error.Message != want {
			t.Errorf("%+v", run.Error)
		}
		if v := resultOf(t, run).Verified; cmp.Diff(info.Verified, v) != "" {
			t.Errorf("the run that has failed tells of %+v", v)
		}
		for _, name := range names {
			s.write("media/snapshots/daily/"+id+"/"+name, string(texts[name]))
		}
		check(`{"sample": 0.5}`, "succeeded")
		if info := standing(); info.Verified.Problems != 0 || info.Damage == nil || info.Damage.Problems != 2 || !info.WholeAt.IsZero() {
			t.Errorf("a part is whole: %+v", info)
		}
		check(``, "succeeded")
		if info := standing(); info.Damage != nil || !info.WholeAt.Equal(info.Verified.At.Time) {
			t.Errorf("all is whole again: %+v", info)
		}
	})
}

// TestSnapshotRunsOfTwoRights: who makes backups, and has a profile, sees no restores of the snapshots of that.
func TestSnapshotRunsOfTwoRights(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		_, ann := s.user("ann", map[string]any{"scopes": []string{"project.backup"}}) // the profile posts lets her, too
		posts := s.take("posts")
		s.run("POST", snaps+"/"+posts.ID+"/restore", `{}`)
		if got := s.do("GET", snaps+"/runs?limit=1000", session(ann)).body; !strings.Contains(got, `"kind":"snapshot"`) || strings.Contains(got, `"kind":"restore"`) {
			t.Errorf("runs: %s", got)
		}
		var all struct{ Items []struct{ ID, Kind string } }
		if err := json.Unmarshal([]byte(s.do("GET", snaps+"/runs?limit=1000", admin).body), &all); err != nil {
			t.Fatal(err)
		}
		restores := 0
		for _, run := range all.Items {
			if run.Kind == "restore" {
				restores++
				s.do("GET", snaps+"/runs/"+run.ID, session(ann)).want(t, http.StatusNotFound)
				s.do("GET", snaps+"/"+run.ID+"/events", session(ann)).want(t, http.StatusNotFound)
				s.do("POST", snaps+"/"+run.ID+"/cancel", session(ann)).want(t, http.StatusNotFound)
			}
		}
		if restores != 1 {
			t.Errorf("%d restores", restores)
		}
	})
}

// Who is named by a profile may take, see and download its snapshots, and nothing else; others have no part in any.
func TestSnapshotPermissions(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		_, ann := s.user("ann", nil)
		team := s.do("POST", "/api/v1/team", admin, json1(map[string]any{"name": "Crew", "slug": "crew", "orgId": s.make("org", map[string]any{"name": "acme"})})).field("id")
		_, ben := s.user("ben", map[string]any{"teamIds": []string{team}})
		_, cleo := s.user("cleo", map[string]any{"scopes": []string{"namespace.media.open.read"}})
		_, dan := s.user("dan", map[string]any{"scopes": []string{"namespace.media"}})
		_, eve := s.user("eve", map[string]any{"scopes": []string{"project.read", "project.reload", "namespace.media.other.read"}})
		_, backs := s.user("backs", map[string]any{"scopes": []string{"project.backup"}})
		_, snapper := s.user("snapper", map[string]any{"scopes": []string{"project.snapshot"}})
		pat := func(of string, scopes ...string) option {
			res := s.do("POST", "/api/v1/token", session(of), json1(map[string]any{"name": "t", "scopes": scopes}))
			res.want(t, http.StatusCreated)
			return session(res.field("token"))
		}
		daily, posts := s.take("daily"), s.take("posts")
		rest := s.take("rest")
		backup := resultOf(t, s.run("POST", "/api/v1/_/media/_/admin/backup", ``)).Snapshot
		for name, tt := range map[string]struct {
			as   option
			sees string // of posts, rest, daily and backup
		}{
			"admin":               {admin, "prdb"},
			"an admin token":      {token(projectToken), "prdb"},
			"project.snapshot":    {session(snapper), "prdb"},
			"a user":              {session(ann), "p"},
			"of a team":           {session(ben), "p"},
			"by a scope":          {session(cleo), "p"},
			"by two scopes":       {session(dan), "pr"},
			"project.backup":      {session(backs), "b"},
			"others":              {session(eve), ""},
			"nobody":              {noop, ""},
			"a token":             {token("none"), ""},
			"a user's PAT":        {pat(ann), ""},
			"a scope's PAT":       {pat(cleo, "namespace.media.open.read"), "p"},
			"without, the PAT":    {pat(dan), ""},
			"project.backup, PAT": {pat(backs, "project.backup"), "b"},
		} {
			var seen strings.Builder
			for _, x := range []struct{ letter, id, profile string }{{"p", posts.ID, "posts"}, {"r", rest.ID, "rest"}, {"d", daily.ID, "daily"}, {"b", backup, "backup"}} {
				ok := strings.Contains(tt.sees, x.letter)
				want, run := http.StatusOK, http.StatusAccepted
				switch {
				case tt.sees == "":
					want, run = http.StatusForbidden, http.StatusForbidden
				case !ok:
					want, run = http.StatusNotFound, http.StatusNotFound
				}
				for _, path := range []string{"/" + x.id, "/" + x.id + "/download", "/" + x.id + "/events", "/" + x.id + "?files=true"} {
					if got := s.do("GET", snaps+path, tt.as); got.status != want {
						t.Errorf("%s: GET %s of %s: %s, want %d", name, path, x.profile, got, want)
					}
				}
				if x.profile != "backup" {
					got := s.do("POST", snaps, tt.as, text(`{"profile": "`+x.profile+`"}`))
					if got.status != run {
						t.Errorf("%s: POST of %s: %s, want %d", name, x.profile, got, run)
					}
					if at := got.header.Get("Location"); at != "" {
						if end := s.ended(at, tt.as); !strings.Contains(end, `"succeeded"`) {
							t.Error(end)
						}
					}
				}
				if strings.Contains(s.do("GET", snaps+"?limit=1000", tt.as).body, `"id":"`+x.id) {
					seen.WriteString(x.letter)
				}
				if got := s.do("GET", snaps+"/profiles", tt.as).body; x.profile != "backup" && strings.Contains(got, `"name":"`+x.profile+`"`) != ok {
					t.Errorf("%s: profiles: %s", name, got)
				}
				if got := s.do("GET", snaps+"/runs?limit=1000", tt.as).body; strings.Contains(got, `"name":"`+x.profile+`"`) != ok {
					t.Errorf("%s: runs: %s", name, got)
				}
				for _, rt := range [][2]string{{"PUT", ""}, {"POST", "/verify"}, {"DELETE", ""}} {
					denied := !strings.Contains(tt.sees, "d")
					if rt[0] == "DELETE" && !denied {
						continue
					}
					if got := s.do(rt[0], snaps+"/"+x.id+rt[1], tt.as, text(`{"x": 1}`)); denied != (got.status == http.StatusForbidden) {
						t.Errorf("%s: %s %s: %s", name, rt[0], rt[1], got)
					}
				}
			}
			if seen.String() != tt.sees {
				t.Errorf("%s sees %q, want %q", name, seen.String(), tt.sees)
			}
		}
	})
}

// What a retention does not keep goes, as the dry run has told; what is pinned stays.
func TestSnapshotPrune(t *testing.T) {
	onMediaWith(t, strings.Replace(snapshotsConfig, "keepDaily: 7, keepWithin: 1m", "keepLast: 2", 1), func(t *testing.T, s mediaService) {
		var ids []string
		for range 5 {
			ids = append(ids, s.take("daily").ID)
		}
		s.take("posts")
		s.do("PUT", snaps+"/"+ids[0], admin, text(`{"pinned": true}`)).want(t, http.StatusOK)
		var plan api.SnapshotPrunePlan
		got := s.do("POST", snaps+"/prune", admin, text(`{"dryRun": true}`))
		got.want(t, http.StatusOK)
		unmarshal(t, got.body, &plan)
		var said []string
		for _, d := range plan.Items {
			said = append(said, fmt.Sprintf("%d %v %s", slices.Index(ids, d.ID), d.Keep, strings.Join(d.Reasons, ", ")))
		}
		slices.Sort(said) // those of one second have no order in the list
		slices.Reverse(said)
		want := []string{"4 true last snapshot", "3 true last snapshot", "2 false no rule keeps it", "1 false no rule keeps it", "0 true pinned"}
		if diff := cmp.Diff(want, said); diff != "" {
			t.Error(diff)
		}
		if n := strings.Count(s.do("GET", snaps+"?profile=daily", admin).body, `"profile":"daily"`); n != 5 {
			t.Errorf("a dry run has left %d", n)
		}
		run := s.run("POST", snaps+"/prune", `{"profile": "daily"}`)
		done := resultOf(t, run)
		if run.Kind != "prune" || run.Name != "daily" || len(done.Removed) != 2 || len(done.Kept) != 3 || done.Removed[0].ID != ids[2] && done.Removed[0].ID != ids[1] {
			t.Errorf("%+v", done)
		}
		for i, id := range ids {
			want := http.StatusOK
			if i == 1 || i == 2 {
				want = http.StatusNotFound
			}
			s.do("GET", snaps+"/"+id, admin).want(t, want)
		}
		s.run("POST", snaps+"/prune", ``)
		for body, want := range map[string]string{
			`{"profile": "none"}`:                 `404 profile_not_found: the project has no snapshot profile "none": the key snapshots of its config declares them`,
			`{"profile": "none", "dryRun": true}`: `404 profile_not_found: the project has no snapshot profile "none": the key snapshots of its config declares them`,
			`{"keepLast": 1}`:                     "400 validation_failed: keepLast: unknown field",
		} {
			if got := s.do("POST", snaps+"/prune", admin, text(body)).String(); got != want {
				t.Errorf("%s: %s", body, got)
			}
		}
	})
}
