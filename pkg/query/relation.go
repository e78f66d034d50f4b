package query

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/mql"
)

// Related is another collection that a query goes into, as the caller may ask it.
type Related struct {
	Resolver    Resolver
	DefaultSort mql.Sort
	// Keys gives the values that a field has in the records that match, of those that the caller may read.
	Keys func(field string, f *mql.Filter) ([]bson.RawValue, error)
}

// relations is what the resolvers of one query have in common, the first one's and those of the collections behind it.
type relations struct {
	open   func(collection string) (Related, error)
	known  map[string]Related
	limits Limits // of the collection that was asked
	asked  int    // how many times another collection is read
}

// WithRelations makes a resolver of one query that follows fields that refer to other collections, which open gives.
func (r Resolver) WithRelations(open func(collection string) (Related, error)) Resolver {
	r.relations = &relations{open: open, known: map[string]Related{}, limits: r.Limits}
	return r
}

// related opens the collection behind a relation, or that a lookup names. It has to be among those that the query may
// ask, and not too far away.
func (r Resolver) related(collection string) (Related, error) {
	if r.depth >= r.relations.limits.MaxLookupDepth {
		return Related{}, limitError("relations and lookups go through more than %d collections behind each other, the limit", r.relations.limits.MaxLookupDepth)
	}
	rel, ok := r.relations.known[collection]
	if !ok {
		var err error
		if rel, err = r.relations.open(collection); err != nil {
			return rel, err
		}
		r.relations.known[collection] = rel
	}
	rel.Resolver.relations, rel.Resolver.depth = r.relations, r.depth+1
	return rel, nil
}

// ask counts one more query of another collection.
func (r Resolver) ask() error {
	if r.relations.asked++; r.relations.asked > r.relations.limits.MaxLookups {
		return limitError("the filter's relations and the lookups read other collections more than %d times, the limit", r.relations.limits.MaxLookups)
	}
	return nil
}

// place is where a path of a filter leads to: a field of the records themselves, or of others that they refer to.
type place struct {
	Resolver // of those records

	stored string
	field  *fieldtype.Field
	behind bool // of others
}

// follow finds the field at a path, through relations. Whatever the caller can't see on the way, the whole path is an
// unknown field.
func (r Resolver) follow(path string) (place, error) {
	f, values, rest := r.through(path)
	if rest == "" {
		stored, f, err := r.Path(path)
		return place{Resolver: r, stored: stored, field: f}, err
	}
	if r.Hidden.Covers(values) || r.Hidden.Covers(path) {
		return place{}, fieldtype.UnknownField(path)
	}
	rel, err := r.related(f.Foreign.Collection)
	if err != nil {
		return place{}, err
	}
	if _, _, err := rel.Resolver.Path(f.Foreign.KeyPath()); err != nil {
		return place{}, fieldtype.UnknownField(path)
	}
	to, err := rel.Resolver.follow(rest)
	if isUnknownField(err) {
		err = fieldtype.UnknownField(path)
	}
	to.behind = true
	return to, err
}

// through is the relation that a path goes through; rest is "" where there is none, or none is followed.
func (r Resolver) through(path string) (f *fieldtype.Field, values, rest string) {
	if r.relations == nil {
		return nil, "", ""
	}
	return r.Tree.Relation(path)
}

// expand asks the collections behind the relations of a filter, each by one query, so that what is left is about the
// records themselves. A condition holds there as if the records that a field refers to were in its place, as a list: if one
// of them meets it. Those that mean that something is not so ($ne, $nin, $not, $exists: false, null) hold if none meets the
// opposite; that is so, too, where there are none, or the caller can't read them.
func (r Resolver) expand(f *mql.Filter) (*mql.Filter, error) {
	return f.Replace(func(around, path string, p mql.Pred) (*mql.Filter, error) {
		if around == "" && path == "id" { // inside of an $elemMatch on a relation, where nobody has written it as stored
			return mql.On("_id", p), nil
		}
		whole := joined(around, path)
		field, values, rest := r.through(whole)
		if field == nil {
			return nil, nil //nolint:nilnil // nil keeps the condition, by the contract of Replace
		}
		if len(values) <= len(around) {
			return nil, errs.New(errs.Invalid, "bad_filter", "filter: %s: an $elemMatch on a relation can't be inside another", whole)
		}
		l := leaf{Resolver: r, field: field, values: values, rest: rest}
		if around != "" {
			l.values = strings.TrimPrefix(values, around+".")
		}
		return l.condition(p)
	})
}

func joined(prefix, path string) string {
	if prefix == "" {
		return path
	}
	return prefix + "." + path
}

// leaf is a condition behind a relation.
type leaf struct {
	Resolver

	field        *fieldtype.Field
	values, rest string // the relation's own path, and the path from there
}

func (l leaf) condition(p mql.Pred) (*mql.Filter, error) {
	if l.rest == "" {
		if em, ok := p.(*mql.ElemMatch); ok && em.Node != nil {
			return l.ask(mql.Of(em.Node))
		}
		return nil, nil //nolint:nilnil // a condition on the relation's own values
	}
	switch p := p.(type) {
	case *mql.Exists:
		if !p.Want {
			return negated(l.askOf(&mql.Exists{Want: true}))
		}
	case *mql.Cmp:
		if p.Value.Type == bson.TypeNull && p.Op != mql.Gt && p.Op != mql.Lt {
			return l.askNull()
		}
	case *mql.In:
		return l.askIn(p)
	}
	return l.askOf(p)
}

// ask gives the condition that the relation's values are keys of records that match.
func (l leaf) ask(f *mql.Filter) (*mql.Filter, error) {
	rel, err := l.related(l.field.Foreign.Collection)
	if err != nil {
		return nil, err
	}
	if f, err = rel.Resolver.expand(f); err != nil {
		return nil, err
	}
	if err := l.Resolver.ask(); err != nil {
		return nil, err
	}
	key, _, err := rel.Resolver.Path(l.field.Foreign.KeyPath())
	if err != nil {
		return nil, err
	}
	keys, err := rel.Keys(key, f)
	if err != nil {
		return nil, err
	}
	return mql.OneOf(l.values, keys), nil
}

func (l leaf) askOf(p mql.Pred) (*mql.Filter, error) { return l.ask(mql.On(l.rest, p)) }

// askNull holds where none of the records has a value.
func (l leaf) askNull() (*mql.Filter, error) {
	null := &mql.Cmp{Op: mql.Eq, Value: bson.RawValue{Type: bson.TypeNull}}
	return negated(l.askOf(&mql.Not{Preds: []mql.Pred{null}}))
}

func (l leaf) askIn(p *mql.In) (*mql.Filter, error) {
	values := make([]bson.RawValue, 0, len(p.Values))
	null := false
	for _, v := range p.Values {
		if v.Type == bson.TypeNull {
			null = true
			continue
		}
		values = append(values, v)
	}
	if !null {
		return l.askOf(p)
	}
	some, err := l.askOf(&mql.In{Values: values, Regexes: p.Regexes})
	if err != nil {
		return nil, err
	}
	none, err := l.askNull()
	return mql.Or(some, none), err
}

func negated(f *mql.Filter, err error) (*mql.Filter, error) {
	if err != nil {
		return nil, err
	}
	return mql.Negate(f), nil
}
