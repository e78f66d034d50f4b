package pipeline

import (
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// Codes of a MongoDB server that many stages share. Others stand where they are given.
//
//nolint:errname // they are numbers
const (
	codeBadValue      document.ServerCode = 2
	codeFailedToParse document.ServerCode = 9
	codeTypeMismatch  document.ServerCode = 14
	codeOverflow      document.ServerCode = 15
	codeNamespace     document.ServerCode = 73
	codeMemory        document.ServerCode = 292
	codeTooLarge      document.ServerCode = 10334
	codeMissingField  document.ServerCode = 40414
	codeUnknownField  document.ServerCode = 40415
)

// Errors of a run that are the same in every store.
var (
	ErrMemory = errs.New(errs.Limit, "aggregation_too_large",
		"the aggregation needs too much memory: filter with $match and choose fields with $project first, or index what it sorts by").
		With(codeMemory)
	ErrResultSize = errs.New(errs.Limit, "result_too_large", "a document of the aggregation has more than 16 MiB: make less of one document").
			With(codeTooLarge)
)

// Failure is the error of a pipeline that a server can't run on the documents there are, where nothing but the server's
// code is known of why.
func Failure(code document.ServerCode) error {
	return fail(code, "the aggregation can't be computed for all documents: check the types of the fields that its expressions use")
}

// slugBad is our own code of the errors of pipelines that do not compile.
const slugBad = "bad_pipeline"

// bad is the error of a pipeline that does not compile; code is a MongoDB server's.
func bad(code document.ServerCode, format string, args ...any) error {
	return document.Refuse(slugBad, code, format, args...)
}

// tooManyStages is the error of a pipeline of more stages than it may have.
func tooManyStages(limit int) error {
	return document.Refuse("query_limit", 7749501, "the pipeline has more than %d stages, those inside of stages included, which is the limit", limit)
}

// fail is the error of a pipeline that can't go on with a document.
func fail(code document.ServerCode, message string) error {
	return document.Refuse("pipeline_failed", code, "%s", message)
}

// coded gives err the MongoDB server's code of a bad value if it has none.
func coded(err error) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || document.ServerCodeOf(err) != 0 {
		return err
	}
	return e.With(codeBadValue)
}

// checkPath refuses the paths of fields that a server refuses.
func checkPath(path string) error {
	return document.CheckFieldPath(slugBad, path, document.MaxFieldNames)
}

// asObject takes the objects of the value model.
func asObject(v any) (bson.D, bool) {
	switch v := v.(type) {
	case bson.D:
		return v, true
	case bson.Raw:
		d, err := document.Unmarshal(v)
		return d, err == nil
	default:
		return nil, false
	}
}

// asList takes the lists of the value model and those that code writes for short.
func asList(v any) (bson.A, bool) {
	switch v := v.(type) {
	case bson.A:
		return v, true
	case []any:
		return v, true
	case []bson.D:
		list := make(bson.A, len(v))
		for i := range v {
			list[i] = v[i]
		}
		return list, true
	case []string:
		list := make(bson.A, len(v))
		for i := range v {
			list[i] = v[i]
		}
		return list, true
	default:
		return nil, false
	}
}
