package app_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/app"
)

// S27: every route is asked by everyone, for what it does and for nonsense that holds their secrets, and no secret is
// found in an answer, the log at its lowest level, or the metrics; nor are passwords, personal access tokens and the admin
// token in the files of the store.
func TestS27CanariesThroughEveryRoute(t *testing.T) {
	dir := ""
	d := newDoors(t, "", func(c *app.Config) { dir, c.JWTSecret = c.DataDir, []byte(doorKey) })
	d.callers["environment"] = token(doorSecret)
	secrets := append(slices.Clone(d.secrets), adminToken, password, doorKey, doorSecret, "door-reads", "door-writes", "door-collections", "door-reload", "door-snapshot")
	var answers strings.Builder
	note := func(a answer) {
		made := a.field("token") // of a login or a new token: shown this once
		for name, values := range a.header {
			if name != "Set-Cookie" {
				fmt.Fprintln(&answers, name, values)
			}
		}
		if made == "" || !strings.HasPrefix(a.body, "{") || a.status/100 != 2 {
			answers.WriteString(a.body + "\n")
			return
		}
		if secrets = append(secrets, made); strings.Count(a.body, made) != 1 {
			t.Errorf("a token is shown twice: %s", a.body)
		}
	}
	nonsense := 0
	for _, row := range doorRows(t) {
		for _, caller := range []string{"none", "environment", "writes", "query", "collections", "manager", "boss", "cookie", "root", "patWrites", "patExpired"} {
			if strings.Contains(row.path, "{user2}") || strings.Contains(row.path, "{new}") || strings.HasSuffix(row.path, "/shutdown") {
				continue
			}
			d.n++
			path := row.path
			for name, id := range d.ids {
				path = strings.ReplaceAll(path, "{"+name+"}", id)
			}
			path, params, _ := strings.Cut(path, "?")
			secret := secrets[nonsense%len(secrets)]
			for _, body := range []string{
				strings.NewReplacer("{password}", password, "{n}", strconv.Itoa(d.n), "{org}", d.ids["org"]).Replace(row.body),
				`{"username": {"$gt": "` + secret + `"}, "name": 5, "title": ["` + secret + `"], "n": "` + secret + `", "scopes": ["` + secret + `"]}`,
				`{"password": "` + secret + `", "currentPassword": "` + secret + `", "` + secret, "",
			} {
				if strings.HasSuffix(path, "/login") && body != "" && !strings.Contains(body, "door-login") || strings.HasSuffix(path, "/me/password") {
					continue // its failures would delay all logins
				}
				show := []option{query(params), d.callers[caller]}
				if body != "" {
					show = append(show, text(body))
				}
				note(d.do(row.method, path, show...))
				nonsense++
			}
			if strings.HasSuffix(path, "/logout") && (caller == "manager" || caller == "boss" || caller == "cookie") {
				d.logIn(caller)
			}
		}
	}
	secrets = append(secrets, d.secrets...)
	places := map[string]string{"log": d.logs.String(), "answers": answers.String(), "metrics": d.do("GET", "/metrics", admin).body}
	if !strings.Contains(places["log"], "/api/v1/_/shop/items") || strings.Count(places["answers"], "permission denied") < 50 {
		t.Fatal("the log or the answers are not what this test is about")
	}
	for place, text := range places {
		for _, secret := range secrets {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%.12s… is in the %s: …%s…", secret, place, text[max(0, i-200):min(len(text), i+100)])
			}
		}
	}
	stored := slices.DeleteFunc(slices.Clone(secrets), func(s string) bool { // the key is kept there, and so are configs
		return s != password && s != adminToken && !strings.HasPrefix(s, "svc_pat_")
	})
	err := filepath.WalkDir(filepath.Join(dir, "store"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, secret := range stored {
			if strings.Contains(string(data), secret) {
				t.Errorf("%.12s… is in %s", secret, path)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
