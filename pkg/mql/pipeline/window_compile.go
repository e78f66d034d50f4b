package pipeline

import (
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/expr"
)

// windows is $setWindowFields: fields that are computed of the documents around each one.
type windows struct {
	partition *expr.Expr // nil: all documents together
	by        mql.Sort
	functions []windowFunction
	descends  bool     // a range is over descending values, which fails when it runs, as on servers
	ordered   bool     // the stage before has put the documents into this order
	set       *project // puts the values of functions, which are variables of it, into the document
}

// windowSpec is the operand of $setWindowFields.
type windowSpec struct {
	partition any
	by        bson.D
	output    bson.D
	hasOutput bool
}

func compileWindows(c *compiler, name string, spec any) (stage, any, error) {
	d, ok := asObject(spec)
	if !ok {
		return nil, nil, bad(codeFailedToParse, "%s needs an object", name)
	}
	s := &windowSpec{}
	for _, e := range d {
		if err := s.option(name, e); err != nil {
			return nil, nil, err
		}
	}
	if !s.hasOutput {
		return nil, nil, bad(codeMissingField, "%s needs output", name)
	}
	w := &windows{}
	raw := bson.D{}
	if err := w.compilePartition(c, name, s, &raw); err != nil {
		return nil, nil, err
	}
	if len(s.by) > 0 {
		by, sorted, err := parseSort(name+": sortBy", s.by)
		if err != nil {
			return nil, nil, err
		}
		w.by, raw = by, append(raw, bson.E{Key: "sortBy", Value: sorted})
	}
	output, err := w.compileOutput(c, name, s.output)
	return w, append(raw, bson.E{Key: "output", Value: output}), err
}

func (s *windowSpec) option(name string, e bson.E) error {
	var ok bool
	switch e.Key {
	case "partitionBy":
		s.partition = e.Value
	case "sortBy":
		if s.by, ok = asObject(e.Value); !ok {
			return bad(codeTypeMismatch, "%s: sortBy has to be an object", name)
		}
	case "output":
		if s.output, ok = asObject(e.Value); !ok {
			return bad(codeTypeMismatch, "%s: output has to be an object", name)
		}
		s.hasOutput = true
	default:
		return bad(codeUnknownField, "%s does not know %s", name, document.Readable(e.Key))
	}
	return nil
}

func (w *windows) compilePartition(c *compiler, name string, s *windowSpec, raw *bson.D) error {
	if s.partition == nil {
		return nil
	}
	x, err := c.expression(s.partition)
	if err != nil {
		return err
	}
	v, ok := x.Constant()
	if ok && v.Type == bson.TypeArray {
		return bad(codeTypeMismatch, "%s: partitionBy can't be a list", name)
	}
	if !ok {
		w.partition = x
	}
	*raw = append(*raw, bson.E{Key: "partitionBy", Value: x.Raw()})
	return nil
}

// compileOutput makes a function of each field, and a variable of each function for the $addFields that follows.
func (w *windows) compileOutput(c *compiler, name string, output bson.D) (bson.D, error) {
	raw, set := bson.D{}, bson.D{}
	var vars []string
	for _, e := range output {
		if err := checkPath(e.Key); err != nil {
			return nil, err
		}
		f := &windowField{compiler: c, name: name, field: e.Key, by: w.by}
		fn, spec, err := f.compile(e.Value)
		if err != nil {
			return nil, err
		}
		vars = append(vars, fmt.Sprintf("window%d", len(vars)))
		set = append(set, bson.E{Key: e.Key, Value: "$$" + vars[len(vars)-1]})
		raw = append(raw, bson.E{Key: e.Key, Value: spec})
		w.functions = append(w.functions, fn)
		w.descends = w.descends || f.descends
	}
	if err := checkConflicts(name, output); err != nil {
		return nil, err
	}
	fields, _, err := compileAddFields(&compiler{options: c.options, vars: vars}, name, set)
	if err != nil {
		return nil, err
	}
	w.set, _ = fields.(*project)
	return raw, nil
}

func checkConflicts(name string, output bson.D) error {
	for i, a := range output {
		for _, b := range output[:i] {
			if a.Key == b.Key || strings.HasPrefix(a.Key, b.Key+".") || strings.HasPrefix(b.Key, a.Key+".") {
				return bad(6307900, "%s: %s and %s are fields in one another", name, document.Readable(a.Key), document.Readable(b.Key))
			}
		}
	}
	return nil
}

// windowField compiles a field of output.
type windowField struct {
	*compiler
	name  string // of the stage
	field string
	by    mql.Sort

	function  string
	operand   any
	window    any
	hasWindow bool
	others    bool // there is more than a function and a window
	// windowFirst: of two mistakes, the one that comes first is told.
	windowFirst bool
	descends    bool // the window is a range over descending values
}

