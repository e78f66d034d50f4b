package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"math"
	"net/netip"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/system"
)

const (
	freeFailures = 3 // this many have no consequence
	// freeInSite is that for the 65,536 networks of IPv6 that one site may have.
	freeInSite   = 30
	firstDelay   = time.Second
	longestDelay = 15 * time.Minute
	// forgetAfter ends the count of failures; it is well above the longest delay.
	forgetAfter = time.Hour
	pruneEvery  = 10 * time.Minute
	pruneAtOnce = 1000
)

var (
	errLogin    = errs.New(errs.Denied, "login_failed", "wrong username or password")
	errPassword = errs.New(errs.Denied, "login_failed", "the present password is wrong")
)

// Session is a session token and when it expires.
type Session struct {
	Token     string
	ExpiresAt time.Time
}

// Login checks a password and starts a session. addr is the caller's network address. A wrong password, an unknown
// name and a deactivated user get one answer after the same time. Failures are counted by user and by address: from the
// fourth on, or for all networks of a site with IPv6 together the 31st, there is a growing delay, in which every try is errs.Throttled with RetryAfter, and does not count.
func (a *Auth) Login(ctx context.Context, username, password, addr string) (Session, error) {
	release, err := a.admit(ctx, username, password, addr)
	if err != nil {
		return Session{}, err
	}
	defer release()
	u, outdated, err := a.verify(ctx, username, password, addr)
	if err != nil {
		return Session{}, err
	}
	rehash := ""
	if outdated {
		rehash = a.hasher.hash(ctx, password)
	}
	ctx = audit.WithActor(ctx, audit.Actor{Kind: string(access.KindUser), ID: u.ID.Hex(), Name: u.Username})
	u, err = a.system.Users.LoggedIn(ctx, u, rehash)
	if errors.Is(err, errs.ErrDenied) || errors.Is(err, errs.ErrNotFound) { // has another password meanwhile, or is gone
		return Session{}, errLogin
	}
	if err != nil {
		return Session{}, err
	}
	return a.tokens.sign(ctx, u)
}

// ChangePassword gives the calling user a new password, which takes the present one, and a new session: the tokens
// of all earlier ones are void. A wrong present password counts as a failed login.
func (a *Auth) ChangePassword(ctx context.Context, p *access.Principal, current, next, addr string) (Session, error) {
	u, err := a.caller(ctx, p)
	if err != nil {
		return Session{}, err
	}
	if msg := system.CheckPassword(next); msg != "" {
		return Session{}, errs.Validation([]errs.FieldError{{Path: "password", Rule: "len", Message: msg}})
	}
	u, err = a.confirm(ctx, u.Username, current, addr)
	if errors.Is(err, errLogin) {
		return Session{}, errPassword
	}
	if err != nil {
		return Session{}, err
	}
	if !p.IsUser(u.ID.Hex()) || u.TokenVersion != p.TokenVersion { // the session, or the name, is no longer theirs
		return Session{}, errs.ErrDenied
	}
	u, err = a.system.Users.SetPassword(ctx, u, next)
	if errors.Is(err, errs.ErrNotFound) { // deleted meanwhile
		return Session{}, errs.ErrDenied
	}
	if err != nil {
		return Session{}, err
	}
	return a.tokens.sign(ctx, u)
}

// Logout makes all session tokens of the calling user void, and with pats the personal access tokens, too.
func (a *Auth) Logout(ctx context.Context, p *access.Principal, pats bool) error {
	u, err := a.caller(ctx, p)
	if err != nil {
		return err
	}
	return a.system.Users.RevokeTokens(ctx, u.ID, pats)
}

// RotateKeys makes a new key sign session tokens: here at once, on other instances within a minute. Tokens that older
// ones signed stay good until they expire.
func (a *Auth) RotateKeys(ctx context.Context) (system.SigningKey, error) {
	return a.tokens.rotate(ctx)
}

// caller gives the user behind a principal.
func (a *Auth) caller(ctx context.Context, p *access.Principal) (system.User, error) {
	if p == nil || p.Kind != access.KindUser {
		return system.User{}, errs.ErrDenied
	}
	u, err := a.system.Users.ByID(ctx, p.ID)
	if errors.Is(err, errs.ErrNotFound) { // deleted a moment ago
		err = errs.ErrDenied
	}
	return u, err
}

// confirm gives the user whose password this is, as they are at that moment.
func (a *Auth) confirm(ctx context.Context, username, password, addr string) (system.User, error) {
	release, err := a.admit(ctx, username, password, addr)
	if err != nil {
		return system.User{}, err
	}
	defer release()
	u, _, err := a.verify(ctx, username, password, addr)
	return u, err
}

