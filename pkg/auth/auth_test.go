package auth_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/auth"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
	"github.com/svcctl/svc/pkg/system"
)

const (
	password   = "correct horse"
	adminToken = "the-admin-token"
	addr       = "203.0.113.7"
)

var admin = &access.Principal{Kind: access.KindAdmin}

// counting counts the reads by id, and fails them while down.
type counting struct {
	store.Store
	mu    sync.Mutex
	gets  int
	down  bool
	after func() // called once, when something has been read and not been given back yet
}

func (c *counting) Database(name string) store.Database {
	return countingDatabase{c.Store.Database(name), c}
}

type countingDatabase struct {
	store.Database
	c *counting
}

func (d countingDatabase) Collection(name string) store.Collection {
	return countingCollection{d.Database.Collection(name), d.c}
}

type countingCollection struct {
	store.Collection
	c *counting
}

var errDown = errs.New(errs.Unavailable, "store_down", "the store is down")

func (c countingCollection) Get(ctx context.Context, id bson.RawValue) (bson.Raw, error) {
	c.c.mu.Lock()
	c.c.gets++
	down, after := c.c.down, c.c.after
	c.c.after = nil
	c.c.mu.Unlock()
	if down {
		return nil, errDown
	}
	doc, err := c.Collection.Get(ctx, id)
	if after != nil {
		after()
	}
	return doc, err
}

// reads gives the reads since the last call.
func (c *counting) reads() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.gets
	c.gets = 0
	return n
}

// fixture is one instance of the service on a store.
type fixture struct {
	*testing.T
	*auth.Auth
	system   *system.System
	store    *counting
	clock    *teststore.Clock
	log      *bytes.Buffer
	opts     auth.Options
	params   auth.Params
	hasher   *auth.Hasher
	parallel int         // hashes at once; 0 is 1
	user     system.User // "ann", with the password above
}

