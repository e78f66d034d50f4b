package pipeline

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/expr"
)

// lookup is $lookup: documents of another collection, as a list in a field.
type lookup struct {
	from           string
	as             []string
	local, foreign string // paths whose values are to be equal; "" without
	let            []*expr.Expr
	piped          bool // there is a pipeline
	chain          chain
	each           bool       // the pipeline filters documents and makes one of each, whatever they are looked up for
	equal          []equality // of the first $match of the pipeline
	keep           *needs     // of the documents themselves; nil: all fields
	replaced       string     // the field whose value is not needed
}

// keeping makes documents only of what is needed.
func (l *lookup) keeping(n needs) stage {
	if n.all || l.piped {
		return l
	}
	own := *l
	n.path(l.as[0])
	n.path(l.local)
	own.keep = &n
	if local, _, _ := strings.Cut(l.local, "."); len(l.as) == 1 && l.as[0] != local {
		own.replaced = l.as[0]
	}
	return &own
}

// equality is a path of the other collection that has to be equal to what value gives for the variables.
type equality struct {
	path  string
	value *expr.Expr
}

// lookupSpec is the operand of $lookup.
type lookupSpec struct {
	texts    map[string]string
	let      bson.D
	pipeline bson.A
	piped    bool
}

func compileLookup(c *compiler, name string, spec any) (stage, any, error) {
	d, ok := asObject(spec)
	if !ok {
		return nil, nil, bad(codeFailedToParse, "%s needs an object", name)
	}
	s := lookupSpec{texts: map[string]string{}}
	for _, e := range d {
		if err := s.option(name, e); err != nil {
			return nil, nil, err
		}
	}
	l := &lookup{from: s.texts["from"], local: s.texts["localField"], foreign: s.texts["foreignField"], piped: s.piped}
	if err := l.check(c, name, &s); err != nil {
		return nil, nil, err
	}
	l.from = c.reads(l.from)
	l.as = strings.Split(s.texts["as"], ".")
	raw := bson.D{{Key: "from", Value: l.from}, {Key: "as", Value: s.texts["as"]}}
	if l.local != "" {
		raw = append(raw, bson.E{Key: "localField", Value: l.local}, bson.E{Key: "foreignField", Value: l.foreign})
	}
	if !s.piped {
		return l, raw, nil
	}
	more, err := l.compilePipeline(c, name, &s)
	return l, append(raw, more...), err
}

func (s *lookupSpec) option(name string, e bson.E) error {
	var ok bool
	switch e.Key {
	case "pipeline":
		if s.pipeline, ok = asList(e.Value); !ok {
			return bad(codeTypeMismatch, "%s: pipeline has to be a list of stages", name)
		}
		s.piped = true
		return nil
	case "let":
		if s.let, ok = asObject(e.Value); !ok {
			return bad(codeFailedToParse, "%s: let has to be an object", name)
		}
		if s.let == nil {
			s.let = bson.D{}
		}
		return nil
	}
	text, ok := e.Value.(string)
	if !ok {
		return bad(codeFailedToParse, "%s: %s has to be a text", name, document.Readable(e.Key))
	}
	switch e.Key {
	case "from", "as", "localField", "foreignField":
		s.texts[e.Key] = text
		return nil
	default:
		return bad(codeFailedToParse, "%s does not know %s", name, document.Readable(e.Key))
	}
}

func (l *lookup) check(c *compiler, name string, s *lookupSpec) error {
	from, given := s.texts["from"]
	switch {
	case !given:
		return bad(codeFailedToParse, "%s needs from, the name of a collection", name)
	case s.texts["as"] == "":
		return bad(codeFailedToParse, "%s needs as, the name of a field", name)
	case (l.local == "") != (l.foreign == ""), l.local == "" && !s.piped:
		return bad(codeFailedToParse, "%s needs localField and foreignField, or a pipeline", name)
	case s.let != nil && !s.piped:
		return bad(codeFailedToParse, "%s: let goes with a pipeline", name)
	case s.piped && c.options.Stages != Scripts:
		return bad(codeFailedToParse, "%s with a pipeline is for scripts only: use localField and foreignField", name)
	}
	if err := checkCollection(name, from); err != nil {
		return err
	}
	paths := []string{s.texts["as"]}
	if l.local != "" {
		paths = append(paths, l.local, l.foreign)
	}
	for _, path := range paths {
		if err := checkPath(path); err != nil {
			return err
		}
	}
	return nil
}

func (l *lookup) compilePipeline(c *compiler, name string, s *lookupSpec) (bson.D, error) {
	let := bson.D{}
	var names []string
	for _, e := range s.let {
		if slices.Contains(names, e.Key) {
			return nil, bad(codeFailedToParse, "%s: the variable %s comes twice", name, document.Readable(e.Key))
		}
		if err := expr.CheckVariable(e.Key); err != nil {
			return nil, err
		}
		x, err := c.expression(e.Value)
		if err != nil {
			return nil, err
		}
		names, l.let = append(names, e.Key), append(l.let, x)
		let = append(let, bson.E{Key: e.Key, Value: x.Raw()})
	}
	inner, raw, err := c.inner(name, s.pipeline, names)
	l.chain = inner
	l.each = l.local != "" && len(s.let) == 0 && inner.makesOneOfEach() && !hasRandom(raw)
	l.equal = equalities(&inner)
	return bson.D{{Key: "let", Value: let}, {Key: "pipeline", Value: raw}}, err
}

