package audit

import (
	"bytes"
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/store"
)

// maxTime is how long a list may take: a reader who may see few of many entries lets many be looked at.
const maxTime = 10 * time.Second

var errTooSlow = errs.New(errs.Invalid, "query_too_slow", "the list takes too long: narrow the filter, for example by at")

// Reader says what somebody may see of an entry: it takes out what they may not, and gives false when nothing is left.
type Reader func(e *Entry) bool

// resolver knows what lists can be filtered and sorted by. What changed is not among it: what readers may see of that
// differs from entry to entry.
func resolver() query.Resolver {
	str, _ := fieldtype.ByName("string")
	date, _ := fieldtype.ByName("date")
	object, _ := fieldtype.ByName("object")
	field := func(prefix, name string) *fieldtype.Field {
		return &fieldtype.Field{Name: name, Path: prefix + name, Type: str}
	}
	fields := []*fieldtype.Field{
		{Name: "at", Path: "at", Type: date},
		{Name: "actor", Path: "actor", Type: object, Sub: fieldtype.NewTree([]*fieldtype.Field{
			field("actor.", "kind"), field("actor.", "id"), field("actor.", "name"),
		}, true)},
	}
	for _, name := range []string{"kind", "op", "namespace", "collection", "recordId", "tokenId", "requestId", "address"} {
		fields = append(fields, field("", name))
	}
	return query.Resolver{Tree: fieldtype.NewTree(fields, true), Limits: query.DefaultLimits()}
}

// newestFirst is the order of a list that asks for none.
func newestFirst() mql.Sort { return mql.Sort{{Path: "at", Desc: true}, {Path: "_id", Desc: true}} }

// Nothing is the list of a reader who may see no entry: the params are held against the rules, and no log is read.
func Nothing(params query.Params) (query.Page[Entry], error) {
	q, err := resolver().Query(params, newestFirst())
	page := query.Page[Entry]{Items: []Entry{}, Limit: q.Limit, Offset: q.Skip}
	if params.Count {
		page.Total = new(int64)
	}
	return page, err
}

// List reads the page that params ask for, newest first unless they say otherwise. see is who reads; nil sees all.
// Entries that a reader may not see are as if they were not there, for offset and count as well.
func (l *Log) List(ctx context.Context, params query.Params, see Reader) (page query.Page[Entry], err error) {
	q, err := resolver().Query(params, newestFirst())
	if err != nil {
		return page, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, maxTime, errTooSlow)
	defer cancel()
	page = query.Page[Entry]{Items: []Entry{}, Limit: q.Limit, Offset: q.Skip}
	if err = l.page(ctx, q, see, &page); err == nil && params.Count {
		var n int64
		n, err = l.count(ctx, q.Filter, see)
		page.Total = &n
	}
	if errors.Is(err, context.DeadlineExceeded) && errors.Is(context.Cause(ctx), errTooSlow) {
		return page, errTooSlow.With(err)
	}
	return page, err
}

// errPageFull ends the reading of a page.
var errPageFull = errors.New("page full")

// maxPageSize bounds the bytes of a page, of what its reader sees: where it ends tells nothing of the rest. A page that is cut by it says that there is more.
const maxPageSize = 32 << 20

func (l *Log) page(ctx context.Context, q store.Query, see Reader, page *query.Page[Entry]) error {
	skip := q.Skip
	if q.Skip, q.Limit = 0, 0; page.Limit == 0 { // these count what the reader sees
		return nil
	}
	var last bson.Raw
	size := 0
	err := l.entries.Find(ctx, q, func(doc bson.Raw) error {
		e, ok := seen(doc, see)
		if !ok {
			return nil
		}
		if skip > 0 {
			skip--
			return nil
		}
		if size += e.size(); int64(len(page.Items)) == page.Limit || size > maxPageSize && len(page.Items) > 0 {
			page.HasMore = true
			return errPageFull
		}
		page.Items = append(page.Items, e)
		last = append(last[:0], doc...)
		return nil
	})
	if err != nil && !errors.Is(err, errPageFull) || !page.HasMore {
		return err
	}
	page.Next, err = query.EncodeCursor(q.Sort, last)
	return err
}

// size is about how many bytes of an entry a reader sees.
func (e *Entry) size() int {
	n := 1 << 10
	for _, state := range []bson.Raw{e.Before, e.After} {
		switch {
		case state == nil:
		case e.View == nil:
			n += len(state)
		default:
			n += len(document.AppendJSON(nil, state, e.View))
		}
	}
	return n
}

func (l *Log) count(ctx context.Context, filter *mql.Filter, see Reader) (n int64, err error) {
	err = l.entries.Find(ctx, store.Query{Filter: filter}, func(doc bson.Raw) error {
		if _, ok := seen(doc, see); ok {
			n++
		}
		return nil
	})
	return n, err
}

// seen gives an entry as a reader sees it; ok is false when they don't. One that can't be read at all was put there by
// other hands: Verify names it.
func seen(doc bson.Raw, see Reader) (e Entry, ok bool) {
	if err := bson.Unmarshal(bytes.Clone(doc), &e); err != nil {
		return e, false
	}
	return e, see == nil || see(&e)
}
