package mcp

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
)

// recordRight is what a method on the collection of a call takes; nothing can be said of a call that names none, which does nothing.
func recordRight(m access.Method) func(a arguments) []string {
	return func(a arguments) []string {
		if !a.has("namespace") || !a.has("collection") {
			return nil
		}
		return []string{access.RecordRight(a.text("namespace"), a.text("collection"), m)}
	}
}

// extra reads the arguments' further parameters, each as a query has it. Without any they are empty, and not nil: the collection may need some.
func (a arguments) extra() (url.Values, *rpcError) {
	if !a.has("extra") {
		return url.Values{}, nil
	}
	doc, bad := a.parameters("extra")
	if bad != nil {
		return nil, bad
	}
	out := url.Values{}
	for name, raw := range doc {
		if string(raw) == "null" {
			continue
		}
		out.Set(name, arguments(doc).text(name))
	}
	return out, nil
}

func (a arguments) record(method, route string, names ...string) (*Request, *rpcError) {
	values := []string{a.text("namespace"), a.text("collection")}
	if a.has("id") {
		values = append(values, a.text("id"))
	}
	r := get(route, values...)
	r.Method = method
	a.query(r.Query, names...)
	for _, name := range []string{api.ParamSort, api.ParamSelect, api.ParamLookup, api.ParamFields} {
		if a.has(name) {
			r.Query.Set(name, a.words(name))
		}
	}
	var err *rpcError
	r.Extra, err = a.extra()
	return r, err
}

func documentsList() *tool {
	return &tool{
		name: "documents_list", list: true, rights: recordRight(access.Get),
		doc: "List or search the records of a collection. The answer has items, and hasMore when there are more: those come with offset. Records can be long: give select. Searches come best first, unless there is a sort.",
		params: slices.Concat([]param{
			namespaceParam(), collectionParam(), filterParam(),
			{"sort", kindWords, false, nil, "Fields, with - before those that go down, such as -publishedAt,title."},
			limitParam(), offsetParam(),
			{"select", kindWords, false, nil, "The fields that come, such as title,seo.title, or with - before each those that don't. id always comes."},
			{"projection", kindText, false, nil, "The name of one of the collection's projections, in the place of select."},
			{"lookup", kindWords, false, nil, "Fields whose related records come along, such as author,tags. It needs read on their collections."},
			{"aggregate", kindObjects, false, nil, "An aggregation pipeline in MongoDB's stages, in the place of a list. Of the other arguments, it goes together with filter, limit and extra."},
		}, qParams(), []param{
			{"count", kindBoolean, false, nil, "Whether to count all records that match, as total."}, extraParam(),
		}),
		request: func(a arguments) (*Request, *rpcError) {
			return a.record("GET", api.RouteRecords, api.ParamFilter, api.ParamLimit, api.ParamOffset, api.ParamProjection, api.ParamAggregate,
				api.ParamQ, api.ParamQName, api.ParamCount)
		},
	}
}

func documentGet() *tool {
	return &tool{
		name: "document_get", rights: recordRight(access.Get),
		doc: "Read one record. Its _rev is what ifMatch of a later write takes.",
		params: []param{
			namespaceParam(), collectionParam(), idParam("record"),
			{"select", kindWords, false, nil, "The fields that come, such as title,seo.title, or with - before each those that don't."},
			{"lookup", kindWords, false, nil, "Fields whose related records come along, such as author,tags."}, extraParam(),
		},
		request: func(a arguments) (*Request, *rpcError) { return a.record("GET", api.RouteRecord) },
	}
}

func documentsCount() *tool {
	return &tool{
		name: "documents_count", rights: recordRight(access.Get),
		doc: "Count the records of a collection that match.",
		params: []param{
			namespaceParam(), collectionParam(), filterParam(), {"q", kindText, false, nil, "Words to search for."}, extraParam(),
		},
		request: func(a arguments) (*Request, *rpcError) {
			return a.record("GET", api.RouteRecordCount, api.ParamFilter, api.ParamQ)
		},
	}
}

func documentsFacet() *tool {
	return &tool{
		name: "documents_facet", rights: recordRight(access.Get),
		doc:     "Count how many records have each value of some fields.",
		missing: map[string]string{"fields": "missing required parameter: facet"},
		params: slices.Concat([]param{
			namespaceParam(), collectionParam(), {"fields", kindWords, true, nil, "The fields, such as status,tags."}, filterParam(),
		}, qParams(), []param{
			{"qLimit", kindText, false, nil, "How many of the best that q finds are counted: a number, or all."}, extraParam(),
		}),
		request: func(a arguments) (*Request, *rpcError) {
			return a.record("GET", api.RouteRecordFacet, api.ParamFilter, api.ParamQ, api.ParamQName, api.ParamQLimit)
		},
	}
}

func queueStatus() *tool {
	return &tool{
		name: "queue_status",
		doc:  "Tell how far the search indexes of a collection follow its records.",
		rights: func(a arguments) []string {
			return append(recordRight(access.Get)(a), access.ProjectRead)
		},
		params:  []param{namespaceParam(), collectionParam()},
		request: func(a arguments) (*Request, *rpcError) { return a.record("GET", api.RouteRecordQueue) },
	}
}

