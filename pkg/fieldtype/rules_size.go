package fieldtype

import (
	"fmt"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// min and max: the value of a number, the length of a string, the number of a list's items.

func ruleMin(arg any, t Type) (Rule, error) {
	return sizeRule(arg, t, "at least", func(c int) bool { return c >= 0 })
}

func ruleMax(arg any, t Type) (Rule, error) {
	return sizeRule(arg, t, "at most", func(c int) bool { return c <= 0 })
}

// sizeRule measures the value and compares it with the argument.
func sizeRule(arg any, t Type, bound string, passes func(c int) bool) (Rule, error) {
	if t != (numberType{}) && t != (anyType{}) {
		if _, err := countArg(arg); err != nil {
			return Rule{}, err
		}
	}
	limit, err := numberArg(arg)
	if err != nil {
		return Rule{}, err
	}
	return Rule{Arg: limit, test: func(v any, _ *Check) string {
		size, unit := v, ""
		if n, u, ok := length(v); ok {
			size, unit = n, u
		}
		c, ok := compareNumbers(size, limit)
		switch {
		case !ok:
			return "must be a number, a string or a list, is " + describe(v)
		case passes(c):
			return ""
		case unit == "":
			return fmt.Sprintf("must be %s %s", bound, show(limit))
		}
		return fmt.Sprintf("must have %s %s %s, has %d", bound, show(limit), unit, size)
	}}, nil
}

// length counts a string's characters (code points) or a list's items.
func length(v any) (n int64, unit string, ok bool) {
	switch v := v.(type) {
	case string:
		return int64(utf8.RuneCountInString(v)), "characters", true
	case bson.A:
		return int64(len(v)), "items", true
	}
	return 0, "", false
}

func ruleLen(arg any, _ Type) (Rule, error) {
	want, err := countArg(arg)
	if err != nil {
		return Rule{}, err
	}
	return Rule{Arg: want, test: func(v any, _ *Check) string {
		n, unit, ok := length(v)
		switch {
		case !ok:
			return "must be a string or a list, is " + describe(v)
		case n != want:
			return fmt.Sprintf("must have exactly %d %s, has %d", want, unit, n)
		}
		return ""
	}}, nil
}

func ruleMinItems(arg any, _ Type) (Rule, error) {
	return itemsRule(arg, "at least", func(n, limit int64) bool { return n >= limit })
}

func ruleMaxItems(arg any, _ Type) (Rule, error) {
	return itemsRule(arg, "at most", func(n, limit int64) bool { return n <= limit })
}

func itemsRule(arg any, bound string, passes func(n, limit int64) bool) (Rule, error) {
	limit, err := countArg(arg)
	if err != nil {
		return Rule{}, err
	}
	return Rule{Arg: limit, test: func(v any, _ *Check) string {
		list, ok := v.(bson.A)
		switch n := int64(len(list)); {
		case !ok:
			return "must be a list, is " + describe(v)
		case !passes(n, limit):
			return fmt.Sprintf("must have %s %d items, has %d", bound, limit, n)
		}
		return ""
	}}, nil
}

// testUniqueItems compares items as the store does: 1 and 1.0 are the same.
func testUniqueItems(v any, _ *Check) string {
	list, ok := v.(bson.A)
	if !ok {
		return "must be a list, is " + describe(v)
	}
	seen := make(map[string]int, len(list))
	var key []byte
	for i, item := range list {
		raw, err := document.MarshalValue(item)
		if err != nil {
			return fmt.Sprintf("item %d can't be stored", i)
		}
		key = document.AppendKey(key[:0], raw, false)
		if first, twice := seen[string(key)]; twice {
			return fmt.Sprintf("items must differ: items %d and %d are the same", first, i)
		}
		seen[string(key)] = i
	}
	return ""
}
