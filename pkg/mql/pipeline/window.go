package pipeline

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/expr"
)

// windowFunction is a function of the documents of a partition.
type windowFunction interface {
	open(p *partition) windowValues
}

// windowValues gives what a function comes to for each document of a partition.
type windowValues interface {
	// at is asked for each document, the first one first. The value is valid until the next call.
	at(i int) (bson.RawValue, error)
}

// behind notes whether the stage before has put the documents into the order that is asked for.
func (w *windows) behind(before stage) {
	last, ok := before.(*windows)
	if !ok || last.partition != nil || w.partition != nil || len(w.by) > len(last.by) {
		return
	}
	for i, f := range w.by {
		name, _, _ := strings.Cut(f.Path, ".")
		if last.by[i] != f || last.set.root.find([]byte(name)) >= 0 {
			return
		}
	}
	w.ordered = true
}

func (w *windows) open(r *run, next sink) sink {
	s := &windowing{windows: w, r: r, next: next}
	s.fields = &run{ctx: r.ctx, src: r.src, shared: r.shared, env: r.newEnv(make([]bson.RawValue, len(w.functions)))}
	s.to = w.set.open(s.fields, next)
	return s
}

// windowing holds all documents, then goes through them partition by partition.
type windowing struct {
	*windows
	r      *run
	next   sink
	fields *run // whose variables are the values of functions
	to     sink
	docs   []windowed
	held   int
	values [][]byte
}

// windowed is a document with what it is ordered by.
type windowed struct {
	doc bson.Raw
	by  bson.RawValue // the partition
	key []bson.RawValue

	list bool // the partition is a list, which is refused when its turn comes; by is what it is ordered by
}

// leastOf is what a list is ordered by.
func leastOf(list bson.RawValue) bson.RawValue {
	least := bson.RawValue{Type: bson.TypeUndefined}
	for it := document.NewIter(list.Value); it.Next(); {
		if v := it.Value(); least.Type == bson.TypeUndefined || document.Compare(v, least) < 0 {
			least = v
		}
	}
	return least
}

const windowedSize = 96 // bytes of one beside the document and what it is ordered by

func (w *windowing) push(doc bson.Raw) error {
	if w.descends && w.ordered { // a server does not wait for what may fail in the documents behind
		return errDescends()
	}
	one := windowed{by: null}
	if w.partition != nil {
		env := w.r.env
		env.Reset(doc)
		v, err := w.partition.Eval(env)
		switch {
		case err != nil:
			return err
		case v.Type == bson.TypeArray:
			one.by, one.list = leastOf(v), true
		case !isNull(v.Type):
			one.by = v
		}
	}
	own := append(append(make([]byte, 0, len(doc)+len(one.by.Value)), doc...), one.by.Value...)
	one.doc, one.by.Value = own[:len(doc):len(doc)], own[len(doc):]
	var err error
	if one.key, err = w.by.AppendValues(make([]bson.RawValue, 0, len(w.by)), one.doc); err != nil {
		return coded(err)
	}
	w.docs = append(w.docs, one)
	n := len(own) + windowedSize + 40*len(one.key)
	w.held += n
	return w.r.hold(n)
}

func (w *windowing) end() error {
	slices.SortStableFunc(w.docs, func(a, b windowed) int {
		if c := document.Compare(a.by, b.by); c != 0 {
			return c
		}
		return w.by.CompareKeys(a.key, b.key)
	})
	if err := unlessEnough(w.divide(w.docs)); err != nil {
		return err
	}
	w.docs = nil
	w.r.release(w.held)
	return w.next.end()
}

// divide finds the partitions of ordered documents.
func (w *windowing) divide(docs []windowed) error {
	for len(docs) > 0 {
		n := 1
		for n < len(docs) && !docs[n].list && document.Compare(docs[0].by, docs[n].by) == 0 {
			n++
		}
		if docs[0].list {
			return fail(codeTypeMismatch, "$setWindowFields: partitionBy can't be a list")
		}
		if err := w.partitionOf(docs[:n]); err != nil {
			return err
		}
		docs = docs[n:]
	}
	return nil
}

// partitionOf computes the fields of one partition.
func (w *windowing) partitionOf(docs []windowed) error {
	const columnSize = 48 // bytes that a function may keep of a document beside its values
	p := &partition{r: w.r, env: w.r.env, docs: docs}
	if err := p.hold(columnSize * len(docs) * len(w.functions)); err != nil {
		return err
	}
	columns := make([]windowValues, len(w.functions))
	for k, fn := range w.functions {
		columns[k] = fn.open(p)
	}
	w.values = slices.Grow(w.values[:0], len(columns))[:len(columns)]
	for i := range docs {
		for k, column := range columns {
			v, err := column.at(i)
			if err != nil {
				return err
			}
			w.values[k] = append(w.values[k][:0], v.Value...)
			w.fields.env.Vars[k] = bson.RawValue{Type: v.Type, Value: w.values[k]}
		}
		if err := w.r.give(w.to, docs[i].doc); err != nil {
			return err
		}
	}
	w.r.release(p.held)
	return nil
}

// partition is documents that windows are of.
type partition struct {
	r    *run
	env  *expr.Env
	docs []windowed
	held int
}

// hold counts memory that is kept until the end of the partition.
func (p *partition) hold(n int) error {
	p.held += n
	return p.r.hold(n)
}

// eval computes an expression for a document. The value is valid until the next call.
func (p *partition) eval(x *expr.Expr, i int) (bson.RawValue, error) {
	p.env.Reset(p.docs[i].doc)
	return x.Eval(p.env)
}

