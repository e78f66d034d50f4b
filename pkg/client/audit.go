package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/svcctl/svc/pkg/api"
)

// ListAudit gives one page of the audit log of the service itself, newest first.
func (c *Client) ListAudit(ctx context.Context, q Query) (*api.List[api.AuditEntry], error) {
	return list[api.AuditEntry](ctx, c, api.Prefix+api.RouteAudit, q)
}

// Audit yields all entries of the audit log of the service itself that q selects.
func (c *Client) Audit(ctx context.Context, q Query) iter.Seq2[api.AuditEntry, error] {
	return all[api.AuditEntry](ctx, c, api.Prefix+api.RouteAudit, q)
}

// ListProjectAudit gives one page of the audit log of a project's records, newest first.
func (c *Client) ListProjectAudit(ctx context.Context, namespace string, q Query) (*api.List[api.AuditEntry], error) {
	return list[api.AuditEntry](ctx, c, api.ProjectAuditPath(namespace), q)
}

// ProjectAudit yields all entries of the audit log of a project's records that q selects.
func (c *Client) ProjectAudit(ctx context.Context, namespace string, q Query) iter.Seq2[api.AuditEntry, error] {
	return all[api.AuditEntry](ctx, c, api.ProjectAuditPath(namespace), q)
}

// VerifyAudit checks the chain of an audit log: that of a project's records, or with "" that of the service itself. expect is
// a head that it had earlier, and that it still has to have; nil is none.
func (c *Client) VerifyAudit(ctx context.Context, namespace string, expect *api.AuditPlace) (*api.AuditReport, error) {
	query := url.Values{}
	if namespace != "" {
		query.Set(api.ParamProject, namespace)
	}
	if expect != nil {
		query.Set(api.ParamExpect, expect.String())
	}
	var out api.AuditReport
	_, err := c.do(ctx, call{method: http.MethodGet, path: api.Prefix + api.RouteAuditVerify, query: query, out: &out})
	return &out, err
}
