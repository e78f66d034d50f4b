package mql

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// visit is called by Rewrite for one comparison: path is the full dotted path from the top of the document, op the
// operator and v its constant. It returns what takes the constant's place, or an error that ends the walk.
type visit func(path, op string, v any) (any, error)

// Rewrite walks a filter that is not yet compiled and returns a copy with the constants that fn gives. fn sees every
// path that the filter reads, at any depth, so rights can be decided and values be cast in it:
//
//   - An implicit equality comes as "$eq" with the value, whole if it is an object or a list; the result has an
//     explicit $eq, so what fn returns is never taken for operators. A bson.Regex in its place comes as "$regex".
//   - $in, $nin and $all come once for each element, $mod once with its list. $regex comes without $options.
//   - Where there is no constant to pass (an $elemMatch, an empty list) fn is called once with nil and its value
//     dropped. The paths inside an $elemMatch, and in one inside an $all, continue the path of the list.
//
// The filter has to have the shape that Compile takes, though constants are not checked; else the error is Compile's.
func Rewrite(doc bson.D, fn func(path, op string, v any) (any, error)) (bson.D, error) {
	return rewriteDoc(doc, "", 0, fn)
}

func rewriteDoc(doc bson.D, prefix string, depth int, fn visit) (bson.D, error) {
	if depth > maxNesting {
		return nil, bad("filter: nested deeper than %d levels", maxNesting)
	}
	out := make(bson.D, len(doc))
	for i, e := range doc {
		v, err := rewriteClause(e, prefix, depth, fn)
		if err != nil {
			return nil, err
		}
		out[i] = bson.E{Key: e.Key, Value: v}
	}
	return out, nil
}

func rewriteClause(e bson.E, prefix string, depth int, fn visit) (any, error) {
	if e.Key == "" || e.Key[0] != '$' {
		if err := checkPath(e.Key); err != nil {
			return nil, err
		}
		return rewriteOperand(e.Value, join(prefix, e.Key), depth, fn)
	}
	if !isLogical(e.Key) {
		return nil, unknownOperator(e.Key, prefix)
	}
	docs, err := logicalOperand(e, prefix)
	if err != nil {
		return nil, err
	}
	out := make(bson.A, len(docs))
	for i, doc := range docs {
		if out[i], err = rewriteDoc(doc, prefix, depth+1, fn); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func rewriteOperand(v any, path string, depth int, fn visit) (any, error) {
	if re, ok := v.(bson.Regex); ok {
		return fn(path, "$regex", re)
	}
	if ops, ok := operatorsOf(v); ok {
		return rewriteOperators(ops, path, depth, fn)
	}
	v, err := fn(path, "$eq", v)
	return bson.D{{Key: "$eq", Value: v}}, err
}

func rewriteOperators(ops bson.D, path string, depth int, fn visit) (bson.D, error) {
	if depth > maxNesting {
		return nil, bad("filter: nested deeper than %d levels", maxNesting)
	}
	out := slices.Clone(ops)
	for i, e := range ops {
		v, err := rewriteOperator(e, path, depth, fn)
		if err != nil {
			return nil, err
		}
		out[i].Value = v
	}
	return out, nil
}

func rewriteOperator(e bson.E, path string, depth int, fn visit) (any, error) {
	switch e.Key {
	case "$options":
		return e.Value, nil
	case "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$exists", "$type", "$size", "$mod", "$regex":
		return fn(path, e.Key, e.Value)
	case "$in", "$nin", "$all":
		return rewriteList(e, path, depth, fn)
	case "$elemMatch":
		return rewriteElemMatch(e.Value, path, depth+1, fn)
	case "$not":
		if err := checkNot(e.Value, path); err != nil {
			return nil, err
		}
		return rewriteOperand(e.Value, path, depth+1, fn)
	default:
		return nil, unknownOperator(e.Key, path)
	}
}

func rewriteList(e bson.E, path string, depth int, fn visit) (any, error) {
	items, ok := asList(e.Value)
	if !ok {
		return nil, bad("filter: %s: %s needs a list", path, e.Key)
	}
	if len(items) == 0 {
		_, err := fn(path, e.Key, nil)
		return bson.A{}, err
	}
	out := make(bson.A, len(items))
	for i, item := range items {
		var err error
		ops, isOps := operatorsOf(item)
		switch {
		case e.Key == "$all" && isElemMatch(ops):
			out[i], err = rewriteOperators(ops, path, depth+1, fn)
		case isOps:
			err = bad("filter: %s: %s takes values, not operators", path, e.Key)
		default:
			out[i], err = fn(path, e.Key, item)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func rewriteElemMatch(v any, path string, depth int, fn visit) (any, error) {
	d, ok := v.(bson.D)
	if !ok {
		return nil, bad("filter: %s: $elemMatch needs an object", path)
	}
	if _, err := fn(path, "$elemMatch", nil); err != nil {
		return nil, err
	}
	if isOfElements(d) {
		return rewriteOperators(d, path, depth, fn)
	}
	return rewriteDoc(d, path, depth, fn)
}

// StoredID copies a filter with the public name id written as the stored _id, wherever the name of a field of the
// record stands. Inside an $elemMatch, id is a field like any other.
func StoredID(doc bson.D) bson.D {
	out := slices.Clone(doc)
	for i, e := range out {
		if e.Key == "id" {
			out[i].Key = "_id"
		}
		list, ok := asList(e.Value)
		if !ok || !isLogical(e.Key) {
			continue
		}
		branches := make(bson.A, len(list))
		for j, item := range list {
			if branch, ok := item.(bson.D); ok {
				item = StoredID(branch)
			}
			branches[j] = item
		}
		out[i].Value = branches
	}
	return out
}
