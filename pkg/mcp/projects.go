package mcp

import (
	"encoding/json"
	"net/url"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
)

// needs is the rights that a tool takes whatever it is called with.
func needs(rights ...string) func(arguments) []string {
	return func(arguments) []string { return rights }
}

// inProject is a tool that reads what there is of a project.
func inProject(t *tool, route string, names ...string) *tool {
	t.request = func(a arguments) (*Request, *rpcError) {
		r := get(route, a.text("namespace"))
		a.query(r.Query, names...)
		return r, nil
	}
	return t
}

func projectsList() *tool {
	return &tool{
		name: "projects_list", list: true, rights: needs(access.ProjectRead),
		doc:    "List the projects that are registered.",
		params: []param{limitParam(), offsetParam()},
		request: func(a arguments) (*Request, *rpcError) {
			r := get(api.RouteProjects)
			a.query(r.Query, api.ParamLimit, api.ParamOffset)
			return r, nil
		},
	}
}

func projectGet() *tool {
	t := oneOf("project_get", access.ProjectRead, "project", api.RouteProject)
	t.doc = "Read the registration of a project by its id, which projects_list gives."
	return t
}

func collectionsList() *tool {
	return inProject(&tool{
		name: "collections_list", list: true, described: true, rights: needs(access.ProjectRead),
		doc:    "List the collections of a project that you may read, with their fields, and what you may do in each (yourPermissions).",
		params: []param{namespaceParam()},
	}, api.RouteCollections)
}

func collectionDescribe() *tool {
	return &tool{
		name: "collection_describe", described: true,
		doc: "Describe a collection: its fields, searches and indexes, what its config tells agents (meta.agent), the extra parameters that it takes (meta.query), and what you may do (yourPermissions).",
		rights: func(a arguments) []string {
			return append(recordRight(access.Get)(a), access.ProjectRead)
		},
		params: []param{namespaceParam(), collectionParam(), langParam()},
		request: func(a arguments) (*Request, *rpcError) {
			r := get(api.RouteCollection, a.text("namespace"), a.text("collection"))
			a.query(r.Query, api.ParamLang)
			return r, nil
		},
	}
}

func actionsList() *tool {
	return inProject(&tool{
		name: "actions_list", list: true, described: true,
		doc:    "List the actions of a project that you may call.",
		params: []param{namespaceParam()},
	}, api.RouteActions)
}

// actionRight is what a method of the action of a call takes.
func actionRight(m access.Method) func(a arguments) []string {
	return func(a arguments) []string {
		return []string{access.RecordRight(a.text("namespace"), access.ActionScope(a.text("action")), m)}
	}
}

func actionParam() param {
	return param{"action", kindName, true, nil, "The action, by its name. actions_list has them."}
}

func actionDescribe() *tool {
	return &tool{
		name: "action_describe", described: true, rights: actionRight(access.Get),
		doc:    "Describe an action: what its methods take and give, and which of them you may call (yourPermissions).",
		params: []param{namespaceParam(), actionParam()},
		request: func(a arguments) (*Request, *rpcError) {
			return get(api.RouteActionDescribe, a.text("namespace"), a.text("action")), nil
		},
	}
}

func actionCall() *tool {
	method := func(a arguments) access.Method {
		if a.text("method") == "get" {
			return access.Get
		}
		return access.Post
	}
	return &tool{
		name: "action_call", writes: true, destructive: true, anyAnswer: true,
		doc:    "Call an action. What takes long answers with a run, which goes on: GET /api/v1/_/<namespace>/_/actions/<action>/runs/<id> has how it stands, with the same token.",
		rights: func(a arguments) []string { return actionRight(method(a))(a) },
		params: []param{
			namespaceParam(), actionParam(), {"method", kindText, false, nil, "get or post; post, unless it is given."},
			{"data", kindObject, false, nil, "What the action takes: the body of a post, the query parameters of a get."},
		},
		request: func(a arguments) (*Request, *rpcError) {
			if m := a.text("method"); a.has("method") && m != "get" && m != "post" {
				return nil, refusal(400, "action method must be get or post")
			}
			r := get(api.RouteAction, a.text("namespace"), a.text("action"))
			if method(a) == access.Post {
				r.Method, r.Body = "POST", a.json("data")
				return r, nil
			}
			var err *rpcError
			r.Query, err = a.asQuery("data")
			return r, err
		},
	}
}

