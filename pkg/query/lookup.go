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

// Lookup says which records of another collection come with those of a list.
type Lookup struct {
	From    string // the collection
	Values  string // path of the values in the records of the list
	Foreign string // path of what they are equal to in the others

	// As is the member that takes the list of what was found. "" puts it in the place of the values: of a single value the
	// record, or null.
	As     string
	Listed bool // in the place of the values a list, too

	Select  Selection
	Filter  *mql.Filter
	Sort    mql.Sort // nil: in the order of the values
	Limit   int64    // of records for each one of the list; 0: none
	Lookups []*Lookup

	near   Resolver // of the other collection
	chosen bool     // the lookup itself says what to select
}

// member is the member of a record that shows what was found, or begins the path to it.
func (l *Lookup) member() string {
	if l.As != "" {
		return l.As
	}
	return l.Values
}

func badLookup(format string, args ...any) error {
	return errs.New(errs.Invalid, "bad_lookup", "lookup: "+format, args...)
}

// Lookups reads a lookup parameter: fields that refer to others, or a JSON list of lookups.
func (r Resolver) Lookups(text string) ([]*Lookup, error) {
	text = strings.TrimSpace(text)
	if text != "" && r.relations == nil {
		return nil, badLookup("nothing can be looked up here")
	}
	if len(text) > r.Limits.MaxFilterBytes {
		return nil, limitError("lookup is %d bytes long, the limit is %d", len(text), r.Limits.MaxFilterBytes)
	}
	if text == "" {
		return nil, nil
	}
	if text[0] != '[' && text[0] != '{' {
		return r.fieldLookups(text)
	}
	v, err := document.ParseJSONValue([]byte(text))
	if err != nil {
		return nil, inParameter("lookup", err)
	}
	return r.lookupsOf(v)
}

