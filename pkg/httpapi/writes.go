package httpapi

import (
	"net/http"
	"strings"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/records"
)

// shownOfDryRun is how many ids, and how many failures, the answer of a dry run has: of the failures of a bulk create all,
// for its items came from the caller, who wants to know which of them to mend.
const shownOfDryRun = 10

// writeCall is call for a write, with what the request's parameters say of all writes. It has to be asked when the body has
// come.
func (r *request) writeCall() (c *records.Call, err error) {
	c = r.call()
	c.Uploads = &r.uploads
	limit := r.maxBody()
	c.MaxFiles, c.MaxFilesOf = limit.bytes, limit.of
	if r.claim != nil {
		c.NewID, c.Again = r.claim.ID, r.claim.Again()
	}
	if c.DryRun, err = r.boolean(api.ParamDryRun); err != nil {
		return nil, err
	}
	if c.MaxAffected, err = r.integer(api.ParamMaxAffected); err != nil {
		return nil, err
	}
	if c.MaxAffected != nil && *c.MaxAffected < 0 {
		return nil, errs.New(errs.Invalid, "bad_parameter", "%s can't be negative", api.ParamMaxAffected)
	}
	return c, nil
}

// dryRun answers what a write would have done. matched is nil for writes that don't look for records by a filter.
func (s *Server) dryRun(w http.ResponseWriter, r *request, matched *int, items []records.Item) error {
	out := api.DryRunResult{DryRun: true, Matched: matched, IDs: []string{}}
	for i, it := range items {
		if it.Err == nil {
			out.Succeeded++
			if it.ID != "" && len(out.IDs) < shownOfDryRun {
				out.IDs = append(out.IDs, it.ID)
			}
			continue
		}
		if out.Failed++; out.Failed <= shownOfDryRun || matched == nil {
			p := s.itemProblem(r, it.Err)
			out.Items = append(out.Items, api.DryRunItem{Index: i, ID: it.ID, Status: p.Status, Error: p})
		}
	}
	return r.json(w, http.StatusOK, out)
}

// minimal says that the caller wants no more than ids in the answer to a write (RFC 7240), and tells them that they get it.
func (r *request) minimal(h http.Header) bool {
	for preference := range strings.SplitSeq(strings.Join(r.Header.Values(api.HeaderPrefer), ","), ",") {
		preference, _, _ = strings.Cut(preference, ";")
		name, value, _ := strings.Cut(preference, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "return") {
			continue
		}
		switch value = strings.Trim(strings.TrimSpace(value), `"`); value {
		case "minimal", "representation": // the first one counts
			h.Set(api.HeaderPreferenceApplied, "return="+value)
			return value == "minimal"
		}
	}
	return false
}
