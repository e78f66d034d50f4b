package pipeline

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/expr"
)

// group is $group: a document for each value of an expression, with what accumulators make of the documents that have it.
type group struct {
	id     *expr.Expr
	names  []string
	values []*expr.Accumulator
}

func compileGroup(c *compiler, name string, spec any) (stage, any, error) {
	d, ok := asObject(spec)
	if !ok {
		return nil, nil, bad(15947, "%s needs an object", name)
	}
	g := &group{}
	var raw bson.D
	for _, e := range d {
		var v bson.RawValue
		var err error
		switch {
		case e.Key == idField && g.id != nil:
			return nil, nil, bad(15948, "%s: the _id comes twice", name)
		case slices.Contains(g.names, e.Key):
			return nil, nil, bad(4822819, "%s: the field %s comes twice", name, document.Readable(e.Key))
		}
		if e.Key == idField {
			if v, err = g.setID(c, e.Value); err != nil {
				return nil, nil, err
			}
			raw = append(raw, bson.E{Key: idField, Value: v})
			continue
		}
		var operator string
		if operator, v, err = g.accumulate(c, name, e); err != nil {
			return nil, nil, err
		}
		raw = append(raw, bson.E{Key: e.Key, Value: bson.D{{Key: operator, Value: v}}})
	}
	if g.id == nil {
		return nil, nil, bad(15955, "%s needs an _id", name)
	}
	return g, raw, nil
}

// setID takes what documents are grouped by. In an object of one field what is missing is null, as on servers.
func (g *group) setID(c *compiler, v any) (raw bson.RawValue, err error) {
	if g.id, err = c.expression(v); err != nil {
		return raw, err
	}
	raw = g.id.Raw()
	if d, ok := asObject(v); ok && len(d) == 1 && !strings.HasPrefix(d[0].Key, "$") {
		g.id, err = c.expression(bson.D{{Key: d[0].Key, Value: formulaOf("$ifNull", d[0].Value, nil)}})
	}
	return raw, err
}

// accumulate takes a field that is computed of a group.
func (g *group) accumulate(c *compiler, name string, e bson.E) (operator string, raw bson.RawValue, err error) {
	d, isObject := asObject(e.Value)
	switch {
	case !isObject || len(d) == 0:
		return "", raw, bad(40234, "%s: %s needs an accumulator, an object", name, document.Readable(e.Key))
	case strings.Contains(e.Key, "."):
		return "", raw, bad(40235, "%s: the name %q of a field contains a dot", name, document.Readable(e.Key))
	case strings.HasPrefix(e.Key, "$"):
		return "", raw, bad(40236, "%s: the name %q of a field begins with $", name, document.Readable(e.Key))
	case len(d) > 1:
		return "", raw, bad(40238, "%s: %s has to be one accumulator", name, document.Readable(e.Key))
	}
	a, err := expr.CompileAccumulator(d[0].Key, d[0].Value, sortKeys, c.vars...)
	if err != nil {
		return "", raw, err
	}
	c.note(a)
	g.names, g.values = append(g.names, e.Key), append(g.values, a)
	return d[0].Key, a.Raw(), nil
}

// sortKeys is the order of $top and the like.
func sortKeys(sortBy bson.Raw) (expr.SortKeys, error) {
	by, _, err := parseSort("sortBy", sortBy)
	return by, err
}

func (g *group) open(r *run, next sink) sink {
	return &grouping{group: g, r: r, next: next, at: map[string]*oneGroup{}}
}

// grouping is the groups so far, in the order in which they began.
type grouping struct {
	*group
	r     *run
	next  sink
	at    map[string]*oneGroup
	order []*oneGroup
	key   []byte
	out   []byte
	held  int
}

type oneGroup struct {
	id     bson.RawValue
	states []expr.State
}

const (
	groupSize = 128 // bytes of a group beside its key
	stateSize = 200 // of what an accumulator has seen
)

