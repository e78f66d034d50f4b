package embedded

import (
	"context"

	"github.com/cockroachdb/pebble/v2"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

var _ store.ImageKeeper = (*Collection)(nil)

// KeepImages has the feed keep what documents were and became, or not.
func (c *Collection) KeepImages(ctx context.Context, keep bool) error {
	done, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := c.s.disk.check(); err != nil {
		return err
	}
	c.s.commit.Lock()
	defer c.s.commit.Unlock()
	coll := c.s.cat.get(c.name)
	switch {
	case coll == nil:
		return errs.ErrNotFound
	case coll.images == keep:
		return nil
	}
	coll.images = keep
	err = c.s.write(func(b *pebble.Batch) error { return coll.put(b, coll.indexes.Load()) })
	if err != nil {
		coll.images = !keep
	}
	return err
}

// KeepsImages says whether the feed keeps what documents were and became.
func (c *Collection) KeepsImages(ctx context.Context) (bool, error) {
	done, err := c.begin(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	c.s.commit.Lock()
	defer c.s.commit.Unlock()
	coll := c.s.cat.get(c.name)
	return coll != nil && coll.images, nil
}
