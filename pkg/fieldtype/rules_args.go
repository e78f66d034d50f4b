package fieldtype

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// flag is the compile func of a rule whose argument is true or false; in a tag string its name alone is true.
func flag(test func(v any, c *Check) string) func(arg any, t Type) (Rule, error) {
	return func(arg any, _ Type) (Rule, error) {
		switch arg {
		case true, Untyped(""), Untyped("true"):
			return Rule{Arg: true, test: test}, nil
		case false, Untyped("false"):
			return Rule{Arg: false}, nil
		}
		return Rule{}, fmt.Errorf("takes true or false, not %s", show(arg))
	}
}

// countArg reads a number of characters or items.
func countArg(arg any) (int64, error) {
	n, err := numberArg(arg)
	if err != nil {
		return 0, err
	}
	count, ok := n.(int64)
	if !ok || count < 0 {
		return 0, fmt.Errorf("takes a whole number from 0 up, not %s", show(arg))
	}
	return count, nil
}

func numberArg(arg any) (any, error) {
	n := arg
	if text, ok := arg.(Untyped); ok {
		n, _ = readNumber(string(text))
	}
	if _, ok := exact(n); !ok {
		return nil, fmt.Errorf("takes a number, not %s", show(arg))
	}
	return n, nil
}

func textArg(arg any) (string, error) {
	if text, ok := arg.(Untyped); ok {
		arg = string(text)
	}
	text, ok := arg.(string)
	if !ok {
		return "", fmt.Errorf("takes a string, not %s", show(arg))
	}
	if text == "" {
		return "", errors.New("takes a string that is not empty")
	}
	return text, nil
}

// momentArg reads a moment: "now", which is the time of the check, or RFC 3339.
func momentArg(arg any) (any, error) {
	if text, ok := arg.(Untyped); ok {
		arg = string(text)
	}
	if arg == "now" {
		return arg, nil
	}
	cast, _ := dateType{}.Cast(nil, arg)
	if moment, ok := cast.(bson.DateTime); ok {
		return moment, nil
	}
	return nil, fmt.Errorf(`takes "now" or a date in RFC 3339, not %s`, show(arg))
}

// itemArg reads a value of the type that the rule judges: the field's, or a list's items'.
func itemArg(arg any, t Type) (any, error) {
	if list, ok := t.(listType); ok {
		t = list.item
	}
	f := &Field{Type: t}
	if _, ok := arg.(Untyped); ok {
		cast, err := t.Cast(f, arg)
		if err != nil {
			return nil, fmt.Errorf("takes what the field takes: %w", err)
		}
		return cast, nil
	}
	c := Check{}
	v := t.Parse(f, arg, &c)
	if len(c.Problems) > 0 {
		return nil, fmt.Errorf("takes what the field takes: %s", c.Problems[0].Message)
	}
	return v, nil
}

// itemArgs reads a list of such values: a list, or a string that separates them by blanks.
func itemArgs(arg any, t Type) (bson.A, error) {
	list, ok := arg.(bson.A)
	if !ok {
		text, err := textArg(arg)
		if err != nil {
			return nil, fmt.Errorf("takes a list, or a string of values separated by blanks, not %s", show(arg))
		}
		for item := range strings.FieldsSeq(text) {
			list = append(list, Untyped(item))
		}
	}
	if len(list) == 0 {
		return nil, errors.New("takes at least one value")
	}
	out := make(bson.A, len(list))
	for i, item := range list {
		v, err := itemArg(item, t)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// moment gives the moment that a momentArg means during a check.
func moment(arg any, c *Check) bson.DateTime {
	if at, ok := arg.(bson.DateTime); ok {
		return at
	}
	return bson.NewDateTimeFromTime(c.Now)
}

// show prints an argument or a value for a message.
func show(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("%q", v)
	case Untyped:
		return fmt.Sprintf("%q", string(v))
	case bson.DateTime:
		return v.Time().UTC().Format(time.RFC3339Nano)
	case bson.ObjectID:
		return v.Hex()
	case bool, int32, int64, float64:
		return fmt.Sprint(v)
	}
	return describe(v)
}

// listing prints values for "must be one of …", not more than fit a sentence.
func listing(values []any) string {
	const most = 20
	var b strings.Builder
	for i, v := range values {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == most {
			fmt.Fprintf(&b, "… (%d in all)", len(values))
			break
		}
		b.WriteString(show(v))
	}
	return b.String()
}
