package system

import (
	"context"
	"reflect"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/query"
)

// fieldsOf makes the fields of a struct of pkg/api, by their names in JSON, which are those in the store.
func fieldsOf(t reflect.Type) *fieldtype.Tree {
	var fields []*fieldtype.Field
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if fieldtype.IsSystem(name) || f.Tag.Get("store") == "-" { // every tree has them; or nothing stored has it
			continue
		}
		kind := "string"
		switch f.Type {
		case reflect.TypeFor[bool]():
			kind = "boolean"
		case reflect.TypeFor[[]string]():
			kind = "string[]"
		case reflect.TypeFor[api.Time]():
			kind = "date"
		}
		ft, _ := fieldtype.ByName(kind) // all of them are there
		fields = append(fields, &fieldtype.Field{Name: name, Path: name, Type: ft})
	}
	return fieldtype.NewTree(fields, true)
}

// list reads the page that params ask for of what visible lets through; nil is everything.
func (m model[T]) list(ctx context.Context, visible bson.D, params query.Params) (query.Page[T], error) {
	page := query.Page[T]{Items: []T{}}
	q, err := m.resolver.Query(params, nil)
	if err != nil {
		return page, err
	}
	page.Limit, page.Offset = q.Limit, q.Skip
	if visible != nil {
		only, err := mql.Compile(visible)
		if err != nil {
			return page, err
		}
		q.Filter = mql.And(only, q.Filter)
	}
	if params.Count {
		n, err := m.coll.Count(ctx, q.Filter, 0)
		if err != nil {
			return page, err
		}
		page.Total = &n
	}
	if page.Limit == 0 {
		return page, nil
	}
	q.Limit++ // one more, to know whether there is a next page
	var last bson.Raw
	err = m.coll.Find(ctx, q, func(doc bson.Raw) error {
		if int64(len(page.Items)) == page.Limit {
			page.HasMore = true
			return nil
		}
		last = append(last[:0], doc...)
		item, err := decode[T](doc)
		page.Items = append(page.Items, item)
		return err
	})
	if err == nil && page.HasMore {
		page.Next, err = query.EncodeCursor(q.Sort, last)
	}
	return page, err
}

// nothing is the filter of who may see nothing.
func nothing() bson.D { return bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{}}}}} }

// unlimited says that the caller has to do with every org.
func unlimited(by *access.Principal) bool { return by.InOrg("") }

// anyOf is {path: {$in: values}}.
func anyOf(path string, values []string) bson.D {
	in := make(bson.A, 0, len(values))
	for _, v := range values {
		if path != "_id" {
			in = append(in, v)
		} else if id, err := bson.ObjectIDFromHex(v); err == nil {
			in = append(in, id)
		}
	}
	return bson.D{{Key: path, Value: bson.D{{Key: "$in", Value: in}}}}
}

// visible is what a caller may see of a model: all of it without a limit to orgs, else what one of the filters of limited
// allows.
func visible(by *access.Principal, limited func() bson.A) bson.D {
	switch {
	case unlimited(by):
		return nil
	case by == nil || by.ID == "":
		return nothing()
	}
	return bson.D{{Key: "$or", Value: limited()}}
}
