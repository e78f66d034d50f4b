package client

import (
	"context"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/svcctl/svc/pkg/api"
)

// ListRecords gives one page of a collection.
func (c *Client) ListRecords(ctx context.Context, namespace, collection string, q Query) (*api.List[api.Record], error) {
	return list[api.Record](ctx, c, api.RecordsPath(namespace, collection), q.ofList())
}

// Records yields all records that q selects, page by page; q.Limit is the size of a page.
func (c *Client) Records(ctx context.Context, namespace, collection string, q Query) iter.Seq2[api.Record, error] {
	return all[api.Record](ctx, c, api.RecordsPath(namespace, collection), q.ofList())
}

// GetRecord reads one record and its ETag. Of q, Select, Projection, Lookup, Lang and Extra are used.
func (c *Client) GetRecord(ctx context.Context, namespace, collection, id string, q Query) (record api.Record, etag string, err error) {
	q = Query{Select: q.Select, Projection: q.Projection, Lookup: q.Lookup, Lang: q.Lang, Extra: q.Extra}
	header, err := c.do(ctx, call{
		method: http.MethodGet, path: api.RecordPath(namespace, collection, id), query: q.Values(), out: &record,
	})
	return record, header.Get(api.HeaderETag), err
}

// GetOnly reads the record of a singleton and its ETag. Of q, Select, Projection, Lookup and Lang are used.
func (c *Client) GetOnly(ctx context.Context, namespace, collection string, q Query) (record api.Record, etag string, err error) {
	q = Query{Select: q.Select, Projection: q.Projection, Lookup: q.Lookup, Lang: q.Lang}
	header, err := c.do(ctx, call{
		method: http.MethodGet, path: api.RecordsPath(namespace, collection), query: q.Values(), out: &record,
	})
	return record, header.Get(api.HeaderETag), err
}

// PutOnly changes the record of a singleton, or creates it.
func (c *Client) PutOnly(ctx context.Context, namespace, collection string, change api.Record, o WriteOptions) (api.Record, error) {
	var out api.Record
	_, err := c.do(ctx, o.call(call{
		method: http.MethodPut, path: api.RecordsPath(namespace, collection), in: change, out: &out,
	}))
	return out, err
}

// CountRecords counts the records that filter (JSON, "" for all) selects.
func (c *Client) CountRecords(ctx context.Context, namespace, collection, filter string) (int64, error) {
	var out api.CountResult
	_, err := c.do(ctx, call{
		method: http.MethodGet, path: api.RecordCountPath(namespace, collection),
		query: Query{Filter: filter}.Values(), out: &out,
	})
	return out.Count, err
}

// CreateRecord creates a record and gives it back as the caller may read it. Of several options the last counts.
func (c *Client) CreateRecord(ctx context.Context, namespace, collection string, record api.Record, o ...WriteOptions) (api.Record, error) {
	var out api.Record
	_, err := c.do(ctx, lastOf(o).call(call{
		method: http.MethodPost, path: api.RecordsPath(namespace, collection), in: record, out: &out,
	}))
	return out, err
}

// WriteOptions apply to a write. The service refuses those that have no meaning for it.
type WriteOptions struct {
	IfMatch string // update and delete of one record: the ETag that it must still have
	Replace bool   // PUT replaces the record in place of merging into it
	Minimal bool   // the answer has ids only
	Lang    string // the language that the record is written and answered in
	// IdempotencyKey has a create be carried out once, however often it is sent: the client then repeats it by itself when the
	// answer does not come. Use another one for each.
	IdempotencyKey string

	MaxAffected *int // creates and bulk writes: to more records than that they are refused; nil: no limit
	dryRun      bool
}

func lastOf(o []WriteOptions) WriteOptions {
	if len(o) == 0 {
		return WriteOptions{}
	}
	return o[len(o)-1]
}

// call adds the options to a call.
func (o WriteOptions) call(r call) call {
	query, header := url.Values{}, http.Header{}
	maps.Copy(query, r.query)
	maps.Copy(header, r.header)
	if o.IfMatch != "" {
		header.Set(api.HeaderIfMatch, o.IfMatch)
	}
	if o.IdempotencyKey != "" {
		header.Set(api.HeaderIdempotencyKey, o.IdempotencyKey)
	}
	if o.Minimal {
		header.Set(api.HeaderPrefer, "return=minimal")
	}
	if o.Replace {
		query.Set(api.ParamReplace, "true")
	}
	if o.Lang != "" {
		query.Set(api.ParamLang, o.Lang)
	}
	if o.dryRun {
		query.Set(api.ParamDryRun, "true")
	}
	if o.MaxAffected != nil {
		query.Set(api.ParamMaxAffected, strconv.Itoa(*o.MaxAffected))
	}
	r.query, r.header = query, header
	return r
}

// UpdateRecord merges change into a record, or replaces it.
func (c *Client) UpdateRecord(ctx context.Context, namespace, collection, id string, change api.Record, o WriteOptions) (api.Record, error) {
	var out api.Record
	_, err := c.do(ctx, o.call(call{
		method: http.MethodPut, path: api.RecordPath(namespace, collection, id), in: change, out: &out,
	}))
	return out, err
}

