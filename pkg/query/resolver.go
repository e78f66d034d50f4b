package query

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/mql"
)

// Limits bound what one list may ask for.
type Limits struct {
	DefaultLimit, MaxLimit, MaxOffset            int // items
	MaxFilterBytes, MaxFilterDepth               int
	MaxFilterClauses, MaxInValues, MaxSortFields int
	MaxLookups, MaxLookupDepth                   int    // other collections that are asked, and how many behind each other
	Regex                                        string // anchored, any or off
}

// DefaultLimits are those of lists that nobody can configure: what a collection has that says nothing.
func DefaultLimits() Limits {
	return Limits{
		DefaultLimit: 100, MaxLimit: 1000, MaxOffset: 10_000,
		MaxFilterBytes: 8192, MaxFilterDepth: 8, MaxFilterClauses: 100, MaxInValues: 1000, MaxSortFields: 8, Regex: "any",
	}
}

// Resolver checks every field path that a caller names, wherever it comes from, against the fields that there are and
// those hidden from the caller. A path hidden from the caller is answered exactly like one that does not exist.
type Resolver struct {
	Tree   *fieldtype.Tree
	Hidden *document.PathSet // nil: none
	Limits Limits

	relations *relations // nil: none are followed
	depth     int        // how many relations and lookups have led here

	made map[string]bool // the fields, at the top, that stages of a pipeline have made: whatever they are, callers may name them
}

// isMade says that a path is of a field that the caller has made.
func (r Resolver) isMade(path string) bool {
	if len(r.made) == 0 {
		return false
	}
	name, _, _ := strings.Cut(path, ".")
	return r.made[name]
}

// anyField is a field that nothing is known of.
func anyField(path string) *fieldtype.Field {
	t, _ := fieldtype.ByName("any")
	return &fieldtype.Field{Name: path, Path: path, Type: t}
}

// Path gives the stored path of a field that the caller may name, and the field.
func (r Resolver) Path(p string) (string, *fieldtype.Field, error) {
	if r.isMade(p) {
		return p, anyField(p), nil
	}
	f, ok := r.Tree.Resolve(p)
	if p == "id" {
		p = "_id"
	}
	if !ok || r.Hidden.Covers(p) {
		return "", nil, fieldtype.UnknownField(p)
	}
	return p, f, nil
}

// comparable refuses to compare an object as a whole when some of it is hidden: the answer would tell what is there. named
// is its path as the caller has written it.
func (r Resolver) comparable(stored, named, op string, v any) error {
	if !r.Hidden.Touches(stored) || r.isMade(stored) {
		return nil
	}
	if f, ok := r.Tree.Resolve(stored); ok && r.isThereFor(f) {
		op = "all" // that it is there would tell what is in it
	}
	switch op {
	case "$eq", "$ne":
		if v == nil { // whether there is an object at all
			return nil
		}
	case "$exists", "$size", "$type", "$elemMatch": // these look at no hidden value
		return nil
	}
	return errs.New(errs.Invalid, "not_comparable", "%s can't be compared as a whole: name one of its fields", named)
}

// isThereFor says that a field is there for what it holds, some of which is hidden.
func (r Resolver) isThereFor(f *fieldtype.Field) bool {
	return f.Holds() && f.Sub != nil && slices.ContainsFunc(f.Sub.Fields(), func(in *fieldtype.Field) bool {
		return r.isThereFor(in) || !in.Holds() && r.Hidden.Covers(in.Path)
	})
}

// Filter casts and compiles a caller's filter. nil is everything.
func (r Resolver) Filter(w Where) (*mql.Filter, error) {
	if w.Bytes > r.Limits.MaxFilterBytes {
		return nil, limitError("filter is %d bytes long, the limit is %d", w.Bytes, r.Limits.MaxFilterBytes)
	}
	if w.Search != (Search{}) {
		return nil, errs.New(errs.Invalid, "bad_parameter", "q, qName, highlight and explain are for lists, counts and facets of records")
	}
	if len(w.Filter) == 0 {
		return nil, nil //nolint:nilnil // a nil filter means everything, by the contract of mql
	}
	ext, err := mql.Extended(w.Filter)
	if err != nil {
		return nil, err
	}
	doc, ok := ext.(bson.D)
	if !ok {
		return nil, errs.New(errs.Invalid, "bad_filter", "filter must be an object")
	}
	if err := r.measure(doc); err != nil {
		return nil, err
	}
	if !r.made["id"] {
		doc = mql.StoredID(doc)
	}
	behind := false
	cast, err := mql.Rewrite(doc, func(path, op string, v any) (any, error) {
		at, err := r.follow(path)
		if err != nil {
			return nil, err
		}
		behind = behind || at.behind
		return at.operand(path, op, v)
	})
	if err != nil {
		return nil, err
	}
	f, err := mql.Compile(cast)
	if err != nil || !behind {
		return f, err
	}
	return r.expand(f)
}

// operand casts the constant that a field is compared with.
func (p place) operand(path, op string, v any) (any, error) {
	if err := p.comparable(p.stored, path, op, v); err != nil {
		return nil, err
	}
	cast, err := p.field.CastOperand(op, v)
	if err != nil {
		return nil, errs.New(errs.Invalid, "bad_filter", "%s: %s", path, err.Error())
	}
	return cast, nil
}

// measure holds the filter against the collection's queryLimits.
func (r Resolver) measure(doc bson.D) error {
	m, l := mql.Measure(doc), r.Limits
	switch {
	case m.Depth > l.MaxFilterDepth:
		return limitError("filter is nested %d deep, the limit is %d", m.Depth, l.MaxFilterDepth)
	case m.Clauses > l.MaxFilterClauses:
		return limitError("filter has %d clauses, the limit is %d", m.Clauses, l.MaxFilterClauses)
	case m.MaxIn > l.MaxInValues:
		return limitError("filter lists %d values, the limit is %d", m.MaxIn, l.MaxInValues)
	}
	for _, re := range m.Regexes {
		at, err := r.follow(re.Path)
		if err != nil {
			return err
		}
		if err := patternAllowed(re, l.Regex); err != nil {
			return err
		}
		if err := patternAllowed(re, at.Limits.Regex); err != nil {
			return err
		}
	}
	return nil
}

// patternAllowed holds a regular expression against what a collection allows.
func patternAllowed(re mql.RegexUse, allowed string) error {
	switch {
	case allowed == "off":
		return limitError("regular expressions are off in this collection")
	case allowed == "anchored" && !re.Anchored:
		return limitError("regular expressions must begin with ^, each of their alternatives too, in this collection")
	}
	return nil
}

func limitError(format string, args ...any) error {
	return errs.New(errs.Invalid, "query_limit", format, args...)
}
