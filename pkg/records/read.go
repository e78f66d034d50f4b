package records

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/store"
)

// Page is one page of a list.
type Page struct {
	Items   []Record
	Limit   int64
	Offset  int64
	HasMore bool
	Next    string // cursor for the next page; "" at the end
	Total   int64  // -1 when not asked for
	Extra   bson.D // further members of the answer, which a hook made
}

// List gives the records that match, within the caller's read right.
func (s *Service) List(ctx context.Context, c *Call, p query.Params) (*Page, error) {
	g, err := s.grant(ctx, c, access.Get)
	if err != nil {
		return nil, err
	}
	if p.Count && !g.Count {
		return nil, withoutFlag(c, "count")
	}
	r := s.resolver(ctx, c, g)
	what, err := wanted(c, g, r, p.Select, p.Projection, p.Lookup)
	if err != nil {
		return nil, err
	}
	look := p.Search
	p.Search = query.Search{}
	q, err := r.Query(p, c.Collection.DefaultSort)
	if err != nil {
		return nil, err
	}
	if page, done, err := s.handleList(ctx, c, g, p, q, what); done || err != nil {
		return page, err
	}
	page, f, err := s.listed(ctx, c, g, r, p, q, look)
	if err != nil {
		return nil, err
	}
	defer f.close()
	if err := s.readHooks(ctx, c, page); err != nil {
		return nil, err
	}
	if err := s.show(ctx, c, g, page.Items, what); err != nil {
		return nil, err
	}
	if err := f.tell(ctx, page.Items, look); err != nil {
		return nil, err
	}
	return page, s.returnList(ctx, c, g, page)
}

// listed reads the records of a list: those that match, or those that were found. f is nil, or has to be closed.
func (s *Service) listed(ctx context.Context, c *Call, g access.Grant, r query.Resolver, p query.Params, q store.Query, look query.Search) (page *Page, f *sought, err error) {
	config, err := searchOf(c, g, look)
	if err != nil {
		return nil, nil, err
	}
	own := q.Filter
	q.Filter = mql.And(g.Filter, own)
	switch {
	case config == nil && look != (query.Search{}):
		return nil, nil, errs.New(errs.Invalid, "bad_parameter", "highlight and explain need q, the words to look for")
	case config != nil && config.Mode == search.Regex:
		pattern, err := byPattern(r, config, g, look.Text)
		if err != nil {
			return nil, nil, err
		}
		q.Filter = mql.And(q.Filter, pattern)
		fallthrough
	case config == nil:
		page, err = s.readPage(ctx, c, q, p.Count)
		return page, nil, err
	}
	if f, err = s.seek(ctx, c, g, config, look, own, 0); err != nil {
		return nil, nil, err
	}
	switch {
	case p.After != "" && p.Sort == "":
		err = errs.New(errs.Invalid, "bad_parameter", "after needs sort when q is given: the best have no cursor, use offset")
	case p.Sort != "":
		page, err = s.sortedPage(ctx, f, q, p)
	default:
		page, err = s.searchPage(ctx, f, q, p)
	}
	if err != nil {
		f.close()
	}
	return page, f, err
}

// readPage reads one page within the collection's time for a query.
func (s *Service) readPage(ctx context.Context, c *Call, q store.Query, count bool) (*Page, error) {
	ctx, cancel := s.paced(ctx, c)
	defer cancel()
	page, err := s.find(ctx, c, q)
	if err == nil && count {
		page.Total, err = s.collection(ctx, c).Count(ctx, q.Filter, 0)
	}
	return page, s.storeError(ctx, err)
}

// show says of each record what goes out of it, and puts what is looked up into it.
func (s *Service) show(ctx context.Context, c *Call, g access.Grant, items []Record, w want) error {
	if err := s.mask(ctx, c, g, items, w.sel); err != nil {
		return err
	}
	return s.lookUp(ctx, c, items, w.lookups)
}

// mask says of each record what goes out of it: what was selected, without what is hidden.
func (s *Service) mask(ctx context.Context, c *Call, g access.Grant, items []Record, sel query.Selection) error {
	view, err := sel.View(g.Hidden)
	if err != nil {
		return err
	}
	if g.Unsure == nil {
		for i := range items {
			items[i].raw = c.local(items[i].raw, g.Hidden)
			items[i].view, items[i].hidden = view, g.Hidden
		}
		return nil
	}
	docs := make([]bson.Raw, len(items))
	for i := range items {
		docs[i] = items[i].raw
	}
	hidden, err := s.protections(ctx, c, access.Get, g, docs)
	if err != nil {
		return err
	}
	views := map[string]*document.View{} // few are different
	for i := range items {
		items[i].hidden = hidden[i].hidden
		items[i].raw = c.local(items[i].raw, hidden[i].hidden)
		key := strings.Join(hidden[i].hidden.Paths(), "\n")
		own, ok := views[key]
		if !ok {
			if own, err = sel.View(hidden[i].hidden); err != nil {
				return err
			}
			views[key] = own
		}
		items[i].view = own
	}
	return nil
}

// maxPageSize bounds the bytes of a page of many records, as stored: with records of 16 MiB a limit alone bounds nothing.
// A page that is cut by it says that there is more.
const maxPageSize = 32 << 20

