package records

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// UpdateMode says what the body of an update means.
type UpdateMode uint8

// The modes of an update.
const (
	Merge     UpdateMode = iota // RFC 7396: given fields are set, null unsets, absent ones stay
	Overwrite                   // the body is the whole new record
	JSONPatch                   // RFC 6902: the body is a list of operations
	operators                   // of scripts: the body is an update with operators, such as {$inc: {n: 1}}
)

// Change is an update as a door reads it.
type Change struct {
	Mode  UpdateMode
	Body  bson.D  // Merge and Overwrite
	Patch []byte  // JSONPatch
	IfRev []int64 // revisions, of which the record must have one; none: any
	There bool    // the record of a singleton must be there: it is not to be created
}

// Update changes one record.
func (s *Service) Update(ctx context.Context, c *Call, id string, ch Change) (Written, error) {
	if c.DryRun {
		return s.tried(ctx, c, id, func(ctx context.Context) error {
			_, _, err := s.update(ctx, c, id, ch)
			return err
		})
	}
	raw, g, err := s.update(ctx, c, id, ch)
	if err != nil {
		return Written{}, err
	}
	w, err := s.written(ctx, c, raw)
	if err != nil {
		return Written{}, err
	}
	return s.answered(ctx, c, g, "put.return", w), nil
}

// update reads, changes and writes a record, and starts over when another writer came between. It gives the record as it
// is stored.
func (s *Service) update(ctx context.Context, c *Call, id string, ch Change) (bson.Raw, access.Grant, error) {
	g, err := s.grant(ctx, c, access.Put)
	if err != nil {
		return nil, g, err
	}
	oid, err := document.ParseID(id)
	if err != nil {
		return nil, g, err
	}
	if ch.Mode == JSONPatch { // its operations test and copy what is there, so it takes the right to read that
		read, err := s.grant(ctx, c, access.Get)
		if err != nil {
			return nil, g, err
		}
		g.Filter = mql.And(g.Filter, read.Filter)
		g.Hidden, g.Declared = g.Hidden.Union(read.Hidden), g.Declared.Union(read.Declared)
	}
	defer s.beginFiles(ctx, c)()
	for range conflictRetries {
		current, err := s.readable(ctx, c, g, oid)
		if err != nil {
			return nil, g, err
		}
		next, err := s.changed(ctx, c, g, current, ch)
		if err != nil {
			return nil, g, err
		}
		done, err := s.write(ctx, c, g, change{Op: store.Op{Kind: store.Replace, Doc: next, If: unchanged(current)}, before: current})
		if !errors.Is(err, store.ErrStale) {
			return done.Doc, g, err
		}
	}
	return nil, g, errBusyRecord
}

// changed is the record after ch, checked in full.
func (s *Service) changed(ctx context.Context, c *Call, g access.Grant, raw bson.Raw, ch Change) (bson.Raw, error) {
	if !fits(raw, ch.IfRev) {
		return nil, errStale
	}
	current, err := document.Unmarshal(raw)
	if err != nil {
		return nil, errs.Wrap(err, "decode stored record")
	}
	system, own := fieldtype.SplitSystem(current)
	if !c.Collection.Undeclared.Finds(own) { // most often: the rules that keep what is not seen need not apply to it
		g.Hidden = g.Declared
	}
	if g, err = s.grantOn(ctx, c, access.Put, g, raw); err != nil {
		return nil, err
	}
	d, err := s.applied(ctx, c, g, raw, own, system, ch)
	if err != nil {
		return nil, err
	}
	now := s.now()
	check := &fieldtype.Check{Now: now}
	settled, unknown := c.settle(idOf(raw), d.next, own)
	d.named = append(d.named, c.told(relevant(d.grant, unknown, d.touched))...)
	next := c.Collection.Tree.Check(settled, check)
	from := origin{was: raw}
	alone := func() *fieldtype.Check { // of what the caller has said, without hooks
		theirs := &fieldtype.Check{Now: now}
		said, _ := c.merged(g, own, d.body, nil, ch.Mode)
		c.Collection.Tree.Check(said, theirs)
		return theirs
	}
	if d.bound != nil {
		from.theirs = func() []fieldtype.Deferred { return alone().Deferred }
	}
	if err := s.judge(ctx, c, access.Put, next, check, from); err != nil {
		return nil, err
	}
	if d.touched != nil {
		next = untouched(next, own, d.touched)
	}
	next, problems := newGuard(d.grant).keep(next, own)
	if !newGuard(d.grant).empty() { // what is hidden of a file was that of the one before it
		next, _ = c.settle(idOf(raw), next, own)
	}
	if ch.Mode != Overwrite && d.grant.Readonly != nil {
		problems = append(problems, newGuard(d.grant).takenAway(untouched(d.next, own, d.touched), own, "")...)
	}
	found := c.told(relevant(d.grant, check.Problems, d.touched))
	problems = c.told(problems)
	if d.bound != nil && len(problems) == 0 {
		if found, err = s.step(c, "put.bind").blame(ctx, found, d.body, d.bound, func() []errs.FieldError {
			return c.told(alone().Problems)
		}); err != nil {
			return nil, err
		}
	}
	if problems = together(withoutHidden(g, append(problems, found...)), d.named); len(problems) > 0 {
		return nil, errs.Validation(problems)
	}
	done, err := admitted(c, access.Put, g, restamp(system, c.Collection.Ordered(next), revOf(raw)+1, c.Principal.ID, now))
	if err != nil {
		return nil, err
	}
	if err := s.checkGone(c, idOf(raw), raw, done); err != nil {
		return nil, err
	}
	return done, s.validate(ctx, c, g, "put.validate", done, raw)
}

