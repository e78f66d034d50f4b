package pipeline

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/expr"
)

// Pipeline is a compiled aggregation, of Compile or of Facets. It is immutable and safe for concurrent use.
type Pipeline struct {
	chain       chain
	let         []*expr.Expr
	letSpec     bson.D
	raw         []bson.Raw
	collections []string

	source bson.A            // what it was compiled from
	stored map[string]string // what Options.Stored has said
	facets *facets           // what Facets has made
}

// Stages says which stages are taken.
type Stages uint8

// The lists of stages. Scripts may use besides what callers may: $expr in $match, and $lookup with let and pipeline.
const (
	Callers Stages = iota
	Scripts
)

// Options are for Compile.
type Options struct {
	Stages    Stages
	MaxStages int // of the pipeline and those in its stages together; 0: 1000, as servers have it
	// Let binds variables, which expressions name with $$. Its values are expressions that read no document.
	Let bson.D
	// Stored gives the name that the store has for a collection which a stage names, once for each stage; nil: the same.
	Stored func(name string) string
}

const (
	serverStages = 1000
	maxDepth     = 20 // pipelines in pipelines, as servers have it
)

// Compile checks a pipeline and makes it runnable. stages is as document.Marshal takes it; where a filter stands, there may
// be an *mql.Filter, too, which is taken as it is. Only stages of the table are taken, at every depth; everything else is
// errs.Invalid with code "bad_pipeline", and a message that names the stage. Errors of filters and expressions are those
// of mql.Compile and expr.Compile.
//
// The pipeline keeps stages, which must not be changed any more.
func Compile(stages bson.A, o Options) (*Pipeline, error) {
	if o.MaxStages <= 0 {
		o.MaxStages = serverStages
	}
	c := &compiler{options: o, stages: new(int)}
	if _, err := document.MarshalValue(written(stages)); err != nil { // what follows relies on that
		return nil, coded(err)
	}
	let, err := c.bindAll(o.Let)
	if err != nil {
		return nil, err
	}
	compiled, raw, err := c.pipeline(stages)
	if err != nil {
		return nil, err
	}
	p := &Pipeline{chain: compiled, let: let, letSpec: o.Let, collections: c.collections, source: stages, stored: c.stored}
	for _, stage := range raw {
		doc, err := document.Marshal(stage)
		if err != nil {
			return nil, err
		}
		p.raw = append(p.raw, doc)
	}
	return p, nil
}

// Raw gives the stages as a MongoDB server is sent them, made of what Compile understood. The caller must not change it.
func (p *Pipeline) Raw() []bson.Raw { return p.raw }

// Let gives what Options.Let was: a server is sent it beside Raw.
func (p *Pipeline) Let() bson.D { return p.letSpec }

// Collections gives the names of the collections that the pipeline reads besides its own, each once. The caller must not
// change it.
func (p *Pipeline) Collections() []string { return p.collections }

// Leading is the part of the pipeline that the first Find does.
func (p *Pipeline) Leading() Query { return p.chain.lead }

// chain is the stages of one pipeline.
type chain struct {
	lead Query // what comes first, as a query
	rest []stage
}

// stage is a compiled stage.
type stage interface {
	// open makes the part of the stage in one run: it takes documents, and gives next what it makes of them.
	open(r *run, next sink) sink
}

// compiler compiles one pipeline.
type compiler struct {
	options     Options
	vars        []string // that a $lookup around binds, the innermost first
	within      string   // the stage that the pipeline is in
	depth       int
	stages      *int // so far
	collections []string
	stored      map[string]string           // their names in the store, of those that stages name
	reading     func(variable, path string) // is told what expressions read; nil: nobody is
}

func (c *compiler) pipeline(list bson.A) (chain, []bson.D, error) {
	var stages []stage
	raw := make([]bson.D, 0, len(list))
	for _, v := range list {
		d, ok := asObject(v)
		switch {
		case !ok:
			return chain{}, nil, bad(codeTypeMismatch, "each stage of a pipeline has to be an object")
		case len(d) != 1:
			return chain{}, nil, bad(40323, "a stage of a pipeline has to be an object with one field, its name")
		}
		if *c.stages++; *c.stages > c.options.MaxStages {
			return chain{}, nil, tooManyStages(c.options.MaxStages)
		}
		s, spec, err := c.stage(d[0].Key, d[0].Value)
		if err != nil {
			return chain{}, nil, err
		}
		stages = append(stages, s)
		raw = append(raw, bson.D{{Key: d[0].Key, Value: spec}})
	}
	return newChain(stages, c.within != "$facet"), raw, nil
}

func (c *compiler) stage(name string, spec any) (stage, any, error) {
	compile := c.lookUp(name)
	if compile == nil {
		return nil, nil, bad(40324, "the stage %s is not supported", document.Readable(name))
	}
	return compile(c, name, spec)
}

// inner compiles a pipeline that is part of a stage.
func (c *compiler) inner(stage string, list bson.A, vars []string) (chain, []bson.D, error) {
	if c.depth >= maxDepth {
		return chain{}, nil, bad(232, "pipelines are nested more than %d deep", maxDepth)
	}
	sub := &compiler{
		options: c.options, vars: slices.Concat(vars, c.vars), within: stage, depth: c.depth + 1, stages: c.stages, collections: c.collections,
		stored: c.stored,
	}
	compiled, raw, err := sub.pipeline(list)
	c.collections, c.stored = sub.collections, sub.stored
	return compiled, raw, err
}

