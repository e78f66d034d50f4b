package app_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

const canaryConfig = `
namespace: shop
admin: {tokens: [{name: deploy, value: ` + projectToken + `}]}
audit: {enabled: true}
collections:
  - name: items
    fields:
      - {name: title, type: string}
      - {name: pin, type: string, hidden: true, index: [unique, sparse]}
      - {name: note, type: string}
    audit: {enabled: true, excludeFields: [note]}
    permissions:
      public: {methods: {get: true}}
      user: {methods: {get: true, post: true, put: true}}
      "token:` + collectionToken + `": {methods: {get: true, post: {bulk: true}, put: {bulk: true}, delete: {bulk: true}}}
`

// S27: what changes secrets, and what is written down about it: passwords are changed, keys rotated, audited records
// written, decisions explained, the service stopped, rightly and wrongly. No secret is found in an answer, the log at its
// lowest level, the audit log or the metrics, and none that the service made for itself either.
func TestS27CanariesInUse(t *testing.T) {
	dir := ""
	s := run(t, func(c *app.Config) { dir = c.DataDir })
	s.register("shop", canaryConfig)
	ann, jwt := s.user("ann", map[string]any{"scopes": []string{"project.read", "audit.read", "namespace.shop"}})
	_, boss := s.user("boss", map[string]any{"isAdmin": true})
	const next, pin, note = "canary-next-password-1Kw", "canary-pin-4482", "canary-note-Uq1"
	secrets := map[string]string{
		"admin token": adminToken, "collection token": collectionToken, "project admin token": projectToken,
		"password": password, "next password": next, "hidden field": pin, "excluded field": note, "session": jwt, "boss's session": boss,
	}
	var out strings.Builder
	do := func(method, path string, show ...option) answer {
		res := s.do(method, "/api/v1"+path, show...)
		fmt.Fprintln(&out, res.body)
		for name, values := range res.header {
			fmt.Fprintln(&out, name, values)
		}
		return res
	}
	pat := s.do("POST", "/api/v1/token", session(jwt), text(`{"name": "ci", "scopes": ["project.read", "namespace.shop"]}`)) // shown this once
	pat.want(t, http.StatusCreated)
	secrets["personal access token"] = pat.field("token")

	// Records of an audited collection, in bulk too, and what is refused of them.
	made := s.do("POST", "/api/v1/_/shop/items", admin, json1(map[string]any{"title": "A", "pin": pin, "note": "x"}))
	made.want(t, http.StatusCreated)
	for i, show := range []option{session(jwt), session(secrets["personal access token"]), token(collectionToken), query("token=" + collectionToken), admin, token(projectToken)} {
		do := do
		if i > 3 { // who sees what is hidden
			do = func(method, path string, show ...option) answer { return s.do(method, "/api/v1"+path, show...) }
		}
		do("POST", "/_/shop/items", show, json1(map[string]any{"title": "B", "pin": pin})) // taken, or hidden
		do("PUT", "/_/shop/items/"+made.field("id"), show, text(`{"title": "C"}`))
		do("PUT", `/_/shop/items?filter={"title":"C"}`, show, text(`{"title": "D"}`))
		do("PATCH", "/_/shop/items/"+made.field("id"), show, header("Content-Type", "application/json-patch+json"), text(`[{"op": "test", "path": "/pin", "value": "`+pin+`"}]`))
		do("GET", `/_/shop/items?filter={"pin":"x"}`, show)
	}
	do("DELETE", "/_/shop/items/"+made.field("id"), token(collectionToken)).want(t, http.StatusOK)

	for name, secret := range secrets {
		for _, body := range []string{
			`{"principal": {"kind": "user", "username": "` + secret + `"}, "method": "get", "collection": "items"}`,
			`{"principal": {"kind": "token", "tokenHash": "` + secret + `"}, "method": "get", "collection": "items"}`,
			`{"principal": {"kind": "token", "tokenHash": "` + hashOf(secret) + `"}, "method": "get", "collection": "items"}`,
			`{"principal": {"kind": "` + secret + `"}, "method": "` + secret + `", "collection": "items", "id": "` + secret + `"}`,
			`{"principal": "` + secret + `", "` + name + `": ["` + secret,
		} {
			for _, show := range []option{admin, session(jwt), token(secret)} {
				do("POST", "/_/shop/_/admin/access/explain", show, text(body))
			}
		}
		for _, path := range []string{"/admin/keys/rotate", "/admin/shutdown"} {
			do("POST", path, session(jwt), text(`{"secret": "`+secret+`"}`)).want(t, http.StatusForbidden)
			if secret != boss { // who may
				do("POST", path, session(secret)).want(t, http.StatusForbidden)
			}
		}
	}
	for range 3 { // so that keys are dropped, too
		do("POST", "/admin/keys/rotate", admin).want(t, http.StatusOK)
	}
	do("POST", "/_/shop/_/admin/reload?wait=true", token(projectToken)).want(t, http.StatusOK)

	change := func(current, next string) answer {
		return s.do("PUT", "/api/v1/me/password", session(jwt), json1(map[string]any{"currentPassword": current, "newPassword": next}))
	}
	res := change(password, next)
	res.want(t, http.StatusOK)
	jwt = res.field("token")
	secrets["next session"] = jwt
	for _, bad := range []answer{change(password, next), change(next, "short"), change(next, strings.Repeat(next, 100)), change(pin, note)} {
		fmt.Fprintln(&out, bad.body, bad.header)
	}
	for _, body := range []string{`{"currentPassword": "` + next, `{"currentPassword": ["` + next + `"]}`, `"` + next + `"`} {
		do("PUT", "/me/password", session(jwt), text(body)).want(t, http.StatusBadRequest)
	}
	for range 6 { // until there is a delay
		do("POST", "/login", json1(map[string]any{"username": "ann", "password": pin}))
		do("POST", "/login", json1(map[string]any{"username": next, "password": next}))
	}
	do("PUT", "/user/"+ann, admin, json1(map[string]any{"password": next + "2", "name": "Ann"})).want(t, http.StatusOK)

	trail := s.do("GET", "/api/v1/audit?limit=1000", admin).body + s.do("GET", "/api/v1/_/shop/_/audit?limit=1000", admin).body
	metrics := s.do("GET", "/metrics", admin).body
	do("POST", "/admin/shutdown", admin, query("token="+collectionToken)).want(t, http.StatusBadRequest) // two credentials
	do("POST", "/admin/shutdown", admin, text(`{"token": "`+adminToken+`"}`)).want(t, http.StatusAccepted)

	maps.Copy(secrets, madeSecrets(t, dir))
	for _, want := range []string{`"op":"password"`, `"op":"rotate-keys"`, `"op":"login_failed"`, `"op":"create"`, "[redacted]"} {
		if !strings.Contains(trail, want) {
			t.Errorf("the audit log has no %s", want)
		}
	}
	for name, secret := range secrets {
		for place, text := range map[string]string{"log": s.logs.String(), "answers": out.String(), "audit log": trail, "metrics": metrics} {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("the %s is in the %s: …%s…", name, place, text[max(0, i-200):min(len(text), i+100)])
			}
		}
	}
}

