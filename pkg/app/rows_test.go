package app_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// S27: secrets go through success and failure and are found nowhere.
func TestS27(t *testing.T) {
	s := runShop(t, nil)
	id := s.item(`{"title": "A", "n": 1}`)
	_, jwt := s.user("ann", nil)
	secrets := map[string]string{
		"admin token": adminToken, "collection token": collectionToken, "read token": readToken,
		"project admin token": projectToken, "password": password, "session": jwt, "session's signature": jwt[strings.LastIndex(jwt, ".")+1:],
	}
	var answers strings.Builder
	note := func(a answer) {
		for name, values := range a.header {
			fmt.Fprintln(&answers, name, values)
		}
		answers.WriteString(a.body + "\n")
	}
	paths := []string{
		"/api/v1/_/shop/items", "/api/v1/_/shop/items/" + id, "/api/v1/_/shop/items/x", "/api/v1/_/shop/nope", "/api/v1/_/nope/items",
		"/api/v1/project", "/api/v1/user", "/api/v1/me", "/api/v1/nope", "/api/v1/_/shop/_/collections", "/api/v1/_/shop/_/admin/reload",
	}
	for name, secret := range secrets {
		for _, show := range []option{
			token(secret), session(secret), header("X-Admin-Token", secret), header("Authorization", "Bearer "+secret),
			header("Authorization", secret), header("Authorization", "Basic "+secret), query("token=" + url.QueryEscape(secret)),
			query("Token=a&token=" + secret), header("X-Request-Id", "id"),
		} {
			for _, path := range paths {
				note(s.do("GET", path, show))
				note(s.do("PUT", path, show, text(`{"n": 1}`)))
				note(s.do("POST", path, show, text(`{"nope": `)))
			}
		}
		for _, body := range []string{
			`{"username": "ann", "password": "` + secret + `"}`, `{"username": "ann", "password": ["` + secret + `"]}`,
			`{"username": "` + name + `", "password": "` + secret + `"`, `{"username": "ann", "password": "` + secret + `", "x": 1}`,
		} {
			res := s.do("POST", "/api/v1/login", text(body))
			res.body = strings.ReplaceAll(res.body, res.field("token"), "")
			res.header.Del("Set-Cookie") // the token again
			note(res)
			note(s.do("POST", "/api/v1/user", admin, text(body)))
			note(s.do("PUT", "/api/v1/me/password", session(jwt), text(strings.Replace(body, "username", "currentPassword", 1))))
		}
		note(s.do("POST", "/api/v1/_/shop/items", admin, text(`{"title": "B", "slug": 5, "n": "`+secret+`"}`)))
	}
	s.configure("shop", shopConfig+"      \"token:"+collectionToken+"\": {methods: {get: nope}}\n")
	note(s.do("POST", "/api/v1/_/shop/_/admin/reload?wait=true", admin))
	s.configure("shop", strings.Replace(shopConfig, "methods: {get: true, post: {bulk: true}", "methods: {get: perhaps, post: {bulk: true}", 1))
	note(s.do("POST", "/api/v1/_/shop/_/admin/reload?wait=true", admin))
	project := s.projectID()
	for _, path := range []string{"/api/v1/project/" + project + "/status", "/api/v1/_/shop/_/collections", "/api/v1/_/shop/_/collections/items"} {
		note(s.do("GET", path, admin))
	}
	metrics := s.do("GET", "/metrics").body
	if !strings.Contains(s.logs.String(), "/api/v1/_/shop/items/"+id) || strings.Count(answers.String(), "permission denied") < 50 {
		t.Fatal("the log or the answers are not what this test is about")
	}
	for name, secret := range secrets {
		for place, text := range map[string]string{"log": s.logs.String(), "answers": answers.String(), "metrics": metrics} {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("the %s is in the %s: …%s…", name, place, text[max(0, i-200):min(len(text), i+100)])
			}
		}
	}
}

// S27: nor does a store's password show, whether the store is there or not.
func TestS27StoreURI(t *testing.T) {
	t.Parallel()
	const secret = "canary-store-password-8sW"
	for name, uri := range map[string]string{
		"nobody there": "mongodb://svc:" + secret + "@127.0.0.1:1/?serverSelectionTimeoutMS=200",
		"no URI":       "mongodb://svc:" + secret + "@[::1",
		"bad option":   "mongodb://svc:" + secret + "@127.0.0.1:1/?w=" + secret + "&readConcernLevel=" + secret,
		"bad scheme":   "mango://svc:" + secret + "@127.0.0.1/",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for a server
			logs := &lockedBuffer{}
			_, err := app.New(t.Context(), storeConfig(t, uri, logs))
			if err == nil {
				t.Fatal("it started")
			}
			if strings.Contains(err.Error(), secret) || strings.Contains(logs.String(), secret) {
				t.Errorf("%v\n%s", err, logs)
			}
		})
	}
	t.Run("refused", func(t *testing.T) { // a server that is there and does not know the user
		u, err := url.Parse(mongotest.URI(t))
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword("svc", secret)
		logs := &lockedBuffer{}
		if _, err = app.New(t.Context(), storeConfig(t, u.String(), logs)); err == nil {
			t.Fatal("it started")
		}
		if strings.Contains(err.Error(), secret) || strings.Contains(logs.String(), secret) {
			t.Errorf("%v\n%s", err, logs)
		}
	})
}

