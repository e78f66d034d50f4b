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
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// Written is the outcome of a write to one record.
type Written struct {
	ID      string
	Record  *Record // as the caller may read it; nil when they may not
	Warning string  // what went wrong behind the write, which stands; "" for nothing
}

// admitted encodes a record to be written and holds it against the write right's own filter.
func admitted(c *Call, m access.Method, g access.Grant, doc bson.D) (bson.Raw, error) {
	raw, err := document.Marshal(doc)
	if err != nil {
		return nil, err
	}
	if !g.Filter.Match(raw) {
		return nil, deniedWithin(c, m, func(right string) string { return right + ", beyond the filter of your permission set" })
	}
	return raw, nil
}

// withoutHidden takes the names of hidden fields out of problems: what a hidden field lacks is told without its name.
func withoutHidden(g access.Grant, problems []errs.FieldError) []errs.FieldError {
	out := make([]errs.FieldError, 0, len(problems))
	masked := false
	for _, p := range problems {
		if !g.Hidden.Covers(p.Path) && !comparesHidden(g, p) {
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

var errStale = errs.New(errs.Precondition, "stale",
	"the record has changed since you read it: read it again and repeat the change on its new revision")

var errBusyRecord = &errs.Error{
	Kind: errs.Unavailable, Code: "busy_record",
	Message: "the record is being changed too often at once: try again", RetryAfter: time.Second,
}

// unchanged is the condition that a stored record still has the revision that was read. One that was stored by other
// hands may have none.
func unchanged(raw bson.Raw) *mql.Filter {
	v, _ := document.Field(raw, "_rev")
	if rev, ok := v.AsInt64OK(); ok {
		return mql.MustCompile(bson.D{{Key: "_rev", Value: rev}})
	}
	return mql.MustCompile(bson.D{{Key: "_rev", Value: bson.D{{Key: "$not", Value: bson.D{{Key: "$type", Value: "number"}}}}}})
}

// fits says whether a stored record has one of revs, or any revision will do.
func fits(raw bson.Raw, revs []int64) bool {
	return len(revs) == 0 || slices.Contains(revs, revOf(raw))
}

// write carries out one change, as its hooks leave it, and gives what was written.
func (s *Service) write(ctx context.Context, c *Call, g access.Grant, ch change) (done change, err error) {
	if !c.has(stagesOf(ch.Kind).one) {
		return ch, s.writeNow(ctx, c, g, ch)
	}
	defer func() {
		if err != nil {
			c.filing.unwritten(ch)
		}
	}()
	err = s.transacted(ctx, c, func(w *writing) error {
		var err error
		if done, err = s.lastLook(c, g, ch, w); err != nil {
			return err
		}
		changed := w.hasChanged(ch.before, c.Collection.Name)
		err = s.writeNow(w.context(), c, g, done)
		if changed && (errors.Is(err, store.ErrStale) || errors.Is(err, errs.ErrNotFound)) {
			return s.step(c, stagesOf(ch.Kind).one).bad(ctx, "a hook within a write can't change or delete that same record by db: change ctx.doc")
		}
		return err
	})
	return done, err
}

func (s *Service) writeNow(ctx context.Context, c *Call, g access.Grant, ch change) error {
	results, err := s.apply(ctx, c, []change{ch}, false)
	if err != nil {
		return err
	}
	return s.writeError(ctx, c, g, results[0].Err)
}

// writeError says what a failed operation means to the caller. A taken unique value is named only if they may see
// its field.
func (s *Service) writeError(ctx context.Context, c *Call, g access.Grant, err error) error {
	var dup *store.DuplicateKeyError
	if !errors.As(err, &dup) {
		return err
	}
	if isOnly(c, dup) {
		return errSingleton
	}
	e := errs.New(errs.Conflict, "unique", "a unique value is already taken").With(err)
	read, ok := s.readGrant(ctx, c)
	hidden := neverNamed(g)
	if ok {
		hidden = hidden.Union(neverNamed(read))
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

func (s *Service) written(ctx context.Context, c *Call, raw bson.Raw) (Written, error) {
	rec, err := s.shape(ctx, c, raw)
	return Written{ID: idOf(raw).Hex(), Record: rec}, err
}
