package auth_test

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/auth"
	"github.com/svcctl/svc/pkg/errs"
)

// try logs in and gives "ok", "wrong", or how long to wait.
func (f *fixture) try(name, pass, from string) string {
	f.Helper()
	_, err := f.Login(f.Context(), name, pass, from)
	e := errs.From(err)
	switch {
	case err == nil:
		return "ok"
	case e.Kind == errs.Denied && e.Code == "login_failed":
		return "wrong"
	case e.Kind == errs.Throttled:
		return e.RetryAfter.String()
	}
	f.Fatalf("Login = %v", err)
	return ""
}

func (f *fixture) want(what, want, got string) {
	f.Helper()
	if want != got {
		f.Errorf("%s: %s, want %s", what, got, want)
	}
}

func TestLogin(t *testing.T) {
	f := newAuth(t)
	session, err := f.Login(t.Context(), "Ann", password, addr)
	if err != nil {
		t.Fatal(err)
	}
	f.wantGood(session.Token)
	if want := f.clock.Now().Add(12 * time.Hour); !session.ExpiresAt.Equal(want) {
		t.Errorf("expires at %s, want %s", session.ExpiresAt, want)
	}
	u, err := f.system.Users.ByID(t.Context(), f.user.ID.Hex())
	if err != nil || !u.LastLoginAt.Equal(f.clock.Now()) {
		t.Errorf("user is %+v, %v", u, err)
	}
	if _, err := f.Login(t.Context(), "ann", strings.Repeat("x", 1025), addr); errs.KindOf(err) != errs.Invalid {
		t.Errorf("a long password: %v, want Invalid", err)
	}
}

func TestFailuresLookAlike(t *testing.T) {
	f := newAuth(t)
	gone := f.create("gone")
	if _, err := f.system.Users.Update(t.Context(), admin, gone.ID.Hex(), bson.D{{Key: "active", Value: false}}); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for i, c := range [][2]string{{"ann", "wrong"}, {"nobody", password}, {"gone", password}, {"", ""}, {"nobody\x00", "x"}} {
		session, err := f.Login(t.Context(), c[0], c[1], fmt.Sprintf("198.51.100.%d", i))
		if err == nil || session != (auth.Session{}) {
			t.Fatalf("%q: %+v %v", c[0], session, err)
		}
		texts = append(texts, fmt.Sprintf("%+v", *errs.From(err)))
	}
	for _, text := range texts[1:] {
		if diff := cmp.Diff(texts[0], text); diff != "" {
			t.Errorf("answers differ (-want +got):\n%s", diff)
		}
	}
	// What stands in for the hash of an unknown user costs as much as a real one.
	costs := func(hash string) []string { return strings.Split(hash, "$")[:4] }
	u, err := f.system.Users.ByID(t.Context(), f.user.ID.Hex())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(costs(u.PasswordHash), costs(f.Decoy())); diff != "" || len(f.Decoy()) != len(u.PasswordHash) {
		t.Errorf("costs (-real +decoy):\n%s", diff)
	}
}

func TestDelaysGrow(t *testing.T) {
	for _, name := range []string{"ann", "nobody"} {
		t.Run(name, func(t *testing.T) {
			f := newAuth(t)
			for i := range 3 {
				f.want(fmt.Sprintf("failure %d", i+1), "wrong", f.try(name, "wrong", addr))
			}
			for i := range 14 {
				f.want(fmt.Sprintf("failure %d", i+4), "wrong", f.try(name, "wrong", addr))
				delay := min(time.Second<<i, 15*time.Minute)
				if i%2 == 1 {
					f.start() // a restart forgets nothing
				}
				f.want("at once", delay.String(), f.try(strings.ToUpper(name), password, addr))
				f.want("at once, elsewhere", delay.String(), f.another().try(name, password, "198.51.100.1"))
				f.clock.Pass(delay - 500*time.Millisecond)
				f.want("a moment too early", "1s", f.try(name, password, addr))
				f.clock.Pass(500 * time.Millisecond)
			}
		})
	}
}

func TestSuccessResetsTheUser(t *testing.T) {
	f := newAuth(t)
	for range 3 {
		for i := range 3 {
			f.want("failure", "wrong", f.try("ann", "wrong", fmt.Sprintf("198.51.100.%d", i)))
		}
		f.want("success", "ok", f.try("ann", password, addr))
		f.clock.Pass(2 * time.Hour) // the addresses' counts
	}
}

