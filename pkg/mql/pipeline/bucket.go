package pipeline

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/expr"
)

// bucketSpec is the operand of $bucket.
type bucketSpec struct {
	by         any
	boundaries []*expr.Expr
	other      *expr.Expr // default
	output     bson.D
	raw        bson.D
}

// compileBucket makes $bucket of what it means on servers, too: a $group by a $switch, in the order of the boundaries.
func compileBucket(c *compiler, name string, spec any) (stage, any, error) {
	d, ok := asObject(spec)
	if !ok {
		return nil, nil, bad(40201, "%s needs an object", name)
	}
	s := &bucketSpec{output: countOutput()}
	for _, e := range d {
		if err := s.option(c, name, e); err != nil {
			return nil, nil, err
		}
	}
	if s.by == nil || s.boundaries == nil {
		return nil, nil, bad(40198, "%s needs groupBy and boundaries", name)
	}
	if err := s.checkDefault(name); err != nil {
		return nil, nil, err
	}
	by, err := c.expression(s.by)
	if err != nil {
		return nil, nil, err
	}
	id, err := s.id(c)
	if err != nil {
		return nil, nil, err
	}
	g := &group{id: id}
	output, err := g.output(c, name, s.output)
	if err != nil {
		return nil, nil, err
	}
	raw := append(bson.D{{Key: "groupBy", Value: by.Raw()}, {Key: "output", Value: output}}, s.raw...)
	return several{g, &sorting{by: mql.Sort{{Path: idField}}}}, raw, nil
}

func (s *bucketSpec) option(c *compiler, name string, e bson.E) error {
	switch e.Key {
	case "groupBy":
		if !isPathOrOperator(e.Value) {
			return bad(40202, "%s: groupBy has to be a path that begins with $, or an expression", name)
		}
		s.by = e.Value
	case "boundaries":
		return s.setBoundaries(c, name, e.Value)
	case "default":
		x, err := c.expression(e.Value)
		if err != nil {
			return err
		}
		if _, ok := x.Constant(); !ok {
			return bad(40195, "%s: default has to be constant", name)
		}
		s.other = x
		s.raw = append(s.raw, bson.E{Key: e.Key, Value: x.Raw()})
	case "output":
		d, ok := asObject(e.Value)
		if !ok {
			return bad(40196, "%s: output has to be an object", name)
		}
		s.output = d
	default:
		return bad(40197, "%s does not know %s", name, document.Readable(e.Key))
	}
	return nil
}

// isPathOrOperator says whether an operand is something that is computed for each document.
func isPathOrOperator(v any) bool {
	if path, ok := v.(string); ok {
		return strings.HasPrefix(path, "$")
	}
	d, _ := asObject(v)
	return len(d) > 0 && strings.HasPrefix(d[0].Key, "$")
}

func (s *bucketSpec) setBoundaries(c *compiler, name string, v any) error {
	list, ok := asList(v)
	if !ok {
		return bad(40200, "%s: boundaries have to be a list", name)
	}
	raw := bson.A{}
	s.boundaries = []*expr.Expr{}
	for _, item := range list {
		x, err := c.expression(item)
		if err != nil {
			return err
		}
		if _, ok := x.Constant(); !ok {
			return bad(40191, "%s: boundaries have to be constant", name)
		}
		s.boundaries, raw = append(s.boundaries, x), append(raw, x.Raw())
	}
	if len(s.boundaries) < 2 {
		return bad(40192, "%s needs two boundaries at least", name)
	}
	for i := range s.boundaries[1:] {
		a, b := constantOf(s.boundaries[i]), constantOf(s.boundaries[i+1])
		switch {
		case document.TypeOrder(a.Type) != document.TypeOrder(b.Type):
			return bad(40193, "%s: all boundaries have to be of one type", name)
		case document.Compare(a, b) >= 0:
			return bad(40194, "%s: the boundaries have to be in ascending order", name)
		}
	}
	s.raw = append(s.raw, bson.E{Key: "boundaries", Value: raw})
	return nil
}

func constantOf(x *expr.Expr) bson.RawValue {
	v, _ := x.Constant()
	if v.Type == 0 {
		v.Type = bson.TypeUndefined
	}
	return v
}

