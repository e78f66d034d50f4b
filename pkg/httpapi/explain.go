package httpapi

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
)

// explainAccess says what somebody may do with a collection's records, and why.
func (s *Server) explainAccess(w http.ResponseWriter, r *request) error {
	body, err := r.object(w)
	if err != nil {
		return err
	}
	q, m, err := parseExplain(body)
	if err != nil {
		return err
	}
	c, ok := r.project.Collections[q.Collection]
	if !ok {
		return errs.ErrCollectionNotFound
	}
	who, active, err := s.explained(r.Context(), r.principal, &q.Principal)
	if err != nil {
		return err
	}
	r.inCollection(c)
	x := access.Explanation{Err: errs.ErrDenied, Steps: []access.Step{{
		Rule: "credential", Reason: refusals()[q.Principal.Kind],
	}}}
	if active {
		x = s.cfg.Records.Explain(r.Context(), r.call(), who, m)
	}
	out, err := explanationOut(r.project, q, x)
	if err != nil {
		return err
	}
	if q.ID != "" {
		visible, err := s.cfg.Records.Reaches(r.Context(), r.call(), x, q.ID)
		if err != nil {
			return err
		}
		out.Record = &api.ExplainRecord{ID: q.ID, Visible: visible}
	}
	return r.json(w, http.StatusOK, out)
}

// refusals say why a caller of a kind is refused, whatever they ask for.
func refusals() map[string]string {
	return map[string]string{
		api.ExplainUser: "the user is not active: whatever they show is refused",
		api.ExplainPAT:  "the token has expired or was revoked, or its owner is not active: it is refused",
	}
}

// explained gives the caller that a body names, and fills in what it leaves out. Whoever asks about a user other than
// themselves has to be allowed to read them; one that they can't see is not there. Tokens are their owner's to ask about,
// and administrators'.
func (s *Server) explained(ctx context.Context, by *access.Principal, p *api.ExplainPrincipal) (who *access.Principal, active bool, err error) {
	switch p.Kind {
	case api.ExplainAnonymous:
		return access.Anonymous(), true, nil
	case api.ExplainAdmin:
		return &access.Principal{Kind: access.KindAdmin}, true, nil
	case api.ExplainToken:
		hash, err := hex.DecodeString(p.TokenHash)
		if err != nil || len(hash) != 32 {
			return nil, false, errs.Validation([]errs.FieldError{{
				Path: "principal.tokenHash", Rule: "format", Message: "must be the SHA-256 of the token, as 64 hex digits",
			}})
		}
		return &access.Principal{Kind: access.KindToken, TokenHash: [32]byte(hash)}, true, nil
	case api.ExplainPAT:
		t, err := s.cfg.System.Tokens.Get(ctx, by, p.ID)
		if err != nil {
			return nil, false, notFound(err, "token")
		}
		return s.cfg.Auth.PrincipalOfToken(ctx, t)
	}
	id := p.ID
	if id == "" {
		if u, err := s.cfg.System.Users.ByUsername(ctx, p.Username); err == nil {
			id = u.ID.Hex()
		} else if !errors.Is(err, errs.ErrNotFound) {
			return nil, false, err
		}
	}
	if !by.IsUser(id) && !by.Has(access.UserRead) {
		return nil, false, errs.ErrDenied
	}
	if id == "" {
		return nil, false, notFound(errs.ErrNotFound, "user")
	}
	u, err := s.cfg.System.Users.Get(ctx, by, id)
	if err != nil { // in the same words if the caller can't see them
		return nil, false, notFound(err, "user")
	}
	p.ID, p.Username = u.ID.Hex(), u.Username
	return s.cfg.Auth.PrincipalOf(ctx, p.ID)
}

// notFound says what is not found. It doesn't give back the name that it was asked for, which may be a secret in the wrong
// place.
func notFound(err error, what string) error {
	if !errors.Is(err, errs.ErrNotFound) {
		return err
	}
	return errs.New(errs.NotFound, errs.ErrNotFound.Code, "%s not found", what)
}