func TestFailuresCountByAddress(t *testing.T) {
	f := newAuth(t)
	for i := range 4 {
		f.want("failure", "wrong", f.try(fmt.Sprintf("name%d", i), "x", "2001:db8:1:2::"+strconv.Itoa(i)))
	}
	f.want("same network", "1s", f.try("ann", password, "2001:db8:1:2:ffff::1"))
	f.want("another network", "ok", f.try("ann", password, "2001:db8:1:3::1"))
	f.clock.Pass(time.Second)
	f.want("after the delay", "ok", f.try("ann", password, "2001:db8:1:2::1"))
	f.want("one more failure", "wrong", f.try("ann", "x", "2001:db8:1:2::1")) // a success does not clear the address
	f.want("a longer delay", "2s", f.try("root", password, "2001:db8:1:2::1"))
	f.clock.Pass(time.Hour + time.Second)
	f.want("failure after an hour", "wrong", f.try("ann", "x", "2001:db8:1:2::1"))
	f.want("and it counts as the first", "ok", f.try("ann", password, "2001:db8:1:2::1"))
}

// A site has 65,536 networks of IPv6: who tries from one after the other has a delay in all of them.
func TestFailuresCountBySite(t *testing.T) {
	f := newAuth(t)
	for i := range 30 {
		f.want("failure", "wrong", f.try(fmt.Sprintf("name%d", i), "x", fmt.Sprintf("2001:db8:1:%x::1", i)))
	}
	f.want("thirty have no consequence", "ok", f.try("ann", password, "2001:db8:1:ffff::1"))
	f.want("one more failure", "wrong", f.try("name30", "x", "2001:db8:1:30::1"))
	f.want("a network without any", "1s", f.try("ann", password, "2001:db8:1:ffff::1"))
	f.want("another site", "ok", f.try("ann", password, "2001:db8:2::1"))
	f.clock.Pass(time.Second)
	f.want("after the delay", "ok", f.try("ann", password, "2001:db8:1:ffff::1"))
}

func TestAddrKeys(t *testing.T) {
	for addr, want := range map[string]string{
		"203.0.113.7":              "addr:203.0.113.7",
		"203.0.113.7:4711":         "addr:203.0.113.7",
		"::ffff:203.0.113.7":       "addr:203.0.113.7",
		"2001:db8::1":              "addr:2001:db8::/64 addr:2001:db8::/48",
		"[2001:db8:0:0:9::1]:4711": "addr:2001:db8::/64 addr:2001:db8::/48",
		"fe80::1%eth0":             "addr:fe80::/64 addr:fe80::/48",
		"":                         "addr:unknown",
		"@":                        "addr:unknown",
	} {
		if got := auth.AddrKeys(addr); got != want {
			t.Errorf("AddrKeys(%q) = %s, want %s", addr, got, want)
		}
	}
}

func TestGuessingTogetherDoesNotHelp(t *testing.T) {
	f := newAuth(t)
	release, err := f.hasher.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	results := make(chan string, 40)
	var wg sync.WaitGroup
	for i := range cap(results) {
		wg.Go(func() { results <- f.try("ann", "wrong", fmt.Sprintf("198.51.100.%d", i)) })
	}
	for f.hasher.Queued() <= cap(results) && len(results) == 0 { // until all of them have got past the first look
		runtime.Gosched()
	}
	release()
	wg.Wait()
	close(results)
	counts := map[string]int{}
	for r := range results {
		counts[r]++
	}
	if diff := cmp.Diff(map[string]int{"wrong": 4, "1s": 36}, counts); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func TestGoodLoginsTogetherAllSucceed(t *testing.T) {
	f := newAuth(t)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { f.want("login", "ok", f.try("ann", password, addr)) })
	}
	wg.Wait()
}

func TestHashesFollowTheCosts(t *testing.T) {
	f := newAuth(t)
	f = f.another(func(f *fixture) { f.params.Time = 2 })
	f.want("with an old hash", "ok", f.try("ann", password, addr))
	u, err := f.system.Users.ByID(t.Context(), f.user.ID.Hex())
	if err != nil || !strings.Contains(u.PasswordHash, ",t=2,") {
		t.Errorf("hash is %q, %v; want the new costs", u.PasswordHash, err)
	}
	if u.TokenVersion != 0 {
		t.Error("a new hash of the same password made tokens void")
	}
	f.want("with the new hash", "ok", f.try("ann", password, addr))
}

func TestChangePassword(t *testing.T) {
	f := newAuth(t)
	ctx := t.Context()
	p := &access.Principal{Kind: access.KindUser, ID: f.user.ID.Hex()}
	if _, err := f.ChangePassword(ctx, p, password, "short", addr); errs.KindOf(err) != errs.Invalid {
		t.Errorf("a short one: %v, want Invalid", err)
	}
	for i := range 4 {
		if _, err := f.ChangePassword(ctx, p, "wrong", "another one", addr); errs.KindOf(err) != errs.Denied {
			t.Errorf("wrong present password, try %d: %v, want Denied", i, err)
		}
	}
	if _, err := f.ChangePassword(ctx, p, password, "another one", addr); errs.KindOf(err) != errs.Throttled {
		t.Errorf("after four failures: %v, want Throttled", err)
	}
	for _, p := range []*access.Principal{nil, access.Anonymous(), admin, {Kind: access.KindToken}} {
		if _, err := f.ChangePassword(ctx, p, password, "another one", addr); !errors.Is(err, errs.ErrDenied) {
			t.Errorf("%+v: %v, want permission denied", p, err)
		}
		if err := f.Logout(ctx, p, false); !errors.Is(err, errs.ErrDenied) {
			t.Errorf("logout of %+v: %v, want permission denied", p, err)
		}
	}
	f.clock.Pass(time.Second)
	f.want("the old one still", "ok", f.try("ann", password, addr))
	if _, err := f.ChangePassword(ctx, p, password, "another one", addr); err != nil {
		t.Fatal(err)
	}
	f.want("the new one", "ok", f.try("ann", "another one", addr))
	f.want("the old one", "wrong", f.try("ann", password, "198.51.100.1"))
}

