package records

import (
	"context"
	"errors"
	"strings"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

// Delete removes one record. ifRev are revisions, of which it must have one; none: any. The Record of the outcome is nil,
// unless a hook gives an answer of its own.
func (s *Service) Delete(ctx context.Context, c *Call, id string, ifRev ...int64) (Written, error) {
	if c.DryRun {
		return s.tried(ctx, c, id, func(ctx context.Context) error {
			_, err := s.remove(ctx, c, id, ifRev)
			return err
		})
	}
	g, err := s.remove(ctx, c, id, ifRev)
	if err != nil {
		return Written{}, err
	}
	left := c.leftOf(id)
	w := s.answered(ctx, c, g, "delete.return", Written{ID: strings.ToLower(id)})
	w.Warning = bothWarnings(left, w.Warning)
	return w, nil
}

func (s *Service) remove(ctx context.Context, c *Call, id string, ifRev []int64) (access.Grant, error) {
	g, err := s.grant(ctx, c, access.Delete)
	if err != nil {
		return g, err
	}
	oid, err := document.ParseID(id)
	if err != nil {
		return g, err
	}
	defer s.beginFiles(ctx, c)()
	for range conflictRetries {
		current, err := s.readable(ctx, c, g, oid)
		if err != nil {
			return g, err
		}
		if !fits(current, ifRev) {
			return g, errStale
		}
		_, err = s.write(ctx, c, g, change{Op: store.Op{Kind: store.Delete, ID: idValue(oid), If: unchanged(current)}, before: current})
		if !errors.Is(err, store.ErrStale) {
			return g, err
		}
	}
	return g, errBusyRecord
}