func (s *bucketSpec) checkDefault(name string) error {
	if s.other == nil {
		return nil
	}
	other, lowest, highest := constantOf(s.other), constantOf(s.boundaries[0]), constantOf(s.boundaries[len(s.boundaries)-1])
	if document.Compare(other, lowest) >= 0 && document.Compare(other, highest) < 0 {
		return bad(40199, "%s: default has to be below the lowest boundary, or not below the highest", name)
	}
	return nil
}

// id is the boundary below a value.
func (s *bucketSpec) id(c *compiler) (*expr.Expr, error) {
	literal := func(x *expr.Expr) bson.D { return bson.D{{Key: "$literal", Value: constantOf(x)}} }
	branches := bson.A{}
	for i := range s.boundaries[1:] {
		branches = append(branches, bson.D{
			{Key: "case", Value: bson.D{{Key: "$and", Value: bson.A{
				bson.D{{Key: "$gte", Value: bson.A{s.by, literal(s.boundaries[i])}}},
				bson.D{{Key: "$lt", Value: bson.A{s.by, literal(s.boundaries[i+1])}}},
			}}}},
			{Key: "then", Value: literal(s.boundaries[i])},
		})
	}
	choice := bson.D{{Key: "branches", Value: branches}}
	if s.other != nil {
		choice = append(choice, bson.E{Key: "default", Value: literal(s.other)})
	}
	return c.expression(bson.D{{Key: "$switch", Value: choice}})
}

// bucketAuto is $bucketAuto: so many groups of about the same number of documents.
type bucketAuto struct {
	*group
	buckets int
	given   bool     // buckets
	rounder *rounder // nil: boundaries are values
}

func compileBucketAuto(c *compiler, name string, spec any) (stage, any, error) {
	d, ok := asObject(spec)
	if !ok {
		return nil, nil, bad(40240, "%s needs an object", name)
	}
	b := &bucketAuto{group: &group{}}
	var raw bson.D
	for _, e := range d {
		v, err := b.option(c, name, e)
		if err != nil {
			return nil, nil, err
		}
		raw = append(raw, bson.E{Key: e.Key, Value: v})
	}
	switch {
	case b.id == nil || !b.given:
		return nil, nil, bad(40246, "%s needs groupBy and buckets", name)
	case b.buckets <= 0:
		return nil, nil, bad(40243, "%s: buckets has to be above 0", name)
	}
	if len(b.names) == 0 {
		_, err := b.output(c, name, countOutput())
		return b, raw, err
	}
	return b, raw, nil
}

func (b *bucketAuto) option(c *compiler, name string, e bson.E) (raw any, err error) {
	switch e.Key {
	case "groupBy":
		if !isPathOrOperator(e.Value) {
			return nil, bad(40239, "%s: groupBy has to be a path that begins with $, or an expression", name)
		}
		if b.id, err = c.expression(e.Value); err != nil {
			return nil, err
		}
		return b.id.Raw(), nil
	case "buckets":
		if _, isNumber := numberOf(e.Value); !isNumber {
			return nil, bad(40241, "%s: buckets has to be a number", name)
		}
		n, ok := whole(e.Value)
		if !ok || n != int64(int32(n)) { //nolint:gosec // the check
			return nil, bad(40242, "%s: buckets has to be a whole number of 32 bits", name)
		}
		b.buckets, b.given = int(n), true
		return n, nil
	case "output":
		d, ok := asObject(e.Value)
		if !ok {
			return nil, bad(40244, "%s: output has to be an object", name)
		}
		return b.output(c, name, d)
	case "granularity":
		series, ok := e.Value.(string)
		if !ok {
			return nil, bad(40261, "%s: granularity has to be the name of a series of numbers", name)
		}
		b.rounder, err = newRounder(name, series)
		return series, err
	default:
		return nil, bad(40245, "%s does not know %s", name, document.Readable(e.Key))
	}
}

// output takes the fields of buckets. raw is what a server is sent for them.
func (g *group) output(c *compiler, name string, fields bson.D) (raw bson.D, err error) {
	raw = bson.D{}
	for _, e := range fields {
		if e.Key == idField { // a server makes two fields of that name
			return nil, bad(15948, "%s: _id is what is grouped by", name)
		}
		operator, operand, err := g.accumulate(c, name, e)
		if err != nil {
			return nil, err
		}
		raw = append(raw, bson.E{Key: e.Key, Value: bson.D{{Key: operator, Value: operand}}})
	}
	return raw, nil
}