// admit waits for the right to hash, unless there is a delay. It looks twice, so that those who were let wait together
// are not let guess together. When too many wait already, it doesn't look at all: a flood costs the store nothing.
func (a *Auth) admit(ctx context.Context, username, password, addr string) (release func(), err error) {
	if len(password) > system.MaxPassword {
		return nil, errs.New(errs.Invalid, "bad_password", "a password has at most %d bytes", system.MaxPassword)
	}
	if a.hasher.full() {
		return nil, errCrowded()
	}
	if err := a.delayed(ctx, username, addr); err != nil {
		return nil, err
	}
	if release, err = a.hasher.acquire(ctx); err != nil {
		return nil, err
	}
	if err := a.delayed(ctx, username, addr); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// verify gives the active user that has this name and password, and keeps count of failures.
func (a *Auth) verify(ctx context.Context, username, password, addr string) (u system.User, outdated bool, err error) {
	hash := a.decoy
	u, err = a.system.Users.ByUsername(ctx, username)
	switch {
	case err == nil:
		hash = u.PasswordHash
	case !errors.Is(err, errs.ErrNotFound):
		return u, false, err
	}
	ok, outdated, hashErr := a.hasher.verify(ctx, hash, password)
	if hashErr != nil {
		return u, false, errs.Wrap(hashErr, "verify a password")
	}
	if !ok || err != nil || !u.Active {
		return system.User{}, false, a.failed(ctx, username, addr, u.ID)
	}
	return u, outdated, a.system.Logins.Clear(ctx, userKey(username))
}

// failed counts a failure and gives the answer to it.
func (a *Auth) failed(ctx context.Context, username, addr string, user bson.ObjectID) error {
	for _, c := range counters(username, addr) {
		if _, err := a.system.Logins.Add(ctx, c.key, forgetAfter); err != nil {
			return err
		}
	}
	a.prune(ctx)
	if err := a.system.LoginFailed(ctx, user); err != nil {
		return err
	}
	return errLogin
}

// prune removes old counts now and then, so that made-up names don't fill the store.
func (a *Auth) prune(ctx context.Context) {
	a.mu.Lock()
	due := a.now().Sub(a.pruned) >= pruneEvery
	if due {
		a.pruned = a.now()
	}
	a.mu.Unlock()
	if !due {
		return
	}
	if err := a.system.Logins.Prune(ctx, forgetAfter, pruneAtOnce); err != nil {
		a.log.WarnContext(ctx, "removing old login failures failed", slog.Any("error", err))
	}
}

// delayed refuses a login that comes too soon after failures.
func (a *Auth) delayed(ctx context.Context, username, addr string) error {
	var wait time.Duration
	for _, c := range counters(username, addr) {
		f, err := a.system.Logins.Get(ctx, c.key)
		if err != nil {
			return err
		}
		wait = max(wait, f.Last.Add(delayAfter(f.Count-c.free)).Sub(a.now()))
	}
	if wait <= 0 {
		return nil
	}
	wait = time.Duration(math.Ceil(wait.Seconds())) * time.Second
	e := errs.New(errs.Throttled, "login_delayed", "too many failed logins; try again in %s", wait)
	e.RetryAfter = wait
	return e
}

// delayAfter is the time that has to pass after the n-th failure that is not free.
func delayAfter(n int64) time.Duration {
	d := firstDelay
	if n <= 0 {
		return 0
	}
	for range n - 1 {
		if d *= 2; d >= longestDelay {
			return longestDelay
		}
	}
	return d
}

// userKey is the key under which failures for a name are counted. The name itself may be a mistyped password.
func userKey(username string) string {
	sum := sha256.Sum256([]byte(system.FoldUsername(username)))
	return "user:" + hex.EncodeToString(sum[:16])
}

// counter is what failures are counted under, and how many have no consequence.
type counter struct {
	key  string
	free int64
}

// counters are those of a login: by name and by address, and of IPv6 by site, too, which has many networks to come from.
func counters(username, addr string) []counter {
	ip, known := address(addr)
	out := []counter{{userKey(username), freeFailures}, {addrKey(ip, known), freeFailures}}
	if known && ip.Is6() {
		out = append(out, counter{prefixKey(ip, 48), freeInSite})
	}
	return out
}

func address(addr string) (ip netip.Addr, known bool) {
	ip, err := netip.ParseAddr(addr)
	if err != nil {
		ap, err := netip.ParseAddrPort(addr)
		if err != nil {
			return netip.Addr{}, false
		}
		ip = ap.Addr()
	}
	return ip.Unmap().WithZone(""), true
}

// addrKey is the key under which failures from an address are counted: of IPv6, the network that one customer has.
func addrKey(ip netip.Addr, known bool) string {
	switch {
	case !known:
		return "addr:unknown"
	case ip.Is6():
		return prefixKey(ip, 64)
	}
	return "addr:" + ip.String()
}

func prefixKey(ip netip.Addr, bits int) string {
	return "addr:" + netip.PrefixFrom(ip, bits).Masked().String()
}
