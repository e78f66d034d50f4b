package mqltest

import (
	"maps"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// expressionOperators is made once, because it takes longer than an expression.
//
//nolint:gochecknoglobals // never changed
var expressionOperators = sync.OnceValue(func() map[string]expressionOperator {
	all := map[string]expressionOperator{}
	for _, family := range []map[string]expressionOperator{coreOperators(), mathOperators(), typeOperators(), listOperators(), setOperators(), objectOperators(), textOperators(), dateOperators(), accumulatorOperators()} {
		maps.Copy(all, family)
	}
	return all
})

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

func listOperators() map[string]expressionOperator {
	const family = "list"
	return map[string]expressionOperator{
		"$arrayElemAt":  {family, anything, args(aList, anInteger)},
		"$concatArrays": {family, aList, some(aList)},
		"$filter":       {family, aList, fields(1, "input", aList, "cond", with(aBoolean, "this"), "limit", anInteger, "as", "this")},
		"$first":        {family, anything, args(aList)},
		"$last":         {family, anything, args(aList)},
		"$in":           {family, aBoolean, args(anything, aList)},
		"$indexOfArray": {family, anInteger, searching(aList, anything)},
		"$isArray":      {family, aBoolean, args(anything)},
		"$map":          {family, aList, mapOperands},
		"$range":        {family, aList, rangeOperands},
		"$reduce":       {family, anything, fields(3, "input", aList, "initialValue", anything, "in", with(anything, "this", "value"))},
		"$reverseArray": {family, aList, args(aList)},
		"$size":         {family, anInteger, args(aList)},
		"$slice":        {family, aList, searching(aList, anInteger)},
		"$sortArray":    {family, aList, fields(2, "input", aList, "sortBy", sortOperand)},
		"$zip":          {family, aList, zipOperands},
	}
}

func mapOperands(g *expressions, depth int) any {
	if g.IntN(2) == 0 {
		return fields(2, "input", aList, "in", with(anything, "this"))(g, depth)
	}
	return fields(3, "input", aList, "as", "e", "in", with(anything, "e"))(g, depth)
}

// searching makes two operands and up to two whole numbers.
func searching(kinds ...kind) func(g *expressions, depth int) any {
	return func(g *expressions, depth int) any {
		list := bson.A{}
		for _, k := range append(kinds, anInteger, anInteger)[:len(kinds)+g.IntN(3)] {
			list = append(list, g.of(k, depth))
		}
		return list
	}
}

func rangeOperands(g *expressions, depth int) any {
	list := bson.A{g.small(depth), g.small(depth), g.small(depth)}
	return list[:2+g.IntN(2)]
}

// small keeps numbers small, as lists of that many elements are made.
func (g *expressions) small(depth int) any {
	if g.IntN(3) == 0 {
		return bson.D{{Key: "$mod", Value: bson.A{g.of(anInteger, depth), int32(9)}}}
	}
	return pick(g.Rand, []any{int32(g.IntN(12) - 3), int64(g.IntN(9)), float64(g.IntN(5)), 1.5, "a", nil, int32(0)}) //nolint:gosec // small
}

func sortOperand(g *expressions, _ int) any {
	switch g.IntN(8) {
	case 0:
		return pick(g.Rand, []any{int32(0), 2.0, "a", bson.D{}, bson.D{{Key: "a", Value: int32(3)}}, bson.D{{Key: "a..b", Value: int32(1)}}, bson.A{}, 1.0, int64(-1)})
	case 1, 2, 3:
		return pick(g.Rand, []any{int32(1), int32(-1)})
	default:
		by := bson.D{}
		for _, i := range g.Perm(4)[:1+g.IntN(2)] {
			by = append(by, bson.E{Key: []string{"a", "b", "c", "a.b"}[i], Value: pick(g.Rand, []any{int32(1), int32(-1)})})
		}
		return by
	}
}

func zipOperands(g *expressions, depth int) any {
	inputs, defaults := bson.A{}, bson.A{}
	for range 1 + g.IntN(3) {
		inputs = append(inputs, g.of(aList, depth))
		defaults = append(defaults, g.of(anything, depth))
	}
	d := bson.D{{Key: "inputs", Value: inputs}}
	if g.IntN(2) == 0 {
		d = append(d, bson.E{Key: "useLongestLength", Value: g.IntN(6) > 0})
		if g.IntN(2) == 0 {
			d = append(d, bson.E{Key: "defaults", Value: defaults})
		}
	}
	return d
}

func setOperators() map[string]expressionOperator {
	const family = "set"
	return map[string]expressionOperator{
		"$allElementsTrue": {family, aBoolean, args(aList)},
		"$anyElementTrue":  {family, aBoolean, args(aList)},
		"$setDifference":   {family, aList, args(aList, aList)},
		"$setEquals":       {family, aBoolean, some(aList)},
		"$setIntersection": {family, aList, some(aList)},
		"$setIsSubset":     {family, aBoolean, args(aList, aList)},
		"$setUnion":        {family, aList, some(aList)},
	}
}

func objectOperators() map[string]expressionOperator {
	const family = "object"
	names := []string{"a", "b", "c", "0", "x.y", "none"}
	return map[string]expressionOperator{
		"$arrayToObject": {family, anObject, pairOperands},
		"$objectToArray": {family, aList, args(anObject)},
		"$mergeObjects":  {family, anObject, some(anObject)},
		"$getField":      {family, anything, fields(2, "field", names, "input", anObject)},
		"$setField":      {family, anObject, fields(3, "field", names, "input", anObject, "value", anything)},
		"$unsetField":    {family, anObject, fields(2, "field", names, "input", anObject)},
		"$bsonSize":      {family, anInteger, args(anObject)},
		"$binarySize":    {family, anInteger, args(aText)},
	}
}

func pairOperands(g *expressions, depth int) any {
	if g.IntN(6) == 0 {
		return args(aList)(g, depth)
	}
	pairs, lists := bson.A{}, g.IntN(2) == 0
	for range g.IntN(4) {
		k := any(pick(g.Rand, []string{"a", "b", "c", "x.y", "", "a"}))
		if g.IntN(8) == 0 {
			k = g.of(aText, depth)
		}
		if lists != (g.IntN(40) == 0) {
			pairs = append(pairs, bson.A{k, g.of(anything, depth)})
		} else {
			pairs = append(pairs, bson.D{{Key: "k", Value: k}, {Key: pick(g.Rand, []string{"v", "v", "v", "v", "v", "w"}), Value: g.of(anything, depth)}})
		}
	}
	return bson.A{pairs}
}

func textOperators() map[string]expressionOperator {
	const family = "text"
	replacing := fields(3, "input", aText, "find", aText, "replacement", aText)
	trimming := fields(1, "input", aText, "chars", aText)
	matching := fields(2, "input", aText, "regex", regexOperand, "options", []string{"i", "", "s", "m", "is"})
	return map[string]expressionOperator{
		"$regexFind":    {family, anything, matching},
		"$regexFindAll": {family, aList, matching},
		"$regexMatch":   {family, aBoolean, matching},
		"$concat":       {family, aText, some(aText)},
		"$indexOfBytes": {family, anInteger, searching(aText, aText)},
		"$indexOfCP":    {family, anInteger, searching(aText, aText)},
		"$ltrim":        {family, aText, trimming},
		"$rtrim":        {family, aText, trimming},
		"$trim":         {family, aText, trimming},
		"$replaceAll":   {family, aText, replacing},
		"$replaceOne":   {family, aText, replacing},
		"$split":        {family, aList, args(aText, aText)},
		"$strLenBytes":  {family, anInteger, args(aText)},
		"$strLenCP":     {family, anInteger, args(aText)},
		"$strcasecmp":   {family, anInteger, textual(2)},
		"$substr":       {family, aText, substring},
		"$substrBytes":  {family, aText, substring},
		"$substrCP":     {family, aText, substring},
		"$toLower":      {family, aText, textual(1)},
		"$toUpper":      {family, aText, textual(1)},
	}
}

func textual(n int) func(g *expressions, depth int) any {
	return func(g *expressions, depth int) any {
		list := bson.A{}
		for range n {
			list = append(list, g.of(pick(g.Rand, []kind{aText, aText, aText, aNumber, aDate, anything}), depth))
		}
		return list
	}
}

func substring(g *expressions, depth int) any {
	return append(textual(1)(g, depth).(bson.A), g.of(anInteger, depth), g.of(anInteger, depth)) //nolint:errcheck // it is one
}

// regexOperand is a pattern, mostly a constant one: those are the same for every store.
func regexOperand(g *expressions, _ int) any {
	patterns := []string{"a", "", "a*", "(a)(b)?", "^a", "b$", "[a-c]+", "\\b", "(?:x|a)", ".", "(.)(.)", "é|日", "a|", "(b)|a", "\\d", "(?i)A", "^", "$", "a{2}", "("}
	switch g.IntN(12) {
	case 0:
		return nil
	case 1:
		return pick(g.Rand, []any{int32(1), "$s1", "$none"})
	case 2, 3:
		return bson.Regex{Pattern: pick(g.Rand, patterns), Options: pick(g.Rand, []string{"", "i", "s"})}
	default:
		return pick(g.Rand, patterns)
	}
}

func dateOperators() map[string]expressionOperator {
	const family = "date"
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "+05:30", "-08", "+0130", "nope", "", "Australia/Lord_Howe"}
	units := []string{"year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "foo"}
	weekdays := []string{"monday", "Sun", "tue", "SATURDAY", "foo"}
	formats := []string{"%Y-%m-%d", "%H:%M:%S.%L", "%j %w %u %U %V %G %z %Z %%", "%q", "%", "", "%d.%m.%Y %H"}
	ops := map[string]expressionOperator{
		"$dateAdd":        {family, aDate, fields(3, "startDate", aDate, "unit", units, "amount", anInteger, "timezone", zones)},
		"$dateSubtract":   {family, aDate, fields(3, "startDate", aDate, "unit", units, "amount", anInteger, "timezone", zones)},
		"$dateDiff":       {family, aNumber, fields(3, "startDate", aDate, "endDate", aDate, "unit", units, "timezone", zones, "startOfWeek", weekdays)},
		"$dateTrunc":      {family, aDate, fields(2, "date", aDate, "unit", units, "binSize", anInteger, "timezone", zones, "startOfWeek", weekdays)},
		"$dateToParts":    {family, anObject, fields(1, "date", aDate, "timezone", zones, "iso8601", aBoolean)},
		"$dateToString":   {family, aText, fields(1, "date", aDate, "format", formats, "timezone", zones, "onNull", anything)},
		"$dateFromString": {family, aDate, fields(1, "dateString", dateText, "format", []string{"%Y-%m-%d", "%d.%m.%Y", "%Y-%m-%dT%H:%M:%S.%L%z", "%G-%V-%u", "%q", "%H:%M %d/%m/%Y"}, "timezone", zones, "onError", anything, "onNull", anything)},
		"$dateFromParts": {family, aDate, func(g *expressions, depth int) any {
			if g.IntN(3) == 0 {
				return fields(1, "isoWeekYear", yearOperand, "isoWeek", anInteger, "isoDayOfWeek", anInteger, "hour", anInteger, "timezone", zones)(g, depth)
			}
			return fields(1, "year", yearOperand, "month", anInteger, "day", anInteger, "hour", anInteger, "minute", anInteger, "second", anInteger, "millisecond", anInteger, "timezone", zones)(g, depth)
		}},
		"$tsSecond":    {family, aNumber, args(aDate)},
		"$tsIncrement": {family, aNumber, args(aDate)},
	}
	for _, name := range []string{
		"$dayOfMonth", "$dayOfWeek", "$dayOfYear", "$hour", "$isoDayOfWeek", "$isoWeek", "$isoWeekYear", "$millisecond", "$minute", "$month", "$second",
		"$week", "$year",
	} {
		ops[name] = expressionOperator{family, anInteger, func(g *expressions, depth int) any {
			if g.IntN(2) == 0 {
				return args(aDate)(g, depth)
			}
			return fields(1, "date", aDate, "timezone", zones)(g, depth)
		}}
	}
	return ops
}

func yearOperand(g *expressions, depth int) any {
	if g.IntN(8) == 0 {
		return g.of(anInteger, depth)
	}
	return int32(1950 + g.IntN(100)) //nolint:gosec // small
}

func dateText(g *expressions, depth int) any {
	if g.IntN(6) == 0 {
		return g.of(aText, depth)
	}
	return pick(g.Rand, []string{
		"2020-02-03", "2020-02-03T10:11:12", "2020-02-03T10:11:12.345Z", "2020-02-03 10:11", "2020-02-30", "2020-13-01", "20200203", "02/03/2020", "2020-02", "2020",
		"Feb 3, 2020", "3 February 2020 10:11", "03.02.2020", "3.2.2020", "2020-05-1", "2020-02-03T10:11:12.345+0530", "2020-02-03T10:11:12.345+05:30",
		"", "x", "2020-02-03T25:00:00", "2020-02-03T10:11:12.3456Z", "2020-53-7",
	})
}

func accumulatorOperators() map[string]expressionOperator {
	const family = "accumulator"
	ops := map[string]expressionOperator{}
	for _, name := range []string{"$sum", "$avg", "$min", "$max", "$stdDevPop", "$stdDevSamp"} {
		ops[name] = expressionOperator{family, aNumber, func(g *expressions, depth int) any {
			if g.IntN(2) == 0 {
				return args(aList)(g, depth)
			}
			return some(aNumber)(g, depth)
		}}
	}
	for _, name := range []string{"$firstN", "$lastN", "$maxN", "$minN"} {
		ops[name] = expressionOperator{family, aList, fields(2, "n", anInteger, "input", aList)}
	}
	return ops
}
