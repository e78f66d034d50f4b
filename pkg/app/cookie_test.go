package app_test

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/app"
)

// byCookie sends a session token as a browser does.
func byCookie(token string) option {
	return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "svc_session", Value: token}) }
}

func options(list ...option) option {
	return func(r *http.Request) {
		for _, o := range list {
			o(r)
		}
	}
}

// cookieOf gives the session cookie that an answer sets, or nil.
func cookieOf(t *testing.T, a answer) *http.Cookie {
	t.Helper()
	var found *http.Cookie
	for _, line := range a.header.Values("Set-Cookie") {
		c, err := http.ParseSetCookie(line)
		if err != nil || c.Name != "svc_session" || found != nil {
			t.Fatalf("Set-Cookie: %q, %v", line, err)
		}
		found = c
	}
	return found
}

func wantCleared(t *testing.T, what string, a answer, want bool) {
	t.Helper()
	c := cookieOf(t, a)
	if cleared := c != nil && c.MaxAge < 0 && c.Value == "" && c.Path == "/"; cleared != want || c != nil && !want {
		t.Errorf("%s: the cookie is %v, want it cleared: %v", what, c, want)
	}
}

// A browser's session, from the login to the logout.
func TestSessionCookie(t *testing.T) {
	s := runShop(t, func(c *app.Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")} })
	id, _ := s.user("ann", nil)
	credentials := json1(map[string]any{"username": "ann", "password": password})
	login := s.do("POST", "/api/v1/login", credentials)
	login.want(t, http.StatusOK)
	c := cookieOf(t, login)
	if c == nil || c.Value != login.field("token") || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Secure || c.Domain != "" {
		t.Fatalf("the cookie is %+v", c)
	}
	if until, err := time.Parse(time.RFC3339, login.field("expiresAt")); err != nil || !c.Expires.Equal(until.Truncate(time.Second)) {
		t.Errorf("the cookie ends %s, the token %s, %v", c.Expires, until, err)
	}

	me := func(options ...option) string { return s.do("GET", "/api/v1/me", options...).String() }
	if got := s.do("GET", "/api/v1/me", byCookie(c.Value)); got.field("id") != id {
		t.Errorf("GET /me says %s", got.body)
	}
	for name, tt := range map[string]struct {
		show option
		want string
	}{
		"empty":                    {byCookie(""), denied},
		"another credential wins":  {options(byCookie(c.Value), admin), "200"},
		"also a wrong one":         {options(byCookie(c.Value), session("x")), denied},
		"also one in the query":    {options(byCookie(c.Value), query("token="+collectionToken)), denied},
		"beside a wrong one":       {options(byCookie("x"), session(c.Value)), "200"},
		"the admin token in it":    {byCookie(adminToken), denied},
		"a collection token in it": {byCookie(collectionToken), denied},
		"twice, the same":          {options(byCookie(c.Value), byCookie(c.Value)), "200"}, //nolint:gocritic // as it says
		"twice":                    {options(byCookie(c.Value), byCookie("x")), "400 two_credentials: the cookie svc_session is given more than once"},
	} {
		if got := me(tt.show); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}

	// One that is not valid is refused where none is needed, too, and taken away, but for a login, which gives a new one.
	wantCleared(t, "a good one", s.do("GET", "/api/v1/me", byCookie(c.Value)), false)
	wantCleared(t, "no right", s.do("GET", "/api/v1/user", byCookie(c.Value)), false)
	wantCleared(t, "a bad header", s.do("GET", "/api/v1/me", byCookie(c.Value), session("x")), false)
	for _, path := range []string{"/api/v1/me", "/api/v1/_/shop/items", "/api/v1/version"} {
		res := s.do("GET", path, byCookie("x"))
		if res.String() != denied {
			t.Errorf("%s: %s", path, res)
		}
		wantCleared(t, path, res, true)
	}
	if got := cookieOf(t, s.do("POST", "/api/v1/login", byCookie("x"), credentials)); got == nil || got.Value == "" {
		t.Errorf("a login with an old cookie: %v", got)
	}

	changed := s.do("PUT", "/api/v1/me/password", byCookie(c.Value), json1(map[string]any{"currentPassword": password, "newPassword": password + "2"}))
	changed.want(t, http.StatusOK)
	next := cookieOf(t, changed)
	if next == nil || next.Value != changed.field("token") || me(byCookie(next.Value)) != "200" || me(byCookie(c.Value)) != denied {
		t.Errorf("after a password change: %+v", next)
	}
	out := s.do("POST", "/api/v1/logout", byCookie(next.Value))
	out.want(t, http.StatusNoContent)
	wantCleared(t, "logout", out, true)
	if got := me(byCookie(next.Value)); got != denied {
		t.Errorf("after the logout: %s", got)
	}
}

// The cookie goes over TLS only where the client came by TLS, which a proxy knows that is trusted.
func TestSessionCookieIsSecureOnTLS(t *testing.T) {
	trusted := runShop(t, func(c *app.Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} })
	stranger := runShop(t, nil)
	for _, s := range []*service{trusted, stranger} {
		s.user("ann", nil)
	}
	for value, want := range map[string]bool{
		"X-Forwarded-Proto: https": true, "X-Forwarded-Proto: HTTPS": true, "X-Forwarded-Proto: https, http": true,
		"X-Forwarded-Proto: http": false, "X-Forwarded-Proto: httpsx": false, "X-Forwarded-Proto: ": false, "X-Other: https": false,
		"Forwarded: for=192.0.2.1;proto=https": true, `Forwarded: proto="https";by=192.0.2.2`: true, "Forwarded: for=192.0.2.1;proto=http": false,
	} {
		name, content, _ := strings.Cut(value, ": ")
		for _, s := range []*service{trusted, stranger} {
			res := s.do("POST", "/api/v1/login", header(name, content), json1(map[string]any{"username": "ann", "password": password}))
			if c := cookieOf(t, res); c == nil || c.Secure != (want && s == trusted) {
				t.Errorf("%s, trusted %v: %v", value, s == trusted, c)
			}
		}
	}
}

// S40: another site can't have a browser write with the session cookie, nor have it logged in.
func TestS40CSRF(t *testing.T) {
	s := runShop(t, nil)
	_, boss := s.user("boss", map[string]any{"isAdmin": true})
	here, _ := url.Parse(s.url)
	id := s.item(`{"title": "A", "n": 1}`)
	const (
		crossOrigin = "403 cross_origin: another site may not write with this one's session cookie; send the token in X-Auth-Token"
		noForm      = "415 unsupported_media_type: send the body as Content-Type: application/json"
	)
	origin := func(o string) option { return header("Origin", o) }
	site := func(v string) option { return header("Sec-Fetch-Site", v) }
	form := header("Content-Type", "application/x-www-form-urlencoded")
	for _, tt := range []struct {
		name string
		from option
		want string // of writes; "" is success
	}{
		{"no browser", noop, ""},
		{"here", options(origin("http://"+here.Host), site("same-origin")), ""},
		{"here, an old browser", origin("http://" + here.Host), ""},
		{"typed", site("none"), ""},
		{"another site", options(origin("https://evil.example"), site("cross-site")), crossOrigin},
		{"another site, an old browser", origin("https://evil.example"), crossOrigin},
		{"a site beside this one", site("same-site"), crossOrigin},
		{"another port", origin("http://" + here.Hostname() + ":1"), crossOrigin},
		{"a name that ends the same", origin("http://evil" + here.Host), crossOrigin},
		{"null", origin("null"), crossOrigin},
		{"says here, and is not", options(origin("http://"+here.Host), site("cross-site")), crossOrigin},
		{"an unknown site", site("x"), crossOrigin},
		{"a form", form, noForm},
		{"a form from elsewhere", options(form, origin("https://evil.example")), crossOrigin},
		{"text", header("Content-Type", "text/plain"), noForm},
		{"a file", header("Content-Type", "multipart/form-data; boundary=x"), noForm},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := s.do("GET", "/api/v1/user", byCookie(boss), tt.from).String(); got != "200" {
				t.Errorf("a read: %s", got)
			}
			gone := s.item(`{"title": "D", "n": 1}`)
			before := s.contents()
			for _, w := range []struct {
				method, path string
				body         string
			}{
				{"PUT", "/api/v1/_/shop/items/" + id, `{"n": 2}`},
				{"PATCH", "/api/v1/_/shop/items/" + id, `{"n": 1}`},
				{"POST", "/api/v1/_/shop/_/admin/reload", ""},
				{"DELETE", "/api/v1/_/shop/items/" + gone, ""},
			} {
				send := []option{tt.from, byCookie(boss)}
				if w.body != "" {
					send = append(send, text(w.body))
				}
				got := s.do(w.method, w.path, send...)
				if tt.want == "" && got.status >= 300 || tt.want != "" && got.String() != tt.want {
					t.Errorf("%s %s: %s, want %s", w.method, w.path, got, tt.want)
				}
				// The same with the token in a header, which no site has a browser send.
				if tt.want == crossOrigin && w.method == "POST" {
					if got := s.do(w.method, w.path, tt.from, session(boss)); got.status != http.StatusAccepted {
						t.Errorf("by header: %s", got)
					}
				}
			}
			if changed := s.contents() != before; changed != (tt.want == "") {
				t.Errorf("something was written: %v", changed)
			}
		})
	}
	// Where the session is none, nothing else of the request is looked at.
	for _, from := range []option{form, origin("https://evil.example")} {
		if got := s.do("POST", "/api/v1/_/shop/items", byCookie("x.y.z"), from, text(`title=A`)); got.String() != denied {
			t.Error(got)
		}
	}
	// A form of another site can't log the browser in as somebody else.
	for _, media := range []string{"application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x"} {
		res := s.do("POST", "/api/v1/login", header("Content-Type", media), text(`{"username": "boss", "password": "`+password+`"}`))
		if res.String() != noForm || cookieOf(t, res) != nil {
			t.Errorf("%s: %s", media, res)
		}
	}
}

