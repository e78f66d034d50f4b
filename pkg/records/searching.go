package records

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/search/engine"
	"github.com/svcctl/svc/pkg/store"
)

// Searching has the service search by an engine, and tell it what was written. It comes before the first call.
func (s *Service) Searching(e *engine.Engine) { s.search = e }

// indexed tells the search indexes which records were written, or notes it where that is part of a transaction.
func (s *Service) indexed(ctx context.Context, c *Call, changes []change, results []store.Result) {
	if s.search == nil || len(c.Collection.Searches) == 0 {
		return
	}
	var ids []bson.ObjectID
	for i, r := range results {
		if r.Err != nil {
			continue
		}
		if ch := changes[i]; ch.before != nil {
			ids = append(ids, idOf(ch.before))
		} else {
			ids = append(ids, idOf(ch.Doc))
		}
	}
	if x := sessionOf(ctx, c.Project.Namespace); x != nil {
		x.committed(func() { s.search.Written(ctx, c.Project, c.Collection, ids) })
		return
	}
	s.search.Written(ctx, c.Project, c.Collection, ids)
}

// sought is what a search has found for a caller.
type sought struct {
	*engine.Results

	config *search.Config
	s      *Service
	c      *Call
	within *mql.Filter // what the records have to match that the caller gets
	own    bool        // the caller has a filter of their own
}

// errSortedSearch is for a sort of more than can be sorted.
var errSortedSearch = errs.New(errs.Invalid, "search_too_wide",
	"q finds more than %d records, which is more than can be sorted: narrow q, or leave sort out to have the best first", maxWindow)

// maxWindow is how many of the records that were found are sorted or counted.
const maxWindow = 10_000

// searchOf gives the search that a caller names, as far as there is one for them. config is nil if they look for nothing.
func searchOf(c *Call, g access.Grant, q query.Search) (config *search.Config, words []search.Word, err error) {
	if q.Text == "" {
		if q.Name != "" {
			return nil, nil, errs.New(errs.Invalid, "bad_parameter", "qName needs q, the words to look for")
		}
		return nil, nil, nil
	}
	for _, one := range c.Collection.Searches {
		if (q.Name == "" || one.Name == q.Name) && finds(c.Collection.Searches, one, neverNamed(g)) {
			config = one
			break
		}
	}
	switch {
	case config == nil && q.Name == "":
		return nil, nil, errs.New(errs.Invalid, "no_search", "%s has no search: leave q out, or use filter", c.Collection.Name)
	case config == nil:
		return nil, nil, errs.New(errs.Invalid, "unknown_search", "unknown search: %.60s%s", q.Name, searchNames(c, g))
	case config.Mode == search.Regex:
		return config, nil, nil
	}
	words, err = search.Parse(q.Text)
	return config, words, err
}

// finds says whether a search can find anything for a caller.
func finds(all []*search.Config, one *search.Config, hidden *document.PathSet) bool {
	if one.Mode == search.RRF {
		return slices.ContainsFunc(one.Sources, func(source search.Source) bool {
			i := slices.IndexFunc(all, func(x *search.Config) bool { return x.Name == source.Name })
			return i >= 0 && finds(all, all[i], hidden)
		})
	}
	return slices.ContainsFunc(one.Fields, func(f search.Field) bool { return !hidden.Touches(f.Path) })
}