func (g *grouping) push(doc bson.Raw) error {
	env := g.r.env
	env.Reset(doc)
	id, err := g.id.Eval(env)
	if err != nil {
		return err
	}
	if id.Type == 0 {
		id = null
	}
	g.key = document.AppendKey(g.key[:0], id, false)
	one, ok := g.at[string(g.key)]
	if !ok {
		if one, err = g.begin(id); err != nil {
			return err
		}
		env.Reset(doc)
	}
	more, err := g.add(one.states, env)
	if err != nil {
		return err
	}
	g.held += more
	return g.r.hold(more)
}

func (g *grouping) begin(id bson.RawValue) (*oneGroup, error) {
	one := &oneGroup{id: bson.RawValue{Type: id.Type, Value: append([]byte{}, id.Value...)}}
	g.at[string(g.key)] = one
	g.order = append(g.order, one)
	g.r.env.Root = one.id
	var err error
	if one.states, err = g.start(g.r.env); err != nil {
		return nil, err
	}
	n := groupSize + len(g.key) + len(id.Value) + stateSize*len(g.values)
	g.held += n
	return one, g.r.hold(n)
}

func (g *grouping) end() error {
	g.at = nil
	if err := giveAll(g.order, g.finish); err != nil {
		return err
	}
	g.order = nil
	g.r.release(g.held)
	return g.next.end()
}

// finish makes the document of a group.
func (g *grouping) finish(one *oneGroup) error {
	env := g.r.env
	env.Forget()
	start, out := openDoc(reuse(g.out))
	out, err := g.appendValues(document.AppendElement(out, idField, one.id), one.states, env)
	if err != nil {
		return err
	}
	g.out = document.Close(out, start)
	return g.r.give(g.next, g.out)
}

// start begins what the accumulators know of one group, whose key is env's Root.
func (g *group) start(env *expr.Env) ([]expr.State, error) {
	states := make([]expr.State, len(g.values))
	for i, a := range g.values {
		if err := a.Start(&states[i], env); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// add has the accumulators of one group take the document that is env's Root, and says by how many bytes they have grown.
func (g *group) add(states []expr.State, env *expr.Env) (more int, err error) {
	for i, a := range g.values {
		before := states[i].Memory()
		if err := a.Add(&states[i], env); err != nil {
			return more, coded(err)
		}
		more += states[i].Memory() - before
	}
	return more, nil
}

// appendValues appends what the accumulators of a group have come to.
func (g *group) appendValues(out []byte, states []expr.State, env *expr.Env) ([]byte, error) {
	for i, a := range g.values {
		v, err := a.Value(&states[i], env)
		if err != nil {
			return out, err
		}
		if v.Type != 0 {
			out = document.AppendElement(out, g.names[i], v)
		}
	}
	return out, nil
}

// several is stages that are one.
type several []stage

func (s several) open(r *run, next sink) sink { return r.open(s, next) }

// compileSortByCount makes $sortByCount: a group for each value, with how many documents have it, the largest first.
func compileSortByCount(c *compiler, name string, spec any) (stage, any, error) {
	switch spec := spec.(type) {
	case string:
		if !strings.HasPrefix(spec, "$") {
			return nil, nil, bad(40148, "%s needs a path that begins with $, or an expression", name)
		}
	case bson.D:
		if len(spec) == 0 || !strings.HasPrefix(spec[0].Key, "$") {
			return nil, nil, bad(40147, "%s needs a path that begins with $, or an expression", name)
		}
	default:
		return nil, nil, bad(40149, "%s needs a path that begins with $, or an expression", name)
	}
	x, err := c.expression(spec)
	if err != nil {
		return nil, nil, err
	}
	one, err := expr.CompileAccumulator("$sum", int32(1), sortKeys)
	if err != nil {
		return nil, nil, err
	}
	by, _, err := parseSort(name, bson.D{{Key: "count", Value: int32(-1)}})
	if err != nil {
		return nil, nil, err
	}
	counts := &group{id: x, names: []string{"count"}, values: []*expr.Accumulator{one}}
	return several{counts, &sorting{by: by}}, x.Raw(), nil
}
