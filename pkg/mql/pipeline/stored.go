package pipeline

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
)

// Stored is the pipeline for collections whose fields are stored by other names: own is the names of the documents that it is
// given, and of gives those of the other collections, by their names in the store. What comes first ($match, $sort, $skip and
// $limit) goes by what is stored, so that indexes serve it; then each document gets its names back. So do those of other
// collections. It gives p itself where no names differ.
func (p *Pipeline) Stored(own *document.Names, of func(collection string) *document.Names) (*Pipeline, error) {
	if own == nil && !slices.ContainsFunc(p.collections, func(name string) bool { return of(name) != nil }) {
		return p, nil
	}
	if p.facets != nil {
		return p.facets.stored(own)
	}
	s := storing{stored: p.stored, of: of}
	stages, err := s.pipeline(own, p.source)
	if err != nil {
		return nil, err
	}
	return Compile(stages, Options{Stages: Scripts, MaxStages: moreStages, Let: p.letSpec, Stored: s.name})
}

// moreStages is how many stages a pipeline may have with those that give names back.
const moreStages = 4 * serverStages

// storing translates a pipeline as it was given.
type storing struct {
	stored map[string]string // the collections that it names
	of     func(collection string) *document.Names
}

func (s *storing) name(collection string) string {
	if as, ok := s.stored[collection]; ok {
		return as
	}
	return collection
}

// names is the names of a collection that a stage names.
func (s *storing) names(collection string) *document.Names { return s.of(s.name(collection)) }

// pipeline translates stages that are given documents of the store.
func (s *storing) pipeline(own *document.Names, list bson.A) (bson.A, error) {
	out := make(bson.A, 0, len(list)+1)
	for _, v := range list {
		d, _ := asObject(v)
		if own != nil {
			first, rest, err := leadingStored(own, d[0])
			if err != nil {
				return nil, err
			}
			out = append(out, first...)
			if rest == nil {
				continue
			}
			out, own, d = append(out, restored(own)), nil, rest
		}
		stages, err := s.stage(d[0])
		if err != nil {
			return nil, err
		}
		out = append(out, stages...)
	}
	if own != nil {
		out = append(out, restored(own))
	}
	return out, nil
}

// leadingStored translates a stage that chooses and orders documents, in one stage or several. rest is the stage, or the part
// of a $match, that can't be said by what fields are stored as; nil: there is none.
func leadingStored(own *document.Names, e bson.E) (stages bson.A, rest bson.D, err error) {
	switch e.Key {
	case "$skip", "$limit":
		return bson.A{bson.D{e}}, nil, nil
	case "$sort":
		by, _, err := parseSort(e.Key, e.Value)
		if err != nil {
			return nil, nil, err
		}
		order := bson.D{}
		for _, f := range by.Stored(own) {
			order = append(order, bson.E{Key: f.Path, Value: direction(f.Desc)})
		}
		return bson.A{bson.D{{Key: e.Key, Value: order}}}, nil, nil
	case "$match":
		return matchStored(own, e.Value)
	default:
		return nil, bson.D{e}, nil
	}
}

func direction(desc bool) int32 {
	if desc {
		return -1
	}
	return 1
}

func matchStored(own *document.Names, spec any) (stages bson.A, rest bson.D, err error) {
	if f, is := spec.(*mql.Filter); is {
		return bson.A{bson.D{{Key: "$match", Value: f.Stored(own)}}}, nil, nil
	}
	d, _ := asObject(spec)
	var plain, conditions, others bson.D
	for _, e := range d {
		if !hasExpr(e) {
			plain = append(plain, e)
			continue
		}
		if x, ok := expressionStored(own, e.Value); ok && e.Key == "$expr" {
			conditions = append(conditions, bson.E{Key: e.Key, Value: x})
		} else {
			others = append(others, e)
		}
	}
	if len(plain) > 0 {
		f, err := mql.Compile(plain)
		if err != nil {
			return nil, nil, coded(err)
		}
		stages = bson.A{bson.D{{Key: "$match", Value: f.Stored(own)}}}
	}
	if len(conditions) > 0 {
		stages = append(stages, bson.D{{Key: "$match", Value: conditions}})
	}
	if others != nil {
		rest = bson.D{{Key: "$match", Value: others}}
	}
	return stages, rest, nil
}

// expressionStored translates an expression of a document, one that reads fields by their paths and none that has fields of
// other names in it.
func expressionStored(own *document.Names, v any) (_ any, ok bool) {
	switch v := v.(type) {
	case string:
		return pathStored(own, v)
	case bson.D:
		out := make(bson.D, len(v))
		for i, e := range v {
			switch e.Key {
			case "$literal":
				out[i] = e
				continue
			case "$getField", "$setField", "$unsetField", "CURRENT": // of the document, unless they say otherwise; what paths begin with
				return nil, false
			}
			x, ok := expressionStored(own, e.Value)
			if !ok {
				return nil, false
			}
			out[i] = bson.E{Key: e.Key, Value: x}
		}
		return out, true
	case bson.A:
		out := make(bson.A, len(v))
		for i := range v {
			if out[i], ok = expressionStored(own, v[i]); !ok {
				return nil, false
			}
		}
		return out, true
	case nil, bool, int, int32, int64, float64, bson.Decimal128, bson.ObjectID, bson.DateTime:
		return v, true
	default:
		return nil, false
	}
}

