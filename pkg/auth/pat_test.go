package auth_test

import (
	"errors"
	"hash/crc32"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/auth"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/system"
)

// pat makes a personal access token of ann, with a session as it is now.
func (f *fixture) pat(more ...bson.E) (system.Token, string) {
	f.Helper()
	by, err := f.Authenticate(f.Context(), auth.Credentials{XAuthToken: f.login("ann")})
	if err != nil {
		f.Fatal(err)
	}
	doc := append(bson.D{{Key: "name", Value: "ci"}, {Key: "scopes", Value: bson.A{"project.read", "user.read"}}}, more...)
	t, value, err := f.system.Tokens.Create(f.Context(), by, doc, []string{"project.read", "user.read"})
	if err != nil {
		f.Fatal(err)
	}
	return t, value
}

func TestPATIsItsOwnerWithinItsScopes(t *testing.T) {
	f := newAuth(t)
	tok, value := f.pat()
	want := &access.Principal{
		Kind: access.KindPAT, ID: f.user.ID.Hex(), Name: "ann", Scopes: []string{"project.read"},
		TokenID: tok.ID.Hex(), Cap: []string{"project.read", "user.read"},
	}
	for name, c := range map[string]auth.Credentials{
		"header": {XAuthToken: value}, "bearer": {Bearer: value}, "both": {XAuthToken: value, Bearer: value},
	} {
		p, err := f.Authenticate(t.Context(), c)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := cmp.Diff(want, p); d != "" {
			t.Errorf("%s: (-want +got):\n%s", name, d)
		}
		if !p.Has("project.read") || p.Has("user.read") || p.Full() {
			t.Errorf("%s: it has what its owner has not, or the other way round", name)
		}
	}
	if err := f.update(bson.E{Key: "isAdmin", Value: true}); err != nil {
		t.Fatal(err)
	}
	p, err := f.Authenticate(t.Context(), auth.Credentials{XAuthToken: value})
	if err != nil || !p.Has("user.read") || p.Has("user.create") || p.Has("project.create") || p.Full() {
		t.Errorf("of an administrator: %+v, %v", p, err)
	}
	for name, c := range map[string]auth.Credentials{
		"and a session": {XAuthToken: f.login("ann"), Bearer: value}, "and the admin token": {XAuthToken: value, AdminToken: adminToken},
		"as bearer and the admin token": {Bearer: value, AdminToken: adminToken}, "and a token": {Bearer: value, Token: "x"},
	} {
		if _, err := f.Authenticate(t.Context(), c); errs.From(err) == nil || errs.From(err).Code != "two_credentials" {
			t.Errorf("%s: %v, want two_credentials", name, err)
		}
	}
	for name, c := range map[string]auth.Credentials{"as the admin token": {AdminToken: value}} {
		if _, err := f.Authenticate(t.Context(), c); !errors.Is(err, errs.ErrDenied) {
			t.Errorf("%s: %v, want permission denied", name, err)
		}
	}
}

// The keyed hash of a value that was good is not made again for a while; what ends a token does so at once all the same.
func TestGoodPATIsNotHashedAgain(t *testing.T) {
	f := newAuth(t)
	tok, value := f.pat()
	hashed := 0
	f.OnVerify(func(string, []byte) { hashed++ })
	ask := func() error {
		_, err := f.Authenticate(t.Context(), auth.Credentials{XAuthToken: value})
		return err
	}
	for _, step := range []struct {
		pass time.Duration
		want int
	}{{0, 1}, {0, 1}, {59 * time.Second, 1}, {2 * time.Second, 2}} {
		f.clock.Pass(step.pass)
		if err := ask(); err != nil || hashed != step.want {
			t.Fatalf("%s later: %v, hashed %d times, want %d", step.pass, err, hashed, step.want)
		}
	}
	if err := f.system.Tokens.Delete(t.Context(), admin, tok.ID.Hex()); err != nil {
		t.Fatal(err)
	}
	if err := ask(); !errors.Is(err, errs.ErrDenied) || hashed != 2 {
		t.Errorf("deleted: %v, hashed %d times", err, hashed)
	}
}

