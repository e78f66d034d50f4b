package httpapi

import (
	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
)

// allowed holds the caller against the right of the route.
func (r *request) allowed() error {
	p, need := r.principal, r.route.right
	switch need.kind {
	case rightPublic:
		return nil
	case rightCredential:
		if p.Kind != access.KindAnonymous && p.Kind != access.KindToken { // whether a Token is good, only a project knows
			return nil
		}
	case rightLogin:
		if p.Kind == access.KindUser {
			return nil
		}
	case rightSystem:
		if p.Has(need.name) {
			return nil
		}
	case rightSnapshots:
		return r.maySnapshots()
	case rightProject, rightServed:
		return r.server.cfg.Records.MayOperate(r.project, p, need.name)
	case rightRecords:
		c, ok := r.project.Collections[r.param("collection")]
		if !ok {
			return errs.ErrCollectionNotFound
		}
		r.inCollection(c)
		return r.server.cfg.Records.May(r.Context(), r.call(), need.method)
	case rightFile, rightAsset, rightDescribed:
		if need.kind == rightFile {
			c := r.project.Addressed(r.param("collection"))
			if c == nil {
				return errs.ErrCollectionNotFound
			}
			r.inCollection(c)
		}
		if p.Kind != access.KindToken || r.project.KnowsToken(p.TokenHash, r.server.cfg.Now()) {
			return nil
		}
	case rightActions, rightAction, rightActionRuns:
		return r.mayAct(need)
	case rightMCP:
		if p.Kind == access.KindPAT {
			return nil
		}
	case rightNobody:
	}
	if need.name != "" {
		return p.Require(need.name)
	}
	return errs.ErrDenied
}

// lacking names in a denial the right that the route asks for, to users and their personal access tokens. That is what
// docs/api.md says of the route, of a collection that is there for them: it tells nothing that they can't see. The rights of
// others, who may be anybody, are not named beyond what the interface has as text.
func (r *request) lacking(err error) error {
	p, need := r.principal, r.route.right
	if (p.Kind != access.KindUser && p.Kind != access.KindPAT) || errs.KindOf(err) != errs.Denied {
		return err
	}
	right := need.name
	switch {
	case errs.From(err).Right != "": // of another collection, which the request asks too
		return err
	case need.kind == rightRecords:
		right = access.LackingOn(p, r.project.Namespace, r.collection.Name, need.method)
	}
	return errs.From(err).Lacking(right)
}