// Between the moment that a password is found right and the write that rests on it, somebody else's change of it counts:
// it is not overwritten, and opens no session.
func TestAPasswordThatChangesWhileItIsCheckedCountsNoMore(t *testing.T) {
	update := func(members ...bson.E) func(f *fixture) error {
		return func(f *fixture) error {
			_, err := f.system.Users.Update(f.Context(), admin, f.user.ID.Hex(), members)
			return err
		}
	}
	for name, tc := range map[string]struct {
		meanwhile     func(f *fixture) error
		login, change error
		password      string // that is good afterwards, "" for none
	}{
		"a reset":        {update(bson.E{Key: "password", Value: "set by an admin"}), errs.ErrDenied, errs.ErrDenied, "set by an admin"},
		"a deactivation": {update(bson.E{Key: "active", Value: false}), errs.ErrDenied, errs.ErrDenied, ""},
		"a deletion": {func(f *fixture) error {
			return f.system.Users.Delete(f.Context(), admin, f.user.ID.Hex())
		}, errs.ErrDenied, errs.ErrDenied, ""},
		"a logout": {func(f *fixture) error {
			return f.system.Users.RevokeTokens(f.Context(), f.user.ID, false)
		}, nil, errs.ErrDenied, password},
		"another change": {update(bson.E{Key: "name", Value: "Ann"}), nil, nil, "chosen by the user"},
	} {
		for what, try := range map[string]struct {
			do   func(f *fixture, by *access.Principal) (auth.Session, error)
			want error
		}{
			"login": {func(f *fixture, _ *access.Principal) (auth.Session, error) {
				return f.Login(f.Context(), "ann", password, addr)
			}, tc.login},
			"change": {func(f *fixture, by *access.Principal) (auth.Session, error) {
				return f.ChangePassword(f.Context(), by, password, "chosen by the user", addr)
			}, tc.change},
		} {
			t.Run(name+" during a "+what, func(t *testing.T) {
				f := newAuth(t, func(f *fixture) { f.parallel = 2 })
				by, err := f.Authenticate(t.Context(), auth.Credentials{XAuthToken: f.login("ann")})
				if err != nil {
					t.Fatal(err)
				}
				var once atomic.Bool
				f.hasher.WatchDerive(func(auth.Params) func() {
					return func() {
						if !once.CompareAndSwap(false, true) {
							return
						}
						if err := tc.meanwhile(f); err != nil {
							t.Error(err)
						}
					}
				})
				session, err := try.do(f, by)
				if errs.KindOf(err) != errs.KindOf(try.want) || (err == nil) != (try.want == nil) {
					t.Fatalf("error %v, want %v", err, try.want)
				}
				if err == nil {
					f.wantGood(session.Token)
				}
				good := tc.password
				if good == "chosen by the user" && what == "login" {
					good = password
				}
				for _, p := range []string{password, "chosen by the user", "set by an admin"} {
					want := map[bool]string{true: "ok", false: "wrong"}[p == good]
					f.want(p, want, f.try("ann", p, "198.51.100.9"))
				}
			})
		}
	}
}

func TestSecretsStayOutOfLogsAndErrors(t *testing.T) {
	f := newAuth(t)
	token := f.login("ann")
	var texts []string
	note := func(err error) {
		if err != nil {
			texts = append(texts, err.Error())
		}
	}
	canary := "canary-password-1"
	for range 6 {
		_, err := f.Login(t.Context(), "ann", canary, addr)
		note(err)
		_, err = f.Login(t.Context(), canary, "x", addr) // a password typed into the wrong field
		note(err)
	}
	for _, c := range []auth.Credentials{
		{XAuthToken: canary},
		{AdminToken: canary},
		{XAuthToken: token, AdminToken: adminToken},
		{Token: canary, TokenQuery: adminToken},
		{XAuthToken: token + "x"},
	} {
		_, err := f.Authenticate(t.Context(), c)
		note(err)
	}
	texts = append(texts, f.log.String())
	for _, text := range texts {
		for _, secret := range []string{canary, token, adminToken, password} {
			if strings.Contains(text, secret) {
				t.Errorf("%q shows a secret", text)
			}
		}
	}
	if len(texts) != 12+5+1 {
		t.Errorf("%d texts were looked at, want 18", len(texts))
	}
}