// draft is what a change makes of a record's own fields, before it is checked.
type draft struct {
	next    bson.D
	touched map[string]bool // the top-level fields that the change speaks of; nil: all
	grant   access.Grant    // the caller's, without what a hook has set

	named []errs.FieldError // what the caller names that is no field to them

	body, bound bson.D // what the caller said, and what hooks made of it; bound is nil without any
}

// applied carries out the change on the record's own fields.
func (s *Service) applied(ctx context.Context, c *Call, g access.Grant, raw bson.Raw, own, system bson.D, ch Change) (draft, error) {
	body, touched := ch.Body, map[string]bool(nil)
	var err error
	switch ch.Mode {
	case JSONPatch:
		body, touched, err = c.patched(g, own, system, ch.Patch)
	case operators:
		body, touched, err = operated(raw, own, system, ch.Body)
	case Merge, Overwrite:
	}
	if err != nil {
		return draft{}, err
	}
	body, problems, err := withoutSystemFields(g, body, system)
	if err != nil {
		return draft{}, err
	}
	problems = append(problems, document.CheckNames(body)...)
	problems = append(problems, c.withLanguage(body)...)
	if len(problems) > 0 {
		return draft{}, errs.Validation(problems)
	}
	d := draft{body: body, touched: touched, grant: g}
	if d.named = newGuard(g).named(body, false); len(d.named) > 0 {
		body = newGuard(g).unnamed(body)
		d.body = body
	}
	if body, problems, err = s.receive(ctx, c, idOf(raw), body); err != nil {
		return draft{}, err
	}
	d.body, d.named = body, append(d.named, problems...)
	if ch.Mode == Merge || c.isTranslating() {
		d.named = append(d.named, undeclaredNulls(c.Collection.Undeclared, g.Hidden, body, "")...)
	}
	if err := s.bindUpdate(ctx, c, &d, raw, own, ch.Mode); err != nil {
		return draft{}, err
	}
	if d.bound != nil {
		body = d.bound
	}
	d.next, d.touched = c.merged(g, own, body, d.touched, ch.Mode)
	return d, nil
}

// bindUpdate has the stage bind change what the caller said.
func (s *Service) bindUpdate(ctx context.Context, c *Call, d *draft, raw bson.Raw, own bson.D, mode UpdateMode) error {
	bound, changed, err := s.bind(ctx, c, "put.bind", d.body, raw)
	if err != nil || !changed {
		return err
	}
	_, bound = fieldtype.SplitSystem(bound)
	if problems := document.CheckNames(bound); len(problems) > 0 {
		s.step(c, "put.bind").refused(ctx, problems)
		return errs.Validation(problems)
	}
	bound, problems, err := s.receive(ctx, c, idOf(raw), bound)
	if err != nil {
		return err
	}
	d.named = append(d.named, problems...)
	spoken := newGuard(d.grant).spoken(d.body, bound, "", nil)
	if len(spoken) > 0 { // the hook may write that, the caller may not
		if problems := s.refused(c, d.grant, own, d.body, d.touched, mode); len(problems) > 0 {
			return errs.Validation(problems)
		}
	}
	if c.isTranslating() {
		spoken = c.Collection.Tree.WithTranslations(spoken)
	}
	d.grant, d.bound = without(d.grant, spoken), bound
	if d.touched != nil {
		maps.Copy(d.touched, differences(d.body, bound))
	}
	return nil
}

// merged is what a body makes of the record's own fields.
func (c *Call) merged(g access.Grant, own, body bson.D, touched map[string]bool, mode UpdateMode) (bson.D, map[string]bool) {
	switch {
	case c.isTranslating():
		return c.translate(own, body, g.Hidden, touched, mode)
	case mode != Merge:
		if all, has := document.Member(own, fieldtype.I18n); has && c.isLocal() { // nothing is said of other languages
			body = append(slices.Clip(body), bson.E{Key: fieldtype.I18n, Value: all})
		}
		return body, touched
	}
	touched = make(map[string]bool, len(body))
	for _, e := range body {
		touched[e.Key] = true
	}
	return document.MergePatch(own, body), touched
}

