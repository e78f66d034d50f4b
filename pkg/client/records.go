package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/svcctl/svc/pkg/api"
)

// ListRecords gives one page of a collection.
func (c *Client) ListRecords(ctx context.Context, namespace, collection string, q Query) (*api.List[api.Record], error) {
	return list[api.Record](ctx, c, api.RecordsPath(namespace, collection), q)
}

// Records yields all records that q selects, page by page; q.Limit is the size of a page.
func (c *Client) Records(ctx context.Context, namespace, collection string, q Query) iter.Seq2[api.Record, error] {
	return all[api.Record](ctx, c, api.RecordsPath(namespace, collection), q)
}

// GetRecord reads one record and its ETag. Of q, Select, Projection and Extra are used.
func (c *Client) GetRecord(ctx context.Context, namespace, collection, id string, q Query) (record api.Record, etag string, err error) {
	q = Query{Select: q.Select, Projection: q.Projection, Extra: q.Extra}
	header, err := c.do(ctx, call{
		method: http.MethodGet, path: api.RecordPath(namespace, collection, id), query: q.Values(), out: &record,
	})
	return record, header.Get(api.HeaderETag), err
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

// CreateRecord creates a record and gives it back as the caller may read it.
func (c *Client) CreateRecord(ctx context.Context, namespace, collection string, record api.Record) (api.Record, error) {
	var out api.Record
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: api.RecordsPath(namespace, collection), in: record, out: &out,
	})
	return out, err
}

// WriteOptions apply to the write of one record.
type WriteOptions struct {
	IfMatch string // ETag that the record must still have
	Replace bool   // PUT replaces the record in place of merging into it
}

func (o WriteOptions) header() http.Header {
	if o.IfMatch == "" {
		return nil
	}
	return http.Header{http.CanonicalHeaderKey(api.HeaderIfMatch): {o.IfMatch}}
}

// UpdateRecord merges change into a record, or replaces it.
func (c *Client) UpdateRecord(ctx context.Context, namespace, collection, id string, change api.Record, o WriteOptions) (api.Record, error) {
	var query url.Values
	if o.Replace {
		query = url.Values{api.ParamReplace: {"true"}}
	}
	var out api.Record
	_, err := c.do(ctx, call{
		method: http.MethodPut, path: api.RecordPath(namespace, collection, id),
		query: query, header: o.header(), in: change, out: &out,
	})
	return out, err
}

// PatchRecord applies a patch of a media type: api.MediaMergePatch or api.MediaJSONPatch.
func (c *Client) PatchRecord(ctx context.Context, namespace, collection, id, media string, patch []byte, o WriteOptions) (api.Record, error) {
	header := o.header()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", media)
	var out api.Record
	_, err := c.do(ctx, call{
		method: http.MethodPatch, path: api.RecordPath(namespace, collection, id),
		header: header, in: patch, out: &out,
	})
	return out, err
}

// DeleteRecord deletes a record.
func (c *Client) DeleteRecord(ctx context.Context, namespace, collection, id string, o WriteOptions) (*api.DeleteResult, error) {
	var out api.DeleteResult
	_, err := c.do(ctx, call{
		method: http.MethodDelete, path: api.RecordPath(namespace, collection, id), header: o.header(), out: &out,
	})
	return &out, err
}

// BulkCreate creates records; the outcome of each is in the answer, in the order given.
func (c *Client) BulkCreate(ctx context.Context, namespace, collection string, records []api.Record) (*api.BulkCreateResult, error) {
	var out api.BulkCreateResult
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: api.RecordsPath(namespace, collection),
		in: api.BulkCreateRequest{Items: records}, out: &out,
	})
	return &out, err
}

// BulkUpdate merges change into every record that filter (JSON) selects.
func (c *Client) BulkUpdate(ctx context.Context, namespace, collection, filter string, change api.Record) (*api.BulkUpdateResult, error) {
	var out api.BulkUpdateResult
	_, err := c.do(ctx, call{
		method: http.MethodPut, path: api.RecordsPath(namespace, collection),
		query: url.Values{api.ParamFilter: {filter}}, in: change, out: &out,
	})
	return &out, err
}

// BulkDelete deletes every record that filter (JSON) selects.
func (c *Client) BulkDelete(ctx context.Context, namespace, collection, filter string) (*api.BulkDeleteResult, error) {
	var out api.BulkDeleteResult
	_, err := c.do(ctx, call{
		method: http.MethodDelete, path: api.RecordsPath(namespace, collection),
		query: url.Values{api.ParamFilter: {filter}}, out: &out,
	})
	return &out, err
}
