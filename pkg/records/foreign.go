package records

import (
	"context"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
)

// checkForeign carries out the rule "exists": the record that a field refers to must be there. It runs with the
// service's eyes, not the caller's: the config's author asked for it, so a caller may learn that an id exists.
func (s *Service) checkForeign(ctx context.Context, c *Call, check *fieldtype.Check) error {
	for _, d := range check.Deferred {
		if d.Rule.Name != "exists" || d.Field.Foreign == nil {
			continue
		}
		ok, err := s.exists(ctx, c, d.Field.Foreign, d.Value)
		if err != nil {
			return err
		}
		if !ok {
			check.Problems = append(check.Problems, errs.FieldError{
				Path: d.Path, Rule: "exists", Message: "refers to a record of " + d.Field.Foreign.Collection + " that does not exist",
			})
		}
	}
	return nil
}

// exists says whether every value of a field (one, or a list) is the key of a foreign record.
func (s *Service) exists(ctx context.Context, c *Call, f *fieldtype.Foreign, value any) (bool, error) {
	values, ok := value.(bson.A)
	if !ok {
		values = bson.A{value}
	}
	key := f.Key
	if key == "" || key == "id" {
		key = "_id"
	}
	namespace := f.Namespace
	if namespace == "" {
		namespace = c.Project.Namespace
	}
	var foreign store.Reader = s.store.Database(project.DatabaseName(namespace)).Collection(f.Collection)
	if x := sessionOf(ctx, namespace); x != nil {
		foreign = x.tx.Collection(f.Collection)
	}
	return allFound(ctx, foreign, key, values)
}

// allFound says whether each value is some record's key, in one query for each bulkChunk of them.
func allFound(ctx context.Context, c store.Reader, key string, values bson.A) (bool, error) {
	for chunk := range slices.Chunk(values, bulkChunk) {
		missing := make(map[string]any, len(chunk))
		for _, v := range chunk {
			missing[valueKey(v)] = v
		}
		in, err := mql.Compile(bson.D{{Key: key, Value: bson.D{{Key: "$in", Value: chunk}}}})
		if err != nil {
			return false, err
		}
		err = c.Find(ctx, store.Query{Filter: in}, func(doc bson.Raw) error {
			if v, ok := document.Lookup(doc, key); ok {
				delete(missing, string(document.AppendKey(nil, v, false)))
			}
			if len(missing) == 0 {
				return errAllFound
			}
			return nil
		})
		if err != nil && !errors.Is(err, errAllFound) {
			return false, err
		}
		for _, v := range missing { // none, but for keys that are lists or lie in one
			eq, err := mql.Compile(bson.D{{Key: key, Value: bson.D{{Key: "$eq", Value: v}}}})
			if err != nil {
				return false, err
			}
			if n, err := c.Count(ctx, eq, 1); err != nil || n == 0 {
				return false, err
			}
		}
	}
	return true, nil
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
