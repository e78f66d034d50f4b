package records

import (
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
)

// blame finds out who answers for the problems of what hooks have made of a body. theirs are the problems that there would
// be without the hooks. Where the caller has made mistakes, they are told of these alone: those of a hook may come from
// them. A field that does not exist, and a value of another type than the field's, are the script's failing, for nothing
// that the caller could send would mend them. What a rule refuses is for the caller to read, and noted in the log.
func (at step) blame(ctx context.Context, problems []errs.FieldError, before, after bson.D, theirs func() []errs.FieldError) ([]errs.FieldError, error) {
	if len(problems) == 0 {
		return nil, nil
	}
	changed, known := differences(before, after), theirs()
	var own, rules []errs.FieldError
	var mistakes []string
	for _, p := range problems {
		top, _, _ := strings.Cut(p.Path, ".")
		same := func(q errs.FieldError) bool { return q.Path == p.Path && q.Rule == p.Rule }
		switch {
		case !changed[top], slices.ContainsFunc(known, same):
			own = append(own, p)
		case p.Rule == "unknown" || p.Rule == "type":
			mistakes = append(mistakes, p.Path+": "+p.Message)
		default:
			rules = append(rules, p)
		}
	}
	switch {
	case len(own) > 0:
		return own, nil
	case len(mistakes) > 0:
		return nil, at.bad(ctx, "what the hook gives can't be stored: "+strings.Join(mistakes, "; "))
	}
	at.refused(ctx, rules)
	return rules, nil
}

// refused notes what rules refuse of what a hook gave.
func (at step) refused(ctx context.Context, problems []errs.FieldError) {
	for _, p := range problems {
		at.s.hooks.Refused(ctx, at.operation(), at.stage, p)
	}
}
