package project

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/schema"
)

// Names are the collections and fields of a namespace that do not have their own name in the store, because they were renamed:
// their records, and the values in these, stay under the name that they were first stored by. So nothing is moved, and whoever
// still serves the config before reads and writes the same records. The keys are the names that configs have; that of a field
// has in front of it where it is in the store: collection and fields around it, with dots. It is never written.
type Names map[string]StoredName

// StoredName says where the records of a collection, or the values of a field, are.
type StoredName struct {
	In   string // the collection of the store, or the field there
	From string // the renamedFrom that made it so
}

// There says whether the store has a collection (field is ""), or any record of it with something at the path of a field.
type There func(collection, field string) (bool, error)

// in gives the collection of the store that one of a config is in.
func (n Names) in(name string) string { return cmp.Or(n[name].In, name) }

// Resolve tells each collection of p where its records are, and gives the names with those that p's renamedFrom add. A
// renamedFrom that was carried out before is no news, and neither is one that is gone from the config. there is asked about
// what is renamed now and that served, the config before (nil: none), does not have. Two collections that would have the same
// records are errs.Limit, and so are two fields that would have the same values.
func (n Names) Resolve(p, served *Project, there There) (Names, error) {
	out := maps.Clone(n)
	if out == nil {
		out = Names{}
	}
	all := slices.Sorted(maps.Keys(p.Collections))
	for _, name := range all {
		from := p.Collections[name].Config.RenamedFrom
		if from == "" || n[name].From == from {
			continue
		}
		in, err := n.source(name, from, served, there)
		if err != nil {
			return nil, err
		}
		out[name] = StoredName{In: in, From: from}
	}
	first := map[string]string{}
	for _, name := range all {
		in := out.in(name)
		if other, taken := first[in]; taken {
			return nil, sameRecords(out, other, name)
		}
		first[in] = name
	}
	named := map[string][]string{} // by collection of the store: which names are those of it, sorted
	for _, name := range slices.Sorted(maps.Keys(out)) {
		if !isOfField(name) {
			named[out[name].In] = append(named[out[name].In], name)
		}
	}
	for _, name := range all {
		p.Collections[name].storeIn(out, named)
	}
	for _, name := range all {
		if err := out.fields(p.Collections[name], served, there); err != nil {
			return nil, err
		}
	}
	p.nameFields()
	return out, singletonsApart(p, all)
}

// source gives the collection of the store that a collection is in that is renamed now. Where somebody has renamed it in the
// store already, that is done.
func (n Names) source(name, from string, served *Project, there There) (string, error) {
	in := n.in(from)
	if served != nil && served.Collections[from] != nil || n[from].In != "" {
		return in, nil
	}
	was, err := there(in, "")
	if was || err != nil {
		return in, err
	}
	is, err := there(name, "")
	if is {
		in = name
	}
	return in, err
}

func sameRecords(n Names, a, b string) error {
	if n[a].From == "" {
		a, b = b, a
	}
	return errs.New(errs.Limit, "collection_renamed", "the collections %s and %s would have the same records, since %s was renamed from %s: "+
		"leave one of them out, or give %s another name", a, b, a, cmp.Or(n[a].From, n.in(a)), b)
}

// storeIn tells the collection where its records are.
func (c *Collection) storeIn(n Names, named map[string][]string) {
	c.Stored, c.Before = n.in(c.Name), nil
	if c.Config.UploadPath == "" {
		c.Uploads.Dir = c.Stored
	}
	if c.Stored != c.Name {
		c.Before = append(c.Before, c.Stored)
	}
	for _, name := range named[c.Stored] {
		if name != c.Name && name != c.Stored {
			c.Before = append(c.Before, name)
		}
	}
}

// singletonsApart refuses singletons whose files would be in one folder: their records have the same id.
func singletonsApart(p *Project, all []string) error {
	first := map[string]string{}
	for _, name := range all {
		c := p.Collections[name]
		if !c.Singleton || len(c.Uploads.Fields) == 0 {
			continue
		}
		if other, taken := first[c.Uploads.Dir]; taken {
			return errs.New(errs.Limit, "collection_renamed", "the singletons %s and %s have their files in %q: give one of them another uploadPath",
				other, name, c.Uploads.Dir)
		}
		first[c.Uploads.Dir] = name
	}
	return nil
}

// StoredName is the name that the collection has in the store.
func (c *Collection) StoredName() string { return cmp.Or(c.Stored, c.Name) }

// Addressed gives the collection of a name, or the one that had it before it was renamed: addresses of files that were given out
// go on being good. It is nil if there is none.
func (p *Project) Addressed(name string) *Collection {
	if c := p.Collections[name]; c != nil {
		return c
	}
	for _, c := range p.Collections {
		if slices.Contains(c.Before, name) {
			return c
		}
	}
	return nil
}

// renames checks what the renamedFrom of collections name.
func (c *compiler) renames(p *Project) {
	first := map[string]string{}
	for i, col := range p.Config.Collections {
		from, here := col.RenamedFrom, "collections["+strconv.Itoa(i)+"].renamedFrom"
		switch {
		case from == "":
		case from == col.Name:
			c.fail(here, schema.CodeConflict, "is the name that the collection has")
		case p.Collections[from] != nil:
			c.fail(here, schema.CodeConflict, "the collection %s is still there: what is renamed has one name, so leave out %s, or renamedFrom", from, from)
		case first[from] != "":
			c.fail(here, schema.CodeConflict, "%s is renamed from it, too", first[from])
		default:
			first[from] = col.Name
		}
	}
}