func newAuth(t *testing.T, change ...func(*fixture)) *fixture {
	t.Helper()
	st := teststore.Memory(t)
	f := &fixture{
		T: t, store: &counting{Store: st}, params: cheap, log: &bytes.Buffer{},
		clock: teststore.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		opts:  auth.Options{AdminToken: adminToken},
	}
	for _, c := range change {
		c(f)
	}
	f.start()
	if err := f.system.EnsureIndexes(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.user = f.create("ann", bson.E{Key: "scopes", Value: bson.A{"project.read"}})
	f.create("root", bson.E{Key: "isAdmin", Value: true})
	return f
}

// start makes the parts anew, as a restart does.
func (f *fixture) start() {
	f.Helper()
	f.hasher = auth.NewHasher(f.params, max(1, f.parallel))
	f.system = system.New(f.store, system.Options{Now: f.clock.Now, HashPassword: f.hasher.Hash})
	opts := f.opts
	opts.System, opts.Hasher, opts.Now = f.system, f.hasher, f.clock.Now
	opts.Logger = slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	a, err := auth.New(f.Context(), opts)
	if err != nil {
		f.Fatal(err)
	}
	f.Auth = a
}

// another is a second instance on the same store.
func (f *fixture) another(change ...func(*fixture)) *fixture {
	f.Helper()
	g := *f
	for _, c := range change {
		c(&g)
	}
	g.start()
	return &g
}

func (f *fixture) create(name string, more ...bson.E) system.User {
	f.Helper()
	u, err := f.system.Users.Create(f.Context(), admin,
		append(bson.D{{Key: "username", Value: name}, {Key: "password", Value: password}}, more...))
	if err != nil {
		f.Fatal(err)
	}
	return u
}

func (f *fixture) login(name string) string {
	f.Helper()
	session, err := f.Login(f.Context(), name, password, addr)
	if err != nil {
		f.Fatal(err)
	}
	return session.Token
}

// who gives the error of a session token.
func (f *fixture) who(token string) error {
	f.Helper()
	_, err := f.Authenticate(f.Context(), auth.Credentials{XAuthToken: token})
	return err
}

func (f *fixture) wantGood(tokens ...string) {
	f.Helper()
	for i, token := range tokens {
		if err := f.who(token); err != nil {
			f.Errorf("token %d: %v", i, err)
		}
	}
}

func (f *fixture) wantVoid(tokens ...string) {
	f.Helper()
	for i, token := range tokens {
		if err := f.who(token); !errors.Is(err, errs.ErrDenied) {
			f.Errorf("token %d: %v, want permission denied", i, err)
		}
	}
}

func TestAuthenticate(t *testing.T) {
	f := newAuth(t)
	session := f.login("ann")
	rootSession := f.login("root")
	ann := &access.Principal{Kind: access.KindUser, ID: f.user.ID.Hex(), Name: "ann", Scopes: []string{"project.read"}}
	token := &access.Principal{Kind: access.KindToken, Name: "token", TokenHash: sha256.Sum256([]byte("t0ken"))}
	server := &access.Principal{Kind: access.KindAdmin, Name: "admin token"}
	two := errs.New(errs.Invalid, "two_credentials", "")
	for name, tc := range map[string]struct {
		c    auth.Credentials
		want *access.Principal
		err  error
	}{
		"none":                  {auth.Credentials{}, access.Anonymous(), nil},
		"session":               {auth.Credentials{XAuthToken: session}, ann, nil},
		"admin header":          {auth.Credentials{AdminToken: adminToken}, server, nil},
		"bearer":                {auth.Credentials{Bearer: adminToken}, server, nil},
		"both, the same":        {auth.Credentials{AdminToken: adminToken, Bearer: adminToken}, server, nil},
		"token":                 {auth.Credentials{Token: "t0ken"}, token, nil},
		"token in the query":    {auth.Credentials{TokenQuery: "t0ken"}, token, nil},
		"token twice":           {auth.Credentials{Token: "t0ken", TokenQuery: "t0ken"}, token, nil},
		"admin token as token":  {auth.Credentials{Token: adminToken}, &access.Principal{Kind: access.KindToken, Name: "token", TokenHash: sha256.Sum256([]byte(adminToken))}, nil},
		"garbage":               {auth.Credentials{XAuthToken: "x"}, nil, errs.ErrDenied},
		"admin token as login":  {auth.Credentials{XAuthToken: adminToken}, nil, errs.ErrDenied},
		"access token":          {auth.Credentials{XAuthToken: "svc_pat_0123_abc"}, nil, errs.ErrDenied},
		"access token, bearer":  {auth.Credentials{Bearer: "svc_pat_0123_abc"}, nil, errs.ErrDenied},
		"session as bearer":     {auth.Credentials{Bearer: session}, nil, errs.ErrDenied},
		"wrong admin token":     {auth.Credentials{AdminToken: adminToken + "x"}, nil, errs.ErrDenied},
		"wrong bearer":          {auth.Credentials{Bearer: "x"}, nil, errs.ErrDenied},
		"two admin tokens":      {auth.Credentials{AdminToken: adminToken, Bearer: "x"}, nil, two},
		"two tokens":            {auth.Credentials{Token: "a", TokenQuery: "b"}, nil, two},
		"session and admin":     {auth.Credentials{XAuthToken: session, AdminToken: adminToken}, nil, two},
		"session and token":     {auth.Credentials{XAuthToken: session, TokenQuery: "a"}, nil, two},
		"admin and token":       {auth.Credentials{Bearer: adminToken, Token: "a"}, nil, two},
		"all of them":           {auth.Credentials{XAuthToken: session, Bearer: adminToken, Token: "a"}, nil, two},
		"garbage and no better": {auth.Credentials{XAuthToken: "x", AdminToken: "y"}, nil, two},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := f.Authenticate(t.Context(), tc.c)
			if !errors.Is(err, tc.err) {
				t.Errorf("error is %v, want %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("principal (-want +got):\n%s", diff)
			}
		})
	}
	root, err := f.Authenticate(t.Context(), auth.Credentials{XAuthToken: rootSession})
	if err != nil || !root.Full() {
		t.Errorf("root is %+v, %v", root, err)
	}
}

// FuzzCredentials: whatever is shown for a session or a personal access token, reading it ends, in a denial, unless it is one that was given out.
func FuzzCredentials(f *testing.F) {
	const header = "eyJhbGciOiJIUzI1NiIsImtpZCI6IjEiLCJ0eXAiOiJKV1QifQ"
	for _, value := range []string{
		"", "x", ".", "..", "a.b.c", header + "..", header + ".e30.", "eyJhbGciOiJub25lIn0.e30.", strings.Repeat(".", 5000), strings.Repeat("a", 70_000),
		"svc_pat_", "svc_pat_0123_abc", "svc_pat__", "svc_pat_" + strings.Repeat("0", 24) + "_" + strings.Repeat("A", 43), "SVC_PAT_0_0", "svc_pat_\x00_\xff", adminToken, " " + adminToken,
	} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		a := newAuth(t)
		session := a.login("ann")
		for _, shown := range []string{value, session + value, value + session, strings.ToUpper(value)} {
			for _, c := range []auth.Credentials{{XAuthToken: shown}, {Bearer: shown}} {
				got, err := a.Authenticate(t.Context(), c)
				switch {
				case shown == "", shown == session && c.XAuthToken != "", shown == adminToken && c.Bearer != "":
					if err != nil {
						t.Errorf("%.200q: %v", shown, err)
					}
				case !errors.Is(err, errs.ErrDenied) || got != nil:
					t.Errorf("%.200q: %+v, %v", shown, got, err)
				}
			}
		}
	})
}

