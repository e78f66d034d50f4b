package mongo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

func TestTransact(t *testing.T) {
	t.Parallel()
	_, db := database(t)
	failed := errors.New("the caller's own")
	for _, tt := range []struct {
		name string
		fn   func(ctx context.Context, tx store.Tx) error
		want string // of the error
		left string // ids in a and b
	}{
		{"commits into collections that it makes", func(_ context.Context, tx store.Tx) error {
			mustWrite(t, tx.Collection("a"), insertion(t, `{"_id":"a1"}`), insertion(t, `{"_id":"a2"}`))
			mustWrite(t, tx.Collection("b"), insertion(t, `{"_id":"b1"}`))
			if got := ids(t, tx.Collection("a")); got != "a1 a2" {
				t.Errorf("sees %s of its own", got)
			}
			return nil
		}, "", "a1 a2|b1"},
		{"rolls back", func(_ context.Context, tx store.Tx) error {
			mustWrite(t, tx.Collection("a"), deletion(t, `"a1"`), insertion(t, `{"_id":"a3"}`))
			return failed
		}, failed.Error(), "a1 a2|b1"},
		{"goes on after what is missing or stale", func(ctx context.Context, tx store.Tx) error {
			stale := replacement(t, `{"_id":"a2","n":1}`)
			stale.If = filter(t, `{"n":7}`)
			rs, err := tx.Collection("a").Write(ctx, []store.Op{deletion(t, `"no"`), stale, deletion(t, `"a1"`)}, false)
			if err != nil || !errors.Is(rs[0].Err, errs.ErrNotFound) || !errors.Is(rs[1].Err, store.ErrStale) || rs[2].Err != nil {
				t.Errorf("%v, %v", rs, err)
			}
			return nil
		}, "", "a2|b1"},
		{"ends with an atomic write that can't be done whole", func(ctx context.Context, tx store.Tx) error {
			rs, err := tx.Collection("a").Write(ctx, []store.Op{insertion(t, `{"_id":"a4"}`), deletion(t, `"no"`)}, true)
			if err != nil || !errors.Is(rs[0].Err, store.ErrAborted) || !errors.Is(rs[1].Err, errs.ErrNotFound) {
				t.Errorf("%v, %v", rs, err)
			}
			return nil
		}, "not_found", "a2|b1"},
		{"ends with the first error of another kind", func(ctx context.Context, tx store.Tx) error {
			rs, err := tx.Collection("b").Write(ctx, []store.Op{insertion(t, `{"_id":"b2"}`), insertion(t, `{"_id":"b1"}`), insertion(t, `{"_id":"b3"}`)}, false)
			if err != nil || rs[0].Err != nil || outcome(rs[1].Err) != "dup _id" || !errors.Is(rs[2].Err, store.ErrAborted) {
				t.Errorf("%v, %v", rs, err)
			}
			if _, err := tx.Collection("a").Get(ctx, value(t, `"a2"`)); !errors.Is(err, store.ErrAborted) {
				t.Errorf("Get behind it: %v", err)
			}
			return nil
		}, "dup _id", "a2|b1"},
		{"holds 16 MiB", func(_ context.Context, tx store.Tx) error {
			for i := range 3 {
				op := insertion(t, fmt.Sprintf(`{"_id":%d,"s":%q}`, i, strings.Repeat("x", 6<<20)))
				if _, err := tx.Collection("a").Write(t.Context(), []store.Op{op}, false); err != nil {
					return nil //nolint:nilerr // Transact has to tell of it
				}
			}
			return nil
		}, "transaction_too_large", "a2|b1"},
		{"is over when it is over", func(_ context.Context, tx store.Tx) error {
			t.Cleanup(func() {
				if _, err := tx.Collection("a").Count(context.WithoutCancel(t.Context()), nil, 0); !errors.Is(err, store.ErrAborted) {
					t.Errorf("a read behind the end: %v", err)
				}
			})
			return nil
		}, "", "a2|b1"},
	} {
		err := db.Transact(t.Context(), tt.fn)
		if got := outcome(err); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		if got := ids(t, db.Collection("a")) + "|" + ids(t, db.Collection("b")); got != tt.left {
			t.Errorf("%s: leaves %s, want %s", tt.name, got, tt.left)
		}
	}
}

