package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/system"
)

const (
	// useEvery is how often the use of a personal access token is noted at most.
	useEvery = time.Minute
	// useTimeout bounds the write of one use.
	useTimeout = 5 * time.Second
	// useAtOnce is how many uses are written at a time. Further ones are left to the next request.
	useAtOnce = 8
)

// pats reads personal access tokens. It is safe for concurrent use.
type pats struct {
	models *system.Tokens
	cache  *cache[*system.Token] // the zero Token for ids that nobody has
	now    func() time.Time
	log    *slog.Logger
	decoy  []byte // what values are compared with that no token is there for
	known  *checked[*knownPAT]
	verify func(ctx context.Context, value string, stored []byte) (bool, error)

	ctx     context.Context //nolint:containedctx // of the writes of uses, which outlive requests; Close ends it
	cancel  context.CancelFunc
	writes  sync.WaitGroup
	mu      sync.Mutex
	closed  bool
	writing int
	noted   map[string]time.Time // token id: when its last use was noted
}

func newPATs(ctx context.Context, opts Options) (*pats, error) {
	models := opts.System.Tokens
	p := &pats{
		models: models, now: opts.Now, log: opts.Logger, decoy: make([]byte, sha256.Size), noted: map[string]time.Time{},
		cache: &cache[*system.Token]{now: opts.Now, entries: map[string]cached[*system.Token]{}},
		known: newChecked[*knownPAT](),
	}
	_, _ = rand.Read(p.decoy) // it never fails
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	p.cache.read = func(ctx context.Context, id string) (*system.Token, error) {
		t, err := models.ByID(ctx, id)
		if err != nil && !errors.Is(err, errs.ErrNotFound) {
			return nil, err
		}
		return &t, nil
	}
	p.verify = func(ctx context.Context, value string, stored []byte) (bool, error) {
		hash, err := models.HashOf(ctx, value)
		return err == nil && subtle.ConstantTimeCompare(hash, stored) == 1, err
	}
	models.OnChange(p.cache.drop)
	_, err := models.HashOf(ctx, "") // makes the key, so that no request has to wait for it
	return p, err
}

func isPAT(value string) bool { return strings.HasPrefix(value, system.TokenPrefix) }

// pat says whose personal access token a value is. A value that can't be one costs no read of the store; all others cost
// the same up to the comparison, whether there is such a token or not.
func (a *Auth) pat(ctx context.Context, value string) (*access.Principal, error) {
	id, t, err := a.pats.read(ctx, value)
	if err != nil {
		return nil, err
	}
	u, err := a.activeUser(ctx, t.UserID)
	if err != nil {
		return nil, err
	}
	if !a.takes(u, t) {
		return nil, errs.ErrDenied
	}
	a.pats.used(id, t)
	return principalOfPAT(u, id, t), nil
}

// knownPAT is the id of a token whose value was good, and the hash that was stored then.
type knownPAT struct {
	id   string
	hash []byte
}

// read gives the token that a value is of, and its id in hex.
func (p *pats) read(ctx context.Context, value string) (id string, t *system.Token, err error) {
	now := p.now()
	if known, ok := p.known.get(value, now); ok {
		t, err = p.cache.get(ctx, known.id)
		if err != nil || subtle.ConstantTimeCompare(known.hash, t.Hash) == 1 {
			return known.id, t, err
		}
		return "", nil, errs.ErrDenied
	}
	oid, ok := system.ParseToken(value)
	if !ok {
		return "", nil, errs.ErrDenied
	}
	id = oid.Hex()
	if t, err = p.cache.get(ctx, id); err != nil {
		return "", nil, err
	}
	stored := t.Hash
	if len(stored) == 0 {
		stored = p.decoy
	}
	good, err := p.verify(ctx, value, stored)
	if err != nil {
		return "", nil, err
	}
	if !good || t.ID != oid {
		return "", nil, errs.ErrDenied
	}
	p.known.add(value, &knownPAT{id: id, hash: t.Hash}, now)
	return id, t, nil
}

// takes says that a token of a user is neither over nor revoked.
func (a *Auth) takes(u *member, t *system.Token) bool {
	return u.Active && u.PATVersion == t.PATVersion && (t.ExpiresAt.IsZero() || a.now().Before(t.ExpiresAt))
}

func principalOfPAT(u *member, id string, t *system.Token) *access.Principal {
	p := *u.principal
	p.Kind, p.TokenID, p.Cap = access.KindPAT, id, t.Scopes
	return &p
}

// used notes the use of a token beside the request that it came with.
func (p *pats) used(id string, t *system.Token) {
	now, last := p.now(), t.LastUsedAt
	p.mu.Lock()
	defer p.mu.Unlock()
	if noted := p.noted[id]; noted.After(last) {
		last = noted
	}
	if now.Sub(last) < useEvery || p.closed || p.writing >= useAtOnce {
		return
	}
	if len(p.noted) >= cacheSize {
		clear(p.noted) // the store knows, too
	}
	p.noted[id] = now
	p.writing++
	p.writes.Go(func() {
		ctx, cancel := context.WithTimeout(p.ctx, useTimeout)
		defer cancel()
		if err := p.models.Used(ctx, t.ID, useEvery); err != nil {
			p.log.WarnContext(ctx, "the use of a personal access token was not noted", "token", id, "error", err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.writing--
	})
}

// Close waits for what is being written about the use of tokens, until ctx ends. Nothing is noted afterwards.
func (a *Auth) Close(ctx context.Context) {
	p := a.pats
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	stop := context.AfterFunc(ctx, p.cancel)
	p.writes.Wait()
	stop()
	p.cancel()
}