func TestNoAdminTokenMeansNone(t *testing.T) {
	f := newAuth(t, func(f *fixture) { f.opts.AdminToken = "" })
	if p, err := f.Authenticate(t.Context(), auth.Credentials{}); err != nil || p.Kind != access.KindAnonymous {
		t.Errorf("%+v, %v; want anonymous", p, err)
	}
	if _, err := f.Authenticate(t.Context(), auth.Credentials{AdminToken: " "}); !errors.Is(err, errs.ErrDenied) {
		t.Errorf("%v, want permission denied", err)
	}
}

func TestForgedTokensAreDenied(t *testing.T) {
	f := newAuth(t)
	good := f.login("ann")
	keys, err := f.system.Secrets.SigningKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now := f.clock.Now()
	claims := func(change func(jwt.MapClaims)) jwt.MapClaims {
		c := jwt.MapClaims{
			"iss": "svc", "aud": "svc-api", "sub": f.user.ID.Hex(), "ver": 0,
			"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		}
		if change != nil {
			change(c)
		}
		return c
	}
	sign := func(method jwt.SigningMethod, key any, kid any, c jwt.MapClaims, header ...string) string {
		token := jwt.NewWithClaims(method, c)
		for _, name := range header {
			token.Header[name] = []string{"b64"}
		}
		if kid != nil {
			token.Header["kid"] = kid
		}
		s, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	secret, kid := keys[0].Secret, keys[0].ID
	hs := jwt.SigningMethodHS256
	f.wantGood(good, sign(hs, secret, kid, claims(nil)))

	parts := strings.Split(good, ".")
	forged := map[string]string{
		"alg none":       sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, kid, claims(nil)),
		"no signature":   parts[0] + "." + parts[1] + ".",
		"other alg":      sign(jwt.SigningMethodHS512, secret, kid, claims(nil)),
		"other secret":   sign(hs, []byte("another secret of sufficient size"), kid, claims(nil)),
		"empty secret":   sign(hs, []byte{}, "", claims(nil)),
		"no kid":         sign(hs, secret, nil, claims(nil)),
		"unknown kid":    sign(hs, []byte{}, "../../dev/null", claims(nil)),
		"kid of a type":  sign(hs, secret, []string{kid}, claims(nil)),
		"expired":        sign(hs, secret, kid, claims(func(c jwt.MapClaims) { c["exp"] = now.Add(-time.Minute).Unix() })),
		"never expires":  sign(hs, secret, kid, claims(func(c jwt.MapClaims) { delete(c, "exp") })),
		"no iat":         sign(hs, secret, kid, claims(func(c jwt.MapClaims) { delete(c, "iat") })),
		"from tomorrow":  sign(hs, secret, kid, claims(func(c jwt.MapClaims) { c["iat"] = now.Add(24 * time.Hour).Unix() })),
		"other issuer":   sign(hs, secret, kid, claims(func(c jwt.MapClaims) { c["iss"] = "x" })),
		"no issuer":      sign(hs, secret, kid, claims(func(c jwt.MapClaims) { delete(c, "iss") })),
		"other audience": sign(hs, secret, kid, claims(func(c jwt.MapClaims) { c["aud"] = "x" })),
		"no subject":     sign(hs, secret, kid, claims(func(c jwt.MapClaims) { delete(c, "sub") })),
		"unknown user":   sign(hs, secret, kid, claims(func(c jwt.MapClaims) { c["sub"] = bson.NewObjectID().Hex() })),
		"no id":          sign(hs, secret, kid, claims(func(c jwt.MapClaims) { c["sub"] = "ann" })),
		"other version":  sign(hs, secret, kid, claims(func(c jwt.MapClaims) { c["ver"] = 1 })),
		"no version":     sign(hs, secret, kid, claims(func(c jwt.MapClaims) { delete(c, "ver") })),
		"version null":   sign(hs, secret, kid, claims(func(c jwt.MapClaims) { c["ver"] = nil })),
		"lasts too long": sign(hs, secret, kid, claims(func(c jwt.MapClaims) { c["exp"] = now.Add(12*time.Hour + time.Minute).Unix() })),
		"critical":       sign(hs, secret, kid, claims(nil), "crit"),
		"dots":           strings.Repeat(".", 1<<20),
		"long":           good + strings.Repeat("A", 4096),
		"empty parts":    "..",
	}
	for name, token := range forged {
		t.Run(name, func(t *testing.T) {
			if err := f.who(token); !errors.Is(err, errs.ErrDenied) {
				t.Errorf("%v, want permission denied", err)
			}
		})
	}
}

func TestTokensExpire(t *testing.T) {
	f := newAuth(t, func(f *fixture) { f.opts.JWTTTL = time.Hour })
	token := f.login("ann")
	f.clock.Pass(59 * time.Minute)
	f.wantGood(token)
	f.clock.Pass(50 * time.Second)
	f.wantGood(token) // a moment before the end, from where its signature is not checked for a minute
	f.clock.Pass(16 * time.Second)
	f.wantVoid(token)
}

func TestRevocation(t *testing.T) {
	for name, revoke := range map[string]func(f *fixture) error{
		"logout": func(f *fixture) error {
			p, err := f.Authenticate(f.Context(), auth.Credentials{XAuthToken: f.login("ann")})
			if err != nil {
				return err
			}
			return f.Logout(f.Context(), p, false)
		},
		"password change": func(f *fixture) error {
			p := &access.Principal{Kind: access.KindUser, ID: f.user.ID.Hex()}
			session, err := f.ChangePassword(f.Context(), p, password, "another one", addr)
			if err == nil {
				f.wantGood(session.Token)
			}
			return err
		},
		"password set by an admin": func(f *fixture) error { return f.update(bson.E{Key: "password", Value: "another one"}) },
		"deactivation":             func(f *fixture) error { return f.update(bson.E{Key: "active", Value: false}) },
		"deactivation, reversed": func(f *fixture) error {
			return errors.Join(f.update(bson.E{Key: "active", Value: false}), f.update(bson.E{Key: "active", Value: true}))
		},
		"deletion": func(f *fixture) error { return f.system.Users.Delete(f.Context(), admin, f.user.ID.Hex()) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newAuth(t)
			other := f.another()
			token, rootToken := f.login("ann"), f.login("root")
			f.wantGood(token, rootToken)
			other.wantGood(token, rootToken)
			if err := revoke(f); err != nil {
				t.Fatal(err)
			}
			f.wantVoid(token) // at once
			f.clock.Pass(time.Second)
			other.wantVoid(token) // within a second on the other instance
			f.wantGood(rootToken)
			other.wantGood(rootToken)
		})
	}
}

