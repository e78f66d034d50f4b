package query

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// Where is a caller's filter, not compiled yet.
type Where struct {
	Filter bson.D // constants from a URL's short form are fieldtype.Untyped
	Bytes  int    // length of the filter as it came, for the limit on it
	Search Search // who reads a filter takes it out: else nothing comes of it but an error
}

// Search is what a caller looks for.
type Search struct {
	Text      string // q; "": they look for nothing
	Name      string // qName; "": the first search
	Highlight bool
	Explain   bool
}

// Params are the parameters of a list, as a door reads them. Zero values mean "not given".
type Params struct {
	Where
	Sort       string // "-publishedAt,title" or JSON
	Select     string // "title,seo.title", "-body" or JSON
	Projection string // name of one of a collection's projections
	Lookup     string // "author,tags" or JSON
	After      string // cursor of the page before
	Limit      *int64
	Offset     int64
	Count      bool
}

// Page is one page of a list.
type Page[T any] struct {
	Items         []T
	Limit, Offset int64
	HasMore       bool   // there are records behind the last item
	Next          string // Params.After of the next page; "" at the end
	Total         *int64 // how many match, if that was asked for
}

// Query puts a list's parameters together for the store.
func (r Resolver) Query(p Params, defaultSort mql.Sort) (store.Query, error) {
	var q store.Query
	limit, offset, err := r.page(p)
	if err != nil {
		return q, err
	}
	if q.Filter, err = r.Filter(p.Where); err != nil {
		return q, err
	}
	if q.Sort, err = r.sort(p.Sort, defaultSort); err != nil {
		return q, err
	}
	if q.After, err = decodeCursor(q.Sort, p.After); err != nil {
		return q, err
	}
	q.Limit, q.Skip = limit, offset
	return q, nil
}

// page gives a page's size and start.
func (r Resolver) page(p Params) (limit, offset int64, err error) {
	limit = int64(r.Limits.DefaultLimit)
	if p.Limit != nil {
		limit = *p.Limit
	}
	switch {
	case limit < 0 || p.Offset < 0:
		return 0, 0, errs.New(errs.Invalid, "bad_parameter", "limit and offset can't be negative")
	case limit > int64(r.Limits.MaxLimit):
		return 0, 0, limitError("limit is %d, the highest allowed is %d", limit, r.Limits.MaxLimit)
	case p.Offset > int64(r.Limits.MaxOffset):
		return 0, 0, limitError("offset is %d, the highest allowed is %d; use after with the next cursor of a page", p.Offset, r.Limits.MaxOffset)
	}
	return limit, p.Offset, nil
}

// inParameter says in which parameter a value is malformed.
func inParameter(name string, err error) error {
	e := *errs.From(err)
	e.Message = name + ": " + e.Message
	return &e
}