// makesOneOfEach says that a chain filters documents, and then makes one of each of them.
func (c *chain) makesOneOfEach() bool {
	if len(c.lead.Sort) > 0 || c.lead.Skip > 0 || c.lead.Limit > 0 {
		return false
	}
	for _, s := range c.rest {
		switch s.(type) {
		case *project, *replace, *restore:
		default:
			return false
		}
	}
	return true
}

// hasRandom says that stages make something else of the same document each time.
func hasRandom(v any) bool {
	switch v := v.(type) {
	case []bson.D:
		return slices.ContainsFunc(v, func(d bson.D) bool { return hasRandom(d) })
	case bson.A:
		return slices.ContainsFunc(v, hasRandom)
	case bson.D:
		return slices.ContainsFunc(v, func(e bson.E) bool { return e.Key == "$rand" || hasRandom(e.Value) })
	case bson.Raw:
		for it := document.NewIter(v); it.Next(); {
			if string(it.Key()) == "$rand" || hasRandom(it.Value()) {
				return true
			}
		}
	case bson.RawValue:
		return (v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray) && hasRandom(bson.Raw(v.Value))
	}
	return false
}

// equalities gives what the first $match behind the query wants to be equal. Errors that such a filter saves a server saves, too.
func equalities(c *chain) []equality {
	if len(c.rest) == 0 || c.lead.Skip > 0 || c.lead.Limit > 0 {
		return nil
	}
	m, ok := c.rest[0].(*match)
	if !ok {
		return nil
	}
	var all []equality
	for _, cond := range m.more {
		if x, ok := cond.(exprCondition); ok {
			x.of.Equalities(func(path string, value *expr.Expr) { all = append(all, equality{path, value}) })
		}
	}
	return all
}

func (l *lookup) open(r *run, next sink) sink {
	if l.piped && !l.each {
		return &pipedLookup{lookup: l, r: r, next: next}
	}
	var only *match
	if l.chain.lead.Filter != nil {
		only = &match{filter: l.chain.lead.Filter}
	}
	e := &equalLookup{lookup: l, r: r, next: next, want: firstBatch, join: newJoiner(r, l.from, l.foreign, l.filter, only)}
	if len(l.chain.rest) > 0 {
		e.shape = r.with(nil).open(l.chain.rest, output(e.take))
	}
	return e
}

// localValues gives the values that a document is joined by, at least null.
func (l *lookup) localValues(dst []bson.RawValue, doc bson.Raw) []bson.RawValue {
	start := len(dst)
	_ = mql.EachValue(doc, l.local, func(v bson.RawValue) error {
		dst = append(dst, v)
		return nil
	})
	if len(dst) == start {
		dst = append(dst, null)
	}
	return dst
}

// filter finds the documents that have one of values.
func (l *lookup) filter(values []bson.RawValue) (*mql.Filter, error) { return oneOf(l.foreign, values) }

// oneOf finds the documents that have one of values at a path.
func oneOf(path string, values []bson.RawValue) (*mql.Filter, error) {
	f, err := mql.EqualTo(path, values)
	return f, coded(err)
}

// pipedLookup runs a pipeline for each document, or once if it depends on none.
type pipedLookup struct {
	*lookup
	r      *run
	next   sink
	out    []byte
	values []bson.RawValue
	cached []byte // the list of all documents; nil: not yet known, or other for each document
}

func (p *pipedLookup) push(doc bson.Raw) error {
	found := p.cached
	if found == nil {
		var err error
		if found, err = p.find(doc); err != nil {
			return err
		}
		if len(p.let) == 0 && p.local == "" {
			p.cached = found
		} else {
			p.r.release(len(found))
		}
	}
	p.out = appendSet(reuse(p.out), doc, p.as, bson.RawValue{Type: bson.TypeArray, Value: found})
	return p.r.give(p.next, p.out)
}

// find gives the list of what is found for a document.
func (p *pipedLookup) find(doc bson.Raw) ([]byte, error) {
	env := p.r.env
	env.Reset(doc)
	vars := make([]bson.RawValue, len(p.let))
	for i, x := range p.let {
		v, err := x.Eval(env)
		if err != nil {
			return nil, err
		}
		vars[i] = v
	}
	c := p.chain
	if p.local != "" {
		p.values = p.localValues(p.values[:0], doc)
		f, err := p.filter(p.values)
		if err != nil {
			return nil, err
		}
		c.lead.Filter = mql.And(f, c.lead.Filter)
	}
	inner := p.r.with(vars)
	if err := p.narrow(inner.env, &c); err != nil {
		return nil, err
	}
	found, held := newDocList(nil), 0
	err := inner.pipe(c, p.from, func(doc bson.Raw) error {
		found.add(doc)
		n := len(found.list) - held
		held += n
		return p.r.hold(n)
	})
	return found.close(), err
}

// narrow adds a filter for what $expr wants to be equal, which a store may have an index for. It finds at least what $expr
// is true for, where the value is none that filters take in a way of their own.
func (p *pipedLookup) narrow(env *expr.Env, c *chain) error {
	for _, e := range p.equal {
		env.Reset(emptyDoc())
		v, err := e.value.Eval(env)
		if err != nil {
			return err
		}
		if isNull(v.Type) || v.Type == bson.TypeArray || v.Type == bson.TypeRegex {
			continue
		}
		f, err := mql.Compile(bson.D{{Key: e.path, Value: bson.D{{Key: "$eq", Value: v}}}})
		if err != nil {
			return coded(err)
		}
		c.lead.Filter = mql.And(c.lead.Filter, f)
	}
	return nil
}

func (p *pipedLookup) end() error {
	if p.cached != nil {
		p.r.release(len(p.cached))
	}
	return p.next.end()
}
