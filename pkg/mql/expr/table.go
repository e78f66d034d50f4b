package expr

import (
	"math"
	"time"

	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// operators is every operator there is. What is not here is refused by its name.
//
//nolint:gochecknoglobals // never changed
var operators = map[string]operator{
	"$literal": {parse: parseLiteral},
	"$const":   {parse: parseLiteral},
	"$let":     {parse: parseLet},
	"$rand":    {parse: parseRandom},

	// Comparison.
	"$cmp": two(compareOperator),
	"$eq":  comparison(func(c int) bool { return c == 0 }),
	"$ne":  comparison(func(c int) bool { return c != 0 }),
	"$gt":  comparison(func(c int) bool { return c > 0 }),
	"$gte": comparison(func(c int) bool { return c >= 0 }),
	"$lt":  comparison(func(c int) bool { return c < 0 }),
	"$lte": comparison(func(c int) bool { return c <= 0 }),

	// Boolean and conditional.
	"$and":    variadic(func(args operands) node { return &logic{args, false} }),
	"$or":     variadic(func(args operands) node { return &logic{args, true} }),
	"$not":    one(not),
	"$cond":   {parse: parseCond},
	"$ifNull": {parse: parseIfNull},
	"$switch": {parse: parseSwitch},

	// Arithmetic.
	"$add":              variadic(func(args operands) node { return &add{args} }),
	"$multiply":         variadic(func(args operands) node { return &multiply{args} }),
	"$subtract":         backwards(subtract),
	"$divide":           backwards(divide),
	"$mod":              two(mod),
	"$abs":              ofNumber(abs),
	"$ceil":             toWhole(math.Ceil, apd.RoundCeiling),
	"$floor":            toWhole(math.Floor, apd.RoundFloor),
	"$round":            rounding(apd.RoundHalfEven),
	"$trunc":            rounding(apd.RoundDown),
	"$pow":              two(pow),
	"$log":              two(log),
	"$atan2":            {min: 2, max: 2, make: func(_ string, args []node) node { return &atan2{args} }},
	"$sqrt":             function(within{low: 0, high: math.Inf(1), code: codeSqrt}, math.Sqrt, decimalSqrt),
	"$exp":              function(anyNumber, math.Exp, decimalExp),
	"$ln":               function(within{low: 0, high: math.Inf(1), open: true, code: codeLn}, naturalLog, decimalLn),
	"$log10":            function(within{low: 0, high: math.Inf(1), open: true, code: codeLog10}, decadicLog, decimalLog10),
	"$sin":              function(finite, math.Sin, decimalSin),
	"$cos":              function(finite, math.Cos, decimalCos),
	"$tan":              function(finite, math.Tan, decimalTan),
	"$asin":             function(toOne, math.Asin, decimalAsin),
	"$acos":             function(toOne, math.Acos, decimalAcos),
	"$atan":             function(anyNumber, math.Atan, decimalAtan),
	"$sinh":             function(anyNumber, math.Sinh, decimalSinh),
	"$cosh":             function(anyNumber, math.Cosh, decimalCosh),
	"$tanh":             function(anyNumber, math.Tanh, decimalTanh),
	"$asinh":            function(anyNumber, math.Asinh, decimalAsinh),
	"$acosh":            function(within{low: 1, high: math.Inf(1), code: codeTrig}, math.Acosh, decimalAcosh),
	"$atanh":            function(toOne, math.Atanh, decimalAtanh),
	"$degreesToRadians": function(anyNumber, func(f float64) float64 { return f * (math.Pi / 180) }, turned("0.01745329251994329576923690768488613")),
	"$radiansToDegrees": function(anyNumber, func(f float64) float64 { return f * (180 / math.Pi) }, turned("57.29577951308232087679815481410517")),

	// Lists.
	"$arrayElemAt":  two(element),
	"$concatArrays": variadic(func(args operands) node { return &concatArrays{args} }),
	"$filter":       {parse: parseFilter},
	"$first":        one(first),
	"$in":           two(in),
	"$indexOfArray": {min: 2, max: 4, make: func(_ string, args []node) node { return &indexOfArray{args} }},
	"$isArray":      one(isArray),
	"$last":         one(last),
	"$map":          {parse: parseMap},
	"$range":        {min: 2, max: 3, make: func(_ string, args []node) node { return &ranges{args} }},
	"$reduce":       {parse: parseReduce},
	"$reverseArray": one(reverse),
	"$size":         one(size),
	"$slice":        {min: 2, max: 3, make: func(_ string, args []node) node { return &slice{args} }},
	"$sortArray":    {parse: parseSortArray},
	"$zip":          {parse: parseZip},

	// Sets.
	"$allElementsTrue": one(allTrue),
	"$anyElementTrue":  one(anyTrue),
	"$setDifference":   two(setDifference),
	"$setEquals":       {parse: parseSetEquals},
	"$setIntersection": variadic(func(args operands) node { return &setMany{args, true} }),
	"$setIsSubset":     {min: 2, max: 2, make: func(_ string, args []node) node { return &setIsSubset{operands: args} }},
	"$setUnion":        variadic(func(args operands) node { return &setMany{args, false} }),

	// Accumulators as expressions.
	"$sum":        accumulatorOperator(accSum),
	"$avg":        accumulatorOperator(accAvg),
	"$min":        accumulatorOperator(accMin),
	"$max":        accumulatorOperator(accMax),
	"$stdDevPop":  accumulatorOperator(accStdDevPop),
	"$stdDevSamp": accumulatorOperator(accStdDevSamp),
	"$firstN":     manyOperator(accFirstN),
	"$lastN":      manyOperator(accLastN),
	"$maxN":       manyOperator(accMaxN),
	"$minN":       manyOperator(accMinN),

	// Text.
	"$concat":       variadic(func(args operands) node { return &concat{args} }),
	"$indexOfBytes": {min: 2, max: 4, make: indexOf(40091, false)},
	"$indexOfCP":    {min: 2, max: 4, make: indexOf(40093, true)},
	"$ltrim":        trim(true, false),
	"$regexFind":    regexOperator(useFind),
	"$regexFindAll": regexOperator(useFindAll),
	"$regexMatch":   regexOperator(useMatch),
	"$replaceAll":   replace(-1),
	"$replaceOne":   replace(1),
	"$rtrim":        trim(false, true),
	"$split":        two(split),
	"$strLenBytes":  one(lengthBytes),
	"$strLenCP":     one(lengthCP),
	"$strcasecmp":   two(strcasecmp),
	"$substr":       three(substrBytes),
	"$substrBytes":  three(substrBytes),
	"$substrCP":     three(substrCP),
	"$toLower":      changeCase('A', 'a'),
	"$toUpper":      changeCase('a', 'A'),
	"$trim":         trim(true, true),

	// Dates.
	"$dateAdd":      dateArithmetic(false),
	"$dateSubtract": dateArithmetic(true),
	"$dateDiff": dateOperator(named{
		names: []string{"startDate", "endDate", "unit", "timezone", "startOfWeek"}, required: 3, late: true, backwards: true, noObject: 5166301, unknown: 5166302,
		lacking: []document.ServerCode{5166303, 5166304, 5166305},
	}, 3, runDateDiff),
	"$dateTrunc": dateOperator(named{
		names: []string{"date", "unit", "binSize", "timezone", "startOfWeek"}, required: 2, late: true, backwards: true, noObject: 5439007, unknown: 5439008,
		lacking: []document.ServerCode{5439009, 5439010},
	}, 3, runDateTrunc),
	"$dateFromParts": {parse: parseDateFromParts},
	"$dateToParts": dateOperator(named{
		names: []string{"date", "timezone", "iso8601"}, required: 1, late: true, noObject: 40524, unknown: 40520, lacking: []document.ServerCode{40522},
	}, 1, runDateToParts),
	"$dateToString": dateOperator(named{
		names: []string{"date", "format", "timezone", "onNull"}, required: 1, late: true, noObject: 18629, unknown: 18534, lacking: []document.ServerCode{18628},
	}, 2, runDateToString),
	"$dateFromString": dateOperator(named{
		names: []string{"dateString", "timezone", "format", "onNull", "onError"}, required: 1, late: true, noObject: 40540, unknown: 40541,
		lacking: []document.ServerCode{40542},
	}, 1, runDateFromString),
	"$dayOfMonth":   partOperator(time.Time.Day),
	"$dayOfWeek":    partOperator(func(t time.Time) int { return int(t.Weekday()) + 1 }),
	"$dayOfYear":    partOperator(time.Time.YearDay),
	"$hour":         partOperator(time.Time.Hour),
	"$isoDayOfWeek": partOperator(isoDay),
	"$isoWeek":      partOperator(isoWeek),
	"$isoWeekYear":  partAs(func(env *Env, t time.Time) bson.RawValue { return env.int64(int64(isoYear(t))) }),
	"$millisecond":  partOperator(func(t time.Time) int { return t.Nanosecond() / 1e6 }),
	"$minute":       partOperator(time.Time.Minute),
	"$month":        partOperator(func(t time.Time) int { return int(t.Month()) }),
	"$second":       partOperator(time.Time.Second),
	"$week":         partOperator(sundays),
	"$year":         partOperator(time.Time.Year),
	"$tsIncrement":  tsPart(5687302, 0),
	"$tsSecond":     tsPart(5687301, 32),

	// Objects.
	"$arrayToObject": one(arrayToObject),
	"$getField":      {parse: parseGetField},
	"$mergeObjects":  variadic(func(args operands) node { return &mergeObjects{args} }),
	"$objectToArray": one(objectToArray),
	"$setField":      {parse: parseSetField},
	"$unsetField":    {parse: parseSetField},

	// Types.
	"$binarySize": one(binarySize),
	"$bsonSize":   one(bsonSize),
	"$type":       one(typeOperator),
	"$isNumber":   one(isNumberOperator),
	"$convert":    {parse: parseConvert},
	"$toBool":     to(bson.TypeBoolean),
	"$toDate":     to(bson.TypeDateTime),
	"$toDecimal":  to(bson.TypeDecimal128),
	"$toDouble":   to(bson.TypeDouble),
	"$toInt":      to(bson.TypeInt32),
	"$toLong":     to(bson.TypeInt64),
	"$toObjectId": to(bson.TypeObjectID),
	"$toString":   to(bson.TypeString),
}

// Known says whether there is an operator of this name.
func Known(name string) bool {
	_, ok := operators[name]
	return ok
}

// one is an operator with one operand.
func one(apply unaryFunc) operator {
	return operator{min: 1, max: 1, make: func(name string, args []node) node { return &unaryCall{name, args[0], apply} }}
}

// two is an operator with two operands.
func two(apply binaryFunc) operator {
	return operator{min: 2, max: 2, make: func(name string, args []node) node {
		return &binaryCall{name: name, a: args[0], b: args[1], apply: apply}
	}}
}

// backwards is an operator with two operands, the second of which is computed first.
func backwards(apply binaryFunc) operator {
	return operator{min: 2, max: 2, make: func(name string, args []node) node {
		return &binaryCall{name: name, a: args[0], b: args[1], apply: apply, backwards: true}
	}}
}

// three is an operator with three operands.
func three(apply severalFunc) operator {
	return operator{min: 3, max: 3, make: func(name string, args []node) node {
		return &several{name: name, operands: args, apply: apply}
	}}
}

// indexOf makes an operator that searches text.
func indexOf(code document.ServerCode, runes bool) func(name string, args []node) node {
	return func(name string, args []node) node { return &indexOfText{name, args, code, runes} }
}

// variadic is an operator with any number of operands.
func variadic(build func(operands) node) operator {
	return operator{max: -1, make: func(_ string, args []node) node { return build(args) }}
}