func documentCreate() *tool {
	return &tool{
		name: "document_create", writes: true, rights: recordRight(access.Post),
		doc: "Create a record from data, or several at once from items. The answer is the record; of items, how many succeeded and failed, and the status of each: some may fail where others are created.",
		params: []param{
			namespaceParam(), collectionParam(), {"data", kindObject, false, nil, "The record. Needed unless there are items."},
			{"items", kindObjects, false, nil, "Several records, in the place of data. What a script fills in for a single record, such as a slug, it may not fill in for these: give it."}, dryRunParam(), maxAffectedParam(),
			{"ifMatch", kindDigits, false, nil, "Not for creates, which are refused with it: a record that is new has no _rev."},
		},
		request: func(a arguments) (*Request, *rpcError) {
			r, err := a.write("POST", api.RouteRecords, api.ParamDryRun, api.ParamMaxAffected)
			switch {
			case err != nil:
				return nil, err
			case a.has("items") == a.has("data"):
				return nil, badArgument("give data, or items for several records")
			case a.has("items"):
				r.Query.Set(api.ParamBulk, "true")
				r.Body = slices.Concat(json.RawMessage(`{"items":`), a.json("items"), json.RawMessage("}"))
			default:
				r.Body = a.json("data")
			}
			return r, nil
		},
	}
}

func documentUpdate() *tool {
	return &tool{
		name: "document_update", writes: true, destructive: true, rights: recordRight(access.Put),
		doc: "Change one record by id, or all that match a filter ({} is all there are: give maxAffected). Fields of data that are given are set, null unsets, others stay as they are. By filter, the answer has how many matched, succeeded and failed, and the status of each.",
		params: []param{
			namespaceParam(), collectionParam(), {"id", kindName, false, nil, "The record: 24 hex digits."}, filterParam(),
			{"data", kindObject, false, nil, "The fields to set."}, dryRunParam(), maxAffectedParam(), ifMatchParam(),
		},
		request: func(a arguments) (*Request, *rpcError) {
			r, err := a.oneOrMany("PUT")
			if err == nil && !a.has("data") && (a.has("id") || a.has("filter")) {
				err = badArgument("data is required")
			}
			if err == nil {
				r.Body = a.json("data")
			}
			return r, err
		},
	}
}

func documentDelete() *tool {
	return &tool{
		name: "document_delete", writes: true, destructive: true, rights: recordRight(access.Delete),
		doc: "Delete one record by id, or all that match a filter ({} is all there are: give maxAffected), with their files. By filter, the answer has how many matched, succeeded and failed, and the status of each.",
		params: []param{
			namespaceParam(), collectionParam(), {"id", kindName, false, nil, "The record: 24 hex digits."}, filterParam(),
			dryRunParam(), maxAffectedParam(), ifMatchParam(),
		},
		request: func(a arguments) (*Request, *rpcError) { return a.oneOrMany("DELETE") },
	}
}

// oneOrMany is a write of the record with an id, or of all that match a filter. Without either, REST says what is needed.
func (a arguments) oneOrMany(method string) (*Request, *rpcError) {
	switch {
	case a.has("id") && a.has("filter"):
		return nil, badArgument("give the id of one record or a filter, not both")
	case a.has("id") && a.text("maxAffected") == "0":
		return nil, refusal(422, "this would change 1 record, and maxAffected is 0: nothing was done")
	case a.has("id"): // of one record, any other maxAffected is kept to
		return a.write(method, api.RouteRecord, api.ParamDryRun)
	}
	return a.write(method, api.RouteRecords, api.ParamFilter, api.ParamDryRun, api.ParamMaxAffected)
}

// write is a request that changes records. What it does not take, REST refuses.
func (a arguments) write(method, route string, names ...string) (*Request, *rpcError) {
	r, err := a.record(method, route, names...)
	if err == nil && a.text("ifMatch") == "0" { // no record has that
		return nil, badArgument("ifMatch must be the _rev that a read of the record gave, 1 or more")
	}
	if err == nil && a.has("ifMatch") {
		r.IfRev = strconv.Quote(a.text("ifMatch"))
	}
	return r, err
}

func fileRead() *tool {
	return &tool{
		name: "file_read", restOnly: true, rights: recordRight(access.Get),
		doc: restOnlyMark + ": a file of a record is read by GET /api/v1/_/<namespace>/<collection>/<id>/<field>/<path>.",
		params: []param{
			namespaceParam(), collectionParam(), idParam("record"), {"field", kindName, true, nil, "The field that has the file."},
			{"path", kindText, false, nil, "The name of the file."},
		},
		request: func(arguments) (*Request, *rpcError) {
			return nil, refusal(400, "file_read is REST-only in this phase: use GET /api/v1/_/<namespace>/<collection>/<id>/<field>/<path> with the same token")
		},
	}
}