// reads notes that another collection is read, and gives its name in the store.
func (c *compiler) reads(collection string) string {
	if c.options.Stored != nil {
		given := collection
		collection = c.options.Stored(given)
		if c.stored == nil {
			c.stored = map[string]string{}
		}
		c.stored[given] = collection
	}
	if !slices.Contains(c.collections, collection) {
		c.collections = append(c.collections, collection)
	}
	return collection
}

// newChain moves what comes first into a query. reads says that the documents are those of a collection.
func newChain(stages []stage, reads bool) chain {
	var c chain
	stages = settle(stages)
	if reads {
		hurry(stages)
	}
	for len(stages) > 0 {
		rest, ok := stages[0].(leading)
		if !ok {
			break
		}
		left, taken := rest.lead(&c.lead)
		if !taken {
			break
		}
		stages = stages[1:]
		if left != nil {
			stages = append([]stage{left}, stages...)
			break
		}
	}
	c.rest = stages
	if n := needsOf(stages); !n.all {
		c.lead.Fields = n.names
	}
	for i := range stages {
		if w, ok := stages[i].(*windows); ok && i > 0 {
			w.behind(stages[i-1])
		}
		if s, ok := stages[i].(copying); ok {
			stages[i] = s.keeping(needsOf(stages[i+1:]))
		}
	}
	return c
}

// leading is a stage that a query can take over.
type leading interface {
	stage
	// lead adds the stage to q and says whether it could. What q can't do of it is left.
	lead(q *Query) (left stage, taken bool)
}

// copying is a stage that copies what it passes on of documents.
type copying interface {
	stage
	// keeping is the stage that copies only what is needed behind it.
	keeping(n needs) stage
}

// settle brings stages into the order in which a server runs them, where that shows in which errors there are: a $match
// comes before a $sort; $skip and $limit come before what makes one document of each. A $limit behind a $sort becomes part
// of it.
func settle(stages []stage) []stage {
	stages = slices.Clone(stages)
	for i := len(stages) - 1; i > 0; i-- { // of two orders in a row the second counts
		_, first := stages[i-1].(*sorting)
		_, second := stages[i].(*sorting)
		if first && second {
			stages = slices.Delete(stages, i-1, i)
		}
	}
	for i := range stages { // a filter comes before an order
		for at := i; at > 0; at-- {
			_, first := stages[at-1].(*sorting)
			_, second := stages[at].(*match)
			if !first || !second {
				break
			}
			stages[at-1], stages[at] = stages[at], stages[at-1]
		}
	}
	for i := range stages { // not past a $limit that would only then come before it
		if _, isSkip := stages[i].(skip); isSkip && !behindUnion(stages[:i]) {
			moveUp(stages, i, oneForOne)
		}
	}
	for i := range stages {
		if _, isLimit := stages[i].(limit); isLimit {
			moveUp(stages, i, keepsNumber)
		}
	}
	for i := range stages {
		s, isSort := stages[i].(*sorting)
		if !isSort {
			continue
		}
		if most := mostNeeded(stages[i+1:]); most > 0 {
			stages[i] = &sorting{by: s.by, most: most}
		}
	}
	return stages
}

// behindUnion says whether what makes one document of each, at the end of stages, comes right behind a $unionWith: then a
// server has it on both sides of that, where no $skip comes before it.
func behindUnion(stages []stage) bool {
	for _, s := range slices.Backward(stages) {
		if !oneForOne(s) {
			_, isUnion := s.(*union)
			return isUnion
		}
	}
	return false
}

// moveUp moves a stage before those that it may pass.
func moveUp(stages []stage, at int, pass func(stage) bool) {
	for ; at > 0 && pass(stages[at-1]); at-- {
		stages[at-1], stages[at] = stages[at], stages[at-1]
	}
}

// hurry moves what skips and limits before what makes one document of each, where that comes right behind the query: a
// server reads no more than it has to.
func hurry(stages []stage) {
	for i, s := range stages {
		switch s.(type) {
		case *match, *sorting:
		case skip:
			moveUp(stages, i, passedOver)
		case limit:
			moveUp(stages, i, keepsNumber)
		default:
			if !keepsNumber(s) {
				return
			}
		}
	}
}

// passedOver says whether a stage makes one document of each, and does not do so for those that are skipped behind it.
func passedOver(s stage) bool {
	_, walks := s.(*graphLookup)
	return keepsNumber(s) && !walks
}

// keepsNumber says whether a stage makes one document of each, if with a search.
func keepsNumber(s stage) bool {
	switch s.(type) {
	case *lookup, *graphLookup:
		return true
	default:
		return oneForOne(s)
	}
}

// oneForOne says whether a stage makes one document of each.
func oneForOne(s stage) bool {
	switch s.(type) {
	case *project, *replace, *restore:
		return true
	default:
		return false
	}
}

// mostNeeded is how many documents at most are needed by stages; 0: all of them.
func mostNeeded(stages []stage) int64 {
	var skipped int64
	for _, s := range stages {
		switch s := s.(type) {
		case skip:
			if skipped += int64(s); skipped < 0 {
				return 0
			}
		case limit:
			return max(skipped+int64(s), 0)
		default:
			if !keepsNumber(s) {
				return 0
			}
		}
	}
	return 0
}

// Query says which documents Source.Find gives, and in which order.
type Query struct {
	Filter *mql.Filter // nil: all
	Sort   mql.Sort    // empty: any order
	Skip   int64
	Limit  int64 // 0: no limit

	// Fields is the names of the fields, at the top of documents, that are looked at; nil: all. Find may leave out others.
	// Filter and Sort are of whole documents.
	Fields []string
}
