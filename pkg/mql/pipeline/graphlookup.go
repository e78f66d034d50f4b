package pipeline

import (
	"bytes"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/expr"
)

// graphLookup is $graphLookup: what can be reached in another collection, from values and then from document to document,
// as a list in a field.
type graphLookup struct {
	from     string
	as       []string
	start    *expr.Expr
	along    string   // connectFromField: where the values of a document lead
	to       string   // connectToField: what they lead to
	depth    []string // where the depth goes; nil: nowhere
	most     int64    // depth; below 0: any
	restrict *match   // nil: any document
}

func compileGraphLookup(c *compiler, name string, spec any) (stage, any, error) {
	d, ok := asObject(spec)
	if !ok {
		return nil, nil, bad(codeFailedToParse, "%s needs an object", name)
	}
	g := &graphLookup{most: -1}
	if err := g.source(c, name, d); err != nil {
		return nil, nil, err
	}
	var raw bson.D
	for _, e := range d {
		v, err := g.option(c, name, e)
		if err != nil {
			return nil, nil, err
		}
		raw = append(raw, bson.E{Key: e.Key, Value: v})
	}
	if g.as == nil || g.start == nil || g.along == "" || g.to == "" {
		return nil, nil, bad(40105, "%s needs from, as, startWith, connectFromField and connectToField", name)
	}
	return g, raw, nil
}

// source reads from, which a server looks at before all else.
func (g *graphLookup) source(c *compiler, name string, d bson.D) error {
	for _, e := range d {
		if e.Key != "from" {
			continue
		}
		from, ok := e.Value.(string)
		if !ok {
			return bad(codeFailedToParse, "%s: from has to be the name of a collection", name)
		}
		if err := checkCollection(name, from); err != nil {
			return err
		}
		g.from = c.reads(from)
		return nil
	}
	return bad(codeFailedToParse, "%s needs from, the name of a collection", name)
}

func (g *graphLookup) option(c *compiler, name string, e bson.E) (raw any, err error) {
	switch e.Key {
	case "from":
		return g.from, nil
	case "startWith":
		if g.start, err = c.expression(e.Value); err != nil {
			return nil, err
		}
		return g.start.Raw(), nil
	case "maxDepth":
		if _, isNumber := numberOf(e.Value); !isNumber {
			return nil, bad(40100, "%s: maxDepth has to be a number", name)
		}
		n, ok := whole(e.Value)
		switch {
		case n < 0:
			return nil, bad(40101, "%s: maxDepth can't be negative", name)
		case !ok:
			return nil, bad(40102, "%s: maxDepth has to be a whole number", name)
		}
		g.most = n
		return n, nil
	case "restrictSearchWithMatch":
		if f, ok := e.Value.(*mql.Filter); ok {
			g.restrict = &match{filter: f}
			return f.Raw(), nil
		}
		d, ok := asObject(e.Value)
		if !ok {
			return nil, bad(40185, "%s: restrictSearchWithMatch has to be a filter", name)
		}
		var spec bson.D
		g.restrict, spec, err = c.match(d)
		return spec, err
	}
	path, ok := e.Value.(string)
	known := e.Key == "as" || e.Key == "connectFromField" || e.Key == "connectToField" || e.Key == "depthField"
	switch {
	case known && !ok:
		return nil, bad(40103, "%s: %s has to be the path of a field", name, e.Key)
	case !known:
		return nil, bad(40104, "%s does not know %s", name, document.Readable(e.Key))
	}
	if err := checkPath(path); err != nil {
		return nil, err
	}
	switch e.Key {
	case "as":
		g.as = strings.Split(path, ".")
	case "connectFromField":
		g.along = path
	case "connectToField":
		g.to = path
	case "depthField":
		g.depth = strings.Split(path, ".")
	}
	return path, nil
}

