package system

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// secretSize is the length of a generated secret, in bytes.
const secretSize = 32

// SigningKey is a secret that signs session tokens.
type SigningKey struct {
	ID        string    `bson:"kid"`
	Secret    []byte    `bson:"secret" json:"-"`
	CreatedAt time.Time `bson:"createdAt"`
	RetiredAt time.Time `bson:"retiredAt,omitempty"` // zero: it is the one that signs
}

// LogValue keeps the secret out of logs.
func (k SigningKey) LogValue() slog.Value { return slog.StringValue(k.ID) }

// NewSigningKey makes the key of a secret from the settings. Its id depends on the secret alone, so that every
// instance gives the same.
func NewSigningKey(secret []byte, now time.Time) SigningKey {
	sum := sha256.Sum256(append([]byte("svc signing key id\x00"), secret...))
	return SigningKey{ID: hex.EncodeToString(sum[:8]), Secret: slices.Clone(secret), CreatedAt: now}
}

// Secrets are what the service has generated for itself and keeps in the store.
type Secrets struct {
	coll store.Collection
	log  *audit.Log
	now  func() time.Time
}

type keyring struct {
	Name string       `bson:"_id"`
	Rev  int64        `bson:"_rev"`
	Keys []SigningKey `bson:"keys"`
}

const keyringName = "jwt"

// tokenKeyName is the key of the hashes of personal access tokens. It can't be replaced: what a token was is nowhere, so
// that no other hash of it can be made.
const tokenKeyName = "pat"

type hashKey struct {
	Name string `bson:"_id"`
	Key  []byte `bson:"key"`
}

// tokenKey gives the key of the hashes of personal access tokens. The first call ever makes it.
func (s *Secrets) tokenKey(ctx context.Context) ([]byte, error) {
	kept, err := get[hashKey](ctx, s.coll, store.Name(tokenKeyName))
	if !errors.Is(err, errs.ErrNotFound) {
		return kept.Key, err
	}
	made := hashKey{Name: tokenKeyName, Key: make([]byte, secretSize)}
	_, _ = rand.Read(made.Key) // it never fails
	err = insert(ctx, s.coll, made)
	if isDuplicate(err) { // another instance was first
		made, err = get[hashKey](ctx, s.coll, store.Name(tokenKeyName))
	}
	return made.Key, err
}

// SigningKeys gives the keys of session tokens, the one that signs first. The first call ever generates it; of several
// instances that start at once, all get the same.
func (s *Secrets) SigningKeys(ctx context.Context) ([]SigningKey, error) {
	ring, err := get[keyring](ctx, s.coll, store.Name(keyringName))
	if !errors.Is(err, errs.ErrNotFound) {
		return ring.Keys, err
	}
	return s.change(ctx, func(keys []SigningKey) []SigningKey {
		if len(keys) > 0 {
			return nil
		}
		return []SigningKey{s.generate()}
	})
}

// Adopt makes a secret from the settings the key that signs. Older keys stay as long as tokens live that they signed,
// which is keep.
func (s *Secrets) Adopt(ctx context.Context, secret []byte, keep time.Duration) ([]SigningKey, error) {
	key := NewSigningKey(secret, s.now())
	return s.change(ctx, func(keys []SigningKey) []SigningKey {
		if len(keys) > 0 && keys[0].ID == key.ID {
			return nil
		}
		return s.push(keys, key, keep)
	})
}

// Rotate generates a new key that signs. Older keys stay as long as tokens live that they signed, which is keep.
func (s *Secrets) Rotate(ctx context.Context, keep time.Duration) ([]SigningKey, error) {
	key := s.generate()
	return s.change(ctx, func(keys []SigningKey) []SigningKey { return s.push(keys, key, keep) })
}

func (s *Secrets) generate() SigningKey {
	secret := make([]byte, secretSize)
	_, _ = rand.Read(secret) // it never fails
	return NewSigningKey(secret, s.now())
}

// push puts key in front, retires the one that was, and drops those that nothing valid was signed with.
func (s *Secrets) push(keys []SigningKey, key SigningKey, keep time.Duration) []SigningKey {
	now := s.now()
	next := []SigningKey{key}
	for i, k := range keys {
		if i == 0 {
			k.RetiredAt = now
		}
		if k.ID != key.ID && now.Sub(k.RetiredAt) <= keep {
			next = append(next, k)
		}
	}
	return next
}

// change replaces the keys by what fn makes of them; nil leaves them as they are.
func (s *Secrets) change(ctx context.Context, fn func([]SigningKey) []SigningKey) ([]SigningKey, error) {
	var keys []SigningKey
	err := retry(ctx, func() error {
		old, err := get[keyring](ctx, s.coll, store.Name(keyringName))
		missing := errors.Is(err, errs.ErrNotFound)
		if err != nil && !missing {
			return err
		}
		if keys = fn(old.Keys); keys == nil {
			keys = old.Keys
			return nil
		}
		ring := keyring{Name: keyringName, Rev: old.Rev + 1, Keys: keys}
		if missing { // the first key replaces none, and is nobody's doing
			if err = insert(ctx, s.coll, ring); isDuplicate(err) {
				return store.ErrStale // another instance was first
			}
			return err
		}
		op, err := replaceOp(ring, old.Rev)
		if err != nil {
			return err
		}
		return s.log.Write(ctx, func(ctx context.Context, tx store.Tx) error {
			return store.WriteAll(ctx, tx.Collection(secretsName), op)
		}, audit.Entry{Kind: audit.System, Op: audit.OpRotateKeys, RecordID: keys[0].ID})
	})
	return keys, err
}