// lookupsOf reads the JSON form, or what the member lookup of one is.
func (r Resolver) lookupsOf(v any) ([]*Lookup, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return r.fieldLookups(v)
	case bson.D:
		return r.lookupsOf(bson.A{v})
	case bson.A:
		var out []*Lookup
		for _, item := range v {
			var err error
			switch item := item.(type) {
			case string:
				err = r.addFields(&out, item)
			case bson.D:
				err = r.addLookup(&out, item)
			default:
				err = badLookup("must be field names, or a list of objects")
			}
			if err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return nil, badLookup("must be field names, or a list of objects")
}

func (r Resolver) fieldLookups(text string) ([]*Lookup, error) {
	var out []*Lookup
	for path := range strings.SplitSeq(text, ",") {
		if err := r.addFields(&out, strings.TrimSpace(path)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addFields adds the lookup of a field, and those of the fields behind it: author.org is author, and org of each author.
func (r Resolver) addFields(out *[]*Lookup, path string) error {
	if path == "" {
		return badLookup("must look like author,tags")
	}
	f, values, rest := r.through(path)
	if f == nil {
		if _, _, err := r.Path(path); err != nil {
			return err
		}
		return badLookup("%s refers to no other records: name a field with meta.foreign, or give from, localField and foreignField", path)
	}
	if r.Hidden.Covers(path) || r.Hidden.Covers(values) {
		return fieldtype.UnknownField(path)
	}
	if values != f.Path {
		return badLookup("%s: no position in a list can be named", path)
	}
	i := slices.IndexFunc(*out, func(l *Lookup) bool { return l.As == "" && l.Values == values })
	if i < 0 {
		rel, err := r.related(f.Foreign.Collection)
		if err != nil {
			return err
		}
		foreign, _, err := rel.Resolver.Path(f.Foreign.KeyPath())
		if err != nil {
			return fieldtype.UnknownField(path)
		}
		if err := r.ask(); err != nil {
			return err
		}
		l := &Lookup{From: f.Foreign.Collection, Values: values, Foreign: foreign, near: rel.Resolver}
		if err := l.fits(*out); err != nil {
			return err
		}
		i, *out = len(*out), append(*out, l)
	}
	if rest == "" {
		return nil
	}
	l := (*out)[i]
	err := l.near.addFields(&l.Lookups, rest)
	if isUnknownField(err) {
		return fieldtype.UnknownField(path)
	}
	return err
}

// fits refuses a second lookup in one place, and one in the place of what another looks at.
func (l *Lookup) fits(others []*Lookup) error {
	for _, o := range others {
		if l.member() == o.member() {
			return badLookup("%s is looked up twice", l.member())
		}
	}
	return nil
}

// addLookup adds a lookup in its JSON form.
func (r Resolver) addLookup(out *[]*Lookup, doc bson.D) error {
	l, err := r.joinOf(doc)
	if err != nil {
		return err
	}
	if err := r.as(l, doc); err != nil {
		return err
	}
	if err := l.fits(*out); err != nil {
		return err
	}
	if err := l.options(doc); err != nil {
		return err
	}
	*out = append(*out, l)
	return nil
}

// joinOf reads what a lookup joins: {from, localField, foreignField}. A field that refers to others says two of them itself.
func (r Resolver) joinOf(doc bson.D) (*Lookup, error) {
	values, err := textMember(doc, "localField")
	if err != nil {
		return nil, err
	}
	from, err := textMember(doc, "from")
	if err != nil {
		return nil, err
	}
	foreign, err := textMember(doc, "foreignField")
	switch {
	case err != nil:
		return nil, err
	case values == "":
		return nil, badLookup("localField is missing: it names the field whose values to look for")
	}
	stored, f, err := r.Path(values)
	if err != nil {
		return nil, err
	}
	if refers := f.Foreign != nil && f.Foreign.Collection != ""; refers && (from == "" || from == f.Foreign.Collection) {
		from = f.Foreign.Collection
		if foreign == "" {
			foreign = f.Foreign.KeyPath()
		}
	}
	if from == "" || foreign == "" {
		return nil, badLookup("from and foreignField are missing: %s does not refer to other records", values)
	}
	if err := r.comparable(stored, values, "lookup", foreign); err != nil {
		return nil, err
	}
	rel, err := r.related(from)
	if err != nil {
		return nil, err
	}
	l := &Lookup{From: from, Values: stored, near: rel.Resolver}
	if l.Sort, err = rel.Resolver.sort("", rel.DefaultSort); err != nil {
		return nil, err
	}
	if l.Foreign, _, err = rel.Resolver.Path(foreign); err != nil {
		return nil, err
	}
	if err := rel.Resolver.comparable(l.Foreign, foreign, "lookup", foreign); err != nil {
		return nil, err
	}
	return l, r.ask()
}

// as reads where the result goes: into a member that is no field, or in the place of the values. A hidden field is none.
func (r Resolver) as(l *Lookup, doc bson.D) error {
	as, err := textMember(doc, "as")
	switch {
	case err != nil:
		return err
	case as == "":
		as = l.From
	}
	if as == l.Values && !fieldtype.IsSystem(as) {
		if f, ok := r.Tree.Resolve(as); ok && f.Path != as {
			return badLookup("as can't name a position in a list")
		}
		l.Listed = true
		return nil
	}
	declared := slices.ContainsFunc(r.Tree.Fields(), func(f *fieldtype.Field) bool { return f.Name == as })
	switch {
	case fieldtype.IsSystem(as), declared && !r.Hidden.Covers(as):
		return badLookup("as can't be %s, which is a field: give another name", as)
	case strings.ContainsAny(as, ".$\x00"), as == "__proto__", as == "constructor", as == "prototype":
		return badLookup("as must be a name without dots and $, or localField")
	}
	l.As = as
	return nil
}

// options reads the rest of a lookup's members.
func (l *Lookup) options(doc bson.D) (err error) {
	for _, e := range doc {
		switch e.Key {
		case "from", "localField", "foreignField", "as":
		case "lookup":
			l.Lookups, err = l.near.lookupsOf(e.Value)
		case "select", "filter", "sort", "limit": // below: they may name what lookup finds
		default:
			err = badLookup("unknown member %.64q; there are from, localField, foreignField, as, select, filter, sort, limit and lookup", e.Key)
		}
		if err != nil {
			return err
		}
	}
	for _, e := range doc {
		switch e.Key {
		case "select":
			l.chosen = true
			l.Select, err = l.near.selectOf(e.Value, l.Lookups)
		case "filter":
			filter, ok := e.Value.(bson.D)
			if !ok {
				return badLookup("filter must be an object")
			}
			l.Filter, err = l.near.Filter(Where{Filter: filter})
		case "sort":
			l.Sort, err = l.near.sortOf(e.Value)
		case "limit":
			n, ok := e.Value.(int64)
			if !ok || n < 1 {
				return badLookup("limit must be a whole number above 0")
			}
			if n > int64(l.near.Limits.MaxLimit) {
				return limitError("lookup: limit is %d, the highest allowed in %s is %d", n, l.From, l.near.Limits.MaxLimit)
			}
			l.Limit = n
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func textMember(doc bson.D, name string) (string, error) {
	v, ok := document.Member(doc, name)
	text, isText := v.(string)
	if ok && (!isText || text == "") {
		return "", badLookup("%s must be a name", name)
	}
	return text, nil
}

func isUnknownField(err error) bool {
	return err != nil && errs.From(err).Code == errs.From(fieldtype.UnknownField("")).Code
}

// within finds the lookup that shows a path of a select, and the path in what it finds.
func within(lookups []*Lookup, path string) (l *Lookup, rest string) {
	for _, l := range lookups {
		if below, ok := strings.CutPrefix(path, l.member()); ok && below != "" && below[0] == '.' {
			return l, below[1:]
		}
		if path == l.As {
			return l, ""
		}
	}
	return nil, ""
}