func (f *fixture) update(e bson.E) error {
	_, err := f.system.Users.Update(f.Context(), admin, f.user.ID.Hex(), bson.D{e})
	return err
}

func TestRightsAreLive(t *testing.T) {
	f := newAuth(t)
	token := f.login("ann")
	if err := f.update(bson.E{Key: "isAdmin", Value: true}); err != nil {
		t.Fatal(err)
	}
	p, err := f.Authenticate(t.Context(), auth.Credentials{XAuthToken: token})
	if err != nil || !p.Full() {
		t.Errorf("%+v, %v; want an admin", p, err)
	}
}

func TestUsersAreReadOnceASecond(t *testing.T) {
	f := newAuth(t)
	token := f.login("ann")
	f.wantGood(token)
	f.store.reads()
	f.wantGood(token, token, token)
	if n := f.store.reads(); n != 0 {
		t.Errorf("%d reads, want none", n)
	}
	f.clock.Pass(time.Second)
	f.wantGood(token, token, token)
	if n := f.store.reads(); n != 1 {
		t.Errorf("%d reads, want 1", n)
	}
}

func TestARevocationDuringAReadIsNotForgotten(t *testing.T) {
	f := newAuth(t)
	token := f.login("ann")
	f.store.mu.Lock()
	f.store.after = func() {
		if err := f.system.Users.RevokeTokens(t.Context(), f.user.ID, false); err != nil {
			t.Error(err)
		}
	}
	f.store.mu.Unlock()
	f.wantGood(token) // it was read before the revocation
	f.wantVoid(token)
}

