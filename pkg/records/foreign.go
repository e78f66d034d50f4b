package records

import (
	"context"
	"errors"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// origin says where the values of a record that is judged come from.
type origin struct {
	was bson.Raw // the record as it is stored, or as it was judged before; nil: there was none

	// theirs gives the deferred rules of what the caller alone has said; the rest is a script's. nil: all is the caller's.
	theirs func() []fieldtype.Deferred
}

// checkForeign carries out the rule "exists": the record that a field refers to must be there, for the caller's eyes, since
// else they could find out by it what there is. A value that the record had before is not looked for again, and what a
// script has put there is looked for with the service's eyes.
func (s *Service) checkForeign(ctx context.Context, c *Call, check *fieldtype.Check, from origin) error {
	for _, d := range check.Deferred {
		if d.Rule.Name != "exists" || d.Field.Foreign == nil {
			continue
		}
		missing, err := s.missing(ctx, c, d.Field.Foreign, except(listOf(d.Value), valuesAt(from.was, d.Field.Path)), false)
		if err == nil && len(missing) > 0 && from.theirs != nil {
			said := map[string]bool{}
			for _, t := range from.theirs() {
				if t.Field.Path == d.Field.Path {
					maps.Copy(said, keysOf(listOf(t.Value)))
				}
			}
			missing, err = s.missingOfScript(ctx, c, d.Field.Foreign, missing, said)
		}
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			check.Problems = append(check.Problems, errs.FieldError{
				Path: d.Path, Rule: "exists",
				Message: "refers to a record of " + d.Field.Foreign.Collection + " that does not exist, or that you may not read",
			})
		}
	}
	return nil
}

// missingOfScript gives what is missing of values, where those that the caller has not said are looked for as the service.
func (s *Service) missingOfScript(ctx context.Context, c *Call, f *fieldtype.Foreign, values bson.A, said map[string]bool) (bson.A, error) {
	for _, v := range values {
		if said[valueKey(v)] {
			return values, nil
		}
	}
	return s.missing(ctx, c, f, values, true)
}

// missing gives the values that are no keys of foreign records: of those that the caller may read, or of all.
func (s *Service) missing(ctx context.Context, c *Call, f *fieldtype.Foreign, values bson.A, all bool) (bson.A, error) {
	if len(values) == 0 {
		return nil, nil
	}
	if all {
		near, err := c.neighbor(f.Collection)
		if err != nil {
			return nil, err
		}
		return notFound(ctx, s.collection(ctx, near), f.KeyPath(), nil, values)
	}
	near, err := s.neighbor(ctx, c, f.Collection)
	if errs.KindOf(err) == errs.Denied {
		return values, nil
	}
	if err != nil {
		return nil, err
	}
	stored, _, err := near.paths.Path(f.KeyPath())
	if err != nil { // a key that is hidden from the caller leads them nowhere
		return values, nil //nolint:nilerr // what the caller can't name, they can't find anything by
	}
	return notFound(ctx, s.collection(ctx, near.call), stored, near.grant.Filter, values)
}

// notFound gives the values that are no record's key, by one query for each bulkChunk of them.
func notFound(ctx context.Context, c store.Reader, key string, within *mql.Filter, values bson.A) (out bson.A, err error) {
	for chunk := range slices.Chunk(values, bulkChunk) {
		missing := make(map[string]any, len(chunk))
		for _, v := range chunk {
			missing[valueKey(v)] = v
		}
		in, err := mql.Compile(bson.D{{Key: key, Value: bson.D{{Key: "$in", Value: chunk}}}})
		if err != nil {
			return nil, err
		}
		err = c.Find(ctx, store.Query{Filter: mql.And(in, within)}, func(doc bson.Raw) error {
			if v, ok := document.Lookup(doc, key); ok {
				delete(missing, string(document.AppendKey(nil, v, false)))
			}
			if len(missing) == 0 {
				return errAllFound
			}
			return nil
		})
		if err != nil && !errors.Is(err, errAllFound) {
			return nil, err
		}
		for _, v := range missing { // none, but for keys that are lists or lie in one
			eq, err := mql.Compile(bson.D{{Key: key, Value: bson.D{{Key: "$eq", Value: v}}}})
			if err != nil {
				return nil, err
			}
			n, err := c.Count(ctx, mql.And(eq, within), 1)
			if err != nil {
				return nil, err
			}
			if n == 0 {
				out = append(out, v)
			}
		}
	}
	return out, nil
}

// listOf is a field's value as a list.
func listOf(v any) bson.A {
	if list, ok := v.(bson.A); ok {
		return list
	}
	return bson.A{v}
}

// valuesAt gives the keys of the values that a record has at a path, in lists, too.
func valuesAt(doc bson.Raw, path string) map[string]bool {
	out := map[string]bool{}
	if doc != nil {
		eachValue(doc, path, func(v bson.RawValue) { out[string(document.AppendKey(nil, v, false))] = true })
	}
	return out
}

func keysOf(values bson.A) map[string]bool {
	out := make(map[string]bool, len(values))
	for _, v := range values {
		out[valueKey(v)] = true
	}
	return out
}

// except leaves out values by their keys.
func except(values bson.A, keys map[string]bool) bson.A {
	if len(keys) == 0 {
		return values
	}
	return slices.DeleteFunc(slices.Clone(values), func(v any) bool { return keys[valueKey(v)] })
}

// errAllFound ends a search that has nothing more to look for.
var errAllFound = errors.New("all found")

// valueKey is equal for equal values.
func valueKey(v any) string {
	raw, err := document.MarshalValue(v)
	if err != nil {
		return ""
	}
	return string(document.AppendKey(nil, raw, false))
}
