package mqltest

import (
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func (g *pipelines) bucket(int) any {
	numbers := [][]any{
		{int32(0), int32(1), int32(2)},
		{int32(1), 1.5},
		{int64(-5), 0.1, decimal("1")},
		{"", "ab"},
		{"a", "b"},
		{nil, int32(1)},
		{false, true},
		{int32(1), int32(1)},
		{int32(2), int32(1)},
		{int32(1)},
	}
	boundaries := pick(g.Rand, numbers[:len(numbers)-g.IntN(4)])
	d := bson.D{{Key: "groupBy", Value: pick(g.Rand, []any{"$k", "$k", "$a", "$b.c", "$_id", bson.D{{Key: "$type", Value: "$a"}}, "k"}[:6+g.IntN(7)/6])}}
	d = append(d, bson.E{Key: "boundaries", Value: bson.A(boundaries)})
	if g.safe || g.IntN(6) > 0 {
		d = append(d, bson.E{Key: "default", Value: pick(g.Rand, []any{"other", int32(2), bson.D{{Key: "$add", Value: bson.A{int32(7), int32(1)}}}})})
	}
	d = g.outputs(d)
	g.unique, g.ordered, g.holes, g.below, g.belowA, g.dated = true, true, false, false, false, false
	return d
}

// outputs adds an output to $bucket or $bucketAuto.
func (g *pipelines) outputs(d bson.D) bson.D {
	if g.IntN(2) == 0 {
		return d
	}
	output := bson.D{}
	for _, field := range []string{"n", "a", "x"}[:1+g.IntN(3)] {
		output = append(output, bson.E{Key: field, Value: g.accumulator(pick(g.Rand, g.accumulators()))})
	}
	return append(d, bson.E{Key: "output", Value: output})
}

// bucketAuto groups by values that are the same if they are equal, and does without the order of documents: that of equal
// values is any.
func (g *pipelines) bucketAuto(int) any {
	g.ordered = false
	d := bson.D{
		{Key: "groupBy", Value: pick(g.Rand, []any{"$k", "$_id", bson.D{{Key: "$type", Value: "$a"}}, bson.D{{Key: "$cmp", Value: bson.A{"$a", "$b"}}}})},
		{Key: "buckets", Value: pick(g.Rand, []any{int32(1), int32(2), int64(3), 4.0, 9.0, int32(0), 1.5}[:5+g.IntN(12)/10])},
	}
	d = g.outputs(d)
	if d[0].Value == "$k" && !g.safe && g.IntN(2) == 0 {
		d = append(d, bson.E{Key: "granularity", Value: pick(g.Rand, []string{"R5", "R10", "E6", "E24", "1-2-5", "POWERSOF2", "R80", "E192"})})
	}
	g.unique, g.ordered, g.holes, g.below, g.belowA, g.dated = false, true, false, false, false, false
	return d
}

// graphLookup is followed by a sort of what it has found, whose order is that of a hash table on a server. It leads to no
// lists: a server that remembers documents by their values forgets those with empty ones.
func (g *pipelines) graphLookup(int) any {
	paths := []string{"a", "b", "c", "k", "a.b", "b.c", "_id"}
	d := bson.D{
		{Key: "from", Value: pick(g.Rand, g.others)},
		{Key: "startWith", Value: g.expression()},
		{Key: "connectFromField", Value: pick(g.Rand, paths)},
		{Key: "connectToField", Value: pick(g.Rand, []string{"k", "_id", "none.k"})},
		{Key: "as", Value: "x"},
	}
	if g.IntN(2) == 0 {
		d = append(d, bson.E{Key: "maxDepth", Value: pick(g.Rand, []any{int32(0), int64(1), 2.0, 0.5}[:3+g.IntN(10)/9])})
	}
	if g.IntN(2) == 0 {
		d = append(d, bson.E{Key: "depthField", Value: pick(g.Rand, []string{"d", "b.d", "a"})})
	}
	if g.IntN(3) == 0 {
		d = append(d, bson.E{Key: "restrictSearchWithMatch", Value: Filter(g.Rand)})
	}
	g.holes = true
	g.follow = append(g.follow, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: bson.D{{Key: "$sortArray", Value: bson.D{
		{Key: "input", Value: "$x"}, {Key: "sortBy", Value: bson.D{{Key: "_id", Value: int32(1)}}},
	}}}}}}})
	return d
}

