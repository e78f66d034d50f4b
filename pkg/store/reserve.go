package store

import "context"

type reserveKey struct{}

// WithReserve lets the small writes that go by a context into the last of what a store keeps free on its disk: entries of the audit log and records of runs,
// where what they are about reads, or makes room. A store refuses them, too, before it is at its end. Records of a project never go by such a context.
func WithReserve(ctx context.Context) context.Context {
	return context.WithValue(ctx, reserveKey{}, true)
}

// MayUseReserve says whether a context is one of WithReserve.
func MayUseReserve(ctx context.Context) bool { return ctx.Value(reserveKey{}) != nil }
