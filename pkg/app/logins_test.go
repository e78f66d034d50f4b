package app_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/auth"
	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// clock is the time and what a test adds to it.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time       { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) pass(d time.Duration) { c.ahead.Add(int64(d)) }

// two starts two instances on one MongoDB, whose clock the test holds.
func two(t *testing.T) (a, b *instance, c *clock) {
	t.Helper()
	cfg := onMongo(t)
	c = &clock{}
	cfg.Now = c.now
	a = start(t, cfg)
	cfg.DataDir = t.TempDir()
	return a, start(t, cfg), c
}

// as gives a client of an instance that holds a session token.
func (i *instance) as(t *testing.T, token string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{Server: "http://" + i.addr, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (i *instance) login(t *testing.T, name, password string) string {
	t.Helper()
	session, err := i.as(t, "").Login(t.Context(), name, password)
	if err != nil {
		t.Fatal(err)
	}
	return session.Token
}

// good says whether an instance takes a session token.
func (i *instance) good(t *testing.T, token string) bool {
	t.Helper()
	_, err := i.as(t, token).Me(t.Context())
	if err != nil && !client.IsStatus(err, 403) {
		t.Fatal(err)
	}
	return err == nil
}

// S29: what ends a session ends it at once where it is done, and within a second on another instance.
func TestS29SessionRevocation(t *testing.T) {
	a, b, clock := two(t)
	ctx := t.Context()
	for name, end := range map[string]func(id string, c *client.Client) error{
		"logout":        func(_ string, c *client.Client) error { return c.Logout(ctx) },
		"logout-of-all": func(_ string, c *client.Client) error { return c.LogoutAll(ctx) },
		"password":      func(_ string, c *client.Client) error { return c.ChangePassword(ctx, password, password+"2") },
		"password-by-an-admin": func(id string, _ *client.Client) error {
			_, err := a.Users().Update(ctx, id, api.UserWrite{Password: new(password + "2")})
			return err
		},
		"deactivation": func(id string, _ *client.Client) error {
			_, err := a.Users().Update(ctx, id, api.UserWrite{Active: new(false)})
			return err
		},
		"deletion": func(id string, _ *client.Client) error { _, err := a.Users().Delete(ctx, id); return err },
		"deactivation-undone": func(id string, _ *client.Client) error {
			for _, active := range []bool{false, true} {
				if _, err := a.Users().Update(ctx, id, api.UserWrite{Active: new(active)}); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := a.Users().Create(ctx, api.UserWrite{Username: new(name), Password: new(password)})
			if err != nil {
				t.Fatal(err)
			}
			tokens := []string{a.login(t, name, password), b.login(t, name, password)}
			for _, token := range tokens {
				if !a.good(t, token) || !b.good(t, token) {
					t.Fatal("a token is not good to begin with")
				}
			}
			if err := end(u.ID, a.as(t, tokens[0])); err != nil {
				t.Fatal(err)
			}
			for i, token := range tokens {
				if a.good(t, token) {
					t.Errorf("token %d is still good", i)
				}
			}
			clock.pass(time.Second)
			for i, token := range tokens {
				if b.good(t, token) {
					t.Errorf("token %d is still good on the other instance", i)
				}
			}
		})
	}
}

// A new key signs on every instance, what older ones signed stays good until it expires.
func TestRotateKeys(t *testing.T) {
	a, b, clock := two(t)
	ctx := t.Context()
	if _, err := a.Users().Create(ctx, api.UserWrite{Username: new("ann"), Password: new(password)}); err != nil {
		t.Fatal(err)
	}
	key := func(token string) string { return strings.Split(token, ".")[0] }
	old := a.login(t, "ann", password)
	if _, err := a.as(t, old).RotateKeys(ctx); !client.IsStatus(err, 403) {
		t.Errorf("by a user: %v", err)
	}
	k, err := a.RotateKeys(ctx)
	if err != nil || len(k.ID) != 16 || k.CreatedAt.IsZero() {
		t.Fatalf("%+v, %v", k, err)
	}
	fresh := a.login(t, "ann", password)
	clock.pass(time.Second)
	for _, i := range []*instance{a, b} {
		if key(fresh) == key(old) || !i.good(t, old) || !i.good(t, fresh) {
			t.Errorf("keys %s and %s, good: %v, %v", key(old), key(fresh), i.good(t, old), i.good(t, fresh))
		}
	}
	clock.pass(time.Minute)
	if late := b.login(t, "ann", password); key(late) != key(fresh) {
		t.Error("the other instance signs with the old key")
	}
	if again, err := b.RotateKeys(ctx); err != nil || again.ID == k.ID {
		t.Errorf("%+v, %v", again, err)
	}
	clock.pass(time.Hour - time.Minute - 2*time.Second) // the first ones have a second left
	for _, i := range []*instance{a, b} {
		if !i.good(t, old) || !i.good(t, fresh) {
			t.Error("a token that has not expired went with its key")
		}
	}
}

func TestRotateKeysThatTheSettingsHave(t *testing.T) {
	s := run(t, func(c *app.Config) { c.JWTSecret = []byte(strings.Repeat("s", 32)) })
	const want = "409 secret_in_settings: the secret that signs logins stands in the settings: change auth.jwtSecret (or its file) there, and restart"
	if got := s.do("POST", "/api/v1/admin/keys/rotate", admin).String(); got != want {
		t.Error(got)
	}
}

// POST /admin/shutdown ends Run as the end of its context does, after what is in flight.
func TestShutdownByTheAPI(t *testing.T) {
	cfg := newConfig(t)
	a, err := app.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- a.Run(t.Context()) }()
	i := &instance{Client: newClient(t, a.Addr()), addr: a.Addr()}
	ctx := t.Context()
	for name, scopes := range map[string][]string{"ops": {"server.shutdown"}, "ann": {"project.read"}} {
		if _, err := i.Users().Create(ctx, api.UserWrite{Username: new(name), Password: new(password), Scopes: &scopes}); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]*client.Client{"nobody": i.as(t, ""), "ann": i.as(t, i.login(t, "ann", password))} {
		if err := c.Shutdown(ctx); !client.IsStatus(err, 403) {
			t.Errorf("by %s: %v", name, err)
		}
	}
	ops := i.as(t, i.login(t, "ops", password))
	if err := ops.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	cfg.Port = 0
	start(t, cfg) // the store was closed
}

// S37: of instances that start at the same moment on an empty store, one makes the first administrator.
func TestS37FirstAdmin(t *testing.T) {
	cfg := onMongo(t)
	const instances = 6
	apps := make([]*app.App, instances)
	var wg sync.WaitGroup
	for i := range apps {
		c := cfg
		c.DataDir, c.AdminUser, c.AdminPassword = t.TempDir(), fmt.Sprintf("First%d", i), password
		wg.Go(func() {
			a, err := app.New(t.Context(), c)
			if err != nil {
				t.Error(err)
				return
			}
			apps[i] = a
		})
	}
	wg.Wait()
	for _, a := range apps {
		if a != nil {
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	svc := start(t, cfg)
	list, err := svc.Users().List(t.Context(), client.Query{})
	if err != nil || len(list.Items) != 1 || !list.Items[0].IsAdmin || !list.Items[0].Active {
		t.Fatalf("users: %+v, %v", list, err)
	}
	svc.login(t, list.Items[0].Username, password)
}

// What the other tests have cheap: a service that is told nothing hashes passwords at the full cost.
func TestPasswordCost(t *testing.T) {
	cfg := newConfig(t)
	cfg.PasswordCost, cfg.AdminUser, cfg.AdminPassword = auth.Params{}, "root", password
	svc := start(t, cfg)
	svc.login(t, "root", password)
	svc.stop()
	st, err := embedded.Open(t.Context(), embedded.Options{Dir: filepath.Join(cfg.DataDir, "store"), ReadOnly: true, OnFatal: cfg.OnFatal})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var hash string
	err = st.Database("svc").Collection("users").Find(t.Context(), store.Query{}, func(doc bson.Raw) error {
		hash, _ = doc.Lookup("passwordHash").StringValueOK()
		return nil
	})
	if err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=65536,t=2,p=1$") {
		t.Errorf("%.40s, %v", hash, err)
	}
}

func TestFirstAdmin(t *testing.T) {
	onStores(t, func(t *testing.T, cfg app.Config) {
		t.Helper()
		ctx := t.Context()
		cfg.AdminUser, cfg.AdminPassword = "Root", "short"
		if a, err := app.New(ctx, cfg); err == nil || !strings.Contains(err.Error(), "admin.password") || strings.Contains(err.Error(), "short\"") {
			t.Errorf("a short password: %v, %v", a, err)
		}
		cfg.AdminPassword = password
		first := start(t, cfg)
		root := first.as(t, first.login(t, "root", password))
		if me, err := root.Me(ctx); err != nil || !me.IsAdmin {
			t.Errorf("%+v, %v", me, err)
		}
		if err := root.ChangePassword(ctx, password, password+"2"); err != nil {
			t.Fatal(err)
		}
		first.stop()
		cfg.AdminUser = "another" // later starts change nothing
		second := start(t, cfg)
		second.login(t, "root", password+"2")
		if list, err := second.Users().List(ctx, client.Query{}); err != nil || len(list.Items) != 1 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// S35: who a caller is by address, which login delays count by, is a proxy's to say only where it is trusted.
func TestS35ForgedAddresses(t *testing.T) {
	for name, tt := range map[string]struct {
		trusted string
		header  string // %d is the number of the try
		want    string // of a good login after four failures of other names
	}{
		"no proxy is trusted":        {"", "X-Forwarded-For: 198.51.100.%d", "429"},
		"no proxy, Forwarded":        {"", "Forwarded: for=198.51.100.%d", "429"},
		"no proxy, X-Real-IP":        {"127.0.0.1/32", "X-Real-IP: 198.51.100.%d", "429"},
		"another proxy is trusted":   {"192.0.2.0/24", "X-Forwarded-For: 198.51.100.%d", "429"},
		"forged before the proxy":    {"127.0.0.1/32", "X-Forwarded-For: 198.51.100.%d, 203.0.113.9", "429"},
		"forged, and not an address": {"127.0.0.1/32", "X-Forwarded-For: x%d", "429"},
		"by the trusted proxy":       {"127.0.0.1/32", "X-Forwarded-For: 198.51.100.%d", "200"},
	} {
		t.Run(name, func(t *testing.T) {
			frozen := time.Now() // a delay is over after a second, which a loaded machine may take for the tries
			s := run(t, func(c *app.Config) {
				c.Now = func() time.Time { return frozen }
				if tt.trusted != "" {
					c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix(tt.trusted)}
				}
			})
			s.user("ann", nil)
			try := func(i int, name, pass string) string {
				key, value, _ := strings.Cut(fmt.Sprintf(tt.header, i), ": ")
				return s.do("POST", "/api/v1/login", header(key, value), json1(map[string]any{"username": name, "password": pass})).String()[:3]
			}
			for i := range 4 {
				if got := try(i, fmt.Sprintf("name%d", i), "x"); got != "403" {
					t.Fatalf("failure %d: %s", i, got)
				}
			}
			if got := try(9, "ann", password); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// S34, at the door: a delay holds for a name in any case and form, is told in Retry-After and ends when that is over; many
// tries in one body are none.
func TestS34BruteForce(t *testing.T) {
	c := &clock{}
	frozen := time.Now()
	s := run(t, func(cfg *app.Config) { cfg.Now = func() time.Time { return frozen.Add(time.Duration(c.ahead.Load())) } })
	s.user("ann", nil)
	try := func(name, pass string) answer {
		return s.do("POST", "/api/v1/login", json1(map[string]any{"username": name, "password": pass}))
	}
	for i, name := range []string{"ann", "ANN", "Ann", "aNn"} {
		if got := try(name, "wrong"); got.status != http.StatusForbidden {
			t.Fatalf("failure %d: %s", i, got)
		}
	}
	for n, wait := range []int{1, 2, 4, 8} {
		for _, name := range []string{"ann", "ANN", "bob"} { // by account, in any case; bob by address
			got := try(name, password)
			if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != strconv.Itoa(wait) {
				t.Errorf("delay %d, %s: %s, Retry-After %s, want %d", n, name, got, got.header.Get("Retry-After"), wait)
			}
		}
		c.pass(time.Duration(wait)*time.Second - time.Millisecond)
		if got := try("ann", password); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "1" {
			t.Errorf("a moment too early: %s, Retry-After %s", got, got.header.Get("Retry-After"))
		}
		c.pass(time.Millisecond)
		if got := try("ann", "wrong"); got.status != http.StatusForbidden {
			t.Errorf("when it is over: %s", got)
		}
	}
	for _, body := range []string{
		`[{"username": "ann", "password": "a"}, {"username": "ann", "password": "b"}]`,
		`{"items": [{"username": "ann", "password": "a"}]}`,
		`{"username": "ann", "password": ["a", "b"]}`,
		`{"username": ["ann", "bob"], "password": "a"}`,
		`{"username": "ann", "password": "a", "password": "b"}`,
	} {
		if got := s.do("POST", "/api/v1/login", text(body)); got.status != http.StatusBadRequest {
			t.Errorf("%s: %s", body, got)
		}
	}
	c.pass(16 * time.Second)
	try("ann", password).want(t, http.StatusOK)
}

// S15: where a string is due, an operator or object is refused, before anything is looked up.
func TestS15Operators(t *testing.T) {
	s := runShop(t, nil)
	id, ann := s.user("ann", nil)
	before := s.contents()
	for _, v := range []string{
		`{"$gt": ""}`, `{"$ne": null}`, `{"$regex": ".*"}`, `{"$where": "1"}`, `{"$in": ["ann"]}`, `{}`, `[]`, `["ann"]`, `null`, `1`, `true`,
		`{"$oid": "` + id + `"}`, `{"toString": "ann"}`,
	} {
		for path, body := range map[string]string{
			"/api/v1/login":       `{"username": V, "password": "` + password + `"}`,
			"/api/v1/login?":      `{"username": "ann", "password": V}`, // another key of the same path
			"/api/v1/me/password": `{"currentPassword": V, "newPassword": "` + password + `2"}`,
		} {
			method, show := "POST", noop
			if strings.HasPrefix(path, "/api/v1/me") {
				method, show = "PUT", session(ann)
			}
			res := s.do(method, path, show, text(strings.ReplaceAll(body, "V", v)))
			if res.status != http.StatusBadRequest || !strings.Contains(res.body, "must be a string") {
				t.Errorf("%s with %s: %s", path, v, res)
			}
		}
		for _, body := range []string{`{"username": V}`, `{"password": V}`, `{"email": V}`, `{"scopes": [V]}`, `{"orgIds": [V]}`} {
			if v == "null" || v == "[]" && strings.Contains(body, "[") {
				continue // a default
			}
			res := s.do("PUT", "/api/v1/user/"+id, admin, text(strings.ReplaceAll(body, "V", v)))
			if res.status != http.StatusBadRequest {
				t.Errorf("PUT /user with %s: %s", strings.ReplaceAll(body, "V", v), res)
			}
		}
	}
	for _, bad := range []string{"%7B%22$gt%22:%22%22%7D", "$ne", "[$ne]", "..", "%00", id + "%00", "ann", "%7B%7D"} {
		for _, model := range []string{"user", "org", "team", "project"} {
			if res := s.do("GET", "/api/v1/"+model+"/"+bad, admin); res.status != http.StatusBadRequest && res.status != http.StatusNotFound {
				t.Errorf("GET /%s/%s: %s", model, bad, res)
			}
		}
		if res := s.do("DELETE", "/api/v1/user/"+bad, admin); res.status != http.StatusBadRequest && res.status != http.StatusNotFound {
			t.Errorf("DELETE /user/%s: %s", bad, res)
		}
	}
	if after := s.contents(); after != before {
		t.Errorf("something was written:\n%s\n%s", before, after)
	}
}