func storeConfig(t *testing.T, uri string, logs io.Writer) app.Config {
	t.Helper()
	return app.Config{
		MCP:  app.MCP{Enabled: true},
		Host: "127.0.0.1", MaxBodySize: 1 << 20, AdminToken: adminToken, StoreURI: uri, DataDir: t.TempDir(), ProjectsDir: t.TempDir(),
		Watch: controllers.WatchOff, ShutdownGrace: time.Second, Now: time.Now, OnFatal: func(err error) { t.Error(err) },
		Logger: slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Env:    func(string) (string, bool) { return "", false }, PasswordCost: cheap,
	}
}

// S28: control characters that callers send never reach a log as they are.
func TestS28(t *testing.T) {
	s := runShop(t, nil)
	const evil = "x\x1b[31m\nlevel=ERROR msg=forged\r\x07\u009b2J\u202eabc"
	escaped := url.PathEscape(evil)
	for _, o := range [][]option{nil, {admin}, {token(collectionToken)}} {
		s.do("GET", "/api/v1/"+escaped, o...)
		s.do("GET", "/api/v1/_/"+escaped+"/items", o...)
		s.do("GET", "/api/v1/_/shop/"+escaped, o...)
		s.do("GET", "/api/v1/_/shop/items/"+escaped, o...)
		s.do("GET", "/api/v1/_/shop/items?"+escaped+"="+escaped, o...)
		s.do("POST", "/api/v1/_/shop/items", append(o, json1(map[string]any{"title": evil, evil: evil}))...)
		s.do("POST", "/api/v1/login", append(o, json1(map[string]any{"username": evil, "password": evil}))...)
		s.do("POST", "/api/v1/user", append(o, json1(map[string]any{"username": evil, "password": evil}))...)
		s.do("POST", "/api/v1/project", append(o, json1(map[string]any{"name": evil, "configFile": evil, "enabled": true}))...)
	}
	s.raw("GET /healthz HTTP/1.1\r\nHost: a\r\nX-Request-Id: \x1b[31m\r\nUser-Agent: \x1b[31m\r\nConnection: close\r\n\r\n")
	s.raw("GET /\x1b[31m HTTP/1.1\r\nHost: \x1b[31m\r\nConnection: close\r\n\r\n")
	if !strings.Contains(s.logs.String(), `\x1b[31m`) {
		t.Error("the log has nothing of it, so this test is about nothing")
	}
	for line := range strings.SplitSeq(s.logs.String(), "\n") {
		if strings.HasPrefix(line, "level=") {
			t.Errorf("a forged line: %q", line)
		}
		for _, c := range line {
			if c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 || c == '\u202e' {
				t.Errorf("%q in %q", c, line)
			}
		}
	}
}

// raw sends bytes and gives all that comes back until the service closes the connection.
func (s *service) raw(request string) string {
	s.t.Helper()
	conn := s.dial()
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		return err.Error()
	}
	answer, _ := io.ReadAll(conn) // a reset is an answer, too
	return string(answer)
}