// compile finds the function and its window. spec is what a server is sent.
func (f *windowField) compile(v any) (fn windowFunction, spec bson.D, err error) {
	d, ok := asObject(v)
	if !ok {
		return nil, nil, f.refuse("has to be an object with a function")
	}
	for _, e := range d {
		switch {
		case strings.HasPrefix(e.Key, "$") && f.function != "":
			return nil, nil, f.refuse("has two functions, %s and %s", document.Readable(f.function), document.Readable(e.Key))
		case strings.HasPrefix(e.Key, "$"):
			f.function, f.operand = e.Key, e.Value
		case e.Key == "window":
			f.window, f.hasWindow, f.windowFirst = e.Value, true, f.function == ""
		default:
			f.others = true
		}
	}
	if f.function == "" {
		return nil, nil, f.refuse("needs a function, whose name begins with $")
	}
	fn, operand, err := f.compileFunction()
	if err != nil {
		return nil, nil, err
	}
	if f.others {
		return nil, nil, f.refuse("takes a function and window only")
	}
	spec = bson.D{{Key: f.function, Value: operand}}
	if f.hasWindow {
		spec = append(spec, bson.E{Key: "window", Value: f.window})
	}
	return fn, spec, nil
}

// refuse is what is wrong with a field in any way that has no code of its own.
func (f *windowField) refuse(format string, args ...any) error {
	return bad(codeFailedToParse, "%s: %s "+format, append([]any{f.name, document.Readable(f.field)}, args...)...)
}

// windowBounds is the bounds of a window.
type windowBounds struct {
	ranged       bool // by values of the sort, not by places
	unit         string
	lower, upper windowBound
	add          *expr.Expr // of a range: what a bound makes of a value
}

type windowBound struct {
	kind   boundKind
	places int64         // documents
	value  bson.RawValue // of a range
}

type boundKind uint8

const (
	unbounded boundKind = iota
	current
	given
)

// bounds reads the window; without one it is everything.
func (f *windowField) bounds() (windowBounds, error) {
	var b windowBounds
	if !f.hasWindow {
		return b, nil
	}
	d, ok := asObject(f.window)
	if !ok {
		return b, f.refuse("needs an object as window")
	}
	var documents, ranged, unit any
	for _, e := range d {
		switch e.Key {
		case "documents":
			documents = e.Value
		case "range":
			ranged = e.Value
		case "unit":
			unit = e.Value
		default:
			return b, f.refuse("takes a window of documents, or a range with a unit")
		}
	}
	switch {
	case documents != nil && ranged != nil, ranged == nil && unit != nil:
		return b, f.refuse("takes a window of documents, or a range with a unit")
	case documents == nil && ranged == nil:
		return b, nil
	}
	b.ranged = ranged != nil
	if unit != nil {
		b.unit, _ = unit.(string)
		if _, ok := expr.UnitMillis(b.unit); !ok {
			return b, f.refuse("needs a unit of time as unit")
		}
	}
	list, ok := asList(documents)
	if b.ranged {
		list, ok = asList(ranged)
	}
	if !ok || len(list) != 2 {
		return b, f.refuse("needs two bounds of the window")
	}
	var err error
	if b.lower, err = f.bound(list[0], &b); err != nil {
		return b, err
	}
	if b.upper, err = f.bound(list[1], &b); err != nil {
		return b, err
	}
	if b.ranged {
		b.add = rangeSum(b.unit)
	}
	err = f.checkBounds(&b)
	return b, err
}

// rangeSum adds a bound b to a value a.
func rangeSum(unit string) *expr.Expr {
	if unit == "" {
		return newFormula(bson.D{{Key: "$add", Value: bson.A{"$$a", "$$b"}}}, "a", "b")
	}
	return newFormula(bson.D{{Key: "$dateAdd", Value: bson.D{
		{Key: "startDate", Value: "$$a"}, {Key: "unit", Value: unit}, {Key: "amount", Value: "$$b"},
	}}}, "a", "b")
}

func (f *windowField) bound(v any, b *windowBounds) (windowBound, error) {
	switch v {
	case "unbounded":
		return windowBound{kind: unbounded}, nil
	case "current":
		return windowBound{kind: current}, nil
	}
	x, err := f.expression(v)
	if err != nil {
		return windowBound{}, err
	}
	constant, _ := x.Constant()
	n, ok := whole(document.Decode(constant))
	_, isNumber := rawNumber(constant)
	switch {
	case !isNumber:
		return windowBound{}, f.refuse("needs bounds that are numbers, \"current\" or \"unbounded\"")
	case !ok && (!b.ranged || b.unit != ""):
		return windowBound{}, f.refuse("needs bounds that are whole numbers")
	}
	return windowBound{kind: given, places: n, value: constant}, nil
}

// number gives a bound to compare it with the other one.
func (b windowBound) number() bson.RawValue {
	if b.kind == current {
		return integer(0)
	}
	return b.value
}

func (f *windowField) checkBounds(b *windowBounds) error {
	bounded := b.lower.kind != unbounded && b.upper.kind != unbounded
	switch {
	case bounded && document.Compare(b.lower.number(), b.upper.number()) > 0:
		return bad(5339900, "%s: %s has a lower bound above the upper one", f.name, document.Readable(f.field))
	case b.ranged && len(f.by) != 1:
		return bad(5339902, "%s: %s needs sortBy of one field, because its window is a range", f.name, document.Readable(f.field))
	case !b.ranged && len(f.by) == 0 && (b.lower.kind != unbounded || b.upper.kind != unbounded):
		return bad(5339901, "%s: %s needs sortBy, because its window has bounds", f.name, document.Readable(f.field))
	}
	return nil
}