// pathStored translates a text in an expression. Other variables than the document hold what has no fields of other names.
func pathStored(own *document.Names, text string) (_ any, ok bool) {
	path, is := strings.CutPrefix(text, "$")
	if !is {
		return text, true
	}
	prefix := "$"
	if variable, inner, _ := strings.Cut(path, "."); strings.HasPrefix(variable, "$") {
		if variable != "$ROOT" && variable != "$CURRENT" {
			return text, true
		}
		if inner == "" {
			return nil, false
		}
		prefix, path = "$"+variable+".", inner
	}
	if own.At(path) != nil {
		return nil, false
	}
	return prefix + own.Path(path), true
}

// stage translates a stage that is given documents with their names. It may become two.
func (s *storing) stage(e bson.E) (stages bson.A, err error) {
	var more bson.A
	switch e.Key {
	case "$facet":
		d, _ := asObject(e.Value)
		out := make(bson.D, len(d))
		for i, branch := range d {
			list, _ := asList(branch.Value)
			inner, err := s.pipeline(nil, list)
			if err != nil {
				return nil, err
			}
			out[i] = bson.E{Key: branch.Key, Value: inner}
		}
		e.Value = out
	case "$lookup":
		d, _ := asObject(e.Value)
		from, _ := document.Member(d, "from")
		name, _ := from.(string)
		e.Value, err = s.reading(s.names(name), d)
	case "$unionWith":
		d, ok := asObject(e.Value)
		if !ok {
			d = bson.D{{Key: "coll", Value: e.Value}}
		}
		from, _ := document.Member(d, "coll")
		name, _ := from.(string)
		e.Value, err = s.reading(s.names(name), d)
	case "$graphLookup":
		e.Value, more, err = s.graph(e.Value)
	}
	return append(bson.A{bson.D{e}}, more...), err
}

// reading translates a stage that reads another collection, by a pipeline that it has, or gets to have.
func (s *storing) reading(names *document.Names, d bson.D) (bson.D, error) {
	out := make(bson.D, 0, len(d)+1)
	piped := false
	for _, e := range d {
		switch e.Key {
		case "pipeline":
			list, _ := asList(e.Value)
			inner, err := s.pipeline(names, list)
			if err != nil {
				return nil, err
			}
			e.Value, piped = inner, true
		case "foreignField":
			path, err := joinStored(names, e)
			if err != nil {
				return nil, err
			}
			e.Value = path
		}
		out = append(out, e)
	}
	if names != nil && !piped {
		out = append(out, bson.E{Key: "pipeline", Value: bson.A{restored(names)}})
	}
	return out, nil
}

// joinStored translates the path of a field by which documents are joined.
func joinStored(names *document.Names, e bson.E) (string, error) {
	path, _ := e.Value.(string)
	if names.At(path) != nil {
		return "", bad(codeFailedToParse, "%s: fields inside %s were renamed, so whole objects there can't be compared: join by one of the fields",
			e.Key, document.Readable(path))
	}
	return names.Path(path), nil
}

// graph translates a $graphLookup. What it finds gets its names back by a stage behind it.
func (s *storing) graph(spec any) (out bson.D, more bson.A, err error) {
	d, _ := asObject(spec)
	from, _ := document.Member(d, "from")
	name, _ := from.(string)
	names := s.names(name)
	if names == nil {
		return d, nil, nil
	}
	for _, e := range d {
		path, _ := e.Value.(string)
		switch e.Key {
		case "connectFromField", "connectToField":
			if e.Value, err = joinStored(names, e); err != nil {
				return nil, nil, err
			}
		case "depthField":
			e.Value = names.Path(path)
		case "as":
			more = bson.A{restored(at(strings.Split(path, "."), names))}
		case "restrictSearchWithMatch":
			match, rest, err := matchStored(names, e.Value)
			switch {
			case err != nil:
				return nil, nil, err
			case len(match) == 0 && rest == nil: // an empty filter
				match = bson.A{bson.D{{Key: "$match", Value: bson.D{}}}}
			case rest != nil || len(match) != 1:
				return nil, nil, bad(codeFailedToParse, "$graphLookup: restrictSearchWithMatch has an $expr, and fields of %s were renamed: "+
					"write the condition without $expr", document.Readable(name))
			}
			only, _ := match[0].(bson.D)
			e.Value = only[0].Value
		}
		out = append(out, e)
	}
	return out, more, nil
}

// at is names that hold at a path.
func at(path []string, names *document.Names) *document.Names {
	for _, name := range slices.Backward(path) {
		names = document.NewNames(nil, map[string]*document.Names{name: names})
	}
	return names
}

// stored is facets of documents whose fields are stored by other names.
func (f *facets) stored(own *document.Names) (*Pipeline, error) {
	paths, inside := make([]string, len(f.paths)), false
	for i, path := range f.paths {
		whole := strings.Join(path, ".")
		paths[i], inside = own.Path(whole), inside || own.At(whole) != nil
	}
	if !inside {
		return Facets(f.filter.Stored(own), paths, f.most)
	}
	for i, path := range f.paths { // values are objects with names of their own: documents get theirs back first
		paths[i] = strings.Join(path, ".")
	}
	p, err := Facets(f.filter.Stored(own), paths, f.most)
	if err != nil {
		return nil, err
	}
	back := &restore{names: own, back: own.Inverse()}
	p.chain.lead.Fields, p.chain.rest = nil, []stage{back, f}
	raw, err := document.Marshal(bson.D{{Key: "$replaceWith", Value: back.expression()}})
	p.raw = slices.Insert(p.raw, 1, raw)
	return p, err
}
