package records

import (
	"bytes"
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/query"
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
}

// List gives the records that match, within the caller's read right.
func (s *Service) List(ctx context.Context, c *Call, p query.Params) (*Page, error) {
	g, err := s.grant(c, access.Get)
	if err != nil {
		return nil, err
	}
	if p.Count && !g.Count {
		return nil, errs.ErrDenied
	}
	r := newResolver(c, g)
	q, err := r.Query(p, c.Collection.DefaultSort)
	if err != nil {
		return nil, err
	}
	sel, err := selected(c, g, p.Select, p.Projection)
	if err != nil {
		return nil, err
	}
	view, err := sel.View(g.Hidden)
	if err != nil {
		return nil, err
	}
	q.Filter = mql.And(g.Filter, q.Filter)
	ctx, cancel := withDeadline(ctx, c)
	defer cancel()
	page, err := s.find(ctx, c, q, view)
	if err == nil && p.Count {
		page.Total, err = s.collection(c).Count(ctx, q.Filter, 0)
	}
	return page, storeError(ctx, err)
}

// maxPageSize bounds the bytes of a page of many records, as stored: with records of 16 MiB a limit alone bounds nothing.
// A page that is cut by it says that there is more.
const maxPageSize = 32 << 20

// errPageFull ends the reading of a page.
var errPageFull = errors.New("page full")

// find reads one page. It asks for one record more than the page holds, to know whether there is a next one.
func (s *Service) find(ctx context.Context, c *Call, q store.Query, view *document.View) (*Page, error) {
	page := &Page{Limit: q.Limit, Offset: q.Skip, Total: -1}
	if q.Limit == 0 {
		return page, nil
	}
	page.Items = make([]Record, 0, min(q.Limit, 128))
	limit, size := int(q.Limit), 0
	q.Limit++
	err := s.collection(c).Find(ctx, q, func(doc bson.Raw) error {
		size += len(doc)
		if len(page.Items) == limit || size > maxPageSize && len(page.Items) > 0 {
			page.HasMore = true
			return errPageFull
		}
		page.Items = append(page.Items, Record{raw: bytes.Clone(doc), view: view, rev: revOf(doc)})
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
}

// Get gives one record. One that the caller may not read is answered like one that does not exist.
func (s *Service) Get(ctx context.Context, c *Call, id string, p GetParams) (Record, error) {
	g, err := s.grant(c, access.Get)
	if err != nil {
		return Record{}, err
	}
	oid, err := document.ParseID(id)
	if err != nil {
		return Record{}, err
	}
	sel, err := selected(c, g, p.Select, p.Projection)
	if err != nil {
		return Record{}, err
	}
	view, err := sel.View(g.Hidden)
	if err != nil {
		return Record{}, err
	}
	ctx, cancel := withDeadline(ctx, c)
	defer cancel()
	doc, err := s.readable(ctx, c, g, oid)
	if err != nil {
		return Record{}, storeError(ctx, err)
	}
	return Record{raw: doc, view: view, rev: revOf(doc)}, nil
}

// readable gives the stored record if g's filter admits it, else errs.ErrNotFound.
func (s *Service) readable(ctx context.Context, c *Call, g access.Grant, id bson.ObjectID) (bson.Raw, error) {
	doc, err := s.collection(c).Get(ctx, idValue(id))
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
	g, err := s.grant(c, access.Get)
	if err != nil {
		return 0, err
	}
	if !g.Count {
		return 0, errs.ErrDenied
	}
	f, err := newResolver(c, g).Filter(where)
	if err != nil {
		return 0, err
	}
	ctx, cancel := withDeadline(ctx, c)
	defer cancel()
	n, err := s.collection(c).Count(ctx, mql.And(g.Filter, f), 0)
	return n, storeError(ctx, err)
}

// shape gives a written record as the caller may read it, or nil if they may not.
func (s *Service) shape(c *Call, doc bson.Raw) (*Record, error) {
	g, ok := s.readGrant(c)
	if !ok || !g.Filter.Match(doc) {
		return nil, nil //nolint:nilnil // "may not read it" is an answer, not an error
	}
	view, err := query.Selection{}.View(g.Hidden)
	if err != nil {
		return nil, err
	}
	return &Record{raw: doc, view: view, rev: revOf(doc)}, nil
}
