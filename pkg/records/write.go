package records

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// Written is the outcome of a write to one record.
type Written struct {
	ID     string
	Record *Record // as the caller may read it; nil when they may not
}

// Create stores a new record and gives it an id.
func (s *Service) Create(ctx context.Context, c *Call, body bson.D) (Written, error) {
	g, err := s.grant(c, access.Post)
	if err != nil {
		return Written{}, err
	}
	raw, err := s.newRecord(ctx, c, g, body)
	if err != nil {
		return Written{}, err
	}
	if err := s.write(ctx, c, g, nil, store.Op{Kind: store.Insert, Doc: raw}); err != nil {
		return Written{}, err
	}
	return s.written(c, raw)
}

// newRecord is what a create stores, checked in full.
func (s *Service) newRecord(ctx context.Context, c *Call, g access.Grant, body bson.D) (bson.Raw, error) {
	now := s.now()
	g.Hidden = g.Declared // what is not declared is found by the check
	if problems := newGuard(g).named(body, true); len(problems) > 0 {
		return nil, errs.Validation(problems)
	}
	check := &fieldtype.Check{Now: now, Create: true}
	doc := c.Collection.Tree.Check(body, check)
	if err := s.checkForeign(ctx, c, check); err != nil {
		return nil, err
	}
	if len(check.Problems) > 0 {
		return nil, errs.Validation(withoutHidden(g, check.Problems))
	}
	return admitted(g, stamp(bson.NewObjectIDFromTimestamp(now), doc, c.Principal.ID, now))
}

// admitted encodes a record to be written and holds it against the write right's own filter.
func admitted(g access.Grant, doc bson.D) (bson.Raw, error) {
	raw, err := document.Marshal(doc)
	if err != nil {
		return nil, err
	}
	if !g.Filter.Match(raw) {
		return nil, errs.ErrDenied
	}
	return raw, nil
}

// withoutHidden takes the names of hidden fields out of problems: what a hidden field lacks is told without its name.
func withoutHidden(g access.Grant, problems []errs.FieldError) []errs.FieldError {
	out := make([]errs.FieldError, 0, len(problems))
	masked := false
	for _, p := range problems {
		if !g.Hidden.Covers(p.Path) {
			out = append(out, p)
			continue
		}
		if !masked {
			out = append(out, errs.FieldError{Rule: "required", Message: "a value that you can't set is missing or not valid"})
			masked = true
		}
	}
	return out
}

// UpdateMode says what the body of an update means.
type UpdateMode uint8

// The modes of an update.
const (
	Merge     UpdateMode = iota // RFC 7396: given fields are set, null unsets, absent ones stay
	Overwrite                   // the body is the whole new record
	JSONPatch                   // RFC 6902: the body is a list of operations
)

// Change is an update as a door reads it.
type Change struct {
	Mode  UpdateMode
	Body  bson.D  // Merge and Overwrite
	Patch []byte  // JSONPatch
	IfRev []int64 // revisions, of which the record must have one; none: any
}

// Update changes one record.
func (s *Service) Update(ctx context.Context, c *Call, id string, ch Change) (Written, error) {
	g, err := s.grant(c, access.Put)
	if err != nil {
		return Written{}, err
	}
	oid, err := document.ParseID(id)
	if err != nil {
		return Written{}, err
	}
	if ch.Mode == JSONPatch { // its operations test and copy what is there, so it takes the right to read that
		read, err := s.grant(c, access.Get)
		if err != nil {
			return Written{}, err
		}
		g.Filter = mql.And(g.Filter, read.Filter)
		g.Hidden, g.Declared = g.Hidden.Union(read.Hidden), g.Declared.Union(read.Declared)
	}
	raw, err := s.update(ctx, c, g, oid, ch)
	if err != nil {
		return Written{}, err
	}
	return s.written(c, raw)
}