// parseExplain reads the body of a request to explain.
func parseExplain(body bson.D) (q api.ExplainRequest, m access.Method, err error) {
	var problems []errs.FieldError
	problem := func(path, rule, message string) {
		problems = append(problems, errs.FieldError{Path: path, Rule: rule, Message: message})
	}
	rest := make(bson.D, 0, len(body))
	for _, e := range body {
		principal, ok := e.Value.(bson.D)
		switch {
		case e.Key != "principal":
			rest = append(rest, e)
		case !ok:
			problem("principal", "type", "must be an object")
		default:
			problems = append(problems, texts(principal, "principal.", map[string]*string{
				"kind": &q.Principal.Kind, "id": &q.Principal.ID, "username": &q.Principal.Username, "tokenHash": &q.Principal.TokenHash,
			})...)
		}
	}
	problems = append(problems, texts(rest, "", map[string]*string{"method": &q.Method, "collection": &q.Collection, "id": &q.ID})...)
	methods := []access.Method{access.Get, access.Post, access.Put, access.Delete}
	if i := slices.IndexFunc(methods, func(m access.Method) bool { return m.String() == q.Method }); i >= 0 {
		m = methods[i]
	} else {
		problem("method", "oneof", "must be get, post, put or delete")
	}
	if q.Collection == "" {
		problem("collection", "required", "is required")
	}
	if q.ID != "" && m == access.Post {
		problem("id", "unknown", "a post makes a record, and has none to look at: leave id out")
	}
	if message := principalProblem(q.Principal); message != "" {
		problem("principal", "oneof", message)
	}
	if len(problems) > 0 {
		return q, m, errs.Validation(problems)
	}
	return q, m, nil
}

// principalProblem says what is wrong with a principal, "" for nothing: each kind takes its own members.
func principalProblem(p api.ExplainPrincipal) string {
	named := 0
	for _, text := range []string{p.ID, p.Username, p.TokenHash} {
		if text != "" {
			named++
		}
	}
	switch p.Kind {
	case api.ExplainAnonymous, api.ExplainAdmin:
		if named > 0 {
			return "takes no id, username or tokenHash with the kind " + p.Kind
		}
	case api.ExplainUser:
		if named != 1 || p.TokenHash != "" {
			return "takes either id or username with the kind user"
		}
	case api.ExplainPAT:
		if named != 1 || p.ID == "" {
			return "takes id with the kind pat"
		}
	case api.ExplainToken:
		if named != 1 || p.TokenHash == "" {
			return "takes tokenHash with the kind token"
		}
	default:
		return "must have a kind: anonymous, user, pat, token or admin"
	}
	return ""
}

// explanationOut is the wire form of an explanation. What ${…} stands for in a filter is not shown: it may be a secret.
func explanationOut(p *project.Project, q api.ExplainRequest, x access.Explanation) (api.Explanation, error) {
	out := api.Explanation{
		Principal: q.Principal, Method: q.Method, Collection: q.Collection,
		Allowed: x.Err == nil, Rule: x.Rule(), Reason: x.Reason(), Steps: make([]api.ExplainStep, 0, len(x.Steps)),
	}
	for _, step := range x.Steps {
		out.Steps = append(out.Steps, api.ExplainStep(step))
	}
	if !out.Allowed {
		return out, nil
	}
	g := x.Grant
	out.Grant = &api.ExplainGrant{Bulk: g.Bulk, Count: g.Count, Facet: g.Facet, Lookup: g.Lookup, Aggregate: g.Aggregate}
	if !g.AllProjections {
		names := append([]string{}, g.Projections...)
		out.Grant.Projections = &names
	}
	if g.Filter != nil {
		filter, err := document.Unmarshal(g.Filter.Raw())
		if err != nil {
			return out, errs.Wrap(err, "read a filter")
		}
		raw, err := bson.Marshal(document.Map(filter, func(v any) (any, bool) { return redacted(p, v) }))
		if err != nil {
			return out, errs.Wrap(err, "write a filter")
		}
		out.Filter = document.AppendJSONValue(nil, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw}, nil)
	}
	out.Hidden, out.Readonly = g.Hidden.Paths(), g.Readonly.Paths()
	out.HiddenOnSome, out.ReadonlyOnSome = g.Unsure.Paths(), g.UnsureReadonly.Paths()
	return out, nil
}

// redacted gives what is shown of a value of the config.
func redacted(p *project.Project, v any) (shown any, done bool) {
	switch v := v.(type) {
	case bson.D, bson.A:
		return nil, false
	case string:
		return p.Redact(v), true
	}
	kind, data, err := bson.MarshalValue(v)
	if err != nil {
		return nil, false
	}
	// A text of the config may have become a number, a date or an id, as the field has it.
	text := string(document.AppendJSONValue(nil, bson.RawValue{Type: kind, Value: data}, nil))
	if p.Redact(text) != text {
		return "***", true
	}
	return v, true
}