func (s *service) dial() net.Conn {
	s.t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(s.t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	return conn
}

// S55: clients that are slow or greedy get their connection closed, and the others notice nothing.
func TestS55(t *testing.T) {
	t.Parallel() // it waits for the service's own timeouts
	s := runShop(t, nil)
	id := s.item(`{"title": "A", "n": 1}`)

	const greedy = 60
	slow := make([]net.Conn, 0, 3*greedy)
	for range greedy {
		for _, begin := range []string{
			"GET /api/v1/version HTTP/1.1\r\nHost: a\r\nX-Slow: ", // the head never ends
			"POST /api/v1/_/shop/items HTTP/1.1\r\nHost: a\r\nToken: " + collectionToken + "\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n{",
			"", // nothing at all
		} {
			conn := s.dial()
			t.Cleanup(func() { _ = conn.Close() })
			if _, err := io.WriteString(conn, begin); err != nil {
				t.Fatal(err)
			}
			slow = append(slow, conn)
		}
	}
	for range 20 { // the others
		s.do("GET", "/api/v1/_/shop/items/"+id).want(t, http.StatusOK)
		s.do("PUT", "/api/v1/_/shop/items/"+id, token(collectionToken), text(`{"n": 1}`)).want(t, http.StatusOK)
	}
	large := s.raw("GET /api/v1/version HTTP/1.1\r\nHost: a\r\nX-Large: " + strings.Repeat("x", 100<<10) + "\r\n\r\n")
	if !strings.HasPrefix(large, "HTTP/1.1 431 ") || !strings.Contains(large, `"code":"head_too_large"`) {
		t.Errorf("100 KB of headers: %.300s", large)
	}
	tooLong := strings.Repeat("12345,", 10_000)
	s.do("GET", "/api/v1/_/shop/items?filter="+url.QueryEscape(`{"n": {"$in": [`+tooLong+`1]}}`)).want(t, http.StatusRequestHeaderFieldsTooLarge)
	for n, want := range map[int]string{
		1000: "400 unknown_parameter: unknown query parameter: a",
		2000: "400 too_many_parameters: more than 1000 query parameters",
	} {
		if got := s.do("GET", "/api/v1/_/shop/items?"+strings.TrimSuffix(strings.Repeat("a&", n), "&")).String(); got != want {
			t.Errorf("%d parameters: %s", n, got)
		}
	}
	s.do("GET", "/api/v1/_/shop/items/"+id).want(t, http.StatusOK)

	// In the end, every slow connection is closed, those with a body with an answer.
	for i, conn := range slow {
		answer, err := io.ReadAll(bufio.NewReader(conn))
		if err != nil && !strings.Contains(err.Error(), "reset") {
			t.Fatal(err)
		}
		if i%3 == 1 && !strings.Contains(string(answer), `"code":"slow_body"`) {
			t.Fatalf("%.300s", answer)
		}
	}
	if n := strings.Count(s.do("GET", "/api/v1/_/shop/items").body, `"title"`); n != 1 {
		t.Errorf("%d records: a body that never came was taken for one", n)
	}
}

// S59: an admin token that is set to nothing, or can be guessed, opens nothing; there is no mode in which checks are off.
func TestS59(t *testing.T) {
	for write, want := range map[string]string{
		"": "is empty", " \n": "is empty",
		"fifteen bytes..\n": "is 15 bytes long, it must be 16 or more: openssl rand -hex 32 makes one",
	} {
		cfg := storeConfig(t, "", io.Discard)
		cfg.AdminToken = ""
		if err := os.WriteFile(app.AdminTokenFile(cfg.DataDir), []byte(write), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := app.New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", write, err)
		}
		if cfg.AdminToken = strings.TrimSpace(write); cfg.AdminToken == "" {
			continue
		}
		if _, err := app.New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q set: %v", write, err)
		}
	}
	var dataDir string
	s := run(t, func(c *app.Config) { c.AdminToken, dataDir = "", c.DataDir })
	generated, err := os.ReadFile(filepath.Join(dataDir, "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dataDir, "admin.token"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if len(strings.TrimSpace(string(generated))) < 40 || strings.Contains(s.logs.String(), strings.TrimSpace(string(generated))) {
		t.Error("the generated token is short, or in the log")
	}
	for _, show := range []option{
		noop, header("X-Admin-Token", ""), header("X-Admin-Token", " "), header("Authorization", "Bearer "), header("Authorization", "Bearer"),
		header("Authorization", ""), token(""), session(""), query("token="), query("x-admin-token="), host("localhost"),
		header("X-Forwarded-For", "127.0.0.1"), header("X-Dev", "1"), header("X-Admin-Token", "admin"), header("X-Admin-Token", "null"),
	} {
		for _, path := range []string{"/api/v1/project", "/api/v1/user"} {
			if got := s.do("GET", path, show); got.status != http.StatusForbidden {
				t.Errorf("%s: %s", path, got)
			}
		}
	}
	if got := s.do("GET", "/api/v1/user", header("X-Admin-Token", strings.TrimSpace(string(generated)))); got.status != http.StatusOK {
		t.Error(got)
	}
}

// What is in flight when the service stops is finished.
func TestShutdownFinishesRequests(t *testing.T) {
	cfg := storeConfig(t, "", io.Discard)
	a, err := app.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	s := &service{t: t, url: "http://" + a.Addr()}
	body := `{"username": "ann", "password": "` + password + `"}`
	conn := s.dial()
	defer conn.Close()
	head := fmt.Sprintf("POST /api/v1/user HTTP/1.1\r\nHost: a\r\nX-Admin-Token: %s\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", adminToken, len(body))
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") { // the handler reads
		t.Fatal(line, err)
	}
	stop()
	if _, err := io.WriteString(conn, body); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(r)
	if err != nil || !strings.Contains(string(rest), "201 Created") {
		t.Errorf("%s %v", rest, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