// madeSecrets are the keys that a service made for itself, in the forms that a careless program shows bytes in. It waits
// for the service to be over.
func madeSecrets(t *testing.T, dir string) map[string]string {
	t.Helper()
	var st store.Store
	eventually(t, func() string {
		var err error
		if st, err = embedded.Open(context.WithoutCancel(t.Context()), embedded.Options{Dir: filepath.Join(dir, "store"), OnFatal: func(err error) { t.Error(err) }}); err != nil {
			return err.Error()
		}
		return ""
	})
	defer func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	found := map[string]string{}
	err := st.Database("svc").Collection("secrets").Find(t.Context(), store.Query{}, func(doc bson.Raw) error {
		var kept struct {
			ID   string `bson:"_id"`
			Key  []byte `bson:"key"`
			Keys []struct {
				Secret []byte `bson:"secret"`
			} `bson:"keys"`
		}
		if err := bson.Unmarshal(doc, &kept); err != nil {
			return err
		}
		secrets := [][]byte{kept.Key}
		for _, k := range kept.Keys {
			secrets = append(secrets, k.Secret)
		}
		for i, secret := range secrets {
			if len(secret) == 0 {
				continue
			}
			name := fmt.Sprintf("key %s %d", kept.ID, i)
			found[name+" raw"], found[name+" hex"] = string(secret), hex.EncodeToString(secret)
			found[name+" base64"], found[name+" decimal"] = base64.RawStdEncoding.EncodeToString(secret), strings.Trim(fmt.Sprintf("%d", secret), "[]")
		}
		return nil
	})
	if err != nil || len(found) < 4*5 {
		t.Fatalf("%d forms of secrets, %v", len(found), err)
	}
	return found
}
