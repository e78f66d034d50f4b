package records

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
)

// Explain says what who may do with a method on the call's collection, and why. It answers the call's principal, who is
// somebody else, perhaps.
func (s *Service) Explain(ctx context.Context, c *Call, who *access.Principal, m access.Method) access.Explanation {
	op := s.operationOf(c, who, m)
	x := c.Collection.Permissions.Explain(who, m, s.env(ctx, c, op))
	if x.Err == nil {
		x.Grant, x.Err = s.evaluate(ctx, c, op, x.Grant)
	}
	return x
}

// Reaches says whether what is explained reaches one record: who may use the method, and their filter lets the record
// through. It tells the call's principal nothing that they can't read themselves: they need to see the record, and every
// field that the filter looks at.
func (s *Service) Reaches(ctx context.Context, c *Call, x access.Explanation, id string) (bool, error) {
	own, err := s.grant(ctx, c, access.Get)
	if err != nil {
		return false, err
	}
	if err := shows(own, x.Grant.Filter); err != nil {
		return false, err
	}
	oid, err := document.ParseID(id)
	if err != nil {
		return false, err
	}
	ctx, cancel := withDeadline(ctx, c)
	defer cancel()
	doc, err := s.readable(ctx, c, own, oid)
	if err != nil {
		return false, s.storeError(ctx, err)
	}
	return x.Err == nil && x.Grant.Filter.Match(doc), nil
}

// shows is nil if a grant hides no field that a filter reads.
func shows(g access.Grant, f *mql.Filter) error {
	hidden := neverNamed(g)
	if f == nil || hidden == nil {
		return nil
	}
	var doc bson.D
	if err := bson.Unmarshal(f.Raw(), &doc); err != nil {
		return errs.Wrap(err, "read a filter")
	}
	_, err := mql.Rewrite(doc, func(path, _ string, v any) (any, error) {
		if hidden.Touches(path) {
			return nil, errs.ErrDenied
		}
		return v, nil
	})
	return err
}
