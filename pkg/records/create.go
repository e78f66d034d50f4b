package records

import (
	"context"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/store"
)

// Create stores a new record and gives it an id. A dry run gives none.
func (s *Service) Create(ctx context.Context, c *Call, body bson.D) (Written, error) {
	if err := c.affects(1); err != nil {
		return Written{}, err
	}
	if c.DryRun {
		return s.tried(ctx, c, "", func(ctx context.Context) error {
			_, _, _, err := s.create(ctx, c, body)
			return err
		})
	}
	raw, handled, g, err := s.create(ctx, c, body)
	switch {
	case err != nil:
		return Written{}, err
	case raw == nil:
		return s.answered(ctx, c, g, "post.return", handled), nil
	}
	w, err := s.written(ctx, c, raw)
	if err != nil {
		return Written{}, err
	}
	return s.answered(ctx, c, g, "post.return", w), nil
}

// create stores a new record, and gives it as it is stored. raw is nil where a hook has done something else instead.
func (s *Service) create(ctx context.Context, c *Call, body bson.D) (raw bson.Raw, handled Written, g access.Grant, err error) {
	if g, err = s.grant(ctx, c, access.Post); err != nil {
		return nil, Written{}, g, err
	}
	if c.Again {
		if raw, err = s.madeBefore(ctx, c, 0); raw != nil || err != nil {
			return raw, Written{}, g, err
		}
	}
	defer s.beginFiles(ctx, c)()
	if raw, err = s.newRecord(ctx, c, g, body, 0); err != nil {
		return nil, Written{}, g, err
	}
	if c.handled() {
		return nil, Written{}, g, nil
	}
	if handled, done, err := s.handle(ctx, c, g, raw); done || err != nil {
		return nil, handled, g, err
	}
	ch, err := s.write(ctx, c, g, change{Op: store.Op{Kind: store.Insert, Doc: raw}})
	if err != nil {
		if made, _ := s.madeBefore(ctx, c, 0); made != nil { // the same request was carried out meanwhile
			return made, Written{}, g, nil
		}
	}
	return ch.Doc, Written{}, g, err
}

// madeBefore gives what the same create, carried out before, made at a place; nil if that is nothing.
func (s *Service) madeBefore(ctx context.Context, c *Call, place int) (bson.Raw, error) {
	if c.NewID == nil || c.DryRun {
		return nil, nil //nolint:nilnil // nothing is an answer
	}
	raw, err := s.collection(ctx, c).Get(ctx, idValue(c.NewID(place)))
	if errors.Is(err, errs.ErrNotFound) {
		return nil, nil //nolint:nilnil // as above
	}
	return raw, err
}

// newRecord is what a create stores, checked in full. place is that of the body in a bulk create.
func (s *Service) newRecord(ctx context.Context, c *Call, g access.Grant, body bson.D, place int) (bson.Raw, error) {
	now := s.now()
	g.Hidden = g.Declared // what is not declared is found by the check
	if problems := c.withLanguage(body); len(problems) > 0 {
		return nil, errs.Validation(problems)
	}
	id, err := s.newID(ctx, c, now, place)
	if err != nil {
		return nil, err
	}
	own := c.inLanguage(body)
	g, named, err := s.grantOnNew(ctx, c, g, body, func() bson.D {
		return stamp(id, c.Collection.Tree.Check(own, &fieldtype.Check{Now: now, Create: true}), c.Principal.ID, now)
	})
	if err != nil {
		return nil, err
	}
	if len(named) > 0 {
		body = newGuard(g).unnamed(body)
		own = c.inLanguage(body)
	}
	body, bad, err := s.receive(ctx, c, id, body)
	if err != nil {
		return nil, err
	}
	own = c.inLanguage(body)
	if c.isTranslating() {
		named = append(named, undeclaredNulls(c.Collection.Undeclared, g.Hidden, body, "")...)
	}
	bound, changed, err := s.bind(ctx, c, "post.bind", body, nil)
	if err != nil {
		return nil, err
	}
	if changed {
		var more []errs.FieldError
		if bound, more, err = s.receive(ctx, c, id, bound); err != nil {
			return nil, err
		}
		bad = append(bad, more...)
	}
	check := &fieldtype.Check{Now: now, Create: true}
	settled, unknown := c.settle(id, c.inLanguage(bound), nil)
	doc := c.Collection.Tree.Check(settled, check)
	more := slices.Concat(bad, c.told(unknown))
	if changed && (g.Unsure != nil || g.UnsureReadonly != nil) { // the caller's body is that of another record now
		var again []errs.FieldError
		if g, again, err = s.grantOnNew(ctx, c, g, body, func() bson.D { return stamp(id, doc, c.Principal.ID, now) }); err != nil {
			return nil, err
		}
		more = append(more, again...)
	}
	alone := func() *fieldtype.Check { // of what the caller has said, without hooks
		theirs := &fieldtype.Check{Now: now, Create: true}
		c.Collection.Tree.Check(own, theirs)
		return theirs
	}
	var from origin
	if changed {
		from.theirs = func() []fieldtype.Deferred { return alone().Deferred }
	}
	if err := s.judge(ctx, c, access.Post, doc, check, from); err != nil {
		return nil, err
	}
	problems := c.told(slices.DeleteFunc(check.Problems, func(p errs.FieldError) bool { return comparesHidden(g, p) }))
	if changed {
		problems, err = s.step(c, "post.bind").blame(ctx, problems, body, bound, func() []errs.FieldError {
			return c.told(alone().Problems)
		})
	}
	if err != nil {
		return nil, err
	}
	if problems = together(withoutHidden(g, problems), append(named, more...)); len(problems) > 0 {
		return nil, errs.Validation(problems)
	}
	raw, err := admitted(c, access.Post, g, stamp(id, c.Collection.Ordered(doc), c.Principal.ID, now))
	if err != nil {
		return nil, err
	}
	return raw, s.validate(ctx, c, g, "post.validate", raw, nil)
}
