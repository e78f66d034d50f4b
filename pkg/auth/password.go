package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/svcctl/svc/pkg/errs"
)

const (
	saltSize = 16
	keySize  = 32
	// maxQueued bounds who waits for a hash; more would time out anyway.
	maxQueued = 64
)

// Params are the costs of argon2id.
type Params struct {
	Memory  uint32 // KiB
	Time    uint32 // passes
	Threads uint8
}

// DefaultParams are above what OWASP recommends as a minimum.
func DefaultParams() Params { return Params{Memory: 64 << 10, Time: 2, Threads: 1} }

// Upper bounds of the costs that a stored hash may ask for.
const (
	maxMemory  = 1 << 20 // KiB
	maxTime    = 16
	maxThreads = 16
)

// Hasher hashes passwords, a bounded number at once, since each takes Params.Memory and a core. NewProcessHasher (process.go)
// makes the one that serves.
type Hasher struct {
	params Params
	slots  chan struct{}
	queue  chan struct{}
	derive deriver
}

// deriver makes the key of a password, which is the work.
type deriver func(ctx context.Context, p Params, password string, salt []byte, size uint32) []byte

// NewHasher makes a Hasher that runs up to parallel hashes at once, in this process.
func NewHasher(params Params, parallel int) *Hasher {
	parallel = max(1, parallel)
	return &Hasher{
		params: params,
		slots:  make(chan struct{}, parallel),
		queue:  make(chan struct{}, parallel+maxQueued),
		derive: derive,
	}
}

// Hash makes the PHC string that is stored for a password. It fails with errs.Throttled when too many wait already.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	release, err := h.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	return h.hash(ctx, password), nil
}

// acquire waits for a slot. With it, hash and verify may be called.
func (h *Hasher) acquire(ctx context.Context) (release func(), err error) {
	select {
	case h.queue <- struct{}{}:
	default:
		return nil, errCrowded()
	}
	select {
	case h.slots <- struct{}{}:
		return func() { <-h.slots; <-h.queue }, nil
	case <-ctx.Done():
		<-h.queue
		return nil, context.Cause(ctx)
	}
}

// full says whether as many wait as may.
func (h *Hasher) full() bool { return len(h.queue) == cap(h.queue) }

func errCrowded() error {
	e := errs.New(errs.Throttled, "too_many_logins", "too many logins at once; try again in a moment")
	e.RetryAfter = time.Second
	return e
}

func (h *Hasher) hash(ctx context.Context, password string) string {
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // it never fails
	return encodePHC(phc{Params: h.params, salt: salt, key: h.derive(ctx, h.params, password, salt, keySize)})
}

// decoy is a hash that no password has and that takes as long to verify as a real one.
func (h *Hasher) decoy() string {
	random := make([]byte, saltSize+keySize)
	_, _ = rand.Read(random) // it never fails
	return encodePHC(phc{Params: h.params, salt: random[:saltSize], key: random[saltSize:]})
}

// verify says whether stored is a hash of password, and whether it should be made anew since the costs have changed.
func (h *Hasher) verify(ctx context.Context, stored, password string) (ok, outdated bool, err error) {
	p, err := parsePHC(stored)
	if err != nil {
		return false, false, err
	}
	key := h.derive(ctx, p.Params, password, p.salt, uint32(len(p.key))) //nolint:gosec // parsePHC bounds it
	return subtle.ConstantTimeCompare(key, p.key) == 1, p.Params != h.params || len(p.key) != keySize, nil
}

func derive(_ context.Context, p Params, password string, salt []byte, size uint32) []byte {
	return argon2.IDKey([]byte(password), salt, p.Time, p.Memory, p.Threads, size)
}

// phc is a password hash with what is needed to make it again.
type phc struct {
	Params
	salt, key []byte
}

func encodePHC(p phc) string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, p.Memory, p.Time, p.Threads, b64.EncodeToString(p.salt), b64.EncodeToString(p.key))
}

var errHashFormat = errors.New("stored password hash is malformed")

// parsePHC reads what encodePHC writes, and no other form: writing it again gives the same. Errors don't show the hash.
func parsePHC(s string) (phc, error) {
	parts := strings.Split(s, "$")
	if len(parts) != 6 {
		return phc{}, errHashFormat
	}
	var p phc
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.Memory, &p.Time, &p.Threads); err != nil {
		return phc{}, errHashFormat
	}
	var saltErr, keyErr error
	p.salt, saltErr = base64.RawStdEncoding.DecodeString(parts[4])
	p.key, keyErr = base64.RawStdEncoding.DecodeString(parts[5])
	if saltErr != nil || keyErr != nil || encodePHC(p) != s {
		return phc{}, errHashFormat
	}
	if err := p.check(len(p.salt), len(p.key)); err != nil {
		return phc{}, err
	}
	return p, nil
}

// check bounds what a hash may cost, and the sizes of its salt and its key.
func (p Params) check(salt, key int) error {
	if p.Memory == 0 || p.Memory > maxMemory || p.Time == 0 || p.Time > maxTime || p.Threads == 0 || p.Threads > maxThreads ||
		salt < 8 || salt > 64 || key < 16 || key > 64 {
		return errHashFormat
	}
	return nil
}