func (g *graphLookup) open(r *run, next sink) sink {
	return &graphing{graphLookup: g, r: r, next: next, join: newJoiner(r, g.from, g.to, g.filter, g.restrict)}
}

// filter finds the documents that values lead to. Null leads to null, and to no document without the field.
func (g *graphLookup) filter(values []bson.RawValue) (*mql.Filter, error) {
	f, err := oneOf(g.to, values)
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		if isNull(v.Type) {
			there, err := mql.Compile(bson.D{{Key: g.to, Value: bson.D{{Key: "$exists", Value: true}}}})
			return mql.And(f, there), coded(err)
		}
	}
	return f, nil
}

type graphing struct {
	*graphLookup
	r    *run
	next sink
	join joiner

	frontier []bson.RawValue // values to go on from, each once
	seen     map[string]struct{}
	key      []byte
	visited  map[string]struct{} // by _id
	found    docList
	places   []int
	held     int
	out, doc []byte
}

const visitSize = 64 // bytes of an entry of seen or visited beside its key

func (g *graphing) push(doc bson.Raw) error {
	env := g.r.env
	env.Reset(doc)
	start, err := g.start.Eval(env)
	if err != nil {
		return err
	}
	g.seen, g.visited = map[string]struct{}{}, map[string]struct{}{}
	g.frontier, g.found = g.frontier[:0], newDocList(g.found.list)
	if start.Type == bson.TypeArray {
		for it := document.NewIter(start.Value); it.Next() && err == nil; {
			err = g.reach(it.Value())
		}
	} else if start.Type != 0 {
		err = g.reach(start)
	}
	for depth := int64(0); len(g.frontier) > 0 && err == nil && (g.most < 0 || depth <= g.most); depth++ {
		err = g.step(depth)
	}
	if err != nil {
		return err
	}
	list := g.found.close()
	g.out = appendSet(reuse(g.out), doc, g.as, bson.RawValue{Type: bson.TypeArray, Value: list})
	g.r.release(g.held)
	g.held = 0
	return g.r.give(g.next, g.out)
}

func (g *graphing) end() error {
	g.join.end()
	return g.next.end()
}

// hold counts memory that is kept until the next document.
func (g *graphing) hold(n int) error {
	g.held += n
	return g.r.hold(n)
}

// reach adds a value to go on from, if it is new.
func (g *graphing) reach(v bson.RawValue) error {
	g.key = document.AppendKey(g.key[:0], v, false)
	if _, ok := g.seen[string(g.key)]; ok {
		return nil
	}
	g.seen[string(g.key)] = struct{}{}
	g.frontier = append(g.frontier, bson.RawValue{Type: v.Type, Value: bytes.Clone(v.Value)})
	return g.hold(len(g.key) + len(v.Value) + visitSize)
}

// step visits what the frontier leads to, which makes the next frontier.
func (g *graphing) step(depth int64) error {
	if err := g.join.fetch(g.frontier); err != nil {
		return err
	}
	var err error
	if g.places, err = g.join.find(g.places[:0], g.frontier); err != nil {
		return err
	}
	g.frontier = g.frontier[:0]
	for _, i := range g.places {
		if err := g.visit(g.join.other.docs[i], depth); err != nil {
			return err
		}
	}
	return g.r.ctx.Err()
}

func (g *graphing) visit(doc bson.Raw, depth int64) error {
	id, _ := document.Field(doc, idField)
	g.key = document.AppendKey(g.key[:0], id, false)
	if _, ok := g.visited[string(g.key)]; ok {
		return nil
	}
	g.visited[string(g.key)] = struct{}{}
	if g.depth != nil { // even where the values are that lead on, as on servers
		g.doc = appendSet(g.doc[:0], doc, g.depth, long(depth))
		doc = g.doc
	}
	if err := mql.EachValue(doc, g.along, g.reach); err != nil {
		return err
	}
	g.found.add(doc)
	return g.hold(len(g.key) + len(doc) + visitSize)
}
