package pipeline

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
)

// Facets makes a pipeline that counts, for each of paths, how many documents of filter (nil: all) have each value there.
// Of a list, each element is a value; a document counts once for a value, however often it has it. What is missing or
// null is no value. A name in a path is that of a field, never a position in a list.
//
// It gives one result, for ReadFacets: of each path the most values at most that are most frequent; among equals, the
// least ones.
func Facets(filter *mql.Filter, paths []string, most int) (*Pipeline, error) {
	if len(paths) == 0 || most <= 0 {
		return nil, bad(codeFailedToParse, "facets need a field, and a number of values that is above 0")
	}
	f := &facets{filter: filter, most: most}
	branches := bson.D{{Key: facetTotal, Value: bson.A{bson.D{{Key: "$count", Value: facetTotal}}}}}
	n := needs{names: []string{}}
	for i, path := range paths {
		if err := checkPath(path); err != nil {
			return nil, err
		}
		n.path(path)
		names := strings.Split(path, ".")
		f.paths = append(f.paths, names)
		branches = append(branches, bson.E{Key: strconv.Itoa(i), Value: countsOf(names, most)})
	}
	p := &Pipeline{chain: chain{lead: Query{Filter: filter, Fields: n.names}, rest: []stage{f}}, facets: f}
	for _, stage := range []bson.D{{{Key: "$match", Value: filter.Raw()}}, {{Key: "$facet", Value: branches}}} {
		raw, err := document.Marshal(stage)
		if err != nil {
			return nil, err
		}
		p.raw = append(p.raw, raw)
	}
	return p, nil
}

// In the result facetTotal is the name of the number of documents, beside the numbers of the paths, and facetCount that of
// how many of them have a value, beside its _id.
const (
	facetTotal = "n"
	facetCount = "count"
)

// countsOf counts the values at a path on a server. Where the path is one name, the same whole values are put together
// first, as there are fewer of them than of documents.
func countsOf(path []string, most int) bson.A {
	var stages bson.A
	weight := any(int32(1))
	if len(path) == 1 {
		stages = bson.A{bson.D{{Key: "$group", Value: bson.D{{Key: idField, Value: "$" + path[0]}, {Key: "w", Value: bson.D{{Key: "$sum", Value: weight}}}}}}}
		path, weight = []string{idField}, "$w"
	}
	return append(stages,
		bson.D{{Key: "$project", Value: bson.D{{Key: "v", Value: valuesAt(path)}, {Key: "w", Value: true}}}},
		bson.D{{Key: "$unwind", Value: "$v"}},
		bson.D{{Key: "$group", Value: bson.D{{Key: idField, Value: "$v"}, {Key: facetCount, Value: bson.D{{Key: "$sum", Value: weight}}}}}},
		bson.D{{Key: "$sort", Value: bson.D{{Key: facetCount, Value: int32(-1)}, {Key: idField, Value: int32(1)}}}},
		bson.D{{Key: "$limit", Value: int64(most)}},
	)
}

// valuesAt is the expression of the different values at a path, a list.
func valuesAt(path []string) bson.D {
	list := listed("$" + path[0])
	for _, name := range path[1:] {
		isObject := bson.D{{Key: "$eq", Value: bson.A{bson.D{{Key: "$type", Value: "$$this"}}, "object"}}}
		inside := bson.D{{Key: "$let", Value: bson.D{
			{Key: "vars", Value: bson.D{{Key: "x", Value: bson.D{{Key: "$cond", Value: bson.A{isObject, "$$this." + name, nil}}}}}},
			{Key: "in", Value: listed("$$x")},
		}}}
		list = bson.D{{Key: "$reduce", Value: bson.D{
			{Key: "input", Value: list},
			{Key: "initialValue", Value: bson.A{}},
			{Key: "in", Value: bson.D{{Key: "$concatArrays", Value: bson.A{"$$value", inside}}}},
		}}}
	}
	isNull := bson.D{{Key: "$in", Value: bson.A{bson.D{{Key: "$type", Value: "$$this"}}, bson.A{"null", "undefined"}}}}
	there := bson.D{{Key: "$filter", Value: bson.D{{Key: "input", Value: list}, {Key: "cond", Value: bson.D{{Key: "$not", Value: isNull}}}}}}
	return bson.D{{Key: "$setUnion", Value: bson.A{there}}}
}

// listed is a value as a list, unless it is one.
func listed(path string) bson.D {
	return bson.D{{Key: "$cond", Value: bson.A{bson.D{{Key: "$isArray", Value: path}}, path, bson.A{path}}}}
}

// FacetValue is a value with the number of documents that have it.
type FacetValue struct {
	Value bson.RawValue
	Count int64
}

// ReadFacets takes apart the result of Facets: the number of documents that were looked at, and the values of each path.
// Values alias result.
func ReadFacets(result bson.Raw) (documents int64, values [][]FacetValue) {
	for it := document.NewIter(result); it.Next(); {
		list := []FacetValue{}
		for each := document.NewIter(it.Value().Value); each.Next(); {
			if n, ok := document.Field(each.Value().Value, facetTotal); ok {
				documents = n.AsInt64()
				continue
			}
			id, _ := document.Field(each.Value().Value, idField)
			n, _ := document.Field(each.Value().Value, facetCount)
			list = append(list, FacetValue{Value: id, Count: n.AsInt64()})
		}
		if string(it.Key()) != facetTotal {
			values = append(values, list)
		}
	}
	return documents, values
}

