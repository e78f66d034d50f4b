package records

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
)

// A dry run does a write as it would be done, in transactions that are rolled back: so it finds what the store refuses,
// too, and nothing stays of what hooks have changed by db. It ends before the write is answered: there are no entries of
// the audit log, and no hooks that run instead of the write or behind it.

// errUndone rolls back what a dry run has done.
var errUndone = errors.New("a dry run leaves nothing behind")

// undone runs fn in a transaction that is rolled back. Within one it is part of that.
func (s *Service) undone(ctx context.Context, c *Call, fn func(ctx context.Context) error) error {
	if sessionOf(ctx, c.Project.Namespace) != nil {
		return fn(ctx)
	}
	name := project.DatabaseName(c.Project.Namespace)
	log := s.logs.Of(name)
	if len(c.Collection.Hooks) > 0 { // which may write to collections that are logged
		if err := log.Prepare(ctx); err != nil {
			return err
		}
	}
	err := s.store.Database(name).Transact(ctx, func(ctx context.Context, tx store.Tx) error {
		x := &session{namespace: c.Project.Namespace, tx: tx, log: log}
		defer x.undoFiles()
		err := fn(within(ctx, x))
		if why := x.broken.Load(); err == nil && why != nil {
			err = why
		}
		if err == nil {
			err = errUndone
		}
		return err
	})
	if errors.Is(err, errUndone) {
		return nil
	}
	return err
}

// tried is the dry run of a write to one record.
func (s *Service) tried(ctx context.Context, c *Call, id string, write func(ctx context.Context) error) (Written, error) {
	if err := s.undone(ctx, c, write); err != nil {
		return Written{}, err
	}
	return Written{ID: strings.ToLower(id)}, nil
}

// behindWrite says whether a stage runs instead of a write or behind it.
func behindWrite(stage string) bool {
	_, name, _ := strings.Cut(stage, ".")
	return name == "handle" || name == "return" || name == "bulkReturn"
}

// handled says that a hook may do something else than the create that is tried: what, nobody knows before.
func (c *Call) handled() bool { return c.DryRun && len(c.Collection.Hooks["post.handle"]) > 0 }

// runUndone runs hooks of a dry run that is in no transaction.
func (at step) runUndone(ctx context.Context, members hooks.Members, w *writing) (out hooks.Outcome, err error) {
	asked := maps.Clone(members)
	err = at.s.undone(ctx, at.call, func(ctx context.Context) error {
		maps.Copy(members, asked)
		out, err = at.run(ctx, members, w)
		return err
	})
	return out, err
}

// commitUndone is commit of a dry run.
func (s *Service) commitUndone(ctx context.Context, b *batch) error {
	stages := stagesOf(b.ops[0].Kind)
	if b.atomic() {
		asked := slices.Clone(b.ops)
		return s.undone(ctx, b.c, func(ctx context.Context) error {
			copy(b.ops, asked)
			return s.commitTogether(ctx, b)
		})
	}
	if err := s.lastLookAtAll(ctx, b.c, b.grant, b.ops, nil); err != nil {
		return err
	}
	if b.c.has(stages.one) {
		for k, i := range b.at {
			b.items[i].Err = s.undone(ctx, b.c, func(ctx context.Context) (err error) {
				_, err = s.write(ctx, b.c, b.grant, b.ops[k])
				return err
			})
		}
		return nil
	}
	for chunk := range slices.Chunk(indexes(len(b.ops)), bulkChunk) {
		if err := s.tryAll(ctx, b, chunk); err != nil {
			return err
		}
	}
	return nil
}

func indexes(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// tryAll tries operations of a batch together, and again without those that fail, so that each is held against the others.
func (s *Service) tryAll(ctx context.Context, b *batch, todo []int) error {
	for len(todo) > 0 {
		ops := make([]store.Op, len(todo))
		for i, k := range todo {
			ops[i] = b.ops[k].Op
		}
		at := -1
		err := s.undone(ctx, b.c, func(ctx context.Context) error {
			results, err := s.collection(ctx, b.c).Write(ctx, ops, true)
			if at = slices.IndexFunc(results, refused); err == nil && at >= 0 {
				err = results[at].Err
			}
			return err
		})
		switch {
		case at >= 0:
			b.items[b.at[todo[at]]].Err = s.writeError(ctx, b.c, b.grant, err)
			todo = slices.Delete(todo, at, at+1)
		case errs.KindOf(err) == errs.Limit && len(todo) > 1: // too much for one transaction
			half := len(todo) / 2
			if err := s.tryAll(ctx, b, todo[:half:half]); err != nil {
				return err
			}
			todo = todo[half:]
		default:
			return err
		}
	}
	return nil
}

// refused says that an operation failed by itself, and not with others.
func refused(r store.Result) bool { return r.Err != nil && !errors.Is(r.Err, store.ErrAborted) }

// affects refuses a write to more records than its caller expects.
func (c *Call) affects(n int) error {
	if c.MaxAffected != nil && int64(n) > *c.MaxAffected {
		return tooMany(*c.MaxAffected)
	}
	return nil
}

func tooMany(most int64) error {
	return errs.New(errs.Limit, "max_affected", "this would write more than %d records, the maxAffected of the request: nothing was written", most)
}

// mostMatching is how many records a bulk write may touch, and the error for more.
func (c *Call) mostMatching() (most int64, err error) {
	most = int64(c.Collection.Bulk.MaxAffected)
	if c.MaxAffected != nil && *c.MaxAffected < most {
		return *c.MaxAffected, tooMany(*c.MaxAffected)
	}
	return most, errs.New(errs.Limit, "bulk_limit", "the filter matches more than %d records, the collection's maxAffected: narrow it", most)
}
