package actions

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/project"
)

// input is what an action is called with, checked.
type input struct {
	query, data bson.D // data is nil without a body
}

// inputOf holds query and body against the fields of a method. All problems are told at once. loose is that of legacy.looseQuery.
func inputOf(a *project.Action, m *project.ActionMethod, query url.Values, body bson.D, loose bool, now time.Time) (input, error) {
	var in input
	var problems []errs.FieldError
	given, problems := castQuery(m.Query, query, loose)
	in.query, problems = checked(m.Query, "query", given, now, problems)
	if body == nil {
		if m.Data != nil && len(m.Data.Fields()) > 0 {
			body = bson.D{}
		}
	}
	switch {
	case m.Data != nil:
		f := files{types: a.MimeTypes}
		body = f.takeOut(m.Data, body, "data.")
		in.data, problems = checked(m.Data, "data", body, now, append(problems, f.problems...))
		in.data = f.putIn(m.Data, in.data, "data.")
	case body != nil:
		in.data = body
		for _, p := range document.CheckNames(body) {
			p.Path = "data." + p.Path
			problems = append(problems, p)
		}
	}
	if len(problems) > 0 {
		return in, errs.Validation(problems)
	}
	return in, nil
}

// checked holds a document against a tree. A tree without fields takes nothing.
func checked(tree *fieldtype.Tree, name string, doc bson.D, now time.Time, problems []errs.FieldError) (bson.D, []errs.FieldError) {
	if len(tree.Fields()) == 0 {
		for _, e := range doc {
			problems = append(problems, errs.FieldError{Path: name + "." + e.Key, Rule: "unknown", Message: "unknown field"})
		}
		return bson.D{}, problems
	}
	check := fieldtype.Check{Now: now, Create: true}
	out := tree.Check(doc, &check)
	tree.Walk(func(f *fieldtype.Field) {
		if f.Readonly && gives(doc, strings.Split(f.Path, ".")) {
			check.Problems = append(check.Problems, errs.FieldError{Path: f.Path, Rule: "readonly", Message: "can't be given"})
		}
	})
	for _, p := range check.Problems {
		p.Path = name + "." + p.Path
		problems = append(problems, p)
	}
	return out, problems
}

// gives says whether a document has a value at a path, through lists too.
func gives(v any, path []string) bool {
	switch v := v.(type) {
	case bson.D:
		for _, e := range v {
			if e.Key == path[0] {
				return len(path) == 1 || gives(e.Value, path[1:])
			}
		}
	case bson.A:
		return slices.ContainsFunc(v, func(item any) bool { return gives(item, path) })
	}
	return false
}

// castQuery reads parameters by their fields. A list is given by one parameter for each item. Credentials are no part of
// it, nor is what every route takes. loose leaves unknown ones out.
func castQuery(tree *fieldtype.Tree, query url.Values, loose bool) (bson.D, []errs.FieldError) {
	var out bson.D
	var problems []errs.FieldError
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if strings.EqualFold(name, "token") || name == "pretty" {
			continue
		}
		values := query[name]
		i := slices.IndexFunc(tree.Fields(), func(f *fieldtype.Field) bool { return f.Name == name })
		if i < 0 && loose {
			continue
		}
		if i < 0 {
			problems = append(problems, errs.FieldError{Path: "query." + name, Rule: "unknown", Message: "unknown parameter"})
			continue
		}
		v, err := castParameter(tree.Fields()[i], values)
		if err != nil {
			problems = append(problems, errs.FieldError{Path: "query." + name, Rule: "type", Message: err.Error()})
			continue
		}
		out = append(out, bson.E{Key: name, Value: v})
	}
	return out, problems
}

func castParameter(f *fieldtype.Field, values []string) (any, error) {
	if !f.IsList() {
		if len(values) > 1 {
			return nil, errs.New(errs.Invalid, "bad_parameter", "is given %d times", len(values))
		}
		return f.Cast(fieldtype.Untyped(values[0]))
	}
	kind, _ := fieldtype.ByName(strings.TrimSuffix(f.Type.Name(), "[]"))
	item := &fieldtype.Field{Name: f.Name, Path: f.Path, Type: kind, Foreign: f.Foreign}
	out := make(bson.A, len(values))
	for i, text := range values {
		var err error
		if out[i], err = item.Cast(fieldtype.Untyped(text)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// kept is the input as runs and the audit log keep it: without the bytes of files.
func (in input) kept() bson.D {
	out := bson.D{}
	if len(in.query) > 0 {
		out = append(out, bson.E{Key: "query", Value: in.query})
	}
	if len(in.data) > 0 {
		out = append(out, bson.E{Key: "data", Value: withoutBytes(in.data)})
	}
	return out
}

func withoutBytes(v any) any {
	switch v := v.(type) {
	case bson.D:
		out := make(bson.D, 0, len(v))
		for _, e := range v {
			if _, bytes := e.Value.(bson.Binary); !bytes {
				out = append(out, bson.E{Key: e.Key, Value: withoutBytes(e.Value)})
			}
		}
		return out
	case bson.A:
		out := make(bson.A, len(v))
		for i := range v {
			out[i] = withoutBytes(v[i])
		}
		return out
	}
	return v
}
