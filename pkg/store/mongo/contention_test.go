package mongo_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/pkg/store"
)

// TestContention lets many transactions, and writes of other kinds, change one document at once. All succeed, in the time
// that a request has.
func TestContention(t *testing.T) {
	t.Parallel()
	const writers, each = 32, 6
	ops := func(t *testing.T) []store.Op {
		return []store.Op{update(t, "1", `{"$inc":{"n":1}}`), update(t, "2", `{"$inc":{"n":1}}`)}
	}
	for name, write := range map[string]func(ctx context.Context, t *testing.T, db store.Database) error{
		"transactions": func(ctx context.Context, t *testing.T, db store.Database) error {
			return db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
				n, err := amount(ctx, tx.Collection("c"))
				if err != nil {
					return err
				}
				_, err = one(tx.Collection("c").Write(ctx, []store.Op{replacement(t, fmt.Sprintf(`{"_id":1,"n":%d}`, n+1))}, false))
				return err
			})
		},
		"atomic writes": func(ctx context.Context, t *testing.T, db store.Database) error {
			_, err := one(db.Collection("c").Write(ctx, ops(t), true))
			return err
		},
		"many": func(ctx context.Context, t *testing.T, db store.Database) error {
			op := update(t, "", `{"$inc":{"n":1}}`)
			op.Filter, op.Many = filter(t, `{}`), true
			_, err := one(db.Collection("c").Write(ctx, []store.Op{op}, false))
			return err
		},
		"plain writes": func(ctx context.Context, t *testing.T, db store.Database) error {
			_, err := one(db.Collection("c").Write(ctx, ops(t)[:1], false))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, db := database(t)
			mustWrite(t, db.Collection("c"), insertion(t, `{"_id":1,"n":0}`), insertion(t, `{"_id":2,"n":0}`))
			var g errgroup.Group
			var mu sync.Mutex
			var took []time.Duration
			start := time.Now()
			for range writers {
				g.Go(func() error {
					for range each {
						ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
						begun := time.Now()
						err := write(ctx, t, db)
						cancel()
						if err != nil {
							return err
						}
						mu.Lock()
						took = append(took, time.Since(begun))
						mu.Unlock()
					}
					return nil
				})
			}
			if err := g.Wait(); err != nil {
				t.Fatal(err)
			}
			slices.Sort(took)
			t.Logf("%d writes in %v: half of them within %v, 99 %% within %v, all within %v", len(took), time.Since(start).Round(time.Millisecond),
				took[len(took)/2].Round(time.Millisecond), took[len(took)*99/100].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
			if n, err := amount(t.Context(), db.Collection("c")); err != nil || n != writers*each {
				t.Errorf("counted %d of %d, %v", n, writers*each, err)
			}
		})
	}
}