// S39: without a config that allows it no other site may read; one that allows everybody can't have credentials, too.
func TestS39CORS(t *testing.T) {
	s := runShop(t, nil)
	_, ann := s.user("ann", nil)
	origins := []string{
		"null", "https://evil.example", s.url, s.url + ".evil.example", strings.Repeat("x", 32<<10),
	}
	for _, o := range origins {
		for _, method := range []string{"GET", "OPTIONS", "POST", "HEAD"} {
			for _, show := range []option{noop, byCookie(ann), admin} {
				for _, path := range []string{"/api/v1/_/shop/items", "/api/v1/me", "/api/v1/login", "/healthz", "/nope"} {
					res := s.do(method, path, show, header("Origin", o), header("Access-Control-Request-Method", "PUT"),
						header("Access-Control-Request-Headers", strings.Repeat("x-auth-token,", 1000)))
					for name := range res.header {
						if strings.HasPrefix(name, "Access-Control-") {
							t.Errorf("%s %s from %.40s: %s: %s", method, path, o, name, res.header.Get(name))
						}
					}
				}
			}
		}
	}
	for name, cors := range map[string]string{
		"project":    "namespace: open\ncors: {origins: ['*'], credentials: true}\n",
		"collection": "namespace: open\ncollections: [{name: a, cors: {origins: ['*'], credentials: true}, permissions: {public: {methods: {}}, user: {methods: {}}}}]\n",
		"null":       "namespace: open\ncors: {origins: ['null']}\n",
		"suffix":     "namespace: open\ncors: {origins: ['https://*example.com']}\n",
	} {
		s.configure("open", cors)
		res := s.do("POST", "/api/v1/project", admin, text(`{"name": "open", "configFile": "open/project.yaml", "enabled": true}`))
		if res.status != http.StatusUnprocessableEntity || !strings.Contains(res.body, "cors") {
			t.Errorf("cors of the %s: %s", name, res.body)
		}
	}
	// A list of origins is held against the whole origin, and a preflight costs nothing, however much it asks for.
	s.register("fine", "namespace: fine\ncors: {origins: ['https://app.example.com', 'https://*.example.org'], credentials: true}\n")
	for origin, want := range map[string]bool{
		"https://app.example.com": true, "https://a.example.org": true, "null": false, "https://app.example.com.evil.example": false,
		"https://evilapp.example.com": false, "https://example.org": false, "https://evilexample.org": false, "http://app.example.com": false,
		"https://app.example.com:444": false, "https://evil.example/.example.org": false, "https://a@b.example.org": false,
	} {
		res := s.do("OPTIONS", "/api/v1/_/fine/items", header("Origin", origin), header("Access-Control-Request-Method", "GET"),
			header("Access-Control-Request-Headers", strings.Repeat("x-auth-token,", 2000)))
		allowed := res.header.Get("Access-Control-Allow-Origin")
		if (allowed == origin) != want || allowed == "*" || (res.header.Get("Access-Control-Allow-Credentials") != "") != want || !slices.Contains(res.header.Values("Vary"), "Origin") {
			t.Errorf("%s: %s %v", origin, res, res.header)
		}
	}
}