// errPageFull ends the reading of a page.
var errPageFull = errors.New("page full")

// find reads one page. It asks for one record more than the page holds, to know whether there is a next one.
func (s *Service) find(ctx context.Context, c *Call, q store.Query) (*Page, error) {
	page := &Page{Limit: q.Limit, Offset: q.Skip, Total: -1}
	if q.Limit == 0 {
		return page, nil
	}
	page.Items = make([]Record, 0, min(q.Limit, 128))
	limit, size := int(q.Limit), 0
	q.Limit++
	err := s.collection(ctx, c).Find(ctx, q, func(doc bson.Raw) error {
		size += len(doc)
		if len(page.Items) == limit || size > maxPageSize && len(page.Items) > 0 {
			page.HasMore = true
			return errPageFull
		}
		page.Items = append(page.Items, Record{raw: bytes.Clone(doc)})
		return nil
	})
	if err != nil && !errors.Is(err, errPageFull) || !page.HasMore {
		return page, err
	}
	page.Next, err = query.EncodeCursor(q.Sort, page.Items[len(page.Items)-1].raw)
	return page, err
}

// GetParams are the parameters of a single read.
type GetParams struct {
	Select     string
	Projection string
	Lookup     string
}

// Get gives one record. One that the caller may not read is answered like one that does not exist.
func (s *Service) Get(ctx context.Context, c *Call, id string, p GetParams) (Record, error) {
	g, err := s.grant(ctx, c, access.Get)
	if err != nil {
		return Record{}, err
	}
	oid, err := document.ParseID(id)
	if err != nil {
		return Record{}, err
	}
	what, err := wanted(c, g, s.resolver(ctx, c, g), p.Select, p.Projection, p.Lookup)
	if err != nil {
		return Record{}, err
	}
	if rec, done, err := s.handleOne(ctx, c, g, id, what); done || err != nil {
		return rec, err
	}
	doc, err := s.readOne(ctx, c, g, oid)
	if err != nil {
		return Record{}, err
	}
	items := []Record{{raw: doc, rev: revOf(doc)}}
	if err := s.readHook(ctx, c, &items[0]); err != nil {
		return Record{}, err
	}
	if err := s.show(ctx, c, g, items, what); err != nil {
		return Record{}, err
	}
	rec, err := s.returnOne(ctx, c, id, items[0])
	rec.made = c.Collection.Scripted() || len(what.lookups) > 0 // by what they see now, perhaps
	return rec, err
}

// readOne is readable within the collection's time for a query.
func (s *Service) readOne(ctx context.Context, c *Call, g access.Grant, id bson.ObjectID) (bson.Raw, error) {
	ctx, cancel := withDeadline(ctx, c)
	defer cancel()
	doc, err := s.readable(ctx, c, g, id)
	return doc, s.storeError(ctx, err)
}

// readable gives the stored record if g's filter admits it, else errs.ErrNotFound.
func (s *Service) readable(ctx context.Context, c *Call, g access.Grant, id bson.ObjectID) (bson.Raw, error) {
	doc, err := s.collection(ctx, c).Get(ctx, idValue(id))
	if err != nil {
		return nil, err
	}
	if !g.Filter.Match(doc) {
		return nil, errs.ErrNotFound
	}
	return doc, nil
}

// Count gives the number of records that match, within the caller's read right.
func (s *Service) Count(ctx context.Context, c *Call, where query.Where) (int64, error) {
	g, err := s.grant(ctx, c, access.Get)
	if err != nil {
		return 0, err
	}
	if !g.Count {
		return 0, withoutFlag(c, "count")
	}
	return s.counted(ctx, c, g, where)
}

// counted gives the number of records that match, or are found, within a right.
func (s *Service) counted(ctx context.Context, c *Call, g access.Grant, where query.Where) (int64, error) {
	look := where.Search
	where.Search = query.Search{}
	r := s.resolver(ctx, c, g)
	own, err := r.Filter(where)
	if err != nil {
		return 0, err
	}
	config, err := searchOf(c, g, look)
	if err != nil {
		return 0, err
	}
	within := mql.And(g.Filter, own)
	switch {
	case config == nil:
	case config.Mode == search.Regex:
		pattern, err := byPattern(r, config, g, look.Text)
		if err != nil {
			return 0, err
		}
		within = mql.And(within, pattern)
	default:
		f, err := s.seek(ctx, c, g, config, look, own, 0)
		if err != nil {
			return 0, err
		}
		defer f.close()
		ctx, cancel := s.paced(ctx, c)
		defer cancel()
		n, err := f.total(ctx)
		return n, s.storeError(ctx, err)
	}
	ctx, cancel := s.paced(ctx, c)
	defer cancel()
	n, err := s.collection(ctx, c).Count(ctx, within, 0)
	return n, s.storeError(ctx, err)
}

// shape gives a written record as the caller may read it, or nil if they may not.
func (s *Service) shape(ctx context.Context, c *Call, doc bson.Raw) (*Record, error) {
	g, ok := s.readGrant(ctx, c)
	if !ok || !g.Filter.Match(doc) {
		return nil, nil //nolint:nilnil // "may not read it" is an answer, not an error
	}
	items := []Record{{raw: doc, rev: revOf(doc)}}
	return &items[0], s.mask(ctx, c, g, items, query.Selection{})
}
