package query

import (
	"maps"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/pipeline"
)

// Source is a collection that a pipeline reads, as far as its caller may.
type Source struct {
	Paths      Resolver          // of its records
	Filter     *mql.Filter       // the records that the caller may read; nil: all
	Undeclared *document.PathSet // what is no field, so that nobody sees it
}

// Guard makes of a caller's pipeline one that gives them nothing but what they may read. It does so twice over: what they
// may not read is taken away before the first of their stages, in each collection that is read, and while documents have
// the fields of a collection every path that a stage names is held against them, so that a hidden field is answered like
// one that does not exist.
type Guard struct {
	// Other gives another collection that the pipeline reads, or the error of a caller who may not.
	Other     func(name string) (Source, error)
	MaxStages int // those in stages included

	limits  Limits          // of the collection that is asked
	named   map[string]bool // the names in the caller's stages
	lookups int             // stages so far that read another collection
}

// Pipeline guards the stages of a caller on a collection. where is a filter of theirs that is checked already. In what
// comes back, filters are *mql.Filter.
func (g *Guard) Pipeline(src Source, where *mql.Filter, stages bson.A) (bson.A, error) {
	v, err := mql.Extended(stages)
	if err != nil {
		e := *errs.From(err)
		e.Message = "aggregate: " + strings.TrimPrefix(e.Message, "filter: ")
		return nil, &e
	}
	stages, _ = v.(bson.A)
	if _, err := pipeline.Compile(stages, pipeline.Options{Stages: pipeline.Callers, MaxStages: g.MaxStages}); err != nil {
		return nil, err
	}
	g.limits, g.lookups, g.named = src.Paths.Limits, 0, map[string]bool{}
	names(stages, g.named)
	return g.source(src, where, stages, 0)
}

// source guards a pipeline that begins with the records of a collection. What filters and sorts them comes first, so that
// indexes serve it: its paths are checked as those of a list are.
func (g *Guard) source(src Source, where *mql.Filter, stages bson.A, depth int) (bson.A, error) {
	f := &flow{guard: g, paths: src.Paths, known: true, depth: depth, stored: true}
	if filter := mql.And(src.Filter, where); filter != nil {
		f.add("$match", filter)
	}
	for len(stages) > 0 && leads(stages[0]) {
		if err := f.stage(stages[0]); err != nil {
			return nil, err
		}
		stages = stages[1:]
	}
	f.out = append(f.out, src.removal("", g.named)...)
	f.stored = false
	return f.stages(stages)
}

func leads(stage any) bool {
	d, _ := stage.(bson.D)
	switch d[0].Key {
	case "$match", "$sort", "$skip", "$limit":
		return true
	}
	return false
}

// flow is the way of documents through stages.
type flow struct {
	guard  *Guard
	paths  Resolver // of the documents
	known  bool     // they have the fields of a collection, and those that were made
	stored bool     // nothing is taken away yet
	depth  int      // of pipelines on other collections
	out    bson.A
}

func (f *flow) add(name string, spec any) { f.out = append(f.out, bson.D{{Key: name, Value: spec}}) }

func (f *flow) stages(list bson.A) (bson.A, error) {
	for _, stage := range list {
		if err := f.stage(stage); err != nil {
			return nil, err
		}
	}
	return f.out, nil
}

