package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/pkg/store"
)

// testFeedOrder lets several writers count documents up, and consumers watch meanwhile, some of whom end and go on all
// the time. Each has to see each document's versions in order, each once.
func testFeedOrder(f *fixture) {
	const writers, versions, consumers = 4, 60, 3
	first := f.position()
	ctx, cancel := context.WithTimeout(f.t.Context(), feedTimeout)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx) // consumers wait for what a writer that failed doesn't write
	for w := range writers {
		g.Go(func() error {
			for v := range versions {
				op := insert(fmt.Sprintf(`{"_id":"%d/%d"}`, w, v))
				if v%7 == 3 {
					err := f.transact(func(tx *txFixture) error { return tx.in("things").apply(op) })
					if err != nil {
						return err
					}
					continue
				}
				results, err := f.Write(ctx, []store.Op{op}, v%2 == 0)
				if err == nil {
					err = results[0].Err
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	for c := range consumers {
		g.Go(func() error {
			next, total, p := make([]int, writers), 0, first
			for total < writers*versions {
				err := f.db.Watch(ctx, store.Watch{After: p}, func(e store.Event) error {
					var w, v int
					if _, err := fmt.Sscanf(show(e.ID), "%d/%d", &w, &v); err != nil {
						return err
					}
					if v != next[w] {
						return fmt.Errorf("consumer %d: writer %d: document %d, want %d", c, w, v, next[w])
					}
					next[w]++
					total++
					p = bytes.Clone(e.Position)
					if total == writers*versions || c > 0 && total%(20*c) == 0 {
						return errStop
					}
					return nil
				})
				if !errors.Is(err, errStop) {
					return fmt.Errorf("consumer %d, after %d events: %w", c, total, err)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		f.t.Error(err)
	}
}

// testFeedConsumer keeps the sum of what it is told together with its position, and is stopped again and again, before and
// after it has saved.
func testFeedConsumer(f *fixture) {
	const n = 30
	first := f.position()
	for i := range n {
		f.given(fmt.Sprintf(`{"_id":%d}`, i))
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), feedTimeout)
	defer cancel()
	steps := 0
	for done := false; !done; {
		p, err := store.LoadPosition(ctx, f.db, "sum")
		if err != nil {
			f.t.Fatal(err)
		}
		if p == nil {
			p = first
		}
		err = f.db.Watch(ctx, store.Watch{After: p, Collections: []string{"things"}}, func(e store.Event) error {
			steps++
			err := f.transact(func(tx *txFixture) error {
				add := update(fmt.Sprintf(`{"$inc":{"sum":%s,"n":1}}`, show(e.ID)))
				if err := tx.in("sums").apply(by(`{"_id":"sum"}`, "", store.Op{Kind: store.Update, Update: add, Upsert: true})); err != nil {
					return err
				}
				if err := store.SavePosition(tx.ctx, tx.tx, "sum", e.Position); err != nil {
					return err
				}
				if steps%5 == 2 {
					return errStop // dies before the commit
				}
				return nil
			})
			if err == nil && steps%7 == 3 {
				err = errStop // dies after it
			}
			if err == nil && show(e.ID) == strconv.Itoa(n-1) {
				done = true
				err = errStop
			}
			return err
		})
		if !errors.Is(err, errStop) {
			f.t.Fatalf("Watch: %v", err)
		}
		if sum, err := f.collection("sums").Get(ctx, value(`"sum"`)); err == nil && sum.Lookup("n").AsInt64() == n {
			done = true
		}
	}
	f.collection("sums").wantContents(fmt.Sprintf(`{"_id":"sum","n":%d,"sum":%d}`, n, n*(n-1)/2))
}
