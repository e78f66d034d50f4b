package pipeline

import (
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// facet is $facet: the results of several pipelines on the same documents, in one document.
type facet struct {
	names  []string
	chains []chain
}

func compileFacet(c *compiler, name string, spec any) (stage, any, error) {
	d, ok := asObject(spec)
	if !ok || len(d) == 0 {
		return nil, nil, bad(40169, "%s needs an object of pipelines", name)
	}
	f := &facet{}
	var raw bson.D
	for _, e := range d {
		list, ok := asList(e.Value)
		if !ok {
			return nil, nil, bad(40170, "%s: %s has to be a list of stages", name, document.Readable(e.Key))
		}
		if err := document.CheckFieldName(slugBad, e.Key); err != nil {
			return nil, nil, err
		}
		inner, stages, err := c.inner(name, list, nil)
		if err != nil {
			return nil, nil, err
		}
		for _, v := range list {
			if s, _ := asObject(v); len(s) == 1 && s[0].Key == "$facet" {
				return nil, nil, bad(40600, "$facet can't be in a $facet")
			}
		}
		f.names, f.chains = append(f.names, e.Key), append(f.chains, inner)
		raw = append(raw, bson.E{Key: e.Key, Value: stages})
	}
	return f, raw, nil
}

// stages gives a chain as stages, for what is not read from a collection.
func (c *chain) stages() []stage {
	var all []stage
	if c.lead.Filter != nil {
		all = append(all, &match{filter: c.lead.Filter})
	}
	if len(c.lead.Sort) > 0 {
		s := &sorting{by: c.lead.Sort}
		if c.lead.Limit > 0 {
			s.most = max(c.lead.Skip+c.lead.Limit, 0)
		}
		all = append(all, s)
	}
	if c.lead.Skip > 0 {
		all = append(all, skip(c.lead.Skip))
	}
	if c.lead.Limit > 0 {
		all = append(all, limit(c.lead.Limit))
	}
	return append(all, c.rest...)
}

func (f *facet) open(r *run, next sink) sink {
	s := &faceting{facet: f, r: r, next: next, branches: make([]facetBranch, len(f.chains))}
	for i := range s.branches {
		b := &s.branches[i]
		b.results = newDocList(nil)
		b.to = r.open(f.chains[i].stages(), output(func(doc bson.Raw) error {
			b.results.add(doc)
			return r.hold(len(doc) + 8)
		}))
	}
	return s
}

type faceting struct {
	*facet
	r        *run
	next     sink
	branches []facetBranch
}

// facetBranch is a pipeline that runs, and the list of its results.
type facetBranch struct {
	to      sink
	done    bool
	results docList
}

func (f *faceting) push(doc bson.Raw) error {
	open := false
	for i := range f.branches {
		b := &f.branches[i]
		if b.done {
			continue
		}
		err := f.r.give(b.to, doc)
		switch {
		case errors.Is(err, errEnough):
			b.done = true
		case err != nil:
			return err
		default:
			open = true
		}
	}
	if !open {
		return errEnough
	}
	return nil
}

func (f *faceting) end() error {
	start, out := openDoc(nil)
	held := 0
	for i := range f.branches {
		b := &f.branches[i]
		if err := finish(b.to); err != nil {
			return err
		}
		list := b.results.close()
		held += len(list)
		out = append(appendName(out, bson.TypeArray, f.names[i]), list...)
		b.results = docList{}
	}
	out = document.Close(out, start)
	if err := unlessEnough(f.r.give(f.next, out)); err != nil {
		return err
	}
	return f.next.end()
}