// PatchRecord applies a patch of a media type: api.MediaMergePatch or api.MediaJSONPatch.
func (c *Client) PatchRecord(ctx context.Context, namespace, collection, id, media string, patch []byte, o WriteOptions) (api.Record, error) {
	var out api.Record
	_, err := c.do(ctx, o.call(call{
		method: http.MethodPatch, path: api.RecordPath(namespace, collection, id),
		header: http.Header{"Content-Type": {media}}, in: patch, out: &out,
	}))
	return out, err
}

// DeleteRecord deletes a record.
func (c *Client) DeleteRecord(ctx context.Context, namespace, collection, id string, o WriteOptions) (*api.DeleteResult, error) {
	var out api.DeleteResult
	_, err := c.do(ctx, o.call(call{
		method: http.MethodDelete, path: api.RecordPath(namespace, collection, id), out: &out,
	}))
	return &out, err
}

// BulkCreate creates records; the outcome of each is in the answer, in the order given.
func (c *Client) BulkCreate(ctx context.Context, namespace, collection string, records []api.Record, o ...WriteOptions) (*api.BulkCreateResult, error) {
	var out api.BulkCreateResult
	_, err := c.do(ctx, lastOf(o).call(call{
		method: http.MethodPost, path: api.RecordsPath(namespace, collection),
		in: api.BulkCreateRequest{Items: records}, out: &out,
	}))
	return &out, err
}

// BulkUpdate merges change into every record that filter (JSON) selects.
func (c *Client) BulkUpdate(ctx context.Context, namespace, collection, filter string, change api.Record, o ...WriteOptions) (*api.BulkUpdateResult, error) {
	var out api.BulkUpdateResult
	_, err := c.do(ctx, lastOf(o).call(call{
		method: http.MethodPut, path: api.RecordsPath(namespace, collection),
		query: url.Values{api.ParamFilter: {filter}}, in: change, out: &out,
	}))
	return &out, err
}

// BulkDelete deletes every record that filter (JSON) selects.
func (c *Client) BulkDelete(ctx context.Context, namespace, collection, filter string, o ...WriteOptions) (*api.BulkDeleteResult, error) {
	var out api.BulkDeleteResult
	_, err := c.do(ctx, lastOf(o).call(call{
		method: http.MethodDelete, path: api.RecordsPath(namespace, collection),
		query: url.Values{api.ParamFilter: {filter}}, out: &out,
	}))
	return &out, err
}

// TryCreate is a dry run of CreateRecord.
func (c *Client) TryCreate(ctx context.Context, namespace, collection string, record api.Record, o ...WriteOptions) (*api.DryRunResult, error) {
	return c.try(ctx, lastOf(o), call{method: http.MethodPost, path: api.RecordsPath(namespace, collection), in: record})
}

// TryUpdate is a dry run of UpdateRecord.
func (c *Client) TryUpdate(ctx context.Context, namespace, collection, id string, change api.Record, o ...WriteOptions) (*api.DryRunResult, error) {
	return c.try(ctx, lastOf(o), call{method: http.MethodPut, path: api.RecordPath(namespace, collection, id), in: change})
}

// TryPatch is a dry run of PatchRecord.
func (c *Client) TryPatch(ctx context.Context, namespace, collection, id, media string, patch []byte, o ...WriteOptions) (*api.DryRunResult, error) {
	return c.try(ctx, lastOf(o), call{
		method: http.MethodPatch, path: api.RecordPath(namespace, collection, id), header: http.Header{"Content-Type": {media}}, in: patch,
	})
}

// TryDelete is a dry run of DeleteRecord.
func (c *Client) TryDelete(ctx context.Context, namespace, collection, id string, o ...WriteOptions) (*api.DryRunResult, error) {
	return c.try(ctx, lastOf(o), call{method: http.MethodDelete, path: api.RecordPath(namespace, collection, id)})
}

// TryBulkCreate is a dry run of BulkCreate.
func (c *Client) TryBulkCreate(ctx context.Context, namespace, collection string, records []api.Record, o ...WriteOptions) (*api.DryRunResult, error) {
	return c.try(ctx, lastOf(o), call{method: http.MethodPost, path: api.RecordsPath(namespace, collection), in: api.BulkCreateRequest{Items: records}})
}

// TryBulkUpdate is a dry run of BulkUpdate.
func (c *Client) TryBulkUpdate(ctx context.Context, namespace, collection, filter string, change api.Record, o ...WriteOptions) (*api.DryRunResult, error) {
	return c.try(ctx, lastOf(o), call{
		method: http.MethodPut, path: api.RecordsPath(namespace, collection), query: url.Values{api.ParamFilter: {filter}}, in: change,
	})
}

// TryBulkDelete is a dry run of BulkDelete.
func (c *Client) TryBulkDelete(ctx context.Context, namespace, collection, filter string, o ...WriteOptions) (*api.DryRunResult, error) {
	return c.try(ctx, lastOf(o), call{
		method: http.MethodDelete, path: api.RecordsPath(namespace, collection), query: url.Values{api.ParamFilter: {filter}},
	})
}

func (c *Client) try(ctx context.Context, o WriteOptions, r call) (*api.DryRunResult, error) {
	var out api.DryRunResult
	o.dryRun, r.out = true, &out
	_, err := c.do(ctx, o.call(r))
	return &out, err
}