func TestAStoreThatIsDownIsNoDenial(t *testing.T) {
	f := newAuth(t)
	token := f.login("ann")
	f.clock.Pass(time.Minute)
	f.store.mu.Lock()
	f.store.down = true
	f.store.mu.Unlock()
	if err := f.who(token); !errors.Is(err, errDown) {
		t.Errorf("%v, want the store's error", err)
	}
	if _, err := f.Login(t.Context(), "ann", password, addr); !errors.Is(err, errDown) {
		t.Errorf("login: %v, want the store's error", err)
	}
}

func TestTheSecretOfTheSettingsRotates(t *testing.T) {
	secret := func(s string) func(*fixture) {
		return func(f *fixture) { f.opts.JWTSecret = []byte(strings.Repeat(s, 32)) }
	}
	f := newAuth(t)
	generated := f.login("ann")
	first := f.another(secret("1"))
	one := first.login("ann")
	second := first.another(secret("2"))
	two := second.login("ann")
	f.clock.Pass(time.Second)
	for _, instance := range []*fixture{f, first, second, second.another()} {
		instance.wantGood(generated, one, two)
	}
	f.clock.Pass(2 * time.Minute) // an instance without the setting signs with the new one as well
	late := f.login("ann")
	if header := func(token string) string { return strings.Split(token, ".")[0] }; header(late) != header(two) {
		t.Error("it signs with an old secret")
	}
	second.wantGood(late)
	third := second.another(secret("3"))
	three := third.login("ann")
	f.clock.Pass(time.Second)
	for _, instance := range []*fixture{f, first, second, third} {
		instance.wantGood(generated, one, two, late, three)
	}
	f.clock.Pass(12*time.Hour - time.Minute) // the last login with the second one is still good, the first ones are not
	third.wantGood(late)
	third.wantVoid(generated, one, two)
	opts := f.opts
	opts.System, opts.Hasher, opts.Now, opts.Logger = f.system, f.hasher, f.clock.Now, slog.New(slog.DiscardHandler)
	opts.JWTSecret = []byte("31 bytes are too few for HS256!")
	if _, err := auth.New(t.Context(), opts); err == nil || strings.Contains(err.Error(), "31 bytes") {
		t.Errorf("a short secret: %v, want an error that does not show it", err)
	}
	if _, err := auth.New(t.Context(), auth.Options{}); err == nil {
		t.Error("New without its parts succeeded")
	}
}

// What an old key signs counts as long as a session can last that it began, whether there is another rotation or not.
func TestARetiredKeyBeginsNoSessions(t *testing.T) {
	secret := func(s string) func(*fixture) {
		return func(f *fixture) { f.opts.JWTSecret = []byte(strings.Repeat(s, 32)) }
	}
	f := newAuth(t, secret("1"))
	honest := f.login("ann")
	old := system.NewSigningKey(f.opts.JWTSecret, f.clock.Now())
	forge := func(iat time.Time, lasts time.Duration) string {
		token := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
			"iss": "svc", "aud": "svc-api", "sub": f.user.ID.Hex(), "ver": 0, "iat": iat.Unix(), "exp": iat.Add(lasts).Unix(),
		})
		token.Header["kid"] = old.ID
		s, err := token.SignedString(old.Secret)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	retired := f.clock.Now()
	watching := f.another(func(f *fixture) { f.opts.JWTSecret = nil }) // signs nothing, and so would not look
	g := f.another(secret("2"))
	g.wantGood(honest)
	f.clock.Pass(time.Minute)
	g.wantGood(forge(f.clock.Now(), time.Hour)) // another instance may not have noticed yet
	f.clock.Pass(2 * time.Minute)
	restarted := g.another(secret("2"))
	unconfigured := g.another(func(f *fixture) { f.opts.JWTSecret = nil })
	for _, instance := range []*fixture{g, restarted, unconfigured, watching} {
		instance.wantGood(honest)
		instance.wantVoid(forge(f.clock.Now(), time.Hour), forge(retired, 100*365*24*time.Hour))
	}
	f.clock.Pass(12 * time.Hour)
	for _, instance := range []*fixture{g, restarted, g.another(secret("2"))} {
		instance.wantVoid(honest, forge(f.clock.Now(), time.Hour), forge(retired, 12*time.Hour))
	}
}