// outcome names an error.
func outcome(err error) string {
	var dup *store.DuplicateKeyError
	var e *errs.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &dup):
		return "dup " + dup.Index
	case errors.As(err, &e):
		return e.Code
	default:
		return err.Error()
	}
}

func TestTransactRollsBackWhenItPanics(t *testing.T) {
	t.Parallel()
	_, db := database(t)
	func() {
		defer func() { _ = recover() }()
		_ = db.Transact(t.Context(), func(_ context.Context, tx store.Tx) error {
			mustWrite(t, tx.Collection("a"), insertion(t, `{"_id":1}`))
			panic("on purpose")
		})
	}()
	mustWrite(t, db.Collection("a"), insertion(t, `{"_id":1}`)) // would wait for a transaction that goes on
}

// TestTransactCounts lets transactions fight for two documents: every increment counts, and their sum is seen by none
// to be anything but what it was.
func TestTransactCounts(t *testing.T) {
	t.Parallel()
	_, db := database(t)
	mustWrite(t, db.Collection("a"), insertion(t, `{"_id":1,"n":100}`))
	mustWrite(t, db.Collection("b"), insertion(t, `{"_id":1,"n":0}`))
	const workers, each = 4, 10
	var g errgroup.Group
	for range workers {
		g.Go(func() error {
			for range each {
				if err := db.Transact(t.Context(), func(ctx context.Context, tx store.Tx) error {
					a, err := amount(ctx, tx.Collection("a"))
					if err != nil {
						return err
					}
					b, err := amount(ctx, tx.Collection("b"))
					if err != nil {
						return err
					}
					if a+b != 100 {
						return fmt.Errorf("sees %d and %d", a, b)
					}
					for name, n := range map[string]int64{"a": a - 1, "b": b + 1} {
						op := replacement(t, fmt.Sprintf(`{"_id":1,"n":%d}`, n))
						if _, err := tx.Collection(name).Write(ctx, []store.Op{op}, false); err != nil {
							return err
						}
					}
					return nil
				}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if n, err := amount(t.Context(), db.Collection("b")); err != nil || n != workers*each {
		t.Errorf("moved %d (%v), want %d", n, err, workers*each)
	}
}

func amount(ctx context.Context, c store.Reader) (int64, error) {
	var one bytes.Buffer
	one.Write([]byte{1, 0, 0, 0})
	d, err := c.Get(ctx, bson.RawValue{Type: bson.TypeInt32, Value: one.Bytes()})
	if err != nil {
		return 0, err
	}
	n, _ := d.Lookup("n").AsInt64OK()
	return n, nil
}

func TestTransactTakesAMinute(t *testing.T) {
	t.Parallel()
	s, db := database(t)
	s.SetTransactionTime(200 * time.Millisecond)
	var seen error
	err := db.Transact(t.Context(), func(ctx context.Context, tx store.Tx) error {
		mustWrite(t, tx.Collection("a"), insertion(t, `{"_id":1}`))
		<-ctx.Done()
		_, seen = tx.Collection("a").Count(t.Context(), nil, 0)
		return nil
	})
	if errs.KindOf(err) != errs.Limit || errs.KindOf(seen) != errs.Limit {
		t.Errorf("Transact: %v, Count in it: %v", err, seen)
	}
	if got := ids(t, db.Collection("a")); got != "" {
		t.Errorf("left %s", got)
	}
}

func TestTransactEndsWithItsContext(t *testing.T) {
	t.Parallel()
	_, db := database(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
		mustWrite(t, tx.Collection("a"), insertion(t, `{"_id":1}`))
		cancel()
		_, err := tx.Collection("a").Count(ctx, nil, 0)
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	mustWrite(t, db.Collection("a"), insertion(t, `{"_id":1}`)) // it is not held up
}
