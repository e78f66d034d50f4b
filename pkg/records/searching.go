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

// indexed hands the records over to the search indexes that were written, or notes it where that is part of a transaction.
func (s *Service) indexed(ctx context.Context, c *Call, w engine.Writing, changes []change, results []store.Result) {
	if s.search == nil || len(c.Collection.Searches) == 0 {
		return
	}
	var written []engine.Record
	for i, r := range results {
		if r.Err != nil {
			continue
		}
		// Each change is of one record, and has the whole of it.
		switch ch := changes[i]; ch.Kind {
		case store.Delete:
			written = append(written, engine.Record{ID: idOf(ch.before)})
		case store.Insert, store.Replace, store.Update:
			written = append(written, engine.Record{ID: idOf(ch.Doc), Doc: ch.Doc})
		}
	}
	if x := sessionOf(ctx, c.Project.Namespace); x != nil {
		x.committed(func() { s.search.Written(ctx, c.Project, c.Collection, w, written) })
		return
	}
	s.search.Written(ctx, c.Project, c.Collection, w, written)
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
func searchOf(c *Call, g access.Grant, q query.Search) (config *search.Config, err error) {
	if q.Text == "" {
		if q.Name != "" {
			return nil, errs.New(errs.Invalid, "bad_parameter", "qName needs q, the words to look for")
		}
		return nil, nil //nolint:nilnil // nothing is looked for
	}
	for _, one := range c.Collection.Searches {
		if (q.Name == "" || one.Name == q.Name) && finds(c.Collection.Searches, one, neverNamed(g)) {
			config = one
			break
		}
	}
	switch {
	case config == nil && q.Name == "":
		return nil, errs.New(errs.Invalid, "no_search", "%s has no search: leave q out, or use filter", c.Collection.Name)
	case config == nil:
		return nil, errs.New(errs.Invalid, "unknown_search", "unknown search: %.60s%s", q.Name, searchNames(c, g))
	}
	return config, nil
}

// finds says whether a search can find anything for a caller.
func finds(all []*search.Config, one *search.Config, hidden *document.PathSet) bool {
	if one.Mode == search.RRF {
		return slices.ContainsFunc(one.Sources, func(source search.Source) bool {
			i := slices.IndexFunc(all, func(x *search.Config) bool { return x.Name == source.Name })
			return i >= 0 && finds(all, all[i], hidden)
		})
	}
	return len(one.Visible(hidden)) > 0
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
func (s *Service) seek(ctx context.Context, c *Call, g access.Grant, config *search.Config, look query.Search, own *mql.Filter, topK int) (*sought, error) {
	if s.search == nil {
		return nil, engine.ErrBuilding
	}
	words, err := search.Parse(look.Text)
	if err != nil {
		return nil, err
	}
	out := &sought{config: config, s: s, c: c, within: mql.And(g.Filter, own), own: own != nil}
	q := engine.Query{
		Project: c.Project, Collection: c.Collection, Search: config, Text: look.Text, Words: words, Hidden: neverNamed(g), Filter: g.Filter, Now: c.bound, TopK: topK,
	}
	if c.isTranslating() {
		q.Lang = c.Lang
	}
	if own != nil {
		q.Accept = out.accept
	}
	ctx, cancel := s.paced(ctx, c)
	defer cancel()
	out.Results, err = s.search.Search(ctx, q)
	switch {
	case err == nil:
	case errors.Is(err, engine.ErrNothingToSearch):
		err = errs.New(errs.Invalid, "no_search", "%s has no search: leave q out, or use filter", c.Collection.Name)
	case strings.HasPrefix(errs.From(err).Code, "embedding_"): // says more, and is no word of the store, though a provider's time may be in it
	default:
		err = s.storeError(ctx, err)
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
	skip := q.Skip
	for next := q.Skip + q.Limit + 1; ; next *= 2 {
		next = min(next, mostAtOnce)
		hits := f.Next(int(next))
		if len(hits) == 0 {
			return page, nil
		}
		if skip > 0 {
			wanted, err := f.wanted(ctx, hits)
			if err != nil {
				return nil, err
			}
			for ; len(hits) > 0 && skip > 0; hits = hits[1:] {
				if wanted[hits[0].ID] {
					skip--
				}
			}
		}
		if err := f.fill(ctx, page, hits); err != nil || page.HasMore {
			return page, err
		}
	}
}

// fill puts the records of hits that the caller gets into a page, as long as there is room for them.
func (f *sought) fill(ctx context.Context, page *Page, hits []engine.Hit) error {
	size := 0
	for i := range page.Items {
		size += len(page.Items[i].raw)
	}
	for len(hits) > 0 {
		docs, n, err := f.read(ctx, hits)
		if err != nil {
			return err
		}
		for _, h := range hits[:n] {
			doc := docs[h.ID]
			if doc == nil {
				continue
			}
			if len(page.Items) == int(page.Limit) || size > maxPageSize {
				page.HasMore = true
				return nil
			}
			size += len(doc)
			page.Items = append(page.Items, Record{raw: doc, found: &found{hit: h}})
		}
		hits = hits[n:]
	}
	return nil
}

// read reads those of the records that were found that the caller gets: of the first n hits, which are all unless their records are
// too large to be held at once.
func (f *sought) read(ctx context.Context, hits []engine.Hit) (docs map[bson.ObjectID]bson.Raw, n int, err error) {
	for n = len(hits); ; n = (n + 1) / 2 {
		docs = make(map[bson.ObjectID]bson.Raw, n)
		size := 0
		err = f.s.collection(ctx, f.c).Find(ctx, store.Query{Filter: mql.And(f.within, withIDs(idsOf(hits[:n])))}, func(doc bson.Raw) error {
			if size += len(doc); size > maxPageSize && n > 1 {
				return errPageFull
			}
			docs[idOf(doc)] = bytes.Clone(doc)
			return nil
		})
		if !errors.Is(err, errPageFull) {
			return docs, n, err
		}
	}
}

func idsOf(hits []engine.Hit) []bson.ObjectID {
	ids := make([]bson.ObjectID, len(hits))
	for i := range hits {
		ids[i] = hits[i].ID
	}
	return ids
}

// wanted says of which hits the caller gets the records.
func (f *sought) wanted(ctx context.Context, hits []engine.Hit) (map[bson.ObjectID]bool, error) {
	accepted, err := f.accept(ctx, idsOf(hits))
	wanted := make(map[bson.ObjectID]bool, len(accepted))
	for _, id := range accepted {
		wanted[id] = true
	}
	return wanted, err
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
		wanted, err := f.wanted(ctx, hits)
		if err != nil {
			return nil, false, err
		}
		for _, h := range hits {
			switch {
			case !wanted[h.ID]:
			case n >= 0 && len(ids) == n:
				return ids, true, nil
			default:
				ids = append(ids, h.ID)
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
	return append(appendExtra(dst[:len(dst)-1], f.members()), '}')
}

// members are what the search says.
func (f *found) members() bson.D {
	extra := bson.D{{Key: "_score", Value: f.hit.Score}}
	if f.highlights != nil {
		extra = append(extra, bson.E{Key: "_highlights", Value: f.highlights})
	}
	if f.why != nil {
		extra = append(extra, bson.E{Key: "_explain", Value: f.why})
	}
	return extra
}

// told is a record's visible part for a script, with what the search says behind its members.
func (r *Record) told() (bson.Raw, error) {
	doc := r.visible()
	if r.found == nil {
		return doc, nil
	}
	extra, err := document.Marshal(r.found.members())
	if err != nil {
		return nil, err
	}
	return document.Close(append(slices.Clone(doc[:len(doc)-1]), extra[4:len(extra)-1]...), 0), nil
}

// tell adds to records what was asked for beside them: marked texts, of what goes out of them, and why they were found.
func (f *sought) tell(ctx context.Context, items []Record, p query.Search) error {
	if f == nil || !p.Highlight && !p.Explain {
		return nil
	}
	ctx, cancel := f.s.paced(ctx, f.c)
	defer cancel()
	pace := store.PaceOf(ctx)
	var hits []engine.Hit
	var of []*found
	for i := range items {
		at := items[i].found
		if at == nil { // a script made it
			continue
		}
		hits, of = append(hits, at.hit), append(of, at)
		if p.Highlight {
			if pace != nil { // texts may be long
				if err := pace.Step(ctx); err != nil {
					return f.s.storeError(ctx, err)
				}
			}
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
		return f.s.storeError(ctx, err)
	}
	for i := range of {
		of[i].why = why[i]
	}
	return nil
}
