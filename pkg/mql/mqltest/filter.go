package mqltest

import (
	"math/rand/v2"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Filter makes a filter in the form that mql.Compile takes.
func Filter(r *rand.Rand) bson.D { return filter(r, 3) }

func filter(r *rand.Rand, depth int) bson.D {
	doc := bson.D{}
	for range 1 + r.IntN(2) {
		doc = append(doc, condition(r, depth))
	}
	return doc
}

func condition(r *rand.Rand, depth int) bson.E {
	if depth > 0 && r.IntN(4) == 0 {
		list := bson.A{}
		for range 1 + r.IntN(2) {
			list = append(list, filter(r, depth-1))
		}
		return bson.E{Key: pick(r, []string{"$and", "$or", "$nor"}), Value: list}
	}
	path := Path(r)
	switch r.IntN(8) {
	case 0, 1:
		return bson.E{Key: path, Value: constant(r)}
	case 2:
		return bson.E{Key: path, Value: bson.Regex{Pattern: Pattern(r), Options: options(r)}}
	default:
		return bson.E{Key: path, Value: operators(r, depth)}
	}
}

// constant avoids objects that begin with an operator, which Value never makes.
func constant(r *rand.Rand) any { return Value(r, 2) }

// operators makes one or two different operators.
func operators(r *rand.Rand, depth int) bson.D {
	ops := bson.D{}
	for range 1 + r.IntN(2) {
		e := operator(r, depth)
		if len(ops) == 0 || ops[0].Key != e.Key {
			ops = append(ops, e)
		}
	}
	if ops[0].Key == "$regex" && r.IntN(2) == 0 {
		ops = append(ops, bson.E{Key: "$options", Value: options(r)})
	}
	return ops
}

func operator(r *rand.Rand, depth int) bson.E {
	names := []string{
		"$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$type", "$size",
		"$mod", "$regex", "$all",
	}
	if depth > 0 {
		names = append(names, "$not", "$elemMatch", "$elemMatch", "$elemMatch", "$all")
	}
	name := pick(r, names)
	return bson.E{Key: name, Value: operand(r, name, depth)}
}

func operand(r *rand.Rand, name string, depth int) any {
	switch name {
	case "$in", "$nin":
		return values(r)
	case "$all":
		return allOperand(r, depth)
	case "$exists":
		return r.IntN(2) == 0
	case "$type":
		return types(r)
	case "$size":
		return pick(r, []any{int32(0), int64(1), 2.0, int32(3)})
	case "$mod":
		return bson.A{pick(r, []any{int32(2), int64(-3), 5.0, int32(1), int32(-1)}), pick(r, []any{int32(0), int64(1), -1.0, int32(-2)})}
	case "$regex":
		return Pattern(r)
	case "$not":
		if r.IntN(5) == 0 {
			return bson.Regex{Pattern: Pattern(r), Options: options(r)}
		}
		return operators(r, depth-1)
	case "$elemMatch":
		return elemMatch(r, depth)
	default:
		return constant(r)
	}
}

func elemMatch(r *rand.Rand, depth int) bson.D {
	switch r.IntN(8) {
	case 0:
		return bson.D{}
	case 1, 2, 3:
		return operators(r, depth-1)
	default:
		doc := filter(r, depth-1)
		for i := range doc {
			if doc[i].Key[0] != '$' {
				doc[i].Key = pick(r, []string{"b", "c", "0", "b.c", "b.0"})
			}
		}
		return doc
	}
}

func values(r *rand.Rand) bson.A {
	list := bson.A{}
	for range r.IntN(4) {
		if r.IntN(6) == 0 {
			list = append(list, bson.Regex{Pattern: Pattern(r), Options: options(r)})
			continue
		}
		list = append(list, constant(r))
	}
	return list
}

func allOperand(r *rand.Rand, depth int) bson.A {
	if depth == 0 || r.IntN(3) > 0 {
		return values(r)
	}
	list := bson.A{}
	for range 1 + r.IntN(2) {
		list = append(list, bson.D{{Key: "$elemMatch", Value: elemMatch(r, depth-1)}})
	}
	return list
}

func types(r *rand.Rand) any {
	pool := []any{
		"double", "string", "object", "array", "binData", "objectId", "bool", "date", "null", "int", "long", "decimal", "number",
		"minKey", "maxKey", "timestamp", "undefined", "regex", int32(10), int64(-1), 16.0, int32(127),
	}
	if r.IntN(3) > 0 {
		return pick(r, pool)
	}
	return bson.A{pick(r, pool), pick(r, pool)}
}

// Pattern makes a regular expression in RE2 syntax, from constructs that other engines read differently.
func Pattern(r *rand.Rand) string {
	return pick(r, []string{
		"", "a", "^a", "^a$", "b$", "a.b", "(?m)^b", "(?m)a$", "(?m)^$", "(?s)a.b", "(?i)A", "(?i)k", "(?i)S", `\s`, `\S`, `\w+`,
		`\W`, `\d`, "[[:space:]]", `\pL`, `\p{Lu}`, `^\PL`, `\Qa\E`, `\Aa\z`, "(?P<n>a)b?", "a{2}", "(a|b)+?", "^(?:a|b)", "[^a]",
		"[^b-z]$", `\x{e9}`, `\bb`, `a\Bb`, "(?U)a+", "é", `\.`, "a|^b", "[^\\x00-\\x{10FFFF}]", "$", "^", `\n`, "(?i)É", "[a-c\\d]",
		"", "(|a)b", "-", "#", " a", "[]a]", "[\\]^-]", `\/`, `"`, `[[:^alpha:]]`, `\v`, "(?i:a)B", "^[^a]", `a\nb$`,
	})
}

func options(r *rand.Rand) string { return pick(r, []string{"", "", "i", "m", "s", "im", "ims"}) }