// refused reports what a caller's body would change that they may not write, before a hook has its say.
func (s *Service) refused(c *Call, g access.Grant, own, body bson.D, touched map[string]bool, mode UpdateMode) []errs.FieldError {
	if len(newGuard(g).named(body, true)) == 0 {
		return nil
	}
	next, touched := c.merged(g, own, body, touched, mode)
	next = c.Collection.Tree.Check(next, &fieldtype.Check{Now: s.now()})
	if touched != nil {
		next = untouched(next, own, touched)
	}
	_, problems := newGuard(g).keep(next, own)
	return c.told(problems)
}

// operated applies an update with operators. touched names the top-level fields that come out different.
func operated(raw bson.Raw, own, system, body bson.D) (next bson.D, touched map[string]bool, err error) {
	update, err := mql.CompileUpdate(body, nil)
	if err != nil {
		return nil, nil, err
	}
	changed, err := update.Apply(raw, mql.Applying{})
	if err != nil {
		return nil, nil, err
	}
	if next, err = document.Unmarshal(changed); err != nil {
		return nil, nil, err
	}
	kept, next := fieldtype.SplitSystem(next)
	var problems []errs.FieldError
	for name := range differences(system, kept) {
		problems = append(problems, systemProblem(name))
	}
	if len(problems) > 0 {
		return nil, nil, errs.Validation(problems)
	}
	return next, differences(own, next), nil
}

// untouched is next with every field that the change does not speak of as it was, even one that the config no longer
// declares or admits: nobody asked for it to go.
func untouched(next, own bson.D, touched map[string]bool) bson.D {
	out := make(bson.D, 0, len(own)+len(next))
	for _, e := range own {
		if !touched[e.Key] {
			out = append(out, e)
		} else if v, ok := document.Member(next, e.Key); ok {
			out = append(out, bson.E{Key: e.Key, Value: v})
		}
	}
	for _, e := range next {
		if _, ok := document.Member(own, e.Key); !ok && touched[e.Key] {
			out = append(out, e)
		}
	}
	return out
}

// patched applies RFC 6902 operations to the record as the caller sees it, so that no test or copy can read what is
// hidden. touched names the top-level fields that come out different.
func (c *Call) patched(g access.Grant, own, system bson.D, patch []byte) (next bson.D, touched map[string]bool, err error) {
	// g may do without what is not declared, where a record has nothing of that; but it is that which says to leave out a
	// language of which the caller sees nothing.
	view, err := document.NewView(nil, nil, g.Hidden.Union(c.Collection.Undeclared))
	if err != nil {
		return nil, nil, err
	}
	raw, err := document.Marshal(whole(system, own))
	if err != nil {
		return nil, nil, err
	}
	visible, err := document.ParseJSON(document.AppendJSON(nil, c.local(raw, g.Hidden), view))
	if err != nil {
		return nil, nil, errs.Wrap(err, "read own JSON")
	}
	next, err = document.JSONPatch(visible, patch)
	if err != nil {
		return nil, nil, err
	}
	touched = map[string]bool{}
	for _, e := range next {
		before, ok := document.Member(visible, e.Key)
		touched[e.Key] = !ok || !equalValues(before, e.Value)
	}
	for _, e := range visible {
		if _, ok := document.Member(next, e.Key); !ok {
			touched[e.Key] = true
		}
	}
	return next, touched, nil
}

// comparesHidden says that a problem would tell what a hidden field is like: so nobody is held to that rule from whom one
// of the two is hidden.
func comparesHidden(g access.Grant, p errs.FieldError) bool {
	return p.Other != "" && (g.Hidden.Covers(p.Path) || g.Hidden.Covers(p.Other))
}

// relevant leaves out the problems that are not the caller's to mend: in fields that they did not touch, that are
// hidden from them, or that they may not write.
func relevant(g access.Grant, problems []errs.FieldError, touched map[string]bool) []errs.FieldError {
	out := make([]errs.FieldError, 0, len(problems))
	for _, p := range problems {
		top, _, _ := strings.Cut(p.Path, ".")
		if p.Other != "" { // mended by either of the two
			other, _, _ := strings.Cut(p.Other, ".")
			if !comparesHidden(g, p) && (touched == nil || touched[top] || touched[other]) {
				out = append(out, p)
			}
			continue
		}
		if g.Hidden.Covers(p.Path) || g.Readonly.Covers(p.Path) || touched != nil && !touched[top] {
			continue
		}
		out = append(out, p)
	}
	return out
}
