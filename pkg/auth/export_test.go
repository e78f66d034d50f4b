package auth

import (
	"context"
	"strings"
)

// Canonical reads a PHC string and writes it again.
func Canonical(s string) (string, error) {
	p, err := parsePHC(s)
	return encodePHC(p), err
}

// Acquire takes a slot of the hasher.
func (h *Hasher) Acquire(ctx context.Context) (func(), error) { return h.acquire(ctx) }

// WatchDerive has fn called around each time that a key is made of a password, with what it costs.
func (h *Hasher) WatchDerive(fn func(p Params) (done func())) {
	inner := h.derive
	h.derive = func(ctx context.Context, p Params, password string, salt []byte, size uint32) []byte {
		defer fn(p)()
		return inner(ctx, p, password, salt, size)
	}
}

// MaxQueued is how many may wait for a hash.
const MaxQueued = maxQueued

// Queued is how many hash or wait for it.
func (h *Hasher) Queued() int { return len(h.queue) }

// Verify compares a password with a hash.
func (h *Hasher) Verify(stored, password string) (ok, outdated bool, err error) {
	return h.verify(context.Background(), stored, password)
}

// Decoy is what unknown users' passwords are compared with.
func (a *Auth) Decoy() string { return a.decoy }

// AddrKeys are the keys under which failures from an address are counted.
func AddrKeys(addr string) string {
	var keys []string
	for _, c := range counters("", addr)[1:] {
		keys = append(keys, c.key)
	}
	return strings.Join(keys, " ")
}

// OnVerify calls fn with each value of a personal access token that is compared, and what with.
func (a *Auth) OnVerify(fn func(value string, stored []byte)) {
	verify := a.pats.verify
	a.pats.verify = func(ctx context.Context, value string, stored []byte) (bool, error) {
		fn(value, stored)
		return verify(ctx, value, stored)
	}
}

// NotedUses waits for the uses of personal access tokens that are being written.
func (a *Auth) NotedUses() { a.pats.writes.Wait() }