// S31: a token with a changed byte is refused, whichever it is.
func TestS31ChangedPAT(t *testing.T) {
	f := newAuth(t)
	_, value := f.pat()
	f.wantGood(value)
	for i := range value {
		for _, c := range []byte{value[i] ^ 1, value[i] ^ 0x20, 'A', '0', 0, '.', 0xff} {
			if c == value[i] {
				continue
			}
			f.wantVoid(value[:i] + string([]byte{c}) + value[i+1:])
		}
	}
	f.wantVoid(value+"0", value[:len(value)-1], "svc_pat_", "svc_pat_"+strings.Repeat(".", 1<<20), " "+value, value+"\x00", strings.ToUpper(value))
}

// S32: what isn't there costs what it costs to be wrong: one read and one comparison. What can't be a token costs neither.
func TestS32UnknownPATDoesTheSameWork(t *testing.T) {
	f := newAuth(t)
	tok, value := f.pat()
	_, deleted := f.pat()
	id, _ := system.ParseToken(deleted)
	if err := f.system.Tokens.Delete(t.Context(), admin, id.Hex()); err != nil {
		t.Fatal(err)
	}
	g := newAuth(t) // a value of another service: its check is right, nobody has its id
	_, unknown := g.pat()
	guessed := withSecretOf(t, tok.ID, unknown)

	var compared [][]byte
	f.OnVerify(func(_ string, stored []byte) { compared = append(compared, stored) })
	for _, tc := range []struct {
		name, value  string
		reads, tries int
	}{
		{"of another service", unknown, 1, 1},
		{"deleted", deleted, 1, 1},
		{"wrong secret", guessed, 1, 1},
		{"wrong check", value[:len(value)-1] + "!", 0, 0},
		{"too short", value[:40], 0, 0},
	} {
		for round, again := range []int{1, 0} { // within a second it is taken from memory, in each case
			compared = nil
			f.store.reads()
			f.wantVoid(tc.value)
			if n := f.store.reads(); n != tc.reads*again {
				t.Errorf("%s, round %d: %d reads, want %d", tc.name, round, n, tc.reads*again)
			}
			if len(compared) != tc.tries {
				t.Errorf("%s, round %d: %d comparisons, want %d", tc.name, round, len(compared), tc.tries)
			}
			for _, stored := range compared {
				if len(stored) != 32 {
					t.Errorf("%s: compared with %d bytes", tc.name, len(stored))
				}
			}
		}
		f.clock.Pass(time.Second)
	}
	f.wantGood(value)
}

// withSecretOf makes the value of a token with the secret of another.
func withSecretOf(t *testing.T, id bson.ObjectID, other string) string {
	t.Helper()
	head := system.TokenPrefix + id.Hex() + other[len(system.TokenPrefix)+24:len(other)-6]
	check := big.NewInt(int64(crc32.ChecksumIEEE([]byte(head)))).Text(62)
	value := head + strings.Repeat("0", 6-len(check)) + check
	if got, ok := system.ParseToken(value); !ok || got != id {
		t.Fatal("it has no right form")
	}
	return value
}

func TestPATsEnd(t *testing.T) {
	for name, end := range map[string]func(f *fixture, tok system.Token) error{
		"expiry": func(f *fixture, _ system.Token) error { f.clock.Pass(time.Hour); return nil },
		"deletion": func(f *fixture, tok system.Token) error {
			return f.system.Tokens.Delete(f.Context(), admin, tok.ID.Hex())
		},
		"password":     func(f *fixture, _ system.Token) error { return f.update(bson.E{Key: "password", Value: "another one"}) },
		"deactivation": func(f *fixture, _ system.Token) error { return f.update(bson.E{Key: "active", Value: false}) },
		"activation again": func(f *fixture, _ system.Token) error {
			return errors.Join(f.update(bson.E{Key: "active", Value: false}), f.update(bson.E{Key: "active", Value: true}))
		},
		"owner gone": func(f *fixture, _ system.Token) error {
			return f.system.Users.Delete(f.Context(), admin, f.user.ID.Hex())
		},
		"logout with all": func(f *fixture, _ system.Token) error {
			p, err := f.Authenticate(f.Context(), auth.Credentials{XAuthToken: f.login("ann")})
			return errors.Join(err, f.Logout(f.Context(), p, true))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newAuth(t)
			g := f.another() // it has its own caches
			end1 := f.clock.Now().Add(time.Hour).Format(time.RFC3339)
			tok, value := f.pat(bson.E{Key: "expiresAt", Value: end1})
			f.wantGood(value)
			g.wantGood(value)
			f.NotedUses()
			g.NotedUses()
			if err := end(f, tok); err != nil {
				t.Fatal(err)
			}
			f.wantVoid(value) // at once here
			f.clock.Pass(time.Second)
			g.wantVoid(value) // within a second elsewhere
		})
	}
}

