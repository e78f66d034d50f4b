package fieldtype

import (
	"cmp"
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// gt, gte, lt, lte judge numbers and dates; before and after dates; eq, ne and oneof any scalar.

// ordering is what a rule asks of the order of a value and another one.
type ordering struct {
	must   string
	passes func(order int) bool
}

// orderingOf gives what the rule of that name asks; no passes: it asks nothing of an order.
func orderingOf(name string) ordering {
	switch name {
	case "gt":
		return ordering{"must be greater than ", func(order int) bool { return order > 0 }}
	case "gte":
		return ordering{"must be at least ", func(order int) bool { return order >= 0 }}
	case "lt":
		return ordering{"must be less than ", func(order int) bool { return order < 0 }}
	case "lte":
		return ordering{"must be at most ", func(order int) bool { return order <= 0 }}
	case "before":
		return ordering{"must be before ", func(order int) bool { return order < 0 }}
	case "after":
		return ordering{"must be after ", func(order int) bool { return order > 0 }}
	}
	return ordering{}
}

// ruleOrder compares the value with the argument; in an any field the argument's form tells numbers from dates.
func ruleOrder(name string) func(arg any, t Type) (Rule, error) {
	o, dates := orderingOf(name), name == "before" || name == "after"
	return func(arg any, t Type) (Rule, error) {
		limit, err := numberArg(arg)
		if dates || t == (dateType{}) || t == (anyType{}) && err != nil {
			limit, err = momentArg(arg)
		}
		if err != nil {
			return Rule{}, err
		}
		return Rule{Arg: limit, test: func(v any, c *Check) string {
			order, ok := compareValues(v, now(limit, c))
			if !ok || !o.passes(order) {
				return o.must + showMoment(limit)
			}
			return ""
		}}, nil
	}
}

// now gives the moment that "now" means, for date fields, and any other argument as it is.
func now(arg any, c *Check) any {
	if arg == "now" {
		return moment(arg, c)
	}
	return arg
}

func showMoment(arg any) string {
	if arg == "now" {
		return "now"
	}
	return show(arg)
}

func ruleEq(arg any, t Type) (Rule, error) {
	want, err := itemArg(arg, t)
	if err != nil {
		return Rule{}, err
	}
	return Rule{Arg: want, test: func(v any, _ *Check) string {
		if equal(v, want) {
			return ""
		}
		return "must be " + show(want)
	}}, nil
}

func ruleNe(arg any, t Type) (Rule, error) {
	refused, err := itemArg(arg, t)
	if err != nil {
		return Rule{}, err
	}
	return Rule{Arg: refused, test: func(v any, _ *Check) string {
		if equal(v, refused) {
			return "must not be " + show(refused)
		}
		return ""
	}}, nil
}

func ruleOneOf(arg any, t Type) (Rule, error) {
	allowed, err := itemArgs(arg, t)
	if err != nil {
		return Rule{}, err
	}
	return Rule{Arg: allowed, test: func(v any, _ *Check) string {
		if contains(allowed, v) {
			return ""
		}
		return "must be one of " + listing(allowed)
	}}, nil
}

// compareValues orders two numbers or two dates; ok is false for anything else.
func compareValues(a, b any) (order int, ok bool) {
	if x, isDate := a.(bson.DateTime); isDate {
		y, both := b.(bson.DateTime)
		return cmp.Compare(x, y), both
	}
	return compareNumbers(a, b)
}

// equal says that two stored values are the same; 1 and 1.0 are.
func equal(a, b any) bool {
	if order, ok := compareValues(a, b); ok {
		return order == 0
	}
	return reflect.DeepEqual(a, b)
}

func contains(list []any, v any) bool {
	for _, item := range list {
		if equal(item, v) {
			return true
		}
	}
	return false
}
