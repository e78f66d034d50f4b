package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/system"
)

// Options configure an Auth.
type Options struct {
	System *system.System   // required
	Hasher *Hasher          // required: the one whose Hash made the stored hashes
	Logger *slog.Logger     // required
	Now    func() time.Time // required
	// JWTSecret signs session tokens, at least 32 bytes; empty: one that is kept in the store.
	JWTSecret []byte
	// JWTTTL is how long a session token lives; 0 means 12 h.
	JWTTTL time.Duration
	// AdminToken is the server admin token; empty: no token is.
	AdminToken string
}

// Auth finds out who callers are. It is safe for concurrent use.
type Auth struct {
	system *system.System
	hasher *Hasher
	log    *slog.Logger
	now    func() time.Time
	tokens *tokens
	users  *cache[*member]
	pats   *pats
	decoy  string // verified for users that don't exist

	adminSet  bool
	adminHash [32]byte

	mu     sync.Mutex
	pruned time.Time // when old failures were last removed
}

// New makes an Auth. It reads the keys of tokens from the store, or puts the first ones there. Close ends it.
func New(ctx context.Context, opts Options) (*Auth, error) {
	if opts.System == nil || opts.Hasher == nil || opts.Logger == nil || opts.Now == nil {
		return nil, errors.New("auth needs the system models, a hasher, a logger and a clock")
	}
	if opts.JWTTTL <= 0 {
		opts.JWTTTL = 12 * time.Hour
	}
	tokens, err := newTokens(ctx, opts.System.Secrets, opts.JWTSecret, opts.JWTTTL, opts.Now)
	if err != nil {
		return nil, fmt.Errorf("session tokens: %w", err)
	}
	pats, err := newPATs(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("personal access tokens: %w", err)
	}
	return &Auth{
		system:    opts.System,
		hasher:    opts.Hasher,
		log:       opts.Logger,
		now:       opts.Now,
		tokens:    tokens,
		users:     newUserCache(opts.System, opts.Now),
		pats:      pats,
		decoy:     opts.Hasher.decoy(),
		adminSet:  opts.AdminToken != "",
		adminHash: sha256.Sum256([]byte(opts.AdminToken)),
	}, nil
}

// Credentials are what a request carries, as it came; "" for what it does not.
type Credentials struct {
	XAuthToken string // header X-Auth-Token: a session token or a personal access token
	AdminToken string // header X-Admin-Token
	Bearer     string // header Authorization, without "Bearer ": the admin token or a personal access token again
	Token      string // header Token: a collection token or a project's admin token
	TokenQuery string // query parameter token: the same, for testing
	Cookie     string // a session token, which counts only where there is nothing else: browsers send cookies always
}

var errTwoCredentials = errs.New(errs.Invalid, "two_credentials",
	"two different credentials: send only one of X-Auth-Token, X-Admin-Token (or Authorization: Bearer) and Token")

// Authenticate says who sent the credentials. None is anonymous, more than one is errs.Invalid with code
// "two_credentials", and one that is wrong, expired or revoked is errs.ErrDenied, whatever was asked for. A Token is only
// passed on as a hash: its project knows whether it is good.
func (a *Auth) Authenticate(ctx context.Context, c Credentials) (*access.Principal, error) {
	bearer, pat := c.Bearer, ""
	if isPAT(bearer) {
		bearer, pat = "", bearer
	}
	admin, ok1 := same(c.AdminToken, bearer)
	token, ok2 := same(c.Token, c.TokenQuery)
	user, ok3 := same(c.XAuthToken, pat)
	given := 0
	for _, v := range []string{user, admin, token} {
		if v != "" {
			given++
		}
	}
	switch {
	case !ok1 || !ok2 || !ok3 || given > 1:
		return nil, errTwoCredentials
	case isPAT(user):
		return a.pat(ctx, user)
	case user != "":
		return a.session(ctx, user)
	case admin != "":
		return a.admin(admin)
	case c.Cookie != "" && token == "":
		return a.session(ctx, c.Cookie)
	case token != "":
		return &access.Principal{Kind: access.KindToken, Name: "token", TokenHash: sha256.Sum256([]byte(token))}, nil
	}
	return access.Anonymous(), nil
}

// same gives the one value of two places, and false when they differ.
func same(a, b string) (string, bool) {
	if a == "" {
		return b, true
	}
	return a, b == "" || subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

func (a *Auth) admin(token string) (*access.Principal, error) {
	sum := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(sum[:], a.adminHash[:]) != 1 || !a.adminSet {
		return nil, errs.ErrDenied
	}
	return &access.Principal{Kind: access.KindAdmin, Name: "admin token"}, nil
}

func (a *Auth) session(ctx context.Context, token string) (*access.Principal, error) {
	b, err := a.tokens.read(ctx, token)
	if errors.Is(err, errToken) {
		return nil, errs.ErrDenied
	}
	if err != nil {
		return nil, err
	}
	u, err := a.activeUser(ctx, b.userID)
	if err != nil {
		return nil, err
	}
	if u.TokenVersion != b.version {
		return nil, errs.ErrDenied
	}
	return u.principal, nil
}

// activeUser gives the user that a token is of. One who is gone or not active is errs.ErrDenied.
func (a *Auth) activeUser(ctx context.Context, id string) (*member, error) {
	u, err := a.users.get(ctx, id)
	switch k := errs.KindOf(err); {
	case err != nil && (k == errs.NotFound || k == errs.Invalid):
		return nil, errs.ErrDenied
	case err != nil:
		return nil, err
	case !u.Active:
		return nil, errs.ErrDenied
	}
	return u, nil
}

func principal(u system.User, standing system.Standing) *access.Principal {
	return &access.Principal{
		Kind:    access.KindUser,
		ID:      u.ID.Hex(),
		Name:    u.Username,
		IsAdmin: u.IsAdmin,
		Scopes:  standing.Scopes,
		Limited: standing.Limited,
		OrgIDs:  standing.OrgIDs,
		TeamIDs: standing.TeamIDs,
		Teams:   standing.Teams,

		TokenVersion: u.TokenVersion, PATVersion: u.PATVersion,
	}
}