// windows makes one whose order is total. New fields of several functions come in any order on a server, so they are put
// into one behind it.
func (g *pipelines) windows() any {
	d := bson.D{}
	computed := 5
	if g.inLookup { // a server shows its own field then
		computed = 3
	}
	if g.IntN(2) == 0 {
		d = append(d, bson.E{Key: "partitionBy", Value: pick(g.Rand, []any{
			"$k", "$k", nil, bson.D{{Key: "$type", Value: "$a"}}, bson.D{{Key: "x", Value: "$k"}},
		}[:computed])})
	}
	sort, single := bson.D{{Key: "_id", Value: g.direction()}}, "_id"
	switch {
	case !g.holes && g.dated && g.IntN(3) == 0: // nobody has changed t
		sort[0].Key, single = "t", "t"
	case !g.holes && g.IntN(4) == 0: // a server orders by what is a partition and in the sort in either direction
		sort, single = bson.D{{Key: "k", Value: g.direction()}, sort[0]}, ""
		if len(d) > 0 {
			d[0].Value = nil
		}
	}
	d = append(d, bson.E{Key: "sortBy", Value: sort})
	output := bson.D{}
	fields := []string{"x", "a", "n.c"}
	if g.holes {
		fields = fields[:2]
	}
	n := 1 + g.IntN(2)
	for _, i := range g.Perm(len(fields))[:n] {
		output = append(output, bson.E{Key: fields[i], Value: g.window(single, n > 1)})
	}
	if len(d) > 1 && strings.Contains(fmt.Sprint(output), "$ROOT") { // where a server keeps a computed partition
		d[0].Value = nil
	}
	d = append(d, bson.E{Key: "output", Value: output})
	if len(output) > 1 {
		fixed := bson.D{}
		for _, name := range []string{"_id", "a", "b", "c", "k", "n", "t", "x"} {
			fixed = append(fixed, bson.E{Key: name, Value: "$" + name})
		}
		g.follow = append(g.follow, bson.D{{Key: "$replaceWith", Value: fixed}})
	}
	g.holes = true
	return d
}

// risk is seldom 1: where what fails is to be made.
func (g *pipelines) risk(seldom int) int {
	if g.safe || g.IntN(seldom) > 0 {
		return 0
	}
	return 1
}

// window makes a function of a window. single is the one field of the sort, or "". One that is safe does not fail: which of
// several functions fails first is not known.
func (g *pipelines) window(single string, safe bool) bson.D {
	unit := pick(g.Rand, []string{"day", "hour", "week", "month", "minute"})
	names := []string{"accumulator", "accumulator", "accumulator", "accumulator", "$first", "$last", "$shift", "$expMovingAvg", "$covariance", "$locf"}
	if single != "" {
		names = append(names, "$rank")
	}
	if safe || g.safe {
		single = ""
	}
	if single != "" {
		names = append(names, "$slope", "$linearFill")
	}
	switch name := pick(g.Rand, names); name {
	case "$rank":
		return bson.D{{Key: pick(g.Rand, []string{"$rank", "$denseRank", "$documentNumber"}), Value: bson.D{}}}
	case "$shift":
		shift := bson.D{{Key: "output", Value: g.expression()}, {Key: "by", Value: pick(g.Rand, []any{int32(1), int64(-1), 2.0, int32(0)})}}
		if g.IntN(2) == 0 {
			shift = append(shift, bson.E{Key: "default", Value: pick(g.Rand, []any{int32(0), "none", nil})})
		}
		return bson.D{{Key: name, Value: shift}}
	case "$slope":
		slope := bson.D{{Key: "input", Value: pick(g.Rand, []any{"$k", "$_id", "$_id", "$a"}[:3+g.IntN(6)/5])}}
		if single == "t" {
			slope = append(slope, bson.E{Key: "unit", Value: unit})
		}
		return g.bounded(bson.D{{Key: pick(g.Rand, []string{"$derivative", "$integral"}), Value: slope}}, single, unit, true)
	case "$expMovingAvg":
		// Not of decimals: once there was one, a server gives decimals for the partitions that follow, too.
		how := pick(g.Rand, []bson.E{{Key: "N", Value: int32(2)}, {Key: "alpha", Value: 0.3}, {Key: "N", Value: 3.0}, {Key: "alpha", Value: decimal("0.25")}})
		return bson.D{{Key: name, Value: bson.D{{Key: "input", Value: pick(g.Rand, []any{"$k", "$_id", 1.5, bson.D{{Key: "$cond", Value: bson.A{"$a", "$_id", nil}}}})}, how}}}
	case "$covariance": // not of infinities and decimals: a server's answer depends on what was in the window before, and on its zeros
		number := func(path string) any { // earlier stages make decimals of them
			isDecimal := bson.D{{Key: "$eq", Value: bson.A{bson.D{{Key: "$type", Value: path}}, "decimal"}}}
			return bson.D{{Key: "$cond", Value: bson.A{isDecimal, nil, path}}}
		}
		pair := bson.A{pick(g.Rand, []any{number("$k"), number("$_id"), 1.5}), pick(g.Rand, []any{number("$k"), number("$_id"), "$c"})}
		if pair[1] == "$c" && g.holes {
			pair[1] = number("$k")
		} else if pair[1] == "$c" {
			pair[1] = bson.D{{Key: "$size", Value: bson.A{bson.D{{Key: "$cond", Value: bson.A{bson.D{{Key: "$isArray", Value: bson.A{"$c"}}}, "$c", bson.A{}}}}}}}
		}
		return g.bounded(bson.D{{Key: pick(g.Rand, []string{"$covariancePop", "$covarianceSamp"}), Value: pair}}, single, unit, false)
	case "$locf", "$linearFill":
		return bson.D{{Key: name, Value: pick(g.Rand, []any{"$a", "$k", "$b.c", bson.D{{Key: "$cond", Value: bson.A{"$a", "$_id", nil}}}})}}
	case "$first", "$last":
		return g.bounded(bson.D{{Key: name, Value: g.expression()}}, single, unit, false)
	default:
		name := pick(g.Rand, append(g.accumulators(), "$top", "$bottomN"))
		made := g.accumulator(name)
		if strings.HasPrefix(name, "$stdDev") { // where documents leave, the last digits are of a server's own, and whether 0 is an integer
			return append(made, bson.E{Key: "window", Value: bson.D{{Key: "documents", Value: bson.A{"unbounded", pick(g.Rand, []any{"current", int32(1)})}}}})
		}
		return g.bounded(made, single, unit, false)
	}
}

