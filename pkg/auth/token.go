package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/system"
)

const (
	issuer   = "svc"
	audience = "svc-api"
	// maxToken bounds what is parsed at all, in bytes; a real token has about 300.
	maxToken = 2048
	// minSecret is the shortest secret that HS256 is safe with, in bytes.
	minSecret = 32
	// keysFresh is how long an instance goes without asking whether another one has rotated the keys.
	keysFresh = time.Minute
	// keysPause is the shortest time between two looks for a key that a token names and nobody here knows.
	keysPause = time.Second
	// signsOn bounds how long another instance may sign with a key that has been retired: it has yet to notice, and its
	// clock may differ.
	signsOn = keysFresh + time.Minute
)

// claims are what a session token says.
type claims struct {
	jwt.RegisteredClaims

	Version *int64 `json:"ver"` // the user's TokenVersion at login
}

// bearer is what a request needs of a session token's claims.
type bearer struct {
	userID  string
	version int64 // the user's TokenVersion at login
	expires time.Time
}

// tokens signs and reads session tokens. It is safe for concurrent use.
type tokens struct {
	secrets    *system.Secrets
	configured *system.SigningKey // from the settings; it signs, whatever the ring says
	ttl        time.Duration
	now        func() time.Time
	parser     *jwt.Parser
	checked    *checked[bearer]

	mu     sync.Mutex
	ring   []system.SigningKey
	loaded time.Time
}

func newTokens(ctx context.Context, secrets *system.Secrets, secret []byte, ttl time.Duration, now func() time.Time) (*tokens, error) {
	t := &tokens{secrets: secrets, ttl: ttl, now: now, checked: newChecked[bearer](), parser: jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithIssuer(issuer),
		jwt.WithAudience(audience),
		jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(),
		jwt.WithStrictDecoding(),
		jwt.WithLeeway(5*time.Second), // the clocks of instances differ
		jwt.WithTimeFunc(now),
	)}
	var err error
	if len(secret) > 0 {
		if len(secret) < minSecret {
			return nil, fmt.Errorf("auth.jwtSecret is too short: it needs at least %d bytes", minSecret)
		}
		key := system.NewSigningKey(secret, now())
		t.configured = &key
		t.ring, err = secrets.Adopt(ctx, secret, ttl+signsOn)
	} else {
		t.ring, err = secrets.SigningKeys(ctx)
	}
	t.loaded = now()
	return t, err
}

// sign starts a session of a user.
func (t *tokens) sign(ctx context.Context, u system.User) (Session, error) {
	key, err := t.signer(ctx)
	if err != nil {
		return Session{}, err
	}
	now := t.now()
	expires := jwt.NewNumericDate(now.Add(t.ttl)) // in whole seconds
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    issuer,
			Audience:  jwt.ClaimStrings{audience},
			Subject:   u.ID.Hex(),
			IssuedAt:  jwt.NewNumericDate(now),
			ExpiresAt: expires,
		},
		Version: &u.TokenVersion,
	})
	token.Header["kid"] = key.ID
	signed, err := token.SignedString(key.Secret)
	return Session{Token: signed, ExpiresAt: expires.Time}, err
}

func (t *tokens) signer(ctx context.Context) (system.SigningKey, error) {
	if t.configured != nil {
		return *t.configured, nil
	}
	ring, err := t.keys(ctx, keysFresh)
	if err != nil {
		return system.SigningKey{}, err
	}
	return ring[0], nil
}

// errConfigured refuses to rotate keys where the settings say which one signs.
var errConfigured = errs.New(errs.Conflict, "secret_in_settings",
	"the secret that signs logins stands in the settings: change auth.jwtSecret (or its file) there, and restart")

// rotate makes a new key sign from now on.
func (t *tokens) rotate(ctx context.Context) (system.SigningKey, error) {
	if t.configured != nil {
		return system.SigningKey{}, errConfigured
	}
	ring, err := t.secrets.Rotate(ctx, t.ttl+signsOn)
	if err != nil {
		return system.SigningKey{}, err
	}
	t.set(ring)
	return ring[0], nil
}

// errToken is any reason for which a token is not taken. The reason is for nobody.
var errToken = errors.New("session token is not valid")

// read checks a token and says whose it is. Its error is errToken, or one of the store.
func (t *tokens) read(ctx context.Context, token string) (bearer, error) {
	if len(token) > maxToken {
		return bearer{}, errToken
	}
	now := t.now()
	if b, ok := t.checked.get(token, now); ok && now.Before(b.expires) {
		return b, nil
	}
	if strings.ContainsAny(token, "\r\n") { // which base64 would skip
		return bearer{}, errToken
	}
	var c claims
	var storeErr error
	_, err := t.parser.ParseWithClaims(token, &c, func(parsed *jwt.Token) (any, error) {
		if _, critical := parsed.Header["crit"]; critical { // extensions that must be understood (RFC 7515, 4.1.11): there are none
			return nil, errToken
		}
		kid, _ := parsed.Header["kid"].(string)
		var key system.SigningKey
		if key, storeErr = t.find(ctx, kid); storeErr != nil {
			return nil, storeErr
		}
		if len(key.Secret) == 0 || !t.couldSign(key, c) {
			return nil, errToken
		}
		return key.Secret, nil
	})
	switch {
	case storeErr != nil:
		return bearer{}, storeErr
	case err != nil || c.Version == nil || c.Subject == "":
		return bearer{}, errToken
	}
	b := bearer{userID: c.Subject, version: *c.Version, expires: c.ExpiresAt.Time}
	t.checked.add(token, b, now)
	return b, nil
}

// couldSign says whether a key may have signed claims: while it did that, and for no longer than a session lasts. So a key
// that has been retired opens nothing once the sessions are over that it has begun, whoever has it.
func (t *tokens) couldSign(key system.SigningKey, c claims) bool {
	if c.IssuedAt == nil || c.ExpiresAt == nil {
		return false
	}
	retired := !key.RetiredAt.IsZero() && c.IssuedAt.After(key.RetiredAt.Add(signsOn))
	return !retired && c.ExpiresAt.Sub(c.IssuedAt.Time) <= t.ttl+time.Second // both are cut to seconds
}

// find gives the key with an id; a key without secret when there is none.
func (t *tokens) find(ctx context.Context, kid string) (system.SigningKey, error) {
	if t.configured != nil && t.configured.ID == kid {
		return *t.configured, nil
	}
	byID := func(k system.SigningKey) bool { return k.ID == kid }
	ring, err := t.keys(ctx, keysFresh) // another instance may have retired one
	if err != nil {
		return system.SigningKey{}, err
	}
	if i := slices.IndexFunc(ring, byID); i >= 0 {
		return ring[i], nil
	}
	// Another instance may have rotated a moment ago.
	if ring, err = t.keys(ctx, keysPause); err != nil {
		return system.SigningKey{}, err
	}
	if i := slices.IndexFunc(ring, byID); i >= 0 {
		return ring[i], nil
	}
	return system.SigningKey{}, nil
}

// keys gives the ring, read again when it is older than fresh.
func (t *tokens) keys(ctx context.Context, fresh time.Duration) ([]system.SigningKey, error) {
	t.mu.Lock()
	ring, age := t.ring, t.now().Sub(t.loaded)
	t.mu.Unlock()
	if age < fresh {
		return ring, nil
	}
	ring, err := t.secrets.SigningKeys(ctx)
	if err != nil {
		return nil, err
	}
	t.set(ring)
	return ring, nil
}

func (t *tokens) set(ring []system.SigningKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ring, t.loaded = ring, t.now()
	t.checked.forget()
}