func TestALogoutLeavesPATs(t *testing.T) {
	f := newAuth(t)
	_, value := f.pat()
	session := f.login("ann")
	p, err := f.Authenticate(t.Context(), auth.Credentials{XAuthToken: session})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Logout(t.Context(), p, false); err != nil {
		t.Fatal(err)
	}
	f.wantVoid(session)
	f.wantGood(value)
}

// A session that is void elsewhere already, and that this instance still believes in for a second, makes no tokens.
func TestAVoidSessionMakesNoPATs(t *testing.T) {
	f := newAuth(t)
	g := f.another()
	session := f.login("ann")
	by, err := f.Authenticate(t.Context(), auth.Credentials{XAuthToken: session})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.system.Users.SetPassword(t.Context(), f.user, "another one"); err != nil {
		t.Fatal(err)
	}
	doc := bson.D{{Key: "name", Value: "late"}, {Key: "scopes", Value: bson.A{}}}
	if _, _, err := f.system.Tokens.Create(t.Context(), by, doc, nil); !errors.Is(err, errs.ErrDenied) {
		t.Errorf("error %v, want denied", err)
	}
}

// S30: a session or a token names its user by an id that nobody gets again, and what ended with a user stays ended when
// another one takes the name.
func TestS30IDReuse(t *testing.T) {
	f := newAuth(t)
	session := f.login("ann")
	tok, value := f.pat()
	if err := f.system.Users.Delete(t.Context(), admin, f.user.ID.Hex()); err != nil {
		t.Fatal(err)
	}
	next := f.create("ann", bson.E{Key: "isAdmin", Value: true})
	if next.ID == f.user.ID {
		t.Error("the id is given again")
	}
	f.wantVoid(session, value)
	f.clock.Pass(time.Second)
	f.wantVoid(session, value)
	if again, _ := f.pat(); again.ID == tok.ID {
		t.Error("the id of a token is given again")
	}
}

func TestPATUseIsNotedBesideTheRequest(t *testing.T) {
	f := newAuth(t)
	tok, value := f.pat()
	last := func() string {
		t.Helper()
		f.NotedUses()
		got, err := f.system.Tokens.ByID(t.Context(), tok.ID.Hex())
		if err != nil {
			t.Fatal(err)
		}
		if got.LastUsedAt.IsZero() {
			return "never"
		}
		return got.LastUsedAt.Sub(tok.CreatedAt).String()
	}
	if got := last(); got != "never" {
		t.Error(got)
	}
	for _, tc := range []struct {
		pass time.Duration
		want string
	}{{0, "0s"}, {59 * time.Second, "0s"}, {time.Second, "1m0s"}, {time.Hour, "1h1m0s"}} {
		f.clock.Pass(tc.pass)
		f.wantGood(value, value)
		if got := last(); got != tc.want {
			t.Errorf("last used %s, want %s", got, tc.want)
		}
	}
	// A refused one is not used.
	f.clock.Pass(time.Hour)
	f.wantVoid(value[:len(value)-1])
	if got := last(); got != "1h1m0s" {
		t.Error(got)
	}
	// After Close, requests in flight are answered, and nothing is written any more.
	f.Close(t.Context())
	f.wantGood(value)
	if got := last(); got != "1h1m0s" {
		t.Error(got)
	}
}

func TestPATsAreReadOnceASecond(t *testing.T) {
	f := newAuth(t)
	_, value := f.pat()
	f.wantGood(value)
	f.NotedUses()
	f.clock.Pass(time.Second)
	f.store.reads()
	f.wantGood(value, value, value)
	if n := f.store.reads(); n != 2 { // the token and its owner
		t.Errorf("%d reads, want 2", n)
	}
}
