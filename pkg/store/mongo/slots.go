package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const (
	defaultConnections = 100 // the driver's own
	kept               = 4   // one of so many connections, and at least one, is kept from what may wait for transactions
)

// limitWaiting gives the slots of a store with these options, and makes sure that there are two connections at least.
func limitWaiting(opts *options.ClientOptions) chan struct{} {
	n := uint64(defaultConnections)
	if opts.MaxPoolSize != nil {
		n = *opts.MaxPoolSize
	}
	if n == 0 {
		return nil // no limit
	}
	if n == 1 {
		n = 2
		opts.SetMaxPoolSize(n)
	}
	return make(chan struct{}, n-max(1, n/kept))
}

// withSlot runs a write outside of transactions. It waits in the server, on its connection, for transactions that have
// written to its document; if such writes had all connections, none would be left for the commits that they wait for.
func (s *Store) withSlot(ctx context.Context, write func() error) error {
	if s.slots == nil || mongo.SessionFromContext(ctx).TransactionRunning() {
		return write()
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
		return write()
	case <-ctx.Done():
		return ctx.Err()
	}
}
