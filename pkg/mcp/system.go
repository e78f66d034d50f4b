package mcp

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
)

// listOf lists the records of a system model.
func listOf(name, right, doc, route string, params ...param) *tool {
	return &tool{
		name: name, list: true, rights: needs(right), doc: doc, params: params,
		request: func(a arguments) (*Request, *rpcError) {
			r := get(route)
			a.query(r.Query, api.ParamFilter, api.ParamLimit, api.ParamOffset)
			return r, nil
		},
	}
}

// oneOf reads a record of a system model.
func oneOf(name, right, noun, route string) *tool {
	return &tool{
		name: name, rights: needs(right), doc: "Read one " + noun + ".", params: []param{idParam(noun)},
		missing: map[string]string{"id": "id is required"},
		request: func(a arguments) (*Request, *rpcError) { return get(route, a.text("id")), nil },
	}
}

func textFilter(doc string) param {
	return param{"filter", kindWords, false, nil, doc}
}

func usersList() *tool {
	return listOf("users_list", access.UserRead, "List the users that you may see.", api.RouteUsers,
		textFilter(`Which users, as JSON, such as {"active": true}.`), digits(limitParam()), digits(offsetParam()))
}

func userGet() *tool { return oneOf("user_get", access.UserRead, "user", api.RouteUser) }

// userWrite is a tool that tells to write users by REST.
func userWrite(name, right, route string, params ...param) *tool {
	return &tool{
		name: name, restOnly: true, rights: needs(right), params: params,
		doc: restOnlyMark + ": use " + route + ".",
		request: func(arguments) (*Request, *rpcError) {
			e := refusal(400, "user write via MCP is REST-only")
			e.Data.Detail = "use " + route
			return nil, e
		},
	}
}

func userCreate() *tool {
	return userWrite("user_create", access.UserCreate, "POST /api/v1/user", param{"data", kindObject, false, nil, "The user."})
}

func userUpdate() *tool {
	return userWrite("user_update", access.UserUpdate, "PUT /api/v1/user/<id>",
		param{"id", kindName, false, nil, "The id of the user: 24 hex digits."}, param{"data", kindObject, false, nil, "What to change."})
}

func userDelete() *tool {
	return userWrite("user_delete", access.UserDelete, "DELETE /api/v1/user/<id>", idParam("user"))
}

func orgsList() *tool {
	return listOf("orgs_list", access.OrgRead, "List the organizations that you may see.", api.RouteOrgs, digits(limitParam()))
}

func orgGet() *tool { return oneOf("org_get", access.OrgRead, "organization", api.RouteOrg) }

func teamsList() *tool {
	return listOf("teams_list", access.TeamRead, "List the teams that you may see.", api.RouteTeams, digits(limitParam()))
}

func teamGet() *tool { return oneOf("team_get", access.TeamRead, "team", api.RouteTeam) }

func systemMetaGet() *tool {
	return &tool{
		name: "system_meta_get",
		doc:  "What fields users and projects have, and what they take.",
		params: []param{
			{"model", kindText, false, []string{"user", "project"}, "user or project; all models, unless it is given."},
		},
		request: func(a arguments) (*Request, *rpcError) {
			if !a.has("model") {
				return get(api.RouteMeta), nil
			}
			return get(api.RouteModelMeta, a.text("model")), nil
		},
	}
}

func auditQuery() *tool {
	return &tool{
		name: "audit_query", list: true, rights: needs(access.AuditRead), answer: queryAudit,
		doc: "Read the audit log, newest first: who changed which record, of the collections that you may read.",
		params: []param{
			textFilter(`Which entries, as JSON, such as {"namespace": "blog", "collection": "articles", "op": "update"}. It names namespace, and at, kind, op, collection, recordId, actor.kind, actor.id, actor.name, tokenId, requestId and address.`),
			digits(limitParam()),
		},
	}
}

// queryAudit reads the logs of all projects, or of the one that the filter names, and puts them together by time.
func queryAudit(s *Server, c *call) (*Response, *rpcError) {
	namespaces := s.opts.Namespaces()
	q := url.Values{}
	if c.args.has("filter") {
		doc, bad := c.args.parameters("filter")
		if bad != nil {
			return nil, bad
		}
		if raw := doc["namespace"]; raw != nil {
			if raw[0] != '"' {
				return nil, badArgument("filter: namespace must be the name of one project")
			}
			namespaces = []string{text(raw)}
			delete(doc, "namespace")
		}
		filter, err := json.Marshal(doc)
		if err != nil {
			return nil, badArgument("filter: " + err.Error())
		}
		q.Set(api.ParamFilter, string(filter))
	}
	limit := s.opts.MaxResultItems
	if c.args.has("limit") {
		n, err := strconv.Atoi(c.args.text("limit"))
		if err != nil {
			return nil, badArgument("limit is too large")
		}
		limit = min(n, limit)
	}
	q.Set(api.ParamLimit, strconv.Itoa(limit))
	type entry struct {
		at  string
		raw json.RawMessage
	}
	var entries []entry
	more := false
	for _, namespace := range namespaces {
		r := get(api.RouteProjectAudit, namespace)
		r.Query = maps.Clone(q)
		res := c.do(c.ctx, r)
		if res.Status != 200 {
			if len(namespaces) > 1 && (res.Status == 403 || res.Status == 404) { // not theirs to see, or no longer there
				continue
			}
			return res, nil
		}
		var page struct {
			Items   []json.RawMessage `json:"items"`
			HasMore bool              `json:"hasMore"`
		}
		if err := json.Unmarshal(res.Body, &page); err != nil {
			return nil, errInternal()
		}
		more = more || page.HasMore
		for _, item := range page.Items {
			var e struct {
				At string `json:"at"`
			}
			if err := json.Unmarshal(item, &e); err != nil {
				return nil, errInternal()
			}
			entries = append(entries, entry{e.At, item})
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return bytes.Compare([]byte(b.at), []byte(a.at)) })
	if len(entries) > limit {
		entries, more = entries[:limit], true
	}
	page := auditPage{Items: []json.RawMessage{}, Limit: limit, HasMore: more}
	for _, e := range entries {
		page.Items = append(page.Items, e.raw)
	}
	body, err := json.Marshal(page)
	if err != nil {
		return nil, errInternal()
	}
	return &Response{Status: 200, Type: api.MediaJSON, Body: body}, nil
}

type auditPage struct {
	Items   []json.RawMessage `json:"items"`
	Limit   int               `json:"limit"`
	Offset  int               `json:"offset"`
	HasMore bool              `json:"hasMore"`
}
