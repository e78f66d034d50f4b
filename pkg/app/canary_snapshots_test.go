package app_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/app"
)

const snapshotCanaryConfig = `
namespace: media
admin: {tokens: [{name: deploy, value: ` + projectToken + `, rights: [snapshot]}]}
audit: {enabled: true}
snapshots:
  - {name: all, retention: {keepLast: 50}}
  - {name: posts, collections: [open], permissions: [ann]}
collections:
  - name: open
    audit: {enabled: true}
    fields:
      - {name: title, type: string}
      - {name: pin, type: string, hidden: true, index: [unique, sparse]}
      - {name: file, type: file}
    permissions:
      public: {methods: {get: true}}
      user: {methods: {get: true}}
      "token:${env:DOOR_TOKEN}": {methods: {get: true, post: true}}
  - name: vault
    fields: [{name: pin, type: string, index: [unique, sparse]}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
`

// S27: what is told of snapshots, by answers, events, the log, the audit log and metrics, has no secret and no value of a record: a diff and a
// dry run name fields, refusals records. Values are in what is downloaded alone, and there are no secrets of the service or its users.
func TestS27CanariesInSnapshots(t *testing.T) {
	for _, kind := range []string{"embedded", "mongodb"} {
		t.Run(kind, func(t *testing.T) {
			uri := ""
			if kind == "mongodb" {
				uri = emptyMongo(t, "svc_media")
			}
			s := mediaService{data: t.TempDir()}
			s.service = run(t, func(c *app.Config) {
				c.StoreURI, c.DataDir, c.JWTSecret = uri, s.data, []byte(doorKey)
				c.Env = func(name string) (string, bool) { return doorSecret, name == "DOOR_TOKEN" }
			})
			s.register("media", snapshotCanaryConfig)
			const pin, vault, title, file = "canary-pin-4482", "canary-vault-9911", "canary-title-3b", "canary-file-7z"
			_, ann := s.user("ann", nil)
			_, snapper := s.user("snapper", map[string]any{"scopes": []string{"project.snapshot"}})
			_, backs := s.user("backs", map[string]any{"scopes": []string{"project.backup"}})
			_, eve := s.user("eve", nil)
			pat := s.do("POST", "/api/v1/token", session(snapper), json1(map[string]any{"name": "t", "scopes": []string{"project.snapshot"}})).field("token")
			secrets := map[string]string{
				"admin token": adminToken, "environment's token": doorSecret, "signing key": doorKey, "password": password,
				"ann's session": ann, "snapper's session": snapper, "backs' session": backs, "personal access token": pat,
			}
			values := map[string]string{"project admin token": projectToken, "hidden field": pin, "unreachable record": vault, "field": title, "file": file}

			record := s.do("POST", "/api/v1/_/media/open", admin, form(part{name: "data", content: `{"title": "` + title + `", "pin": "` + pin + `"}`}, part{name: "file", file: "a.txt", content: file}))
			record.want(t, http.StatusCreated)
			locked := s.do("POST", "/api/v1/_/media/vault", admin, json1(map[string]any{"pin": vault}))
			locked.want(t, http.StatusCreated)
			all, posts := s.take("all").ID, s.take("posts").ID
			backup := resultOf(t, s.run("POST", backups, ``)).Snapshot
			archive := s.download(all, admin)
			// From now on a merge would have two records of one pin.
			for collection, id := range map[string]string{"open": record.field("id"), "vault": locked.field("id")} {
				s.do("DELETE", "/api/v1/_/media/"+collection+"/"+id, admin).want(t, http.StatusOK)
			}
			s.do("POST", "/api/v1/_/media/open", admin, json1(map[string]any{"title": title, "pin": pin})).want(t, http.StatusCreated)
			s.do("POST", "/api/v1/_/media/vault", admin, json1(map[string]any{"pin": vault})).want(t, http.StatusCreated)

			var out strings.Builder
			done := map[string]int{} // kinds of runs that were seen, by how they ended
			note := func(a answer) answer {
				for name, values := range a.header {
					fmt.Fprintln(&out, name, values)
				}
				out.WriteString(a.body + "\n")
				return a
			}
			callers := map[string]option{
				"admin": admin, "project token": token(projectToken), "snapper": session(snapper), "PAT": header("Authorization", "Bearer "+pat),
				"ann": session(ann), "backs": session(backs), "eve": session(eve), "nobody": noop,
			}
			for name, as := range callers {
				for _, path := range []string{
					snaps, snaps + "/profiles", snaps + "/runs?limit=1000", backups + "/analyze-download", backups + "/analyze-download?id=" + backup,
					snaps + "/" + all, snaps + "/" + all + "?files=true", snaps + "/" + posts + "?files=true", snaps + "/" + all + "/diff", snaps + "/" + all + "/diff?with=" + backup,
					snaps + "/" + posts + "/diff", snaps + "/" + posts + "/diff?collection=" + pin, snaps + "/" + pin, snaps + "/" + posts + "/events",
				} {
					got := note(s.do("GET", path, as))
					if strings.Contains(path, "/diff") && got.status == http.StatusOK != (name != "ann" && name != "backs" && name != "eve" && name != "nobody") && !strings.Contains(path, pin) {
						t.Errorf("%s: a diff is %s", name, got)
					}
				}
				for _, rt := range [][2]string{
					{snaps, `{"profile": "posts"}`}, {snaps, `{"profile": "` + pin + `"}`}, {snaps + "/prune", `{"dryRun": true}`}, {backups, ``},
					{snaps + "/" + all + "/verify", ``}, {snaps + "/" + all + "/restore", `{"dryRun": true}`}, {snaps + "/" + all + "/restore", `{"dryRun": true, "mode": "merge"}`},
					{snaps + "/" + all + "/restore", `{"mode": "merge", "collections": ["open"]}`}, {snaps + "/" + all + "/restore", `{"mode": "merge", "collections": ["vault"]}`},
					{snaps + "/" + all + "/restore", `{"collections": ["` + pin + `"]}`},
				} {
					body := []option{as}
					if rt[1] != "" {
						body = append(body, text(rt[1]))
					}
					got := note(s.do("POST", rt[0], body...))
					if at := got.header.Get("Location"); at != "" {
						var run api.Run
						unmarshal(t, s.ended(at, admin), &run)
						end := run.Status
						if run.Error != nil {
							end = run.Error.Code
						}
						done[run.Kind+" "+end]++
						note(s.do("GET", at, as))
						note(s.do("GET", snaps+"/"+run.ID+"/events", as))
					}
				}
				note(s.do("POST", snaps+"/import", as, archived(archive)))
				note(s.do("POST", snaps+"/import", as, archived(archive[:len(archive)/2])))
				if at := note(s.do("POST", backups+"/restore?mode=merge", as, archived(archive+pin))).header.Get("Location"); at != "" { // it is known, and not read to its end
					s.ended(at, admin)
					note(s.do("GET", at, as))
				}
			}
			for what, n := range map[string]int{"snapshot succeeded": 5, "backup succeeded": 2, "verify succeeded": 4, "restore succeeded": 8, "restore restore_violates": 8} {
				if done[what] < n {
					t.Errorf("%d times %s: %v", done[what], what, done)
				}
			}
			trail := s.do("GET", `/api/v1/audit?limit=1000&filter={"collection":{"$regex":"^_"}}`, admin).body
			if !strings.Contains(trail, `"op":"restore"`) {
				t.Error(trail)
			}
			places := map[string]string{"log": s.logs.String(), "answers": out.String(), "audit log": trail, "metrics": s.do("GET", "/metrics", admin).body}
			for place, text := range places {
				for _, list := range []map[string]string{secrets, values} {
					for name, secret := range list {
						if sent := place == "log" && (name == "hidden field" || name == "field") || place == "answers" && name == "hidden field"; sent {
							text = withoutEchoes(text, secret)
						}
						if i := strings.Index(text, secret); i >= 0 {
							t.Errorf("the %s is in the %s: …%s…", name, place, text[max(0, i-300):min(len(text), i+100)])
						}
					}
				}
			}
			kept := s.unpackedSnapshots("media")
			for name, text := range kept {
				for what, secret := range secrets {
					if strings.Contains(text, secret) {
						t.Errorf("the %s is in %s", what, name)
					}
				}
				if strings.HasPrefix(name, "/posts/") && strings.Contains(text, vault) {
					t.Errorf("%s has a collection that the profile does not have", name)
				}
			}
			if !strings.Contains(kept["/all/"+all+"/collections/vault.jsonl.zst"], vault) {
				t.Error("the snapshots are not what this test is about")
			}
		})
	}
}

// withoutEchoes leaves out where a caller's own words come back: the names that they asked for.
func withoutEchoes(text, secret string) string {
	for _, around := range []string{`profile "%s"`, `profile \"%s\"`, `collection "%s"`, `collection \"%s\"`, "/snapshots/%s", `profile \\\"%s\\\"`, `collection \\\"%s\\\"`} {
		text = strings.ReplaceAll(text, fmt.Sprintf(around, secret), "")
	}
	return text
}

// unpackedSnapshots are the files of a project's snapshots, those that are compressed unpacked.
func (s *service) unpackedSnapshots(project string) map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for _, name := range s.snapshotFiles(project) {
		data, err := os.ReadFile(filepath.Join(s.dir, project, "snapshots", name))
		if err != nil {
			s.t.Fatal(err)
		}
		if strings.HasSuffix(name, ".zst") {
			zip, err := zstd.NewReader(bytes.NewReader(data))
			if err != nil {
				s.t.Fatal(err)
			}
			if data, err = io.ReadAll(zip); err != nil {
				s.t.Fatal(err)
			}
			zip.Close()
		}
		out[name] = string(data)
	}
	return out
}