// facets is what Facets means, in one pass.
type facets struct {
	filter *mql.Filter
	paths  [][]string
	most   int
}

func (f *facets) open(r *run, next sink) sink {
	s := &faceted{facets: f, r: r, next: next, counts: make([]valueCounts, len(f.paths)), found: make([]bool, len(f.paths))}
	for i := range s.counts {
		s.counts[i].at = map[string]int{}
	}
	return s
}

type faceted struct {
	*facets
	r      *run
	next   sink
	docs   int64
	counts []valueCounts // of the paths
	found  []bool        // which of the paths have begun in the document
	key    []byte
	held   int
}

// valueCounts is how many documents have each value of a path.
type valueCounts struct {
	at  map[string]int // by the value's key
	all []valueCount
}

type valueCount struct {
	FacetValue
	last int64 // the document that was counted last
}

func (f *faceted) push(doc bson.Raw) error {
	f.docs++
	before := f.held
	clear(f.found)
	left := len(f.paths)
	for it := document.NewIter(doc); left > 0 && it.Next(); {
		for i, path := range f.paths {
			if !f.found[i] && string(it.Key()) == path[0] {
				f.walk(&f.counts[i], it.Value(), path)
				f.found[i] = true
				left--
			}
		}
	}
	return f.r.hold(f.held - before)
}

// walk counts what a path leads to, from the value of its first name on.
func (f *faceted) walk(c *valueCounts, v bson.RawValue, path []string) {
	switch {
	case v.Type == bson.TypeArray:
		for it := document.NewIter(v.Value); it.Next(); {
			switch e := it.Value(); {
			case len(path) == 1:
				f.count(c, e)
			case e.Type == bson.TypeEmbeddedDocument:
				f.below(c, e.Value, path[1:])
			}
		}
	case len(path) == 1:
		f.count(c, v)
	case v.Type == bson.TypeEmbeddedDocument:
		f.below(c, v.Value, path[1:])
	}
}

func (f *faceted) below(c *valueCounts, doc []byte, path []string) {
	v, _ := document.Field(doc, path[0])
	f.walk(c, v, path)
}

func (f *faceted) count(c *valueCounts, v bson.RawValue) {
	if isNull(v.Type) {
		return
	}
	f.key = document.AppendKey(f.key[:0], v, false)
	i, ok := c.at[string(f.key)]
	if !ok {
		i = len(c.all)
		c.at[string(f.key)] = i
		c.all = append(c.all, valueCount{FacetValue: FacetValue{Value: bson.RawValue{Type: v.Type, Value: slices.Clone(v.Value)}}})
		f.held += groupSize + len(f.key) + len(v.Value)
	}
	if one := &c.all[i]; one.last != f.docs {
		one.last = f.docs
		one.Count++
	}
}

func (f *faceted) end() error {
	start, out := openDoc(nil)
	total := []byte{0, 0, 0, 0}
	if f.docs > 0 {
		total = appendIndex(total, bson.TypeEmbeddedDocument, 0)
		at, doc := openDoc(total)
		total = document.Close(document.AppendElement(doc, facetTotal, integer(f.docs)), at)
	}
	out = append(appendName(out, bson.TypeArray, facetTotal), document.Close(total, 0)...)
	for i := range f.counts {
		out = appendName(out, bson.TypeArray, strconv.Itoa(i))
		at, list := openDoc(out)
		for n, v := range mostFrequent(f.counts[i].all, f.most) {
			list = appendIndex(list, bson.TypeEmbeddedDocument, n)
			inner, doc := openDoc(list)
			doc = document.AppendElement(doc, idField, v.Value)
			list = document.Close(document.AppendElement(doc, facetCount, integer(v.Count)), inner)
		}
		out = document.Close(list, at)
	}
	f.counts = nil
	f.r.release(f.held)
	if err := unlessEnough(f.r.give(f.next, document.Close(out, start))); err != nil {
		return err
	}
	return f.next.end()
}

// mostFrequent gives those with the highest counts in their order, which is that of values where counts are equal. It puts
// all in another order.
func mostFrequent(all []valueCount, most int) []valueCount {
	most = min(most, len(all))
	best := all[:0]
	sorted := false // the first of best, as many as are wanted
	for _, v := range all {
		if sorted && compareCounts(v, best[most-1]) >= 0 {
			continue
		}
		if best = append(best, v); len(best) == 2*most { // all may be many: it is not sorted as a whole
			slices.SortFunc(best, compareCounts)
			best, sorted = best[:most], true
		}
	}
	slices.SortFunc(best, compareCounts)
	return best[:most]
}

func compareCounts(a, b valueCount) int {
	if a.Count != b.Count {
		return cmp.Compare(b.Count, a.Count)
	}
	return document.Compare(sortValue(a.Value), sortValue(b.Value))
}

// sortValue is what a value is sorted by: of a list, the least element.
func sortValue(v bson.RawValue) bson.RawValue {
	if v.Type != bson.TypeArray {
		return v
	}
	doc := document.Close(document.AppendElement([]byte{0, 0, 0, 0}, idField, v), 0)
	return mql.Sort{{Path: idField}}.Key(doc)[0]
}