// column is the values of an expression for the documents of a partition, each computed when it is first asked for.
type column struct {
	*partition
	of     *expr.Expr
	values []bson.RawValue
	known  []bool
}

func newColumn(p *partition, of *expr.Expr) *column {
	return &column{partition: p, of: of, values: make([]bson.RawValue, len(p.docs)), known: make([]bool, len(p.docs))}
}

func (c *column) at(i int) (bson.RawValue, error) {
	if c.known[i] {
		return c.values[i], nil
	}
	v, err := c.eval(c.of, i)
	if err != nil {
		return v, err
	}
	if err := c.hold(len(v.Value) + 40); err != nil {
		return v, err
	}
	c.known[i], c.values[i] = true, bson.RawValue{Type: v.Type, Value: append([]byte{}, v.Value...)}
	return c.values[i], nil
}

// formula is an expression of some variables.
type formula struct {
	of  *expr.Expr
	env *expr.Env
}

// newFormula is for text of this package, which compiles.
func newFormula(v any, vars ...string) *expr.Expr {
	x, err := expr.Compile(v, vars...)
	if err != nil {
		panic(err)
	}
	return x
}

func (p *partition) formula(of *expr.Expr) *formula { return &formula{of, p.r.newEnv(nil)} }

// of gives the value for values of the variables, valid until the next call.
func (f *formula) value(vars ...bson.RawValue) (bson.RawValue, error) {
	f.env.Forget()
	f.env.Vars = vars
	return f.of.Eval(f.env)
}

// frame is the documents in a window, from lo to hi; hi < lo if there are none.
type frame interface {
	around(i int) (lo, hi int, err error)
}

func (b *windowBounds) frame(p *partition, by *expr.Expr) frame {
	if !b.ranged {
		return &placeFrame{b, len(p.docs)}
	}
	if by == nil {
		return noFrame{}
	}
	return &rangeFrame{windowBounds: b, keys: newColumn(p, by), add: p.formula(b.add), n: len(p.docs), hi: -1}
}

// noFrame is a range over descending values.
type noFrame struct{}

func (noFrame) around(int) (lo, hi int, err error) {
	return 0, 0, errDescends()
}

func errDescends() error {
	return fail(5429404, "$setWindowFields: a range needs a sortBy that ascends")
}

// placeFrame is bounds by the places of documents.
type placeFrame struct {
	*windowBounds
	n int
}

func (f *placeFrame) around(i int) (lo, hi int, err error) {
	lo, hi = 0, f.n-1
	if f.lower.kind != unbounded {
		lo = int(max(0, min(int64(i)+clampPlaces(f.lower), int64(f.n))))
	}
	if f.upper.kind != unbounded {
		hi = int(min(max(int64(i)+clampPlaces(f.upper), -1), int64(f.n-1)))
	}
	return lo, hi, nil
}

// clampPlaces keeps sums of places from overflowing; current is 0.
func clampPlaces(b windowBound) int64 {
	const far = 1 << 40
	return max(min(b.places, far), -far)
}

// rangeFrame is bounds by how far the values of the sort are from that of the document. current is the document itself,
// not those of the same value.
type rangeFrame struct {
	*windowBounds
	keys   *column
	add    *formula
	n      int
	lo, hi int
	limit  []byte
}

func (f *rangeFrame) around(i int) (lo, hi int, err error) {
	own, err := f.key(i)
	if err != nil {
		return 0, 0, err
	}
	lo, hi = 0, f.n-1
	switch f.lower.kind {
	case current:
		lo = i
	case given:
		if lo, err = f.lowest(own); err != nil {
			return 0, 0, err
		}
	default:
	}
	switch f.upper.kind {
	case current:
		hi = i
	case given:
		hi, err = f.highest(own)
	default:
	}
	return lo, hi, err
}

func (f *rangeFrame) lowest(own bson.RawValue) (int, error) {
	limit, err := f.far(own, f.lower)
	if err != nil {
		return 0, err
	}
	for ; f.lo < f.n; f.lo++ {
		v, err := f.key(f.lo)
		if err != nil || document.Compare(v, limit) >= 0 {
			return f.lo, err
		}
	}
	return f.lo, nil
}

func (f *rangeFrame) highest(own bson.RawValue) (int, error) {
	limit, err := f.far(own, f.upper)
	if err != nil {
		return 0, err
	}
	for ; f.hi+1 < f.n; f.hi++ {
		v, err := f.key(f.hi + 1)
		if err != nil || document.Compare(v, limit) > 0 {
			return f.hi, err
		}
	}
	return f.hi, nil
}

// far is the value that a bound is at.
func (f *rangeFrame) far(own bson.RawValue, b windowBound) (bson.RawValue, error) {
	v, err := f.add.value(own, b.value)
	f.limit = append(f.limit[:0], v.Value...)
	return bson.RawValue{Type: v.Type, Value: f.limit}, err
}

// key is the value of the sort, a number, or a date with a unit.
func (f *rangeFrame) key(i int) (bson.RawValue, error) {
	v, err := f.keys.at(i)
	if err != nil {
		return v, err
	}
	_, isNumber := rawNumber(v)
	switch {
	case f.unit != "" && v.Type != bson.TypeDateTime:
		return v, fail(5429513, "$setWindowFields: a range with a unit needs dates to sort by")
	case f.unit == "" && v.Type == bson.TypeDateTime:
		return v, fail(5429413, "$setWindowFields: a range of dates needs a unit")
	case f.unit == "" && !isNumber:
		return v, fail(5429414, "$setWindowFields: a range needs numbers to sort by, or dates with a unit")
	}
	return v, nil
}
