package mqltest

import (
	"maps"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func expressionOperators() map[string]expressionOperator {
	all := map[string]expressionOperator{}
	for _, family := range []map[string]expressionOperator{coreOperators(), mathOperators(), typeOperators()} {
		maps.Copy(all, family)
	}
	return all
}

func coreOperators() map[string]expressionOperator {
	const family = "core"
	ops := map[string]expressionOperator{
		"$and":    {family, aBoolean, some(aBoolean)},
		"$or":     {family, aBoolean, some(aBoolean)},
		"$not":    {family, aBoolean, args(aBoolean)},
		"$ifNull": {family, anything, some(anything)},
		"$cond":   {family, anything, condOperands},
		"$switch": {family, anything, switchOperands},
		"$let":    {family, anything, letOperands},
	}
	for _, name := range []string{"$cmp", "$eq", "$ne", "$gt", "$gte", "$lt", "$lte"} {
		ops[name] = expressionOperator{family, aBoolean, comparisonOperands}
	}
	return ops
}

func comparisonOperands(g *expressions, depth int) any {
	k := kind(g.IntN(int(aBoolean) + 1))
	return args(k, k)(g, depth)
}

func condOperands(g *expressions, depth int) any {
	if g.IntN(2) == 0 {
		return args(aBoolean, anything, anything)(g, depth)
	}
	return fields(3, "if", aBoolean, "then", anything, "else", anything)(g, depth)
}

func switchOperands(g *expressions, depth int) any {
	branches := bson.A{}
	for range 1 + g.IntN(3) {
		branches = append(branches, fields(2, "case", aBoolean, "then", anything)(g, depth))
	}
	return fields(1, "branches", branches, "default", anything)(g, depth)
}

func letOperands(g *expressions, depth int) any {
	vars := bson.D{}
	for _, name := range []string{"u", "v", "CURRENT"}[:1+g.IntN(10)/4] {
		vars = append(vars, bson.E{Key: name, Value: g.of(anything, depth)})
	}
	return bson.D{{Key: "vars", Value: vars}, {Key: "in", Value: with(anything, "u", "v")(g, depth)}}
}

func mathOperators() map[string]expressionOperator {
	const family = "math"
	ops := map[string]expressionOperator{
		"$add":      {family, aNumber, addOperands},
		"$subtract": {family, aNumber, subtractOperands},
		"$multiply": {family, aNumber, some(aNumber)},
		"$divide":   {family, aNumber, args(aNumber, aNumber)},
		"$mod":      {family, aNumber, args(aNumber, aNumber)},
		"$pow":      {family, aNumber, args(anInteger, anInteger)},
		"$round":    {family, aNumber, roundOperands},
		"$trunc":    {family, aNumber, roundOperands},
		"$abs":      {family, aNumber, args(aNumber)},
		"$ceil":     {family, aNumber, args(aNumber)},
		"$floor":    {family, aNumber, args(aNumber)},
		"$sqrt":     {family, aNumber, args(aNumber)},
		"$log":      {"transcendental", aList, args(aNumber, aNumber)},
		"$atan2":    {"transcendental", aList, args(aNumber, aNumber)},
	}
	for _, name := range []string{
		"$exp", "$ln", "$log10", "$sin", "$cos", "$tan", "$asin", "$acos", "$atan", "$sinh", "$cosh", "$tanh", "$asinh", "$acosh", "$atanh",
		"$degreesToRadians", "$radiansToDegrees",
	} {
		ops[name] = expressionOperator{"transcendental", aList, args(aNumber)}
	}
	return ops
}

func addOperands(g *expressions, depth int) any {
	list, ok := some(aNumber)(g, depth).(bson.A)
	if ok && g.IntN(6) == 0 {
		list = append(list, g.of(aDate, depth))
	}
	if !ok {
		return g.of(aNumber, depth)
	}
	return list
}

func subtractOperands(g *expressions, depth int) any {
	switch g.IntN(6) {
	case 0:
		return args(aDate, aDate)(g, depth)
	case 1:
		return args(aDate, aNumber)(g, depth)
	default:
		return args(aNumber, aNumber)(g, depth)
	}
}

func roundOperands(g *expressions, depth int) any {
	if g.IntN(2) == 0 {
		return args(aNumber)(g, depth)
	}
	return args(aNumber, anInteger)(g, depth)
}

func typeOperators() map[string]expressionOperator {
	const family = "type"
	types := []string{"int", "long", "double", "decimal", "string", "bool", "date", "objectId", "null", "object", "array", "nope"}
	return map[string]expressionOperator{
		"$type":       {family, aText, args(anything)},
		"$isNumber":   {family, aBoolean, args(anything)},
		"$toBool":     {family, aBoolean, args(anything)},
		"$toInt":      {family, anInteger, convertible},
		"$toLong":     {family, aNumber, convertible},
		"$toDouble":   {family, aNumber, convertible},
		"$toDecimal":  {family, aNumber, convertible},
		"$toString":   {family, aText, convertible},
		"$toDate":     {family, aDate, convertible},
		"$toObjectId": {family, anything, convertible},
		"$convert":    {family, anything, fields(2, "input", convertible, "to", types, "onError", anything, "onNull", anything)},
	}
}

func convertible(g *expressions, depth int) any {
	return g.of(pick(g.Rand, []kind{aNumber, aText, aDate, aBoolean, anything}), depth)
}
