package plan

import (
	"bytes"
	"reflect"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/search"
)

// searches compares the searches of a collection, the one that text indexes stand for included.
func (d *differ) searches(old, next *project.Collection) {
	a, b := byName(old), byName(next)
	for _, name := range both(a, b) {
		object := next.Name + "." + name
		switch was, is := a[name], b[name]; {
		case was == nil && is.Mode.Indexed():
			it := d.add("search", object, api.PlanCreate, api.RiskSafe, made(is)+": "+describeSearch(is))
			it.test, it.judged = &test{collection: next.StoredName(), search: true}, &judgedSearch{next.Name, name}
		case was == nil:
			it := d.add("search", object, api.PlanCreate, api.RiskSafe, "is new: "+describeSearch(is))
			it.judged = &judgedSearch{next.Name, name}
		case is == nil:
			d.add("search", object, api.PlanDelete, api.RiskBreaking, "who names it in qName is refused: "+describeSearch(was))
		default:
			d.search(object, old, next, was, is)
		}
	}
	if len(old.Searches) == 0 || len(next.Searches) == 0 {
		return
	}
	if was, is := old.Searches[0].Name, next.Searches[0].Name; was != is {
		it := d.add("search", next.Name+"."+is, api.PlanUpdate, api.RiskBreaking, "is what q searches by without a qName, before "+was)
		it.judged = &judgedSearch{next.Name, is}
	}
}

func byName(c *project.Collection) map[string]*search.Config {
	out := map[string]*search.Config{}
	for _, s := range c.Searches {
		out[s.Name] = s
	}
	return out
}

// search compares two versions of one search. All that changes in it is one item.
func (d *differ) search(object string, old, next *project.Collection, was, is *search.Config) {
	changed := searchChanges(old, next, was, is)
	if len(changed) == 0 {
		return
	}
	it := d.add("search", object, api.PlanUpdate, api.RiskSafe, strings.Join(changed, ", ")+" changes")
	if slices.ContainsFunc(changed, func(member string) bool { return !slices.Contains([]string{"async", "autoRegenerate", "meta"}, member) }) {
		it.judged = &judgedSearch{next.Name, is.Name}
	}
	if !is.Mode.Indexed() || fingerprint(old, was) == fingerprint(next, is) && was.Group == is.Group {
		return
	}
	it.Detail += "; " + made(is) + " anew: " + describeSearch(is)
	if was.Mode.Indexed() && !is.AutoRegenerate {
		it.Detail += ", when regenerate-search is called; until then the index of before answers"
	}
	it.test = &test{collection: next.StoredName(), search: true}
}

// made says what has to be done with the records of a search that has an index.
func made(s *search.Config) string {
	if s.Mode == search.Vector {
		return "to embed"
	}
	return "to build"
}

func fingerprint(c *project.Collection, s *search.Config) string {
	return s.Fingerprint(c.FieldNames.Path, c.FieldNames)
}

// searchChanges names the members of the config that another search comes of. Fields that were renamed are the same ones.
func searchChanges(old, next *project.Collection, was, is *search.Config) []string {
	a, path := *was, as(old, next)
	a.Fields, a.Override = slices.Clone(was.Fields), path(was.Override)
	for i := range a.Fields {
		a.Fields[i].Path = path(a.Fields[i].Path)
	}
	if a.Recency != nil {
		moved := *a.Recency
		moved.Path = path(moved.Path)
		a.Recency = &moved
	}
	b := *is
	others := !slices.EqualFunc(a.Fields, b.Fields, func(f, g search.Field) bool { return f.Path == g.Path })
	of := func(differ func(f, g search.Field) bool) bool { // in the fields of both
		return slices.ContainsFunc(a.Fields, func(f search.Field) bool {
			return slices.ContainsFunc(b.Fields, func(g search.Field) bool { return f.Path == g.Path && differ(f, g) })
		})
	}
	language := func(f, g search.Field) bool {
		return f.Language != g.Language || !slices.Equal(f.Translations, g.Translations)
	}
	weight := func(f, g search.Field) bool { return f.Weight != g.Weight }
	filter := func(c *project.Collection, s *search.Config) []byte {
		if s.Filter == nil {
			return nil
		}
		return s.Filter.Stored(c.FieldNames).Raw()
	}
	var out []string
	for _, x := range []struct {
		member string
		differ bool
	}{
		{"mode", a.Mode != b.Mode},
		{"fields", others},
		{"the language", a.Override != b.Override || of(language)},
		{"eval", evalChanges(was.Eval, is.Eval, others)},
		{"filter", !bytes.Equal(filter(old, was), filter(next, is))},
		{"text", a.Fuzzy != b.Fuzzy || a.Prefix != b.Prefix || a.All != b.All},
		{"ngram", a.MinGram != b.MinGram || a.MaxGram != b.MaxGram},
		{"regex", a.Options != b.Options},
		{"vector", a.Group != b.Group},
		{"score", a.MinScore != b.MinScore || !reflect.DeepEqual(a.Recency, b.Recency) || of(weight)},
		{"rrf", a.K != b.K || a.TopK != b.TopK || !slices.Equal(a.Sources, b.Sources)},
		{"async", a.Async != b.Async},
		{"autoRegenerate", a.AutoRegenerate != b.AutoRegenerate},
		{"meta", !reflect.DeepEqual(searchMeta(old, a.Name), searchMeta(next, b.Name))},
	} {
		if x.differ {
			out = append(out, x.member)
		}
	}
	return out
}

// searchMeta gives what is free in a search config; nil for the search that text indexes stand for.
func searchMeta(c *project.Collection, name string) any {
	for _, s := range c.Config.Search {
		if s.Name == name && len(s.Meta) > 0 {
			return s.Meta
		}
	}
	return nil
}

// evalChanges says whether there is another script, or the same is given the fields by other names. others says that they are others.
func evalChanges(was, is *search.Eval, others bool) bool {
	if was == nil || is == nil {
		return was != is
	}
	return was.Print != is.Print || !others && !slices.Equal(was.Paths, is.Paths)
}

func describeSearch(s *search.Config) string {
	var names []string
	for _, f := range s.Fields {
		names = append(names, f.Path)
	}
	for _, f := range s.Sources {
		names = append(names, f.Name)
	}
	by := ""
	if s.Eval != nil {
		by = "eval of "
	}
	text := string(s.Mode) + " (" + by + strings.Join(names, ", ") + ")"
	if s.Mode == search.Vector {
		text += " by the group " + s.Group
	}
	return text
}
