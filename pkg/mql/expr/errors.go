package expr

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// slugBad is our own code of the errors of expressions that do not compile.
const slugBad = "bad_expression"

// bad is the error of an expression that does not compile; code is a MongoDB server's.
func bad(code document.ServerCode, format string, args ...any) error {
	return document.Refuse(slugBad, code, format, args...)
}

// fail is the error of an expression that can't be computed.
func fail(code document.ServerCode, format string, args ...any) error {
	return document.Refuse("expression_failed", code, format, args...)
}

const errTooLarge = "expression_too_large"

// errMemory is what an expression that would need too much memory comes to.
func errMemory(limit int) error {
	return errs.New(errs.Limit, errTooLarge,
		"an expression needs more than %d MiB of memory for one document: compute less at once", limit>>20).With(codeTooLarge)
}

// Codes of a MongoDB server that many operators share. Others stand where they are given.
//
//nolint:errname // they are numbers
const (
	codeBadValue      document.ServerCode = 2
	codeFailedToParse document.ServerCode = 9
	codeTypeMismatch  document.ServerCode = 14
	codeOverflow      document.ServerCode = 15
	codeDuration      document.ServerCode = 159
	codeConversion    document.ServerCode = 241
	codeTooLarge      document.ServerCode = 146
)

// typeName is what $type gives, and what messages say.
func typeName(t bson.Type) string {
	names := [...]string{
		0: "missing", 1: "double", 2: "string", 3: "object", 4: "array", 5: "binData", 6: "undefined", 7: "objectId", 8: "bool",
		9: "date", 10: "null", 11: "regex", 12: "dbPointer", 13: "javascript", 14: "symbol", 15: "javascriptWithScope",
		16: "int", 17: "timestamp", 18: "long", 19: "decimal",
	}
	switch {
	case int(t) < len(names):
		return names[t]
	case t == bson.TypeMinKey:
		return "minKey"
	default:
		return "maxKey"
	}
}