// countOutput is what buckets have in them if nothing is said.
func countOutput() bson.D {
	return bson.D{{Key: "count", Value: bson.D{{Key: "$sum", Value: int32(1)}}}}
}

func (b *bucketAuto) open(r *run, next sink) sink { return &bucketing{bucketAuto: b, r: r, next: next} }

// bucketing holds all documents, with what they are grouped by.
type bucketing struct {
	*bucketAuto
	r    *run
	next sink
	docs []bucketed
	held int
	out  []byte
}

type bucketed struct {
	by  bson.RawValue
	doc bson.Raw
}

const bucketedSize = 64 // bytes of one beside the document and the value

func (b *bucketing) push(doc bson.Raw) error {
	env := b.r.env
	env.Reset(doc)
	v, err := b.id.Eval(env)
	if err != nil {
		return err
	}
	if v.Type == 0 {
		v = null
	}
	if b.rounder != nil {
		if err := b.rounder.check(v); err != nil {
			return err
		}
	}
	own := append(append(make([]byte, 0, len(doc)+len(v.Value)), doc...), v.Value...)
	b.docs = append(b.docs, bucketed{by: bson.RawValue{Type: v.Type, Value: own[len(doc):]}, doc: own[:len(doc):len(doc)]})
	n := len(own) + bucketedSize
	b.held += n
	return b.r.hold(n)
}

func (b *bucketing) end() error {
	slices.SortStableFunc(b.docs, func(x, y bucketed) int { return document.Compare(x.by, y.by) })
	err := unlessEnough(b.divide(b.docs))
	b.docs = nil
	b.r.release(b.held)
	if err != nil {
		return err
	}
	return b.next.end()
}

// divide makes the buckets of ordered documents.
func (b *bucketing) divide(docs []bucketed) error {
	size := max((2*len(docs)+b.buckets)/(2*b.buckets), 1) // rounded
	var lower bson.RawValue                               // the boundary above the bucket before
	for made := 0; len(docs) > 0; made++ {
		n := min(size, len(docs))
		if made == b.buckets-1 {
			n = len(docs)
		}
		if lower.Type == 0 {
			lower = docs[0].by
			if b.rounder != nil {
				lower = b.rounder.down(lower)
			}
		}
		var upper bson.RawValue
		n, upper = b.bound(docs, n)
		if err := b.give(docs[:n], lower, upper); err != nil {
			return err
		}
		docs, lower = docs[n:], upper
	}
	return nil
}

// bound gives the boundary above a bucket of at least n documents, and how many are below it.
func (b *bucketing) bound(docs []bucketed, n int) (int, bson.RawValue) {
	last := docs[n-1].by
	if b.rounder == nil {
		for n < len(docs) && document.Compare(docs[n].by, last) == 0 {
			n++
		}
		if n < len(docs) {
			return n, docs[n].by
		}
		return n, last
	}
	upper := b.rounder.up(last)
	for n < len(docs) && document.Compare(docs[n].by, upper) < 0 {
		n++
	}
	if isZero(upper) && n < len(docs) { // nothing is above 0 in a series: the bucket ends where the next one begins
		upper = b.rounder.down(docs[n].by)
	}
	return n, upper
}

// give makes the document of a bucket.
func (b *bucketing) give(docs []bucketed, lower, upper bson.RawValue) error {
	env := b.r.env
	env.Reset(emptyDoc())
	states, err := b.start(env)
	if err != nil {
		return err
	}
	held := 0
	for _, d := range docs {
		env.Reset(d.doc)
		more, err := b.add(states, env)
		if err != nil {
			return err
		}
		held += more
		if err := b.r.hold(more); err != nil {
			return err
		}
	}
	env.Forget()
	start, out := openDoc(reuse(b.out))
	out = appendName(out, bson.TypeEmbeddedDocument, idField)
	inner, out := openDoc(out)
	out = document.AppendElement(document.AppendElement(out, "min", lower), "max", upper)
	out = document.Close(out, inner)
	if out, err = b.appendValues(out, states, env); err != nil {
		return err
	}
	b.out = document.Close(out, start)
	b.r.release(held)
	return b.r.give(b.next, b.out)
}