// update reads, changes and writes a record, and starts over when another writer came between.
func (s *Service) update(ctx context.Context, c *Call, g access.Grant, id bson.ObjectID, ch Change) (bson.Raw, error) {
	for range conflictRetries {
		current, err := s.readable(ctx, c, g, id)
		if err != nil {
			return nil, err
		}
		next, err := s.changed(ctx, c, g, current, ch)
		if err != nil {
			return nil, err
		}
		err = s.write(ctx, c, g, current, store.Op{Kind: store.Replace, Doc: next, If: unchanged(current)})
		if !errors.Is(err, store.ErrStale) {
			return next, err
		}
	}
	return nil, errBusyRecord
}

var errBusyRecord = &errs.Error{
	Kind: errs.Unavailable, Code: "busy_record",
	Message: "the record is being changed too often at once: try again", RetryAfter: time.Second,
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
	next, touched, err := apply(g, own, system, ch)
	if err != nil {
		return nil, err
	}
	now := s.now()
	check := &fieldtype.Check{Now: now}
	next = c.Collection.Tree.Check(next, check)
	if err := s.checkForeign(ctx, c, check); err != nil {
		return nil, err
	}
	if touched != nil {
		next = untouched(next, own, touched)
	}
	next, problems := newGuard(g).keep(next, own)
	problems = append(problems, relevant(g, check.Problems, touched)...)
	if len(problems) > 0 {
		return nil, errs.Validation(problems)
	}
	return admitted(g, restamp(system, next, revOf(raw)+1, c.Principal.ID, now))
}

// apply carries out the change on the record's own fields. touched names the top-level fields that it speaks of;
// nil means all.
func apply(g access.Grant, own, system bson.D, ch Change) (next bson.D, touched map[string]bool, err error) {
	body := ch.Body
	if ch.Mode == JSONPatch {
		body, touched, err = patched(g, own, system, ch.Patch)
		if err != nil {
			return nil, nil, err
		}
	}
	body, problems, err := withoutSystemFields(g, body, system)
	if err != nil {
		return nil, nil, err
	}
	problems = append(problems, document.CheckNames(body)...)
	problems = append(problems, newGuard(g).named(body, false)...)
	if len(problems) > 0 {
		return nil, nil, errs.Validation(problems)
	}
	if ch.Mode != Merge {
		return body, touched, nil
	}
	touched = make(map[string]bool, len(body))
	for _, e := range body {
		touched[e.Key] = true
	}
	return document.MergePatch(own, body), touched, nil
}

// untouched is next with every field that the change does not speak of as it was, even one that the config no longer
// declares or admits: nobody asked for it to go.
func untouched(next, own bson.D, touched map[string]bool) bson.D {
	out := make(bson.D, 0, len(own)+len(next))
	for _, e := range own {
		if !touched[e.Key] {
			out = append(out, e)
		} else if v, ok := field(next, e.Key); ok {
			out = append(out, bson.E{Key: e.Key, Value: v})
		}
	}
	for _, e := range next {
		if _, ok := field(own, e.Key); !ok && touched[e.Key] {
			out = append(out, e)
		}
	}
	return out
}

// patched applies RFC 6902 operations to the record as the caller sees it, so that no test or copy can read what is
// hidden. touched names the top-level fields that come out different.
func patched(g access.Grant, own, system bson.D, patch []byte) (next bson.D, touched map[string]bool, err error) {
	view, err := document.NewView(nil, nil, g.Hidden)
	if err != nil {
		return nil, nil, err
	}
	raw, err := document.Marshal(whole(system, own))
	if err != nil {
		return nil, nil, err
	}
	visible, err := document.ParseJSON(document.AppendJSON(nil, raw, view))
	if err != nil {
		return nil, nil, errs.Wrap(err, "read own JSON")
	}
	next, err = document.JSONPatch(visible, patch)
	if err != nil {
		return nil, nil, err
	}
	touched = map[string]bool{}
	for _, e := range next {
		before, ok := field(visible, e.Key)
		touched[e.Key] = !ok || !equalValues(before, e.Value)
	}
	for _, e := range visible {
		if _, ok := field(next, e.Key); !ok {
			touched[e.Key] = true
		}
	}
	return next, touched, nil
}

