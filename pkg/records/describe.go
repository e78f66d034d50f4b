package records

import (
	"context"
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/search"
)

// Description is what a caller may know of a collection: nothing of it names a field that is hidden from them.
type Description struct {
	Fields      []DescribedField
	Projections []string // those that the caller may use, sorted
	Searches    []DescribedSearch
	Meta        bson.D // the config's
	Rights      []MethodRights
	ReadsAll    bool // no filter keeps records from the caller
	// Unnameable is what the caller can't name in a query: what is hidden from them, be it on some records only.
	Unnameable *document.PathSet

	hidden *document.PathSet
}

// DescribedSearch is a search that finds something for the caller. The first is that of q without a qName.
type DescribedSearch struct {
	Name, Mode string
	Fields     []string // those that are searched for the caller
	Sources    []string // of mode rrf: the searches of these that it fuses
	Eval       bool     // a script makes the text of the fields
	Meta       bson.D   // the config's
}

// DescribedField is one declared field.
type DescribedField struct {
	Name       string
	Path       string
	Readonly   bool // by the field, by the collection, or for this caller
	Translated bool // it may have a value for each language
	Sub        []DescribedField
	// Unsaid are the rules that compare with a field that is hidden from the caller.
	Unsaid []string
}

// MethodRights says whether the caller has a method, and what Grant says of it.
type MethodRights struct {
	Method  access.Method
	Allowed bool
	Grant   access.Grant // zero unless Allowed
}

// Shows says whether the caller may know that there is something at a path.
func (d *Description) Shows(path string) bool { return !d.hidden.Covers(path) }

// ShowsKey says whether the caller may know of all fields of an index's key.
func (d *Description) ShowsKey(key []string) bool {
	return !slices.ContainsFunc(key, func(path string) bool { return !d.Shows(strings.TrimPrefix(path, "-")) })
}

// Grants gives what the caller may do with each method, without those that they may not use. An error is none of rights.
func (s *Service) Grants(ctx context.Context, c *Call) (map[access.Method]access.Grant, error) {
	out := map[access.Method]access.Grant{}
	for m := access.Get; m <= access.Delete; m++ {
		switch g, err := s.grant(ctx, c, m); {
		case err == nil:
			out[m] = g
		case errs.KindOf(err) != errs.Denied:
			return nil, err
		}
	}
	return out, nil
}

// ReadsAll says whether the caller may read all records of a collection. It runs no script: where one would decide, they may not.
func (s *Service) ReadsAll(ctx context.Context, c *Call) bool {
	env := s.env(ctx, c, nil)
	env.RunFilter = nil
	g, err := c.Collection.Permissions.Decide(c.Principal, access.Get, env)
	return err == nil && g.Filter == nil
}

// Describe tells what a collection is like to those who may read it.
func (s *Service) Describe(ctx context.Context, c *Call) (*Description, error) {
	g, err := s.grant(ctx, c, access.Get)
	if err != nil {
		return nil, err
	}
	d := &Description{ReadsAll: g.Filter == nil, Unnameable: neverNamed(g), hidden: g.Hidden}
	readonly := g.Readonly
	for _, m := range []access.Method{access.Delete, access.Post, access.Put, access.Get} {
		rights := MethodRights{Method: m}
		if rights.Grant, err = s.grant(ctx, c, m); err == nil {
			rights.Allowed = true
			if m == access.Post || m == access.Put { // of those who may write, what they can't write; updates count first
				readonly = rights.Grant.Readonly
			}
		}
		d.Rights = append(d.Rights, rights)
	}
	d.Fields = describeFields(c.Collection.Tree, g.Hidden, readonly.Union(c.Collection.Readonly))
	for _, name := range slices.Sorted(maps.Keys(c.Collection.Projections)) {
		if g.AllProjections || slices.Contains(g.Projections, name) {
			d.Projections = append(d.Projections, name)
		}
	}
	d.Searches = describeSearches(c.Collection, neverNamed(g))
	if meta := c.Collection.Config.Meta; meta != nil {
		d.Meta = withoutHints(slices.Clone(meta.Raw), g.Hidden)
	}
	if slices.ContainsFunc(c.Collection.DefaultSort, func(f mql.SortField) bool { return neverNamed(g).Touches(f.Path) }) {
		d.Meta = slices.DeleteFunc(d.Meta, func(e bson.E) bool { return e.Key == "defaultSort" })
	}
	return d, nil
}

// withoutHints leaves out what agents are told of fields (meta.agent.fieldHints) that are hidden from the caller: even their names.
func withoutHints(meta bson.D, hidden *document.PathSet) bson.D {
	for i, e := range meta {
		agent, ok := e.Value.(bson.D)
		if !ok || e.Key != "agent" {
			continue
		}
		agent = slices.Clone(agent)
		for j, guide := range agent {
			if hints, ok := guide.Value.(bson.D); ok && guide.Key == "fieldHints" {
				agent[j].Value = visibleHints(hints, "", hidden)
			}
		}
		meta[i].Value = agent
	}
	return meta
}

// visibleHints leaves out hints at hidden paths. What a hint says may be an object itself, such as hints of the fields below.
func visibleHints(hints bson.D, above string, hidden *document.PathSet) bson.D {
	out := make(bson.D, 0, len(hints))
	for _, hint := range hints {
		path := join(above, hint.Key)
		if hidden.Covers(path) {
			continue
		}
		if below, ok := hint.Value.(bson.D); ok {
			hint.Value = visibleHints(below, path, hidden)
		}
		out = append(out, hint)
	}
	return out
}

func describeFields(tree *fieldtype.Tree, hidden, readonly *document.PathSet) []DescribedField {
	out := make([]DescribedField, 0, len(tree.Fields()))
	for _, f := range tree.Fields() {
		if hidden.Covers(f.Path) || f.Holds() {
			continue
		}
		d := DescribedField{Name: f.Name, Path: f.Path, Readonly: readonly.Covers(f.Path), Translated: f.Translated}
		for _, rule := range f.Rules {
			if rule.Other != "" && hidden.Covers(join(strings.TrimSuffix(strings.TrimSuffix(f.Path, f.Name), "."), rule.Other)) {
				d.Unsaid = append(d.Unsaid, rule.Name)
			}
		}
		if f.Sub != nil {
			d.Sub = describeFields(f.Sub, hidden, readonly)
		}
		out = append(out, d)
	}
	return out
}

// describeSearches leaves out what the caller may not name, and searches of which nothing is left.
func describeSearches(c *project.Collection, never *document.PathSet) []DescribedSearch {
	fields := func(s *search.Config) (paths []string) {
		for _, f := range s.Visible(never) {
			paths = append(paths, f.Path)
		}
		return paths
	}
	var out []DescribedSearch
	for _, s := range c.Searches {
		d := DescribedSearch{Name: s.Name, Mode: string(s.Mode), Fields: fields(s), Eval: s.Eval != nil}
		for _, source := range s.Sources {
			if of := c.Search(source.Name); of != nil && len(fields(of)) > 0 {
				d.Sources = append(d.Sources, source.Name)
			}
		}
		if len(d.Fields)+len(d.Sources) == 0 {
			continue
		}
		for _, config := range c.Config.Search {
			if config.Name == s.Name {
				d.Meta = config.Meta
			}
		}
		out = append(out, d)
	}
	return out
}
