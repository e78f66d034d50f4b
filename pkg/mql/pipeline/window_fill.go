package pipeline

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/expr"
)

// filling is $locf, the last value that is not null, and $linearFill, which puts the rest on a line between its neighbors.
type filling struct {
	of     *expr.Expr
	by     *expr.Expr // of $linearFill
	line   *expr.Expr // through (x1, y1) and (x2, y2), at x
	linear bool
}

func (f *windowField) filling() (windowFunction, any, error) {
	fill := &filling{linear: f.function == "$linearFill"}
	switch {
	case f.hasWindow:
		return nil, nil, f.refuse("can't have a window, because of %s", f.function)
	case fill.linear && len(f.by) != 1:
		return nil, nil, bad(605001, "%s: $linearFill needs sortBy of one field", f.name)
	}
	var err error
	if fill.of, err = f.expression(f.operand); err != nil {
		return nil, nil, err
	}
	if !fill.linear {
		return fill, fill.of.Raw(), nil
	}
	fill.line = newFormula(formulaOf(
		"$add", "$$y1", formulaOf("$multiply",
			formulaOf("$subtract", "$$x", "$$x1"),
			formulaOf("$divide", formulaOf("$subtract", "$$y2", "$$y1"), formulaOf("$subtract", "$$x2", "$$x1")))),
		"x", "x1", "y1", "x2", "y2")
	fill.by, err = f.sortValue()
	return fill, fill.of.Raw(), err
}

// formulaOf is an operator with its operands.
func formulaOf(operator string, args ...any) bson.D {
	return bson.D{{Key: operator, Value: bson.A(args)}}
}

func (f *filling) open(p *partition) windowValues {
	values := newColumn(p, f.of)
	if !f.linear {
		return &carried{values: values}
	}
	return &filled{values: values, keys: newColumn(p, f.by), line: p.formula(f.line), before: -1}
}

// carried is $locf.
type carried struct {
	values *column
	last   bson.RawValue
}

func (c *carried) at(i int) (bson.RawValue, error) {
	v, err := c.values.at(i)
	if err != nil {
		return v, err
	}
	if !isNull(v.Type) {
		c.last = v
	}
	if c.last.Type == 0 {
		return null, nil
	}
	return c.last, nil
}

// filled is $linearFill. Documents up to checked have keys and values that it takes.
type filled struct {
	values, keys  *column
	line          *formula
	before, after int // known values around the document
	checked       int
}

func (f *filled) at(i int) (bson.RawValue, error) {
	if err := f.check(i); err != nil {
		return null, err
	}
	v, _ := f.values.at(i) // checked before
	if !isNull(v.Type) {
		f.before = i
		return v, nil
	}
	if f.before < 0 {
		return null, nil
	}
	for f.after = max(f.after, i+1); f.after < len(f.values.docs); f.after++ {
		if err := f.check(f.after); err != nil {
			return null, err
		}
		if v, _ := f.values.at(f.after); !isNull(v.Type) { // checked before
			return f.between(i)
		}
	}
	return null, nil
}

func (f *filled) between(i int) (bson.RawValue, error) {
	var vars [5]bson.RawValue
	for k, at := range [...]int{i, f.before, f.before, f.after, f.after} {
		from := f.keys
		if k == 2 || k == 4 {
			from = f.values
		}
		var err error
		if vars[k], err = from.at(at); err != nil {
			return null, err
		}
	}
	return f.line.value(vars[:]...)
}

// check looks at the keys and values up to a document.
func (f *filled) check(i int) error {
	for ; f.checked <= i; f.checked++ {
		key, err := f.keys.at(f.checked)
		if err != nil {
			return err
		}
		_, isNumber := rawNumber(key)
		if !isNumber && key.Type != bson.TypeDateTime {
			return fail(codeTypeMismatch, "$linearFill needs numbers or dates to sort by")
		}
		if f.checked > 0 {
			last, _ := f.keys.at(f.checked - 1) // it was computed before
			switch {
			case (last.Type == bson.TypeDateTime) != (key.Type == bson.TypeDateTime):
				return fail(codeTypeMismatch, "$linearFill needs numbers to sort by, or dates, and not both")
			case document.Compare(last, key) == 0:
				return fail(6050106, "$linearFill can't have one value of the sort twice")
			}
		}
		v, err := f.values.at(f.checked)
		if err != nil {
			return err
		}
		if _, isNumber := rawNumber(v); !isNumber && !isNull(v.Type) {
			return fail(codeTypeMismatch, "$linearFill fills numbers only")
		}
	}
	return nil
}