// asQuery is an object as query parameters: a list is one parameter for each of its items.
func (a arguments) asQuery(name string) (url.Values, *rpcError) {
	out := url.Values{}
	if !a.has(name) {
		return out, nil
	}
	doc, bad := a.parameters(name)
	if bad != nil {
		return nil, bad
	}
	for key, raw := range doc {
		var items []json.RawMessage
		switch {
		case string(raw) == "null":
		case raw[0] == '[' && json.Unmarshal(raw, &items) == nil:
			for _, item := range items {
				out.Add(key, arguments{key: item}.text(key))
			}
		default:
			out.Set(key, arguments(doc).text(key))
		}
	}
	return out, nil
}

func jobsList() *tool {
	return inProject(&tool{
		name: "jobs_list", list: true, rights: needs(access.ProjectRead),
		doc:    "List the jobs of a project, when they run and how they stand. Nothing here starts one.",
		params: []param{namespaceParam()},
	}, api.RouteJobs)
}

func openAPIGet() *tool {
	return inProject(&tool{
		name: "openapi_get", described: true, document: true,
		doc:    "The OpenAPI 3.1 document of a project, with what you may see and do in it. It is long: what you need of a collection, collection_describe tells in less.",
		params: []param{namespaceParam(), langParam()},
	}, api.RouteOpenAPI, api.ParamLang)
}

func agentGuideGet() *tool {
	return &tool{
		name: "agent_guide_get", described: true,
		doc: "What the people behind a project tell agents about it, about one of its collections, or about one of its actions, and what you may do there (yourPermissions). Read it before you write.",
		rights: func(a arguments) []string {
			switch {
			case a.has("collection"):
				return recordRight(access.Get)(a)
			case a.has("action"):
				return actionRight(access.Get)(a)
			}
			return []string{access.ProjectRead}
		},
		params: []param{
			namespaceParam(), {"collection", kindName, false, nil, "The collection to be told about."},
			{"action", kindName, false, nil, "The action to be told about."}, langParam(),
		},
		request: func(a arguments) (*Request, *rpcError) {
			r := get(api.RouteAgentGuide, a.text("namespace"))
			a.query(r.Query, api.ParamCollection, api.ParamAction, api.ParamLang)
			return r, nil
		},
	}
}

func assetsList() *tool {
	return inProject(&tool{
		name: "assets_list", list: true, rights: needs(access.ProjectRead),
		doc:    "List the folders of static files that a project serves.",
		params: []param{namespaceParam()},
	}, api.RouteAssets)
}

func assetRead() *tool {
	return &tool{
		name: "asset_read", restOnly: true, rights: needs(access.ProjectRead),
		doc: restOnlyMark + ": a static file of a project is read by GET /api/v1/_/<namespace>/_/assets/<name>/<path>.",
		params: []param{
			namespaceParam(), {"name", kindName, true, nil, "The asset, by its name."}, {"path", kindName, true, nil, "The path of the file in it."},
		},
		request: func(arguments) (*Request, *rpcError) {
			return nil, refusal(400, "asset_read is REST-only in this phase: use GET /api/v1/_/<namespace>/_/assets/<name>/<path>")
		},
	}
}

// adminTool is a tool of operators, who have the REST route for it.
func adminTool(name, right, doc, route string) *tool {
	return &tool{
		name: name, admin: true, restOnly: true, rights: needs(right),
		doc:    restOnlyMark + ": " + doc + " by " + route + ".",
		params: []param{namespaceParam()},
		request: func(arguments) (*Request, *rpcError) {
			e := refusal(400, "admin tool is REST-only")
			e.Data.Detail = "use " + route
			return nil, e
		},
	}
}

func projectReload() *tool {
	return adminTool("project_reload", access.ProjectReload, "a project's config is loaded again", "POST /api/v1/_/<namespace>/_/admin/reload")
}

func regenerateSearch() *tool {
	return adminTool("regenerate_search", access.ProjectRegenerateSearch, "a project's search indexes are made anew", "POST /api/v1/_/<namespace>/_/admin/regenerate-search")
}

func backupCreate() *tool {
	return adminTool("backup_create", access.ProjectBackup, "a backup of a project is made", "POST /api/v1/_/<namespace>/_/admin/backup")
}

func snapshotsList() *tool {
	return adminTool("snapshots_list", access.ProjectSnapshot, "the snapshots of a project are listed", "GET /api/v1/_/<namespace>/_/admin/snapshots")
}