func searchNames(c *Call, g access.Grant) string {
	var names []string
	for _, one := range c.Collection.Searches {
		if finds(c.Collection.Searches, one, neverNamed(g)) {
			names = append(names, one.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; " + c.Collection.Name + " has " + strings.Join(names, ", ")
}

// byPattern is the filter that a search of mode regex stands for.
func byPattern(r query.Resolver, config *search.Config, g access.Grant, pattern string) (*mql.Filter, error) {
	var branches bson.A
	for _, f := range config.Fields {
		if !neverNamed(g).Touches(f.Path) {
			branches = append(branches, bson.D{{Key: f.Path, Value: bson.D{{Key: "$regex", Value: pattern}, {Key: "$options", Value: config.Options}}}})
		}
	}
	f, err := r.Filter(query.Where{Filter: bson.D{{Key: "$or", Value: branches}}})
	if err != nil {
		e := *errs.From(err)
		e.Message = "q: " + e.Message
		return nil, &e
	}
	return mql.And(config.Filter, f), nil
}

// seek looks for records. own is the caller's own filter. What comes of it has to be closed.
func (s *Service) seek(ctx context.Context, c *Call, g access.Grant, config *search.Config, words []search.Word, own *mql.Filter, topK int) (*sought, error) {
	if s.search == nil {
		return nil, engine.ErrBuilding
	}
	out := &sought{config: config, s: s, c: c, within: mql.And(g.Filter, own), own: own != nil}
	q := engine.Query{
		Project: c.Project, Collection: c.Collection, Search: config, Words: words, Hidden: neverNamed(g), Filter: g.Filter, TopK: topK,
	}
	if c.isTranslating() {
		q.Lang = c.Lang
	}
	if own != nil {
		q.Accept = out.accept
	}
	var err error
	out.Results, err = s.search.Search(ctx, q)
	if errors.Is(err, engine.ErrNothingToSearch) {
		err = errs.New(errs.Invalid, "no_search", "%s has no search: leave q out, or use filter", c.Collection.Name)
	}
	return out, err
}

// accept gives those of some ids that the caller wants.
func (f *sought) accept(ctx context.Context, ids []bson.ObjectID) (out []bson.ObjectID, err error) {
	err = f.s.collection(ctx, f.c).Find(ctx, store.Query{Filter: mql.And(f.within, withIDs(ids)), Project: idOnly()}, func(doc bson.Raw) error {
		out = append(out, idOf(doc))
		return nil
	})
	return out, err
}

func withIDs(ids []bson.ObjectID) *mql.Filter {
	values := make([]bson.RawValue, len(ids))
	for i := range ids {
		values[i] = idValue(ids[i])
	}
	return mql.OneOf("_id", values)
}

// mostAtOnce is how many records are read at once to see whether the caller gets them.
const mostAtOnce = 2048

// searchPage reads a page of what was found, the best first.
func (s *Service) searchPage(ctx context.Context, f *sought, q store.Query, p query.Params) (*Page, error) {
	ctx, cancel := s.paced(ctx, f.c)
	defer cancel()
	page, err := f.page(ctx, q)
	if err == nil && p.Count {
		page.Total, err = f.total(ctx)
	}
	return page, s.storeError(ctx, err)
}

func (f *sought) page(ctx context.Context, q store.Query) (*Page, error) {
	page := &Page{Limit: q.Limit, Offset: q.Skip, Total: -1}
	if q.Limit == 0 {
		return page, nil
	}
	size, n := 0, q.Skip+q.Limit+1
	for skip := q.Skip; ; n = min(2*n, mostAtOnce) {
		hits := f.Next(int(n))
		if len(hits) == 0 {
			return page, nil
		}
		docs, err := f.read(ctx, hits)
		if err != nil {
			return nil, err
		}
		for i := range hits {
			doc := docs[hits[i].ID]
			switch {
			case doc == nil:
			case skip > 0:
				skip--
			case len(page.Items) == int(q.Limit) || size > maxPageSize:
				page.HasMore = true
				return page, nil
			default:
				size += len(doc)
				page.Items = append(page.Items, Record{raw: doc, found: &found{hit: hits[i]}})
			}
		}
	}
}

// read reads those of the records that were found that the caller gets.
func (f *sought) read(ctx context.Context, hits []engine.Hit) (map[bson.ObjectID]bson.Raw, error) {
	ids := make([]bson.ObjectID, len(hits))
	for i := range hits {
		ids[i] = hits[i].ID
	}
	docs := make(map[bson.ObjectID]bson.Raw, len(hits))
	err := f.s.collection(ctx, f.c).Find(ctx, store.Query{Filter: mql.And(f.within, withIDs(ids))}, func(doc bson.Raw) error {
		docs[idOf(doc)] = bytes.Clone(doc)
		return nil
	})
	return docs, err
}

// sortedPage reads a page of what was found in the order that the caller asks for.
func (s *Service) sortedPage(ctx context.Context, f *sought, q store.Query, p query.Params) (*Page, error) {
	if f.Len() > maxWindow {
		return nil, errSortedSearch
	}
	hits := map[bson.ObjectID]engine.Hit{}
	var ids []bson.ObjectID
	for _, h := range f.Next(maxWindow) {
		hits[h.ID] = h
		ids = append(ids, h.ID)
	}
	q.Filter = mql.And(q.Filter, withIDs(ids))
	page, err := s.readPage(ctx, f.c, q, p.Count)
	if err != nil {
		return nil, err
	}
	for i := range page.Items {
		page.Items[i].found = &found{hit: hits[idOf(page.Items[i].raw)]}
	}
	return page, nil
}

// close ends what was found. There may be nothing to end.
func (f *sought) close() {
	if f != nil {
		_ = f.Close() // a view that was read
	}
}

// total is how many records were found that the caller gets.
func (f *sought) total(ctx context.Context) (int64, error) {
	if !f.own { // the index has counted within what they may see
		return int64(f.Len()), nil
	}
	ids, _, err := f.window(ctx, -1)
	return int64(len(ids)), err
}

// window gives the best n that the caller gets, all of them for -1, and whether there are more.
func (f *sought) window(ctx context.Context, n int) (ids []bson.ObjectID, cut bool, err error) {
	f.Rewind()
	for {
		hits := f.Next(mostAtOnce)
		if len(hits) == 0 {
			return ids, false, nil
		}
		some := make([]bson.ObjectID, len(hits))
		for i := range hits {
			some[i] = hits[i].ID
		}
		accepted, err := f.accept(ctx, some)
		if err != nil {
			return nil, false, err
		}
		wanted := make(map[bson.ObjectID]bool, len(accepted))
		for _, id := range accepted {
			wanted[id] = true
		}
		for _, id := range some {
			switch {
			case !wanted[id]:
			case n >= 0 && len(ids) == n:
				return ids, true, nil
			default:
				ids = append(ids, id)
			}
		}
	}
}

// found is what a search says of a record.
type found struct {
	hit             engine.Hit
	highlights, why bson.D // nil: not asked for
}

// appendJSON puts what the search says behind the members of a record, which always has its id.
func (f *found) appendJSON(dst []byte) []byte {
	extra := bson.D{{Key: "_score", Value: f.hit.Score}}
	if f.highlights != nil {
		extra = append(extra, bson.E{Key: "_highlights", Value: f.highlights})
	}
	if f.why != nil {
		extra = append(extra, bson.E{Key: "_explain", Value: f.why})
	}
	return append(appendExtra(dst[:len(dst)-1], extra), '}')
}

// tell adds to records what was asked for beside them: marked texts, of what goes out of them, and why they were found.
func (f *sought) tell(ctx context.Context, items []Record, p query.Search) error {
	if f == nil || !p.Highlight && !p.Explain {
		return nil
	}
	var hits []engine.Hit
	var of []*found
	for i := range items {
		at := items[i].found
		if at == nil { // a script made it
			continue
		}
		hits, of = append(hits, at.hit), append(of, at)
		if p.Highlight {
			at.highlights = bson.D{}
			for _, h := range f.Highlight(items[i].visible()) {
				at.highlights = append(at.highlights, bson.E{Key: h.Path, Value: h.Texts})
			}
		}
	}
	if !p.Explain {
		return nil
	}
	why, err := f.Explain(ctx, hits)
	if err != nil {
		return err
	}
	for i := range of {
		of[i].why = why[i]
	}
	return nil
}
