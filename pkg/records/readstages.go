package records

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/store"
)

// The stages of reads.
const (
	stageHandle = "get.handle"
	stageRead   = "get.read"
	stageReturn = "get.return"
)

// handleList asks the stage in place of a list. done says that it has answered: with a list, or with {items: [...]}.
func (s *Service) handleList(ctx context.Context, c *Call, g access.Grant, p query.Params, q store.Query, what want) (page *Page, done bool, err error) {
	at := s.step(c, stageHandle)
	if !c.has(at.stage) {
		return nil, false, nil
	}
	var filter any
	if p.Filter != nil {
		filter = q.Filter.Raw()
	}
	members := hooks.Members{"id": nil, "filter": filter}
	out, err := at.run(ctx, members, nil)
	if err != nil || !out.Changed("result") {
		return nil, false, err
	}
	page = &Page{Limit: q.Limit, Offset: q.Skip, Total: -1}
	docs, err := at.envelope(ctx, members["result"], page)
	if err != nil {
		return nil, false, err
	}
	for _, d := range docs {
		rec, err := at.made(ctx, d, nil)
		if err != nil {
			return nil, false, err
		}
		page.Items = append(page.Items, rec)
	}
	if err := s.show(ctx, c, g, page.Items, what); err != nil {
		return nil, false, err
	}
	return page, true, s.returnList(ctx, c, g, page)
}

// envelope takes the records out of what a hook gives for a list, and puts the rest of it into the page.
func (at step) envelope(ctx context.Context, v any, page *Page) ([]bson.D, error) {
	list, ok := v.(bson.A)
	if d, isObject := v.(bson.D); isObject {
		page.Extra = nil
		for _, e := range d {
			switch e.Key {
			case "items":
				list, ok = e.Value.(bson.A)
			case "limit", "offset", "next":
			case "total":
				if n, isNumber := wholeNumber(e.Value); isNumber {
					page.Total = n
				}
			case "hasMore":
				page.HasMore = e.Value == true
			default:
				page.Extra = append(page.Extra, e)
			}
		}
	}
	docs := make([]bson.D, len(list))
	for i, item := range list {
		d, isObject := item.(bson.D)
		ok = ok && isObject
		docs[i] = d
	}
	if !ok {
		return nil, at.bad(ctx, "the hook gives a list of objects, or an object whose items is one")
	}
	return docs, nil
}

// AppendExtra appends the members that a hook has added to the answer, each behind a comma.
func (p *Page) AppendExtra(dst []byte) []byte { return appendExtra(dst, p.Extra) }

// AppendExtra appends the members that a hook has added to the answer, and the warning, each behind a comma.
func (b BulkResult) AppendExtra(dst []byte) []byte {
	if b.Warning != "" {
		return appendExtra(dst, bson.D{{Key: "warning", Value: b.Warning}})
	}
	return appendExtra(dst, b.Extra)
}

func appendExtra(dst []byte, extra bson.D) []byte {
	if len(extra) == 0 {
		return dst
	}
	raw, err := document.Marshal(extra)
	if err != nil { // what can't be written is not there
		return dst
	}
	object := document.AppendJSONValue(nil, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw}, nil)
	if len(object) <= len("{}") {
		return dst
	}
	return append(append(dst, ','), object[1:len(object)-1]...)
}

func wholeNumber(v any) (int64, bool) {
	switch n := v.(type) {
	case int32:
		return int64(n), true
	case int64:
		return n, true
	case float64:
		return int64(n), n == float64(int64(n))
	}
	return 0, false
}

// handleOne asks the stage in place of the read of one record. null is one that is not there.
func (s *Service) handleOne(ctx context.Context, c *Call, g access.Grant, id string, what want) (rec Record, done bool, err error) {
	at := s.step(c, stageHandle)
	if !c.has(at.stage) {
		return Record{}, false, nil
	}
	members := hooks.Members{"id": id, "filter": nil}
	out, err := at.run(ctx, members, nil)
	switch {
	case err != nil || !out.Changed("result"):
		return Record{}, false, err
	case members["result"] == nil:
		return Record{}, false, errs.ErrNotFound
	}
	made, err := at.made(ctx, members["result"], nil)
	if err != nil {
		return Record{}, false, err
	}
	items := []Record{made}
	if err := s.show(ctx, c, g, items, what); err != nil {
		return Record{}, false, err
	}
	rec, err = s.returnOne(ctx, c, id, items[0])
	return rec, true, err
}

// readHooks runs the stage behind the store on a page.
func (s *Service) readHooks(ctx context.Context, c *Call, page *Page) error {
	at := s.step(c, stageRead)
	if !c.has(at.stage) || len(page.Items) == 0 {
		return nil
	}
	docs := make([]bson.Raw, len(page.Items))
	for i := range page.Items {
		docs[i] = page.Items[i].raw
	}
	members := hooks.Members{"id": nil, "docs": docs}
	out, err := at.run(ctx, members, nil)
	if err != nil || !out.Changed("docs") {
		return err
	}
	list, ok := members["docs"].(bson.A)
	if !ok {
		return at.bad(ctx, "docs must stay a list of objects")
	}
	were := page.Items
	page.Items = make([]Record, len(list))
	for i, item := range list {
		if page.Items[i], err = at.made(ctx, item, docs); err != nil {
			return err
		}
		page.Items[i].found = foundIn(were, page.Items[i].ID())
	}
	return nil
}

