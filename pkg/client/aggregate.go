package client

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/svcctl/svc/pkg/api"
)

// AggregateRecords runs a pipeline (JSON, a list of stages) on the records that q.Filter selects. Of q, Filter, Limit and
// Extra are used. Results have the names of the store: _id.
func (c *Client) AggregateRecords(ctx context.Context, namespace, collection, pipeline string, q Query) (*api.List[api.Record], error) {
	extra := maps.Clone(q.Extra)
	if extra == nil {
		extra = url.Values{}
	}
	extra.Set(api.ParamAggregate, pipeline)
	return list[api.Record](ctx, c, api.RecordsPath(namespace, collection), Query{Filter: q.Filter, Limit: q.Limit, Extra: extra})
}

// FacetRecords counts the values of fields in the records that filter (JSON, "" for all) selects.
func (c *Client) FacetRecords(ctx context.Context, namespace, collection string, fields []string, filter string) (*api.FacetResult, error) {
	var out api.FacetResult
	_, err := c.do(ctx, call{
		method: http.MethodGet, path: api.RecordFacetPath(namespace, collection),
		query: Query{Filter: filter, Extra: url.Values{api.ParamFields: {strings.Join(fields, ",")}}}.Values(), out: &out,
	})
	return &out, err
}
