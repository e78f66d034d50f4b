package records

import (
	"bytes"
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/store"
)

// maxNear is how many records of another collection one query reads: the keys of those that a filter's relation finds, or
// what a lookup finds for all records of a page. More are refused, not cut.
const maxNear = 10_000

// resolver checks what a caller names in one query, and follows relations into other collections.
func (s *Service) resolver(ctx context.Context, c *Call, g access.Grant) query.Resolver {
	return newResolver(c, g).WithRelations(func(name string) (query.Related, error) {
		if !g.Lookup {
			return query.Related{}, withoutFlag(c, "lookup")
		}
		near, err := s.neighbor(ctx, c, name)
		if err != nil {
			return query.Related{}, err
		}
		return query.Related{
			Resolver: near.paths, DefaultSort: near.call.Collection.DefaultSort,
			Keys: func(field string, f *mql.Filter) ([]bson.RawValue, error) { return s.keys(ctx, c, near, field, f) },
		}, nil
	})
}

// withoutFlag is the denial of something that a permission set allows beside the plain read.
func withoutFlag(c *Call, flag string) error {
	return deniedWithin(c, access.Get, func(string) string { return flag + " on " + c.Collection.Name })
}

// deniedWithin is the denial of something that a permission set allows within a method. Those who may be told learn what the set
// would need: name is given the right to the method, such as "update on articles".
func deniedWithin(c *Call, m access.Method, name func(right string) string) error {
	right := access.LackingOn(c.Principal, c.Project.Namespace, c.Collection.Name, m)
	if right == "" {
		return errs.ErrDenied
	}
	return errs.ErrDenied.Lacking(name(right))
}

// keys gives the values that a field has in the records of a neighbor that match.
func (s *Service) keys(ctx context.Context, c *Call, near neighbor, field string, f *mql.Filter) ([]bson.RawValue, error) {
	ctx, cancel := s.paced(ctx, c, near.call)
	defer cancel()
	var out []bson.RawValue
	n := 0
	q := store.Query{Filter: mql.And(near.grant.Filter, f), Limit: maxNear + 1}
	err := s.collection(ctx, near.call).Find(ctx, q, func(doc bson.Raw) error {
		n++
		eachValue(doc, field, func(v bson.RawValue) { out = append(out, bson.RawValue{Type: v.Type, Value: bytes.Clone(v.Value)}) })
		return nil
	})
	if err == nil && n > maxNear {
		err = errs.New(errs.Invalid, "query_limit",
			"more than %d records of %s match what the filter asks of them: narrow it", maxNear, near.call.Collection.Name)
	}
	return out, s.storeError(ctx, err)
}

// joins says that a value can refer to a record. Nothing does, and neither does an object.
func joins(v bson.RawValue) bool {
	switch v.Type {
	case 0, bson.TypeNull, bson.TypeUndefined, bson.TypeEmbeddedDocument, bson.TypeArray, bson.TypeRegex, bson.TypeMinKey, bson.TypeMaxKey:
		return false
	default:
		return true
	}
}

// lookUp puts what lookups find into records that are masked. What goes out of them is final then.
func (s *Service) lookUp(ctx context.Context, c *Call, items []Record, lookups []*query.Lookup) error {
	if len(lookups) == 0 || len(items) == 0 {
		return nil
	}
	found := make([]*shelf, len(lookups))
	for i, l := range lookups {
		var err error
		if found[i], err = s.shelve(ctx, c, items, l); err != nil {
			return err
		}
	}
	return inlay(items, found)
}

// shelve reads what a lookup finds for all the records, by one query, and makes of it what the caller may see: by the same
// steps as if they had read it there, but for the stage get.return, which shapes answers.
func (s *Service) shelve(ctx context.Context, c *Call, items []Record, l *query.Lookup) (*shelf, error) {
	out := &shelf{lookup: l}
	near, err := s.neighbor(ctx, c, l.From)
	if err != nil {
		return nil, err
	}
	values, err := out.gather(items)
	if err != nil || len(values) == 0 {
		return out, err
	}
	page, err := s.readNear(ctx, c, near, l, values)
	if err != nil {
		return nil, err
	}
	if near.call.Principal.Kind != access.KindService { // which reads what is stored
		if err := s.readHooks(ctx, near.call, page); err != nil {
			return nil, err
		}
	}
	if err := s.mask(ctx, near.call, near.grant, page.Items, l.Select); err != nil {
		return nil, err
	}
	out.index(page.Items)
	if err := s.lookUp(ctx, near.call, page.Items, l.Lookups); err != nil {
		return nil, err
	}
	out.fill(page.Items)
	return out, nil
}

// readNear reads the records of a lookup.
func (s *Service) readNear(ctx context.Context, c *Call, near neighbor, l *query.Lookup, values []bson.RawValue) (*Page, error) {
	ctx, cancel := s.paced(ctx, c, near.call)
	defer cancel()
	sort := l.Sort
	if sort == nil && l.Foreign != "_id" {
		sort = mql.Sort{{Path: "_id"}}
	}
	q := store.Query{Filter: mql.And(mql.OneOf(l.Foreign, values), near.grant.Filter, l.Filter), Sort: sort, Limit: maxNear}
	page, err := s.find(ctx, near.call, q)
	if err == nil && page.HasMore {
		err = errs.New(errs.Invalid, "query_limit",
			"lookup: more than %d records of %s belong to these, or more than 32 MiB of them: ask for fewer records, or give the lookup a filter", maxNear, l.From)
	}
	return page, s.storeError(ctx, err)
}

// withPublicID gives a record with its id under the name that it has in answers.
func withPublicID(doc bson.Raw) []byte {
	id, ok := document.Field(doc, "_id")
	if !ok {
		return doc
	}
	out := document.AppendElement(make([]byte, 4, len(doc)), "id", id)
	for it := document.NewIter(doc); it.Next(); {
		if name := it.Key(); string(name) != "_id" && string(name) != "id" {
			out = document.AppendElement(out, name, it.Value())
		}
	}
	return document.Close(out, 0)
}