// stage guards one stage, which pipeline.Compile has taken.
func (f *flow) stage(v any) error {
	d, _ := v.(bson.D)
	name, spec := d[0].Key, d[0].Value
	if f.known && !f.paths.made["id"] {
		spec = storedNames(name, spec)
	}
	if err := f.regexes(spec); err != nil {
		return err
	}
	switch name {
	case "$match":
		return f.match(spec)
	case "$facet":
		return f.facet(spec)
	case "$unionWith":
		return f.union(spec)
	case "$lookup", "$graphLookup",
		"$project", "$addFields", "$set", "$unset", "$group", "$sort", "$limit", "$skip", "$unwind", "$count", "$bucket", "$bucketAuto",
		"$sortByCount", "$replaceRoot", "$replaceWith", "$sample", "$setWindowFields":
	default:
		return errs.New(errs.Invalid, "bad_pipeline", "the stage %s is not supported", name)
	}
	use, err := pipeline.Inspect(bson.D{{Key: name, Value: spec}}, pipeline.Options{Stages: pipeline.Callers})
	if err != nil {
		return err
	}
	if err := f.reads(name, use.Reads); err != nil {
		return err
	}
	switch name {
	case "$lookup":
		err = f.lookup(spec)
	case "$graphLookup":
		err = f.graphLookup(spec)
	default:
		f.add(name, spec)
	}
	f.makes(use)
	return err
}

// reads holds the paths that a stage names against the fields that the caller may see.
func (f *flow) reads(name string, paths []string) error {
	if name == "$sort" && len(paths) > f.paths.Limits.MaxSortFields {
		return limitError("$sort names %d fields, the limit is %d", len(paths), f.paths.Limits.MaxSortFields)
	}
	if !f.known {
		return nil
	}
	if name == "$sort" && f.stored {
		sort := make(mql.Sort, len(paths))
		for i := range paths {
			sort[i].Path = paths[i]
		}
		return f.paths.checkSort(sort)
	}
	for _, path := range paths {
		if path == "" { // the whole document, as far as there is something left of it
			continue
		}
		if _, _, err := f.paths.Path(path); err != nil {
			return err
		}
	}
	return nil
}

// makes notes what becomes of the documents.
func (f *flow) makes(use pipeline.Use) {
	f.known = f.known && !use.Remakes
	if !f.known || len(use.Sets) == 0 {
		return
	}
	made := maps.Clone(f.paths.made)
	if made == nil {
		made = map[string]bool{}
	}
	for _, name := range use.Sets {
		made[name] = true
	}
	f.paths.made = made
}

// match casts the constants of a filter by the fields, while there are some.
func (f *flow) match(spec any) error {
	doc, _ := spec.(bson.D)
	if f.known {
		filter, err := f.paths.Filter(Where{Filter: doc})
		if err != nil {
			return err
		}
		f.add("$match", filter)
		return nil
	}
	if err := f.paths.measure(doc); err != nil {
		return err
	}
	filter, err := mql.Compile(doc)
	if err != nil {
		return err
	}
	f.add("$match", filter)
	return nil
}

func (f *flow) facet(spec any) error {
	d, _ := spec.(bson.D)
	out := make(bson.D, len(d))
	for i, e := range d {
		list, _ := e.Value.(bson.A)
		branch := *f
		branch.out = bson.A{}
		stages, err := branch.stages(list)
		if err != nil {
			return err
		}
		out[i] = bson.E{Key: e.Key, Value: stages}
	}
	f.add("$facet", out)
	f.known = false
	return nil
}

// other opens another collection.
func (f *flow) other(name string) (Source, error) {
	g := f.guard
	if g.lookups++; g.lookups > g.limits.MaxLookups {
		return Source{}, limitError("the pipeline reads other collections in more than %d stages, which is the limit", g.limits.MaxLookups)
	}
	if f.depth >= g.limits.MaxLookupDepth {
		return Source{}, limitError("the pipeline reads other collections nested more than %d deep, which is the limit", g.limits.MaxLookupDepth)
	}
	return g.Other(name)
}

func (f *flow) union(spec any) error {
	name, _ := spec.(string)
	var list bson.A
	if d, ok := spec.(bson.D); ok {
		name, list = text(d, "coll"), member[bson.A](d, "pipeline")
	}
	src, err := f.other(name)
	if err != nil {
		return err
	}
	inner, err := f.guard.source(src, nil, list, f.depth+1)
	if err != nil {
		return err
	}
	f.add("$unionWith", bson.D{{Key: "coll", Value: name}, {Key: "pipeline", Value: inner}})
	f.known = false
	return nil
}

