package records

import (
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
)

// maxScriptDocs is how many records the service's own find gives at most. More are refused, not cut.
const maxScriptDocs = 10_000

// serviceLimits bound the queries of scripts that run as the service: what protects from callers does not apply.
var serviceLimits = query.Limits{ //nolint:gochecknoglobals // never written
	DefaultLimit: maxScriptDocs, MaxLimit: maxScriptDocs, MaxOffset: 1 << 30,
	MaxFilterBytes: 1 << 20, MaxFilterDepth: document.MaxDepth, MaxFilterClauses: 10_000, MaxInValues: 10_000, MaxSortFields: 16,
	MaxLookups: 100, MaxLookupDepth: document.MaxDepth, Regex: "any",
}

// asStored is what the service itself may do: nothing is kept from it.
var asStored = access.Grant{Lookup: true} //nolint:gochecknoglobals // never written

var errTooMany = errs.New(errs.Limit, "too_many_records", "the filter matches more than %d records, or more than 32 MiB of them: give a limit, and go on with offset", maxScriptDocs)

// whereOf reads a script's filter.
func whereOf(v any) (query.Where, error) {
	d, err := objectIn(v, "a filter")
	if err != nil || len(d) == 0 {
		return query.Where{}, err
	}
	raw, err := document.Marshal(d)
	return query.Where{Filter: d, Bytes: len(raw)}, err
}

// findOptions and countOptions are what the options of these operations may have.
const (
	findOptions  = "sort, limit, offset, select, lookup, q, qName, highlight, explain and lang"
	countOptions = "q, qName and lang"
)

// params reads the filter and the options of a find or count; known is one of the lists above. The language is the call's from
// then on.
func (t target) params(filter, options any, known string) (query.Params, error) {
	where, err := whereOf(filter)
	if err != nil {
		return query.Params{}, err
	}
	p := query.Params{Where: where}
	d, err := objectIn(options, "the options")
	for _, e := range d {
		if err != nil {
			break
		}
		key := e.Key
		if !slices.Contains(strings.FieldsFunc(known, func(r rune) bool { return r == ',' || r == ' ' }), key) {
			key = ""
		}
		switch key {
		case "q":
			if p.Search.Text, err = textIn(e); err == nil && strings.TrimSpace(p.Search.Text) == "" {
				err = errs.New(errs.Invalid, codeBadArgument, "q must be the words to look for: leave it out, or call find, to look for none")
			}
		case "qName":
			p.Search.Name, err = textIn(e)
		case "highlight":
			p.Search.Highlight, err = flagIn(e)
		case "explain":
			p.Search.Explain, err = flagIn(e)
		case "lang":
			t.call.Lang, err = textIn(e)
		case "sort":
			p.Sort, err = words(e)
		case "select":
			p.Select, err = words(e)
		case "limit":
			var n int64
			n, err = count(e)
			p.Limit = &n
		case "offset":
			p.Offset, err = count(e)
		case "lookup":
			p.Lookup, err = words(e)
		default:
			err = errs.New(errs.Invalid, codeBadArgument, "unknown option %s; there are %s", e.Key, known)
		}
	}
	if err == nil {
		err = t.call.speak()
	}
	return p, err
}

func textIn(e bson.E) (string, error) {
	text, ok := e.Value.(string)
	if !ok && e.Value != nil {
		return "", errs.New(errs.Invalid, codeBadArgument, "%s must be a string", e.Key)
	}
	return text, nil
}

func flagIn(e bson.E) (bool, error) {
	on, ok := e.Value.(bool)
	if !ok && e.Value != nil {
		return false, errs.New(errs.Invalid, codeBadArgument, "%s must be true or false", e.Key)
	}
	return on, nil
}

// words joins a list of paths, as a query parameter has it.
func words(e bson.E) (string, error) {
	switch v := e.Value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case bson.A:
		out := make([]string, len(v))
		for i, item := range v {
			text, ok := item.(string)
			if !ok {
				return "", errs.New(errs.Invalid, codeBadArgument, "%s must be a string, or a list of strings", e.Key)
			}
			out[i] = text
		}
		return strings.Join(out, ","), nil
	}
	return "", errs.New(errs.Invalid, codeBadArgument, "%s must be a string, or a list of strings", e.Key)
}

func count(e bson.E) (int64, error) {
	n, ok := wholeNumber(e.Value)
	if !ok || n < 0 {
		return 0, errs.New(errs.Invalid, codeBadArgument, "%s must be a whole number that is not negative", e.Key)
	}
	return n, nil
}

func (t target) find(ctx context.Context, filter, options any) (any, error) {
	p, err := t.params(filter, options, findOptions)
	if err != nil {
		return nil, err
	}
	items, err := t.list(ctx, p)
	if err != nil {
		return nil, err
	}
	out := make(bson.A, len(items))
	for i := range items {
		if out[i], err = items[i].told(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// list reads records: through all that a caller goes through for asUser, else as they are stored.
func (t target) list(ctx context.Context, p query.Params) ([]Record, error) {
	if t.asUser {
		if p.Limit == nil {
			limit := int64(t.call.Collection.Limits.List.MaxLimit)
			p.Limit = &limit
		}
		page, err := t.s.List(ctx, t.call, p)
		if err != nil {
			return nil, err
		}
		return page.Items, nil
	}
	r := t.s.resolver(ctx, t.call, asStored)
	what, err := wanted(t.call, asStored, r, p.Select, "", p.Lookup)
	if err != nil {
		return nil, err
	}
	look := p.Search
	p.Search = query.Search{}
	q, err := r.Query(p, t.call.Collection.DefaultSort)
	if err != nil {
		return nil, err
	}
	page, f, err := t.s.listed(ctx, t.call, asStored, r, p, q, look)
	if err != nil {
		return nil, err
	}
	defer f.close()
	if page.HasMore && (p.Limit == nil || int64(len(page.Items)) < *p.Limit) {
		return nil, errTooMany
	}
	if err := t.s.show(ctx, t.call, asStored, page.Items, what); err != nil {
		return nil, err
	}
	return page.Items, f.tell(ctx, page.Items, look)
}

func (t target) findOne(ctx context.Context, where, options any) (any, error) {
	id, byID := idIn(where)
	if !byID {
		if where == nil {
			return nil, errNoWhere
		}
		p, err := t.params(where, options, findOptions)
		if err != nil {
			return nil, err
		}
		one := int64(1)
		p.Limit = &one
		items, err := t.list(ctx, p)
		if err != nil || len(items) == 0 {
			return nil, err
		}
		return items[0].told()
	}
	if t.asUser {
		rec, err := t.s.Get(ctx, t.call, id, GetParams{})
		switch {
		case isAbsent(err):
			return nil, nil
		case err != nil:
			return nil, err
		}
		return rec.visible(), nil
	}
	oid, err := document.ParseID(id)
	if err != nil {
		return nil, err
	}
	raw, err := t.s.readOne(ctx, t.call, access.Grant{}, oid)
	switch {
	case isAbsent(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return raw, nil
}

func (t target) count(ctx context.Context, filter, options any) (any, error) {
	p, err := t.params(filter, options, countOptions)
	if err != nil {
		return nil, err
	}
	if t.asUser {
		return t.s.Count(ctx, t.call, p.Where)
	}
	return t.s.counted(ctx, t.call, asStored, p.Where)
}