// relevant leaves out the problems that are not the caller's to mend: in fields that they did not touch, that are
// hidden from them, or that they may not write.
func relevant(g access.Grant, problems []errs.FieldError, touched map[string]bool) []errs.FieldError {
	out := make([]errs.FieldError, 0, len(problems))
	for _, p := range problems {
		top, _, _ := strings.Cut(p.Path, ".")
		if g.Hidden.Covers(p.Path) || g.Readonly.Covers(p.Path) || touched != nil && !touched[top] {
			continue
		}
		out = append(out, p)
	}
	return out
}

var errStale = errs.New(errs.Precondition, "stale",
	"the record has changed since you read it: read it again and repeat the change on its new revision")

// unchanged is the condition that a stored record still has the revision that was read. One that was stored by other
// hands may have none.
func unchanged(raw bson.Raw) *mql.Filter {
	if rev, ok := raw.Lookup("_rev").AsInt64OK(); ok {
		return mql.MustCompile(bson.D{{Key: "_rev", Value: rev}})
	}
	return mql.MustCompile(bson.D{{Key: "_rev", Value: bson.D{{Key: "$not", Value: bson.D{{Key: "$type", Value: "number"}}}}}})
}

// fits says whether a stored record has one of revs, or any revision will do.
func fits(raw bson.Raw, revs []int64) bool {
	return len(revs) == 0 || slices.Contains(revs, revOf(raw))
}

// Delete removes one record. ifRev are revisions, of which it must have one; none: any.
func (s *Service) Delete(ctx context.Context, c *Call, id string, ifRev ...int64) error {
	g, err := s.grant(c, access.Delete)
	if err != nil {
		return err
	}
	oid, err := document.ParseID(id)
	if err != nil {
		return err
	}
	for range conflictRetries {
		current, err := s.readable(ctx, c, g, oid)
		if err != nil {
			return err
		}
		if !fits(current, ifRev) {
			return errStale
		}
		err = s.write(ctx, c, g, current, store.Op{Kind: store.Delete, ID: idValue(oid), If: unchanged(current)})
		if !errors.Is(err, store.ErrStale) {
			return err
		}
	}
	return errBusyRecord
}

// write carries out one operation. before is the record that it changes or deletes.
func (s *Service) write(ctx context.Context, c *Call, g access.Grant, before bson.Raw, op store.Op) error {
	var results []store.Result
	var err error
	if logged(c.Collection.Audit, op.Kind) {
		results, err = s.applyLogged(ctx, c, []change{{Op: op, before: before}})
	} else {
		results, err = s.collection(c).Write(ctx, []store.Op{op}, false)
	}
	if err != nil {
		return err
	}
	return s.writeError(c, g, results[0].Err)
}

// writeError says what a failed operation means to the caller. A taken unique value is named only if they may see
// its field.
func (s *Service) writeError(c *Call, g access.Grant, err error) error {
	var dup *store.DuplicateKeyError
	if !errors.As(err, &dup) {
		return err
	}
	e := errs.New(errs.Conflict, "unique", "a unique value is already taken").With(err)
	read, ok := s.readGrant(c)
	hidden := g.Hidden
	if ok {
		hidden = hidden.Union(read.Hidden)
	}
	if slices.ContainsFunc(dup.Paths, hidden.Covers) {
		return e
	}
	message := "is already taken"
	e.Message = strings.Join(dup.Paths, ", ") + " is already taken"
	if len(dup.Paths) > 1 {
		message = "is already taken together with the other fields named here"
		e.Message = "the combination of " + strings.Join(dup.Paths, ", ") + " is already taken"
	}
	for _, p := range dup.Paths {
		e.Fields = append(e.Fields, errs.FieldError{Path: p, Rule: "unique", Message: message})
	}
	return e
}

func (s *Service) written(c *Call, raw bson.Raw) (Written, error) {
	rec, err := s.shape(c, raw)
	return Written{ID: idOf(raw).Hex(), Record: rec}, err
}
