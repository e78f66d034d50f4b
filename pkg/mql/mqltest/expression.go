package mqltest

import (
	"math"
	"math/rand/v2"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// ExpressionDoc makes a document for expressions: beside a, b and c of Doc, fields whose names say what they mostly hold.
func ExpressionDoc(r *rand.Rand, id any) bson.D {
	doc := Doc(r, id)
	for _, f := range []struct {
		name string
		kind kind
	}{
		{"n1", aNumber},
		{"n2", aNumber},
		{"i1", anInteger},
		{"s1", aText},
		{"s2", aText},
		{"l1", aList},
		{"l2", aList},
		{"o1", anObject},
		{"t1", aDate},
		{"x", anything},
	} {
		if r.IntN(20) > 0 {
			doc = append(doc, bson.E{Key: f.name, Value: stored(r, f.kind)})
		}
	}
	return doc
}

func stored(r *rand.Rand, k kind) any {
	if r.IntN(20) == 0 {
		return rareValue(r)
	}
	return value(r, k)
}

// kind is what an operator wants as an operand.
type kind int

const (
	anything kind = iota
	aNumber
	anInteger // a small one
	aText
	aList
	anObject
	aDate
	aBoolean
)

// Operators gives the names of the operators that Expression makes, those of one family or all ("").
func Operators(family string) []string {
	var names []string
	for name, op := range expressionOperators() {
		if family == "" || op.family == family {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Expression makes an expression with one of the operators at its top, and any of them inside. It mostly compiles.
func Expression(r *rand.Rand, names []string) any {
	g := &expressions{Rand: r, names: names, all: expressionOperators()}
	return g.operator(pick(r, names), 1+r.IntN(3))
}

type expressions struct {
	*rand.Rand
	names []string
	all   map[string]expressionOperator
	vars  []string
}

// expressionOperator makes the operands of an operator.
type expressionOperator struct {
	family string
	gives  kind
	make   func(g *expressions, depth int) any
}

func (g *expressions) operator(name string, depth int) any {
	return bson.D{{Key: name, Value: g.all[name].make(g, depth-1)}}
}

// of makes an expression of a kind, mostly.
func (g *expressions) of(k kind, depth int) any {
	if g.IntN(25) == 0 {
		k = anything
	}
	if depth > 0 && g.IntN(3) > 0 {
		for range 8 {
			name := pick(g.Rand, g.names)
			if op := g.all[name]; op.family != "transcendental" && (op.gives == k || k == anything || op.gives == anything && g.IntN(4) == 0) {
				return g.operator(name, depth)
			}
		}
	}
	if g.IntN(2) == 0 {
		return g.path(k)
	}
	return literal(g.value(k))
}

func (g *expressions) path(k kind) string {
	if len(g.vars) > 0 && g.IntN(3) > 0 {
		return "$$" + pick(g.Rand, g.vars) + pick(g.Rand, []string{"", "", "", "", ".a", ".b"})
	}
	switch k {
	case aNumber:
		return pick(g.Rand, []string{"$n1", "$n2", "$n1", "$i1"})
	case anInteger:
		return "$i1"
	case aText:
		return pick(g.Rand, []string{"$s1", "$s2"})
	case aList:
		return pick(g.Rand, []string{"$l1", "$l2", "$a", "$o1.b.c"})
	case anObject:
		return pick(g.Rand, []string{"$o1", "$$ROOT", "$a", "$o1.b"})
	case aDate:
		return "$t1"
	default:
		return pick(g.Rand, []string{"$" + Path(g.Rand), "$" + Path(g.Rand), "$x", "$x", "$l1.b", "$$REMOVE", "$none", "$$CURRENT.a"})
	}
}

func (g *expressions) value(k kind) any {
	if g.IntN(25) == 0 {
		return rareValue(g.Rand)
	}
	return value(g.Rand, k)
}

// literal makes sure that a value is taken as one.
func literal(v any) any {
	switch v := v.(type) {
	case bson.D, bson.A:
		return bson.D{{Key: "$literal", Value: v}}
	case string:
		if len(v) > 0 && v[0] == '$' {
			return bson.D{{Key: "$literal", Value: v}}
		}
	}
	return v
}

func value(r *rand.Rand, k kind) any {
	switch k {
	case aNumber:
		return numberValue(r)
	case anInteger:
		if r.IntN(10) == 0 {
			return numberValue(r)
		}
		n := r.IntN(7) - 2
		return pick(r, []any{int32(n), int32(n), int32(n), int64(n), float64(n)}) //nolint:gosec // small
	case aText:
		return textValue(r)
	case aList:
		list := make(bson.A, r.IntN(5))
		of := pick(r, []kind{anything, aNumber, aText, anObject, anInteger, aList})
		for i := range list {
			list[i] = value(r, of)
			if r.IntN(8) == 0 {
				list[i] = value(r, anything)
			}
		}
		return list
	case anObject:
		return object(r, 2)
	case aDate:
		return dateValue(r)
	case aBoolean:
		return r.IntN(2) == 0
	default:
		if r.IntN(3) == 0 {
			return value(r, kind(1+r.IntN(7)))
		}
		return Value(r, 2)
	}
}

func numberValue(r *rand.Rand) any {
	switch r.IntN(10) {
	case 0:
		return rareNumber(r)
	case 1:
		return decimal(pick(r, []string{"1", "0", "-1", "0.1", "2.50", "1E+3", "-5.7", "3.14159", "10", "1234567.891", "0E+3", "NaN", "1.000"}))
	case 2, 3:
		return pick(r, []float64{0, 1, -1, 0.5, 1.5, 2.5, -2.5, 0.1, 100, 3.14159, -0.75, 1e10, 12.345, 2, 3})
	case 4:
		return int64(r.IntN(200) - 100)
	case 5:
		return r.NormFloat64() * 100
	default:
		return int32(r.IntN(20) - 6) //nolint:gosec // small
	}
}

func rareNumber(r *rand.Rand) any {
	return pick(r, []any{
		int32(math.MaxInt32), int32(math.MinInt32), int64(math.MaxInt64), int64(math.MinInt64), int64(math.MaxInt32 + 1), int64(1<<53 + 1),
		math.MaxFloat64, math.SmallestNonzeroFloat64, math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), float64(1 << 63), -float64(1 << 63),
		math.Nextafter(1<<63, 0), 1e300, 1e-300, 4503599627370497.5, 2147483647.5, -2147483648.5, 1e19,
		decimal("9.999999999999999999999999999999999E+6144"), decimal("1E-6176"), decimal("Infinity"), decimal("-Infinity"), decimal("NaN"),
		decimal("9223372036854775807"), decimal("9223372036854775808"), decimal("-9223372036854775808"), decimal("-0"), decimal("0E-6176"),
		decimal("0.1000000000000000055511151231257827"), decimal("1E+400"), decimal("1E-400"), decimal("2147483647.5"), decimal("1.0"),
		decimal("9007199254740992.5"), decimal("0.5"), decimal("1E+19"), decimal("123456789012345678901234567890.1234"),
	})
}

func textValue(r *rand.Rand) string {
	if r.IntN(4) == 0 {
		return pick(r, []string{
			"1", "-5", "1.5", "0x10", "1e3", "Infinity", "nan", "99999999999", "9223372036854775808", "1E-7000", "+1", " 1", "1 ", "0102030405060708090a0b0c",
			"2020-01-31", "2020-02-30T12:30:45.678Z", "2019-12-31T23:59:59+05:30", "true", "false", "1,5", "0.1", ".5", "5.", "-", "1e400", "1e-320",
		})
	}
	return pick(r, []string{
		"", "a", "b", "ab", "abc", "aba", "A", "AbC", "é", "aé", "日本語", "😀a", "a b", "  a ", "a,b,c", "a\x00b", "\x00", "ß", "İ", "ſ", "x", "aaa", "a\nb",
		"$a", "a.b", "b\ta", "\u00a0a\u2003", "zz",
	})
}

func dateValue(r *rand.Rand) any {
	switch r.IntN(12) {
	case 0:
		return pick(r, []any{
			bson.DateTime(math.MaxInt64), bson.DateTime(math.MinInt64), bson.DateTime(-1), bson.DateTime(0), bson.DateTime(-62135596800001),
			bson.DateTime(253402300799999), bson.DateTime(253402300800000), bson.DateTime(-62167219200000),
		})
	case 1:
		return bson.Timestamp{T: r.Uint32(), I: r.Uint32()}
	case 2:
		id := bson.ObjectID{}
		for i := range id {
			id[i] = byte(r.IntN(256)) //nolint:gosec // one
		}
		return id
	case 3, 4: // around the turn of a day, month or year
		return bson.DateTime(r.Int64N(60*12)*86400000*30 + r.Int64N(3))
	default:
		ms := r.Int64N(4e12) - 1e12
		if ms < 0 {
			ms -= ms % 1000
		}
		return bson.DateTime(ms)
	}
}

// rareValue is of a type that few operators take.
func rareValue(r *rand.Rand) any {
	return pick(r, []any{
		nil, nil, nil,
		bson.Undefined{},
		bson.MinKey{},
		bson.MaxKey{},
		bson.Timestamp{T: 5, I: 1},
		bson.Binary{Data: []byte("abc")},
		bson.Binary{Subtype: 4, Data: []byte("0123456789abcdef")},
		bson.Regex{Pattern: "a", Options: "i"},
		bson.Symbol("sym"), bson.JavaScript("x"),
		bson.NilObjectID,
		bson.D{},
		bson.A{},
		bson.A{nil},
		bson.A{bson.A{int32(1)}, bson.A{}},
		bson.D{{Key: "", Value: int32(1)}},
		bson.D{{Key: "x.y", Value: int32(1)}, {Key: "$z", Value: int32(2)}},
		math.NaN(), decimal("NaN"), true, false, "", "a",
	})
}

// args makes operands of the given kinds.
func args(kinds ...kind) func(g *expressions, depth int) any {
	return func(g *expressions, depth int) any {
		list := bson.A{}
		for _, k := range kinds {
			list = append(list, g.of(k, depth))
		}
		switch g.IntN(60) {
		case 0:
			return append(list, g.of(anything, depth))
		case 1:
			return list[1:]
		}
		if len(list) == 1 && g.IntN(2) == 0 {
			if _, ok := list[0].(bson.A); !ok {
				return list[0]
			}
		}
		return list
	}
}

// some makes a few operands of one kind, or now and then a single one that is in no list.
func some(k kind) func(g *expressions, depth int) any {
	return func(g *expressions, depth int) any {
		if g.IntN(10) == 0 {
			return g.of(k, depth)
		}
		list := bson.A{}
		for range g.IntN(5) {
			list = append(list, g.of(k, depth))
		}
		return list
	}
}

// fields makes an object of operands; those from the required-th on may be left out.
func fields(required int, pairs ...any) func(g *expressions, depth int) any {
	return func(g *expressions, depth int) any {
		d := bson.D{}
		for i := 0; i < len(pairs); i += 2 {
			left := g.IntN(2) == 0
			if i/2 < required {
				left = g.IntN(80) == 0
			}
			if left {
				continue
			}
			d = append(d, bson.E{Key: pairs[i].(string), Value: g.part(pairs[i+1], depth)}) //nolint:errcheck // they are
		}
		if g.IntN(100) == 0 {
			d = append(d, bson.E{Key: "other", Value: int32(1)})
		}
		return d
	}
}

// part is an operand by its kind, one of some constants, or what a function makes.
func (g *expressions) part(what any, depth int) any {
	switch what := what.(type) {
	case kind:
		return g.of(what, depth)
	case []string:
		if g.IntN(25) == 0 {
			return g.of(anything, depth)
		}
		return pick(g.Rand, what)
	case func(g *expressions, depth int) any:
		return what(g, depth)
	default:
		return what
	}
}

// with makes an expression in which variables are known.
func with(k kind, names ...string) func(g *expressions, depth int) any {
	return func(g *expressions, depth int) any {
		before := g.vars
		g.vars = append(slices.Clip(before), names...)
		v := g.of(k, max(depth, 1))
		g.vars = before
		return v
	}
}
