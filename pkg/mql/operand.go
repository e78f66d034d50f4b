package mql

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// constant encodes a value to compare with and checks what it holds.
func constant(v any, path string) (bson.RawValue, error) {
	c, err := document.MarshalValue(v)
	if err != nil {
		return c, bad("filter: %s: the value can't be compared with: %s", path, errs.From(err).Message)
	}
	return c, checkConstant(c, path, 0)
}

func checkConstant(v bson.RawValue, path string, depth int) error {
	if depth > maxNesting {
		return bad("filter: %s: the value is nested deeper than %d levels", path, maxNesting)
	}
	switch v.Type {
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		for it := document.NewIter(v.Value); it.Next(); {
			if name := string(it.Key()); strings.HasPrefix(name, "$") && !isOperator(name) {
				return unknownOperator(name, path)
			}
			if err := checkConstant(it.Value(), path, depth+1); err != nil {
				return err
			}
		}
		return nil
	case bson.TypeUndefined, bson.TypeDBPointer, bson.TypeJavaScript, bson.TypeSymbol, bson.TypeCodeWithScope:
		return bad("filter: %s: a value of type %s can't be compared with", path, v.Type)
	default:
		return nil
	}
}

// holdsOperators is isOperators for an encoded value.
func holdsOperators(v bson.RawValue) bool {
	if v.Type != bson.TypeEmbeddedDocument {
		return false
	}
	it := document.NewIter(v.Value)
	return it.Next() && bytes.HasPrefix(it.Key(), []byte{'$'})
}

// isOperator is the list of what filters may hold.
func isOperator(name string) bool {
	switch name {
	case "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$and", "$or", "$nor", "$not", "$exists", "$type",
		"$all", "$elemMatch", "$size", "$mod", "$regex", "$options":
		return true
	default:
		return false
	}
}

func compileExists(v any, path string) (Pred, error) {
	switch v := v.(type) {
	case bool:
		return &Exists{Want: v}, nil
	case int32, int64, int, float64:
		n, ok := integer(v)
		return &Exists{Want: !ok || n != 0}, nil
	default:
		return nil, bad("filter: %s: $exists needs true or false", path)
	}
}

func compileSize(v any, path string) (Pred, error) {
	n, ok := integer(v)
	if !ok || n < 0 || n > math.MaxInt32 { // a server takes no larger one, and no list is that long
		return nil, bad("filter: %s: $size needs a whole number that is not negative, up to %d", path, math.MaxInt32)
	}
	return &Size{N: n}, nil
}

func compileMod(v any, path string) (Pred, error) {
	if items, ok := asList(v); ok && len(items) == 2 {
		divisor, ok1 := integer(items[0])
		remainder, ok2 := integer(items[1])
		if ok1 && ok2 && divisor != 0 {
			return &Mod{Divisor: divisor, Remainder: remainder}, nil
		}
	}
	return nil, bad("filter: %s: $mod needs a list of two whole numbers, the divisor not 0", path)
}

// integer reads a whole number.
func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	case float64:
		return int64(v), v == math.Trunc(v) && v >= -1<<63 && v < 1<<63
	default:
		return 0, false
	}
}

func compileType(v any, path string) (Pred, error) {
	items, ok := asList(v)
	if !ok {
		items = []any{v}
	}
	if len(items) == 0 {
		return nil, bad("filter: %s: $type needs at least one type", path)
	}
	p := &Type{}
	for _, item := range items {
		if item == "number" {
			p.Number = true
			continue
		}
		t, ok := typeOf(item)
		if !ok {
			return nil, bad("filter: %s: $type: there is no type %v", path, item)
		}
		if !slices.Contains(p.Types, t) {
			p.Types = append(p.Types, t)
		}
	}
	return p, nil
}

// typeOf reads a type by its number or name in MongoDB.
func typeOf(v any) (bson.Type, bool) {
	names := [...]string{
		1: "double", 2: "string", 3: "object", 4: "array", 5: "binData", 6: "undefined", 7: "objectId", 8: "bool",
		9: "date", 10: "null", 11: "regex", 12: "dbPointer", 13: "javascript", 14: "symbol", 15: "javascriptWithScope",
		16: "int", 17: "timestamp", 18: "long", 19: "decimal",
	}
	if name, ok := v.(string); ok {
		switch name {
		case "minKey":
			return bson.TypeMinKey, true
		case "maxKey":
			return bson.TypeMaxKey, true
		}
		n := slices.Index(names[:], name)
		return bson.Type(max(n, 0)), n > 0 //nolint:gosec // below 20
	}
	n, ok := integer(v)
	switch {
	case !ok:
		return 0, false
	case n == -1:
		return bson.TypeMinKey, true
	case n == 127:
		return bson.TypeMaxKey, true
	default:
		return bson.Type(n), n > 0 && n < int64(len(names)) //nolint:gosec // checked beside it
	}
}