// lookup has the records that are found go through what keeps the caller's from the rest.
func (f *flow) lookup(spec any) error {
	d, _ := spec.(bson.D)
	src, err := f.other(text(d, "from"))
	if err != nil {
		return err
	}
	foreign, err := src.Paths.comparablePath(text(d, "foreignField"))
	if err != nil {
		return err
	}
	inner, err := f.guard.source(src, nil, nil, f.depth+1)
	if err != nil {
		return err
	}
	out := bson.D{
		{Key: "from", Value: text(d, "from")},
		{Key: "localField", Value: text(d, "localField")},
		{Key: "foreignField", Value: foreign},
		{Key: "as", Value: text(d, "as")},
	}
	if len(inner) > 0 {
		out = append(out, bson.E{Key: "pipeline", Value: inner})
	}
	f.add("$lookup", out)
	return nil
}

// depthName is where the depth of a $graphLookup is until the records that it found are without what is hidden. No record
// has a field of this name, and a name that the caller gives may be that of a hidden field.
const depthName = "constructor"

// graphLookup has only records found that the caller may read, and takes away what is hidden of them afterwards: all that
// leads from one to the next are fields that the caller may see.
func (f *flow) graphLookup(spec any) error {
	d, _ := spec.(bson.D)
	src, err := f.other(text(d, "from"))
	if err != nil {
		return err
	}
	as := text(d, "as")
	depth, filter := "", src.Filter
	out := make(bson.D, 0, len(d)+1)
	for _, e := range d {
		switch e.Key {
		case "as":
			if err := plainName(e); err != nil {
				return err
			}
		case "connectFromField", "connectToField":
			path, _ := e.Value.(string)
			if e.Value, err = src.Paths.comparablePath(path); err != nil {
				return err
			}
		case "depthField":
			if err := plainName(e); err != nil {
				return err
			}
			depth, _ = e.Value.(string)
			e.Value = depthName
		case "restrictSearchWithMatch":
			doc, _ := e.Value.(bson.D)
			restrict, err := src.Paths.Filter(Where{Filter: doc})
			if err != nil {
				return err
			}
			filter = mql.And(filter, restrict)
			continue
		}
		out = append(out, e)
	}
	if filter != nil {
		out = append(out, bson.E{Key: "restrictSearchWithMatch", Value: filter})
	}
	f.add("$graphLookup", out)
	f.out = append(f.out, src.removal(as, f.guard.named)...)
	if depth != "" {
		f.deepen(as, depth)
	}
	return nil
}

// deepen puts the depth where the caller wants it.
func (f *flow) deepen(as, depth string) {
	f.add("$set", bson.D{{Key: as, Value: bson.D{{Key: "$map", Value: bson.D{
		{Key: "input", Value: "$" + as},
		{Key: "as", Value: "e"},
		{Key: "in", Value: bson.D{{Key: "$mergeObjects", Value: bson.A{"$$e", bson.D{{Key: depth, Value: "$$e." + depthName}}}}}},
	}}}}})
	f.add("$unset", bson.A{as + "." + depthName})
}

// plainName refuses a path where documents that were found are gone through once more.
func plainName(e bson.E) error {
	if name, _ := e.Value.(string); strings.Contains(name, ".") {
		return errs.New(errs.Invalid, "bad_pipeline", "$graphLookup: %s has to be a name without a dot", e.Key)
	}
	return nil
}

// comparablePath is Path for a field whose values are compared as a whole.
func (r Resolver) comparablePath(path string) (string, error) {
	stored, _, err := r.Path(path)
	if err != nil {
		return "", err
	}
	return stored, r.comparable(stored, path, "lookup", nil)
}

func text(d bson.D, name string) string { return member[string](d, name) }

func member[T any](d bson.D, name string) T {
	v, _ := document.Member(d, name)
	t, _ := v.(T)
	return t
}