// foundIn gives what a search says of a record, by its id.
func foundIn(items []Record, id string) *found {
	for i := range items {
		if items[i].found != nil && items[i].ID() == id {
			return items[i].found
		}
	}
	return nil
}

// readHook runs the stage behind the store on one record.
func (s *Service) readHook(ctx context.Context, c *Call, rec *Record) error {
	at := s.step(c, stageRead)
	if !c.has(at.stage) {
		return nil
	}
	members := hooks.Members{"id": idOf(rec.raw).Hex(), "doc": rec.raw}
	out, err := at.run(ctx, members, nil)
	if err != nil || !out.Changed("doc") {
		return err
	}
	rev := rec.rev
	if *rec, err = at.made(ctx, members["doc"], []bson.Raw{rec.raw}); err == nil && rec.rev == 0 {
		rec.rev = rev
	}
	return err
}

// made is a record as a hook made it, of stored ones or of nothing. It is not masked yet.
func (at step) made(ctx context.Context, v any, stored []bson.Raw) (Record, error) {
	d, err := at.object(ctx, v)
	if err != nil {
		return Record{}, err
	}
	raw, err := document.Marshal(publicID(d))
	if err != nil {
		return Record{}, err
	}
	at.tellUndeclared(ctx, raw, stored)
	return Record{raw: raw, rev: revOf(raw), made: true}, nil
}

// remade is what a stage behind an operation made of an answer, without what is hidden.
func (at step) remade(ctx context.Context, v any, hidden *document.PathSet) (*Record, error) {
	rec, err := at.made(ctx, v, nil)
	if err == nil {
		err = rec.hide(hidden)
	}
	return &rec, err
}

// hide leaves what is hidden out of what goes out of a record.
func (r *Record) hide(hidden *document.PathSet) (err error) {
	r.hidden = hidden
	r.view, err = document.NewView(nil, nil, hidden)
	return err
}

// publicID takes the id out of an object that has an _id, too: they are one thing.
func publicID(d bson.D) bson.D {
	if _, ok := document.Member(d, "_id"); !ok {
		return d
	}
	out := make(bson.D, 0, len(d))
	for _, e := range d {
		if e.Key != "id" {
			out = append(out, e)
		}
	}
	return out
}

// publicIDOf is the id of an object that goes out: that of a record, or what a script calls so.
func publicIDOf(doc bson.Raw) string {
	if id, ok := document.Field(doc, "_id"); ok && id.Type == bson.TypeObjectID {
		return id.ObjectID().Hex()
	}
	v, _ := document.Field(doc, "id")
	id, _ := v.StringValueOK()
	return id
}

// tellUndeclared says in the log which fields of what a hook made don't go out because they are not declared. Those that
// a record had in the store are left over from another config, and no doing of the hook.
func (at step) tellUndeclared(ctx context.Context, made bson.Raw, stored []bson.Raw) {
	undeclared := at.call.Collection.Undeclared
	if undeclared == nil {
		return
	}
	for it := document.NewIter(made); it.Next(); {
		name := string(it.Key())
		if undeclared.Covers(name) && !slices.ContainsFunc(stored, func(doc bson.Raw) bool { _, had := document.Field(doc, name); return had }) {
			at.s.hooks.Undeclared(ctx, at.operation(), at.stage, name)
		}
	}
}

// returnList runs the stage before the answer on a page. What it gives is masked once more; a record that it has brought
// in is without everything that is hidden on any.
func (s *Service) returnList(ctx context.Context, c *Call, g access.Grant, page *Page) error {
	at := s.step(c, stageReturn)
	if !c.has(at.stage) {
		return nil
	}
	items, known := make(bson.A, len(page.Items)), make(map[string]*Record, len(page.Items))
	for i := range page.Items {
		items[i] = page.Items[i].visible()
		known[page.Items[i].ID()] = &page.Items[i]
	}
	result := bson.D{
		{Key: "items", Value: items}, {Key: "limit", Value: page.Limit}, {Key: "offset", Value: page.Offset}, {Key: "hasMore", Value: page.HasMore},
	}
	if page.Total >= 0 {
		result = append(result, bson.E{Key: "total", Value: page.Total})
	}
	members := hooks.Members{"id": nil, "result": append(result, page.Extra...)}
	out, err := at.run(ctx, members, nil)
	if err != nil || !out.Changed("result") {
		return err
	}
	docs, err := at.envelope(ctx, members["result"], page)
	if err != nil {
		return err
	}
	made := make([]Record, len(docs))
	for i, d := range docs {
		rec, err := at.made(ctx, d, nil)
		if err != nil {
			return err
		}
		unseen, rev := neverNamed(g), int64(0)
		if was := known[rec.ID()]; was != nil {
			unseen, rev = was.hidden, was.Rev()
			rec.found = was.found
		}
		rec.rev = rev
		if err := rec.hide(unseen); err != nil {
			return err
		}
		made[i] = rec
	}
	page.Items = made
	return nil
}

// returnOne runs the stage before the answer on one record.
func (s *Service) returnOne(ctx context.Context, c *Call, id string, rec Record) (Record, error) {
	at := s.step(c, stageReturn)
	if !c.has(at.stage) {
		return rec, nil
	}
	members := hooks.Members{"id": id, "result": rec.visible()}
	out, err := at.run(ctx, members, nil)
	if err != nil || !out.Changed("result") {
		return rec, err
	}
	next, err := at.remade(ctx, members["result"], rec.hidden)
	if err != nil {
		return rec, err
	}
	next.rev = rec.rev
	return *next, nil
}
