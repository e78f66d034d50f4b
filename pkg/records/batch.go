package records

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// batch is a list of operations, each for one item.
type batch struct {
	c     *Call
	grant access.Grant
	items []Item
	ops   []change
	at    []int // ops[k] is for items[at[k]]
}

func (b *batch) add(item int, op change) {
	b.ops = append(b.ops, op)
	b.at = append(b.at, item)
}

func (b *batch) atomic() bool { return b.c.isAtomic() }

// commit carries out a batch and notes each outcome on its item. In mode atomic the first failing item is the error. In
// mode continue the error is the store's when nothing is written; once something is, the items that are left have it.
func (s *Service) commit(ctx context.Context, b *batch) error {
	if b.atomic() {
		if err := firstError(b.items); err != nil {
			return err
		}
	}
	if len(b.ops) == 0 {
		return nil
	}
	stages := stagesOf(b.ops[0].Kind)
	if b.c.DryRun {
		return s.commitUndone(ctx, b)
	}
	switch {
	case !b.c.has(stages.one) && !b.c.has(stages.bulk):
		return s.commitNow(ctx, b)
	case b.atomic():
		return s.commitTogether(ctx, b)
	}
	if err := s.lastLookAtAll(ctx, b.c, b.grant, b.ops, nil); err != nil {
		return err
	}
	if !b.c.has(stages.one) {
		return s.commitNow(ctx, b)
	}
	for k, i := range b.at {
		b.ops[k], b.items[i].Err = s.write(ctx, b.c, b.grant, b.ops[k])
	}
	return nil
}

// commitTogether runs the hooks of an atomic batch, and writes it with what they write, or nothing.
func (s *Service) commitTogether(ctx context.Context, b *batch) error {
	asked := slices.Clone(b.ops)
	err := s.transacted(ctx, b.c, func(w *writing) (err error) {
		copy(b.ops, asked)
		for _, i := range b.at {
			b.items[i].Err = nil
		}
		if err := s.lastLookAtAll(ctx, b.c, b.grant, b.ops, w); err != nil {
			return err
		}
		for k, i := range b.at {
			if b.ops[k], b.items[i].Err = s.lastLook(b.c, b.grant, b.ops[k], w); b.items[i].Err != nil {
				return firstError(b.items)
			}
		}
		return s.commitNow(w.context(), b)
	})
	if err != nil {
		b.c.filing.unwritten(asked...)
	}
	return err
}

// commitNow carries out a batch behind its hooks.
func (s *Service) commitNow(ctx context.Context, b *batch) error {
	chunk := bulkChunk
	if b.atomic() {
		chunk = len(b.ops)
	}
	for start := 0; start < len(b.ops); start += chunk {
		end := min(start+chunk, len(b.ops))
		results, err := s.apply(ctx, b.c, b.ops[start:end], b.atomic())
		if err != nil && start == 0 {
			return err
		}
		if err != nil {
			for _, i := range b.at[start:] {
				b.items[i].Err = err
			}
			return nil
		}
		for k, r := range results {
			b.items[b.at[start+k]].Err = s.writeError(ctx, b.c, b.grant, r.Err)
		}
	}
	if b.atomic() {
		return firstError(b.items)
	}
	return nil
}

// firstError gives the failure that stopped an atomic write, with its item's number in front of the places.
func firstError(items []Item) error {
	for i, it := range items {
		if it.Err == nil || errors.Is(it.Err, store.ErrAborted) {
			continue
		}
		e := *errs.From(it.Err)
		e.Fields = make([]errs.FieldError, 0, len(e.Fields))
		for _, f := range errs.From(it.Err).Fields {
			f.Path = strings.TrimSuffix(fmt.Sprintf("items.%d.%s", i, f.Path), ".")
			e.Fields = append(e.Fields, f)
		}
		if own := errs.Validation(e.Fields); e.Code == own.Code {
			e.Message = own.Message
		}
		return &e
	}
	return nil
}
