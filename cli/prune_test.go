package cli_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/svcctl/svc/cli/command"
)

// TestPruneOfOtherFiles: what is gone here, the service may still have. It is not unregistered then, and nothing else is done.
func TestPruneOfOtherFiles(t *testing.T) {
	t.Parallel()
	const missing = `{"items":[{"kind":"registry","object":"shop","action":"missing","detail":"gone"}]}`
	for _, tc := range []struct {
		name, configFile string // configFile is below the directory, unless it begins with ":", behind which it is as it is
		drift            int
		answer           string
		reason           string // of ConfigValid
		exit             int
		want             string // that stderr has
		deleted          bool
	}{
		{"gone for the service, too", "shop/project.yaml", 200, missing, "", 0, "project shop is unregistered", true},
		{"a directory that is gone", "shop", 200, missing, "", 0, "project shop is unregistered", true},
		{"the service has it", "shop/project.yaml", 200, `{"items":[]}`, "", command.ExitConflict, "the service has the files of shop, which are not here", false},
		{"it differs in something else", "shop/project.yaml", 200, `{"items":[{"kind":"config","action":"differs"}]}`, "", command.ExitConflict, "svcctl project unregister shop", false},
		{"it can't be asked", "shop/project.yaml", 503, `{"detail":"later"}`, "", command.ExitUnreachable, "error: later", false},
		{"disabled", "shop/project.yaml", 404, `{"detail":"project not found"}`, "Disabled", 0, "warning: shop is left alone", false},
		{"never served, since it was gone", "shop/project.yaml", 404, `{"detail":"project not found"}`, "Unreadable", 0, "project shop is unregistered", true},
		{"here", "blog/project.yaml", 200, missing, "", 0, "", false},
		{"from elsewhere", ":/elsewhere/shop/project.yaml", 200, missing, "", 0, "", false},
		{"from beside", "../team2/shop/project.yaml", 200, missing, "", 0, "", false},
		{"relative", ":team/shop/project.yaml", 200, missing, "", 0, "", false},
		{"the directory itself", "", 200, missing, "", 0, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			team := filepath.Join(dir, "team")
			for _, name := range []string{"team/blog", "team2"} {
				if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			writeFile(t, filepath.Join(team, "blog", "project.yaml"), "namespace: blog\n")
			file, whole := strings.CutPrefix(tc.configFile, ":")
			if !whole {
				file = filepath.Join(team, tc.configFile)
			}
			var deleted bool
			address := serve(t, func(w http.ResponseWriter, r *http.Request) {
				status, body := 200, ""
				switch path := strings.TrimPrefix(r.URL.Path, "/api/v1"); {
				case path == "/project" && r.Method == http.MethodGet:
					body = fmt.Sprintf(`{"items":[{"id":"1","namespace":"blog","configFile":%q},{"id":"2","namespace":"shop","configFile":%q}]}`,
						filepath.Join(team, "blog", "project.yaml"), file)
				case path == "/project/2" && r.Method == http.MethodDelete:
					deleted, body = true, `{}`
				case path == "/project/2/status":
					body = fmt.Sprintf(`{"phase":"Disabled","conditions":[{"type":"ConfigValid","status":"Unknown","reason":%q}]}`, tc.reason)
				case path == "/project/1/status":
					body = `{"phase":"Ready","conditions":[{"type":"Ready","status":"True"}]}`
				case path == "/_/shop/_/admin/drift":
					status, body = tc.drift, tc.answer
				case path == "/_/blog/_/admin/plan":
					body = `{"namespace":"blog","empty":true,"risk":"safe","hash":"h","next":"n"}`
				case path == "/_/blog/_/admin/reload":
					body = `{"generation":1}`
				default:
					status, body = 500, fmt.Sprintf(`{"detail":"not expected: %s %s"}`, r.Method, r.URL.Path)
				}
				answer(status, body)(w, r)
			})
			p := start(t, address)
			exit := p.run(t, "apply", "-f", team, "--prune", "--yes")
			if exit != tc.exit || deleted != tc.deleted || !strings.Contains(p.err.String(), tc.want) {
				t.Errorf("exit code %d, want %d; unregistered: %t, want %t; it says %s\nwant %s", exit, tc.exit, deleted, tc.deleted, p.err.String(), tc.want)
			}
			if applied := strings.Contains(p.out.String(), "blog"); applied != (exit == 0) {
				t.Errorf("exit code %d, and it shows %s", exit, p.out.String())
			}
		})
	}
}
