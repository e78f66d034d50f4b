package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/schema"
)

// Cast turns a constant of a filter, which is compared with a path by an operator, into the form of stored values.
type Cast func(path, op string, v any) (any, error)

// The variables of a filter, {"$var": "now"}.
const (
	varNow        = "now"
	varUserID     = "user.id"
	varUserOrgIDs = "user.orgIds"
)

// template is a filter with variables.
type template struct {
	doc  bson.D
	cast Cast
}

// compileFilter makes a filter, or a template if there are variables in it; both are nil for an empty filter. hasUser
// allows the variables user.*: without a user they would have no value, and a comparison with nothing may match.
func compileFilter(doc bson.D, hasUser bool, cast Cast) (*mql.Filter, *template, error) {
	if len(doc) == 0 {
		return nil, nil, nil
	}
	ext, err := mql.Extended(doc)
	if err != nil {
		return nil, nil, err
	}
	doc, ok := ext.(bson.D)
	if !ok {
		return nil, nil, badFilter("must be an object")
	}
	doc = mql.StoredID(doc)
	dynamic := false
	sample := &Principal{Kind: KindUser, ID: strings.Repeat("0", 24), OrgIDs: []string{strings.Repeat("0", 24)}}
	_, err = substitute(doc, func(name string) (any, error) {
		dynamic = true
		if !hasUser && name != varNow {
			if _, err := value(name, sample, Env{Now: time.Unix(0, 0)}); err != nil {
				return nil, err
			}
			return nil, badFilter("the variable %q has no value in this set, whose callers are no users; use it in user or a team's set", name)
		}
		return value(name, sample, Env{Now: time.Unix(0, 0)})
	})
	if err != nil {
		return nil, nil, err
	}
	t := &template{doc: doc, cast: cast}
	filter, err := t.bind(sample, Env{Now: time.Unix(0, 0)})
	if err != nil {
		return nil, nil, err
	}
	if dynamic {
		return nil, t, nil
	}
	return filter, nil, nil
}

// bind makes the filter of one request.
func (t *template) bind(pr *Principal, env Env) (*mql.Filter, error) {
	bound, err := substitute(t.doc, func(name string) (any, error) { return value(name, pr, env) })
	if err != nil {
		return nil, err
	}
	doc, ok := bound.(bson.D)
	if !ok {
		return nil, badFilter("the whole filter can't be a variable")
	}
	if t.cast != nil {
		if doc, err = mql.Rewrite(doc, t.cast); err != nil {
			return nil, err
		}
	}
	return mql.Compile(doc)
}

// scripted is a filter that a script makes for each request.
type scripted struct {
	spec    *schema.Script
	hasUser bool
	cast    Cast
}

// filter runs the script, and compiles and binds what it gives as a config's filter is.
func (s *scripted) filter(pr *Principal, env Env) (*mql.Filter, error) {
	if env.RunFilter == nil {
		return nil, badFilter("there is nothing to run the script with")
	}
	doc, err := env.RunFilter(s.spec)
	if err != nil {
		return nil, err
	}
	filter, bound, err := compileFilter(doc, s.hasUser, s.cast)
	if err == nil && bound != nil {
		filter, err = bound.bind(pr, env)
	}
	if err != nil && env.BadFilter != nil {
		env.BadFilter(s.spec, err)
	}
	return filter, err
}

// refusedByScript is the refusal of a set whose script gave no filter. One that may give one later says so.
func refusedByScript(err error) error {
	if kind := errs.KindOf(err); kind == errs.Unavailable || kind == errs.Timeout {
		return err
	}
	return errs.ErrDenied.With(err)
}

// value gives what a variable stands for. A variable without a value is an error, never null: null would match every
// record that lacks the field.
func value(name string, pr *Principal, env Env) (any, error) {
	switch name {
	case varNow:
		if env.Now.IsZero() {
			return nil, errors.New("the time is not known")
		}
		return bson.NewDateTimeFromTime(env.Now), nil
	case varUserID:
		if pr.ID == "" {
			return nil, errors.New("the user is not known")
		}
		return pr.ID, nil
	case varUserOrgIDs:
		list := make(bson.A, len(pr.OrgIDs))
		for i, id := range pr.OrgIDs {
			list[i] = id
		}
		return list, nil
	}
	return nil, badFilter("unknown variable %q; use now, user.id or user.orgIds", name)
}

// substitute copies a filter with every {"$var": name} replaced by what lookup gives for it.
func substitute(v any, lookup func(name string) (any, error)) (any, error) {
	switch v := v.(type) {
	case bson.D:
		if i := slices.IndexFunc(v, func(e bson.E) bool { return e.Key == "$var" }); i >= 0 {
			name, ok := v[i].Value.(string)
			if !ok || len(v) > 1 {
				return nil, badFilter(`a variable is written {"$var": "now"}, with a name and nothing beside it`)
			}
			return lookup(name)
		}
		out := make(bson.D, len(v))
		for i, e := range v {
			bound, err := substitute(e.Value, lookup)
			if err != nil {
				return nil, err
			}
			out[i] = bson.E{Key: e.Key, Value: bound}
		}
		return out, nil
	case bson.A:
		out := make(bson.A, len(v))
		for i, item := range v {
			bound, err := substitute(item, lookup)
			if err != nil {
				return nil, err
			}
			out[i] = bound
		}
		return out, nil
	}
	return v, nil
}

func badFilter(format string, args ...any) error {
	return errs.New(errs.Invalid, "bad_filter", "%s", fmt.Sprintf(format, args...))
}
