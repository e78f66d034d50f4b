package project

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/schema"
)

// maxRenamedDepth is how deep inside others a field can be that is renamed: aggregations on a MongoDB give names back by
// expressions, which can't be nested for ever.
const maxRenamedDepth = 3

// maxAsked is how many fields of a collection can be renamed at once from ones that the config before does not have: each is looked
// for in the records.
const maxAsked = 20

// isOfField says that a key of Names is that of a field: names of collections have no dots.
func isOfField(key string) bool { return strings.ContainsRune(key, '.') }

// fields adds the names that the renamedFrom of a collection's fields make, and tells the collection what its fields are stored as.
func (n Names) fields(c *Collection, served *Project, there There) error {
	l := &fieldLevel{names: n, collection: c, there: there}
	if served != nil {
		for _, other := range served.Collections {
			if other.StoredName() == c.Stored {
				l.served = other
			}
		}
	}
	names, err := l.resolve(c.Config.Fields, "", c.Stored)
	if c.Tree.Languages() != nil {
		names = names.Within(fieldtype.I18n)
	}
	c.FieldNames = names
	c.known = n
	return err
}

// fieldLevel resolves the fields of one collection.
type fieldLevel struct {
	names      Names
	collection *Collection
	served     *Collection // as it is served; nil: it is not
	there      There
	asked      int
}

// resolve gives the names of a level. at is its path with its dot, key where it is in the store, with the collection.
func (l *fieldLevel) resolve(fields []*schema.Field, at, key string) (*document.Names, error) {
	stored, below, first := map[string]string{}, map[string]*document.Names{}, map[string]string{}
	for _, f := range fields {
		own := key + "." + f.Name
		if f.RenamedFrom != "" && l.names[own].From != f.RenamedFrom {
			in, err := l.source(f, key)
			if err != nil {
				return nil, err
			}
			l.names[own] = StoredName{In: in, From: f.RenamedFrom}
		}
	}
	for _, f := range fields {
		own := key + "." + f.Name
		in := cmp.Or(l.names[own].In, f.Name)
		if other, taken := first[in]; taken {
			return nil, l.sameValues(at, key, other, f.Name)
		}
		first[in], stored[f.Name] = f.Name, in
		inner, err := l.resolve(f.SubFields, at+f.Name+".", key+"."+in)
		if err != nil {
			return nil, err
		}
		below[f.Name] = inner
	}
	return document.NewNames(stored, below), nil
}

// source gives what a field is stored as that is renamed now: as the one before, if that was served, or is known or stored.
func (l *fieldLevel) source(f *schema.Field, key string) (string, error) {
	before := key + "." + f.RenamedFrom
	in := cmp.Or(l.names[before].In, f.RenamedFrom)
	if l.names[before].In != "" || l.served.hasStored(key, in) {
		return in, nil
	}
	if l.asked++; l.asked > maxAsked {
		return "", errs.New(errs.Limit, "field_renamed", "more than %d fields of %s are renamed from fields that it does not have, of which %s is one: "+
			"leave out renamedFrom where there is nothing to keep, or reload in steps", maxAsked, l.collection.Name, f.RenamedFrom)
	}
	_, level, _ := strings.Cut(key+".", ".")
	was, err := l.there(l.collection.Stored, level+in)
	if err == nil && !was {
		in = f.Name
	}
	return in, err
}

// hasStored says that the collection has a field that is stored by a name, at a level as it is in the store, with the collection.
func (c *Collection) hasStored(key, in string) bool {
	if c == nil {
		return false
	}
	found := false
	c.Tree.Walk(func(f *fieldtype.Field) {
		found = found || c.StoredName()+"."+c.FieldNames.Path(f.Path) == key+"."+in
	})
	return found
}

func (l *fieldLevel) sameValues(at, key, a, b string) error {
	if l.names[key+"."+a].From == "" {
		a, b = b, a
	}
	return errs.New(errs.Limit, "field_renamed", "the fields %s%s and %s%s of %s would have the same values, since %s%s was renamed from %s: "+
		"leave one of them out, or give %s%s another name", at, a, at, b, l.collection.Name, at, a, l.names[key+"."+a].From, at, b)
}

// StoredField gives what the path of a field is stored as, without positions in lists: also that of one which was renamed, by a name
// that it had before. Files of the field have it in their place.
func (c *Collection) StoredField(path string) string {
	names, key := strings.Split(path, "."), c.StoredName()
	for i, name := range names {
		names[i] = cmp.Or(c.known[key+"."+name].In, name)
		key = c.StoredName() + "." + strings.Join(names[:i+1], ".")
	}
	return strings.Join(names, ".")
}

// FileField gives the path of the field that has files at an address by that path, or by one that it had before it was renamed; "" if
// there is none.
func (c *Collection) FileField(path string) string {
	if slices.Contains(c.Uploads.Fields, path) {
		return path
	}
	stored := c.StoredField(path)
	for _, field := range c.Uploads.Fields {
		if c.StoredField(field) == stored {
			return field
		}
	}
	return ""
}

// nameFields gathers what the fields of all collections are stored as.
func (p *Project) nameFields() {
	p.FieldNames = nil
	for _, c := range p.Collections {
		if c.FieldNames == nil {
			continue
		}
		if p.FieldNames == nil {
			p.FieldNames = map[string]*document.Names{}
		}
		p.FieldNames[c.StoredName()] = c.FieldNames
	}
}

// renamedFields checks what the renamedFrom of the fields of one level name.
func (c *compiler) renamedFields(fields []*schema.Field, at string, depth int) {
	names := map[string]bool{}
	for _, f := range fields {
		names[f.Name] = true
	}
	first := map[string]string{}
	for i, f := range fields {
		here := at + "[" + strconv.Itoa(i) + "]"
		c.renamedFields(f.SubFields, here+".subFields", depth+1)
		from := f.RenamedFrom
		here += ".renamedFrom"
		switch {
		case from == "" || f.Name == "":
		case depth > maxRenamedDepth:
			c.fail(here, schema.CodeRange, "only fields that are at most %d deep inside others can be renamed", maxRenamedDepth)
		case from == f.Name:
			c.fail(here, schema.CodeConflict, "is the name that the field has")
		case names[from]:
			c.fail(here, schema.CodeConflict, "the field %s is still there: what is renamed has one name, so leave out %s, or renamedFrom", from, from)
		case first[from] != "":
			c.fail(here, schema.CodeConflict, "%s is renamed from it, too", first[from])
		default:
			first[from] = f.Name
		}
	}
}