// bounded adds a window.
func (g *pipelines) bounded(d bson.D, single, unit string, needed bool) bson.D {
	bounds := func() bson.A {
		return pick(g.Rand, []bson.A{
			{"unbounded", "current"},
			{"unbounded", "unbounded"},
			{"current", "unbounded"},
			{int32(-1), int32(1)},
			{int32(-2), int64(0)},
			{"current", 1.0},
			{int32(1), int32(2)},
			{"unbounded", int32(-1)},
			{int32(-1), "unbounded"},
			{int32(-3), "current"},
			{int32(2), int32(1)},
		}[:10+g.IntN(20)/19])
	}
	var window bson.D
	switch g.IntN(3) {
	case 0:
		if !needed {
			return d
		}
		window = bson.D{}
	case 1:
		window = bson.D{{Key: "documents", Value: bounds()}}
	default:
		if single == "" && g.risk(40) == 0 {
			return append(d, bson.E{Key: "window", Value: bson.D{}})
		}
		window = bson.D{{Key: "range", Value: bounds()}}
		if single == "t" {
			window = append(window, bson.E{Key: "unit", Value: unit})
		}
	}
	return append(d, bson.E{Key: "window", Value: window})
}

func (g *pipelines) fill() any {
	output := bson.D{}
	for _, name := range []string{"a", "k", "b"}[:1+g.IntN(2)] {
		how := pick(g.Rand, []bson.D{{{Key: "method", Value: "locf"}}, {{Key: "value", Value: g.expression()}}, {}, {{Key: "method", Value: "linear"}}}[:3+g.risk(4)])
		output = append(output, bson.E{Key: name, Value: how})
	}
	g.holes = true
	d := bson.D{{Key: "sortBy", Value: bson.D{{Key: "_id", Value: g.direction()}}}}
	if g.IntN(3) == 0 && !g.inLookup {
		d = append(d, bson.E{Key: "partitionByFields", Value: bson.A{"k"}})
	}
	d = append(d, bson.E{Key: "output", Value: output})
	if len(output) > 1 {
		g.follow = append(g.follow, bson.D{{Key: "$replaceWith", Value: bson.D{{Key: "_id", Value: "$_id"}, {Key: "a", Value: "$a"}, {Key: "k", Value: "$k"}, {Key: "x", Value: "$x"}}}})
	}
	return d
}
