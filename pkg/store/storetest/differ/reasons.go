package differ

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// What follows says whether an op has what a deliberate refusal is about.

func isNumber(name string) bool {
	_, err := strconv.ParseUint(name, 10, 32)
	return err == nil
}

func indexText(i int) string { return strconv.Itoa(i) }

// anyField asks about every field of the op's objects, at any depth.
func (o *Op) anyField(is func(key string, v any) bool) bool {
	for i := range o.Batch {
		if o.Batch[i].anyField(is) {
			return true
		}
	}
	if o.Kind == Distinct && is(o.Path, nil) {
		return true
	}
	return o.anyFilter(func(d bson.D) bool { return anyField(d, is) }) ||
		anyField(o.Sort, is) || anyField(o.Project, is) || anyField(o.Update, is)
}

func anyField(v any, is func(key string, v any) bool) bool {
	switch v := v.(type) {
	case bson.D:
		return slices.ContainsFunc(v, func(e bson.E) bool { return is(e.Key, e.Value) || anyField(e.Value, is) })
	case bson.A:
		return slices.ContainsFunc(v, func(v any) bool { return anyField(v, is) })
	default:
		return false
	}
}

// anyValue asks about everything that is not an object or a list, at any depth.
func anyValue(v any, is func(any) bool) bool {
	switch v := v.(type) {
	case bson.D:
		return slices.ContainsFunc(v, func(e bson.E) bool { return anyValue(e.Value, is) })
	case bson.A:
		return slices.ContainsFunc(v, func(v any) bool { return anyValue(v, is) })
	default:
		return is(v)
	}
}

func (o *Op) anyValue(is func(any) bool) bool {
	in := func(d bson.D) bool { return anyValue(d, is) }
	return in(o.Doc) || in(o.Update) || in(o.Project) || o.anyFilter(in) ||
		slices.ContainsFunc(o.Batch, func(part Op) bool { return part.anyValue(is) })
}

func isOldType(v any) bool {
	switch v.(type) {
	case bson.Symbol, bson.JavaScript, bson.Undefined:
		return true
	default:
		return false
	}
}

func isBadText(v any) bool {
	s, isText := v.(string)
	return isText && !utf8.ValidString(s)
}

// anyFilter asks about the op's filters, the operands of $pull among them.
func (o *Op) anyFilter(is func(bson.D) bool) bool {
	for i := range o.Batch {
		if o.Batch[i].anyFilter(is) {
			return true
		}
	}
	inner := func(key string, v any) bool {
		d, isObject := v.(bson.D)
		return isObject && (key == "$elemMatch" && is(d) || key == "$pull" && slices.ContainsFunc(d, func(e bson.E) bool {
			return is(bson.D{e}) || isFilter(e.Value, is)
		}))
	}
	return is(o.Filter) || is(o.If) || slices.ContainsFunc(o.ArrayFilters, is) || anyField(o.Update, inner) ||
		anyField(o.Project, inner)
}

func isFilter(v any, is func(bson.D) bool) bool {
	d, isObject := v.(bson.D)
	return isObject && is(d)
}

func operandIs(operator string, is func(any) bool) func(*situation) bool {
	return func(s *situation) bool {
		return s.op.anyField(func(key string, v any) bool { return key == operator && is(v) })
	}
}

// noPath says whether a name is neither an operator nor a path of fields.
func noPath(key string) bool {
	parts := strings.Split(key, ".")
	return slices.ContainsFunc(parts, func(p string) bool {
		return p == "" || p[0] == '$' && (len(parts) > 1 || !operators(p))
	})
}

func operators(name string) bool {
	return slices.Contains([]string{
		"$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$and", "$or", "$nor", "$not", "$exists", "$type", "$all",
		"$elemMatch", "$size", "$mod", "$regex", "$options", "$slice",
	}, name)
}

// misplacedName says whether a filter has an object with a $ in a name where no operators belong.
func misplacedName(filter bson.D) bool {
	return slices.ContainsFunc(filter, func(e bson.E) bool {
		switch {
		case e.Key == "$and" || e.Key == "$or" || e.Key == "$nor":
			list, _ := e.Value.(bson.A)
			return slices.ContainsFunc(list, func(v any) bool { return isFilter(v, misplacedName) })
		case strings.HasPrefix(e.Key, "$"):
			return misplacedOperand(e)
		default:
			return misplacedValue(e.Value)
		}
	})
}

// misplacedValue is for what a field is held against.
func misplacedValue(v any) bool {
	d, isObject := v.(bson.D)
	if !isObject || len(d) == 0 || !strings.HasPrefix(d[0].Key, "$") {
		return hasDollar(v)
	}
	return slices.ContainsFunc(d, misplacedOperand)
}

func misplacedOperand(e bson.E) bool {
	switch e.Key {
	case "$not":
		return misplacedValue(e.Value)
	case "$elemMatch":
		return isFilter(e.Value, misplacedName)
	case "$all":
		list, _ := e.Value.(bson.A)
		return slices.ContainsFunc(list, func(v any) bool {
			if d, isObject := v.(bson.D); isObject && len(d) > 0 && d[0].Key == "$elemMatch" {
				return misplacedOperand(d[0])
			}
			return hasDollar(v)
		})
	default:
		return hasDollar(e.Value)
	}
}

func hasDollar(v any) bool {
	return anyField(v, func(key string, _ any) bool { return strings.HasPrefix(key, "$") })
}

func nameTwice(filter bson.D) bool {
	twice := func(d bson.D) bool {
		for i, e := range d {
			if slices.ContainsFunc(d[:i], func(o bson.E) bool { return o.Key == e.Key }) {
				return true
			}
		}
		return false
	}
	return twice(filter) || anyField(filter, func(_ string, v any) bool { return isFilter(v, twice) })
}

// wholeNumbers says whether v is a whole number or a list of them; with n, a list of n.
func wholeNumbers(v any, n int) bool {
	switch v := v.(type) {
	case bson.A:
		return (n == 0 || len(v) == n) && len(v) > 0 && !slices.ContainsFunc(v, func(v any) bool {
			_, isList := v.(bson.A)
			return isList || !wholeNumbers(v, 0)
		})
	case int, int32, int64:
		return n == 0
	case float64:
		return n == 0 && v == math.Trunc(v) && math.Abs(v) < 1<<63
	default:
		return false
	}
}

func isDecimal(v any) bool { _, is := v.(bson.Decimal128); return is }

func hasDecimal(v any) bool {
	list, _ := v.(bson.A)
	return isDecimal(v) || slices.ContainsFunc(list, isDecimal)
}

// besideElemMatch says whether $all has objects with operators that are not one $elemMatch each.
func besideElemMatch(v any) bool {
	list, _ := v.(bson.A)
	return slices.ContainsFunc(list, func(v any) bool {
		d, _ := v.(bson.D)
		return len(d) > 0 && strings.HasPrefix(d[0].Key, "$") && (len(d) > 1 || d[0].Key != "$elemMatch")
	})
}

// hasExpression says whether a projection has a value that is not in, out, $slice or $elemMatch.
func hasExpression(p bson.D) bool {
	return slices.ContainsFunc(p, func(e bson.E) bool {
		if strings.HasPrefix(e.Key, "$") {
			return true // those that are no expressions have been taken out below
		}
		switch v := e.Value.(type) {
		case bool, int, int32, int64, float64, bson.Decimal128:
			return false
		case bson.D:
			if len(v) > 0 && (v[0].Key == "$slice" || v[0].Key == "$elemMatch") {
				return len(v) > 1
			}
			return len(v) == 0 || hasExpression(v)
		default:
			return true
		}
	})
}
