package records

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
)

// stamp puts the system fields of a new record around its own.
func stamp(id bson.ObjectID, own bson.D, by string, now time.Time) bson.D {
	return whole(bson.D{
		{Key: "_id", Value: id},
		{Key: "createdAt", Value: now},
		{Key: "updatedAt", Value: now},
		{Key: "createdBy", Value: by},
		{Key: "updatedBy", Value: by},
		{Key: "_rev", Value: int64(1)},
	}, own)
}

// restamp puts the system fields of a changed record around its own. One that other hands stored without them gets
// those that a change sets.
func restamp(system, own bson.D, rev int64, by string, now time.Time) bson.D {
	next := make(bson.D, 0, len(system))
	for _, name := range []string{"_id", "createdAt", "updatedAt", "createdBy", "updatedBy", "_rev"} {
		v, ok := document.Member(system, name)
		switch name {
		case "updatedAt":
			v, ok = now, true
		case "updatedBy":
			v, ok = by, true
		case "_rev":
			v, ok = rev, true
		}
		if ok {
			next = append(next, bson.E{Key: name, Value: v})
		}
	}
	return whole(next, own)
}

// whole joins a record's parts: its id, its own fields, the other system fields.
func whole(system, own bson.D) bson.D {
	out := make(bson.D, 0, len(system)+len(own))
	for _, e := range system {
		if e.Key == "_id" {
			out = append(out, e)
		}
	}
	out = append(out, own...)
	for _, e := range system {
		if e.Key != "_id" {
			out = append(out, e)
		}
	}
	return out
}

func systemProblem(name string) errs.FieldError {
	return errs.FieldError{Path: name, Rule: "readonly", Message: "is set by the service: leave it out"}
}

// withoutSystemFields takes out of an update's body the system fields that came back as they are, so that a record
// can be read, edited and sent again. An old _rev means that the record changed in between. One that is hidden is
// answered like one that does not exist, whatever the value: "as it is" would tell what it is.
func withoutSystemFields(g access.Grant, body, system bson.D) (bson.D, []errs.FieldError, error) {
	given, own := fieldtype.SplitSystem(body)
	var problems []errs.FieldError
	for _, e := range given {
		name := e.Key
		if name == "id" {
			name = "_id"
		}
		stored, _ := document.Member(system, name)
		switch {
		case g.Hidden.Covers(name):
			problems = append(problems, unknownProblem(e.Key))
		case equalValues(publicForm(stored), e.Value):
		case name == "_rev":
			return nil, nil, errStale
		default:
			problems = append(problems, systemProblem(e.Key))
		}
	}
	return own, problems, nil
}

// publicForm is a system value as a caller reads it in JSON.
func publicForm(v any) any {
	raw, err := document.MarshalValue(v)
	if err != nil {
		return v
	}
	out, err := document.ParseJSONValue(document.AppendJSONValue(nil, raw, nil))
	if err != nil {
		return v
	}
	return out
}
