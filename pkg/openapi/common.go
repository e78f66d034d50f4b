package openapi

import (
	"net/http"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
)

// page is the schema of the envelope of a list.
func page(item bson.D) bson.D {
	return object(bson.D{
		{Key: "items", Value: list(item)},
		{Key: "limit", Value: integer()}, {Key: "offset", Value: integer()}, {Key: "hasMore", Value: truth()},
		{Key: "total", Value: saying(integer(), "With count=true.")},
		{Key: "next", Value: saying(text(), "What after takes for the next page.")},
	}, "items", "limit", "offset", "hasMore")
}

func object(properties bson.D, required ...string) bson.D {
	out := bson.D{{Key: "type", Value: "object"}, {Key: "properties", Value: properties}}
	if len(required) > 0 {
		out = append(out, bson.E{Key: "required", Value: listOf(required)})
	}
	return out
}

func list(item bson.D) bson.D {
	return bson.D{{Key: "type", Value: "array"}, {Key: "items", Value: item}}
}

func saying(s bson.D, description string) bson.D {
	return append(s, bson.E{Key: "description", Value: description})
}

// fileInput gives the properties of a file as it is written.
func fileInput(name func() bson.D) bson.D {
	return bson.D{
		{Key: "src", Value: saying(name(), "A data URL, or the address of a file that the field has already.")},
		{Key: "path", Value: saying(name(), "Its name.")}, {Key: "alt", Value: text()},
	}
}

// pointer is the schema of a JSON pointer (RFC 6901).
func pointer() bson.D { return append(text(), pattern("^(?:/(?:[^/~]|~[01])*)*$")...) }

// something is the schema of a text that is not empty.
func something() bson.D { return append(text(), bson.E{Key: "minLength", Value: 1}) }

// event is the schema of one server-sent event of a stream.
func event() bson.D {
	return object(bson.D{{Key: "id", Value: text()}, {Key: "event", Value: text()}, {Key: "data", Value: text()}, {Key: "retry", Value: integer()}})
}

// commonSchemas are those of every document. Their names can't be those of collections, which have no dots.
func commonSchemas() bson.D {
	problem := reference("schemas", "svc.Problem")
	outcome := object(bson.D{
		{Key: "index", Value: integer()}, {Key: "id", Value: text()}, {Key: "status", Value: integer()}, {Key: "error", Value: problem},
		{Key: "item", Value: bson.D{{Key: "type", Value: "object"}}}, {Key: "warning", Value: text()},
	}, "status")
	return bson.D{
		{Key: "svc.Problem", Value: saying(object(bson.D{
			{Key: "type", Value: text()}, {Key: "title", Value: text()}, {Key: "status", Value: integer()},
			{Key: "code", Value: saying(text(), "For programs: it stays the same.")},
			{Key: "detail", Value: saying(text(), "For people.")},
			{Key: "right", Value: saying(text(), "Of a 403: what the caller lacks.")},
			{Key: "requestId", Value: text()},
			{Key: "errors", Value: list(object(bson.D{{Key: "path", Value: text()}, {Key: "rule", Value: text()}, {Key: "message", Value: text()}}, "path", "rule", "message"))},
			{Key: "problems", Value: list(bson.D{{Key: "type", Value: "object"}})},
		}, "type", "title", "status", "code", "detail", "requestId"), "RFC 9457.")},
		{Key: "svc.File", Value: object(bson.D{
			{Key: "src", Value: saying(text(), "The path that it is at.")}, {Key: "path", Value: saying(text(), "Its name.")},
			{Key: "size", Value: saying(integer(), "In bytes.")}, {Key: "type", Value: saying(text(), "Media type, by its content.")},
			{Key: "width", Value: integer()}, {Key: "height", Value: integer()}, {Key: "hash", Value: saying(text(), "SHA-256.")}, {Key: "alt", Value: text()},
		})},
		{Key: "svc.FileInput", Value: saying(object(fileInput(something), "src", "path"),
			"A file. It may come as a part of a form as well, whose name is the path of the field.")},
		{Key: "svc.FileChange", Value: saying(object(fileInput(text)), "Of a file that is there, or comes as a part of the form: what is not given stays as it is.")},
		{Key: "svc.Filter", Value: saying(bson.D{{Key: "type", Value: "object"}}, "A filter in the words of MongoDB.")},
		{Key: "svc.JSONPatch", Value: saying(list(object(bson.D{
			{Key: "op", Value: bson.D{{Key: "type", Value: "string"}, {Key: "enum", Value: bson.A{"add", "remove", "replace", "move", "copy", "test"}}}},
			{Key: "path", Value: pointer()}, {Key: "from", Value: pointer()}, {Key: "value", Value: bson.D{}},
		}, "op", "path")), "RFC 6902.")},
		{Key: "svc.Written", Value: object(bson.D{{Key: "id", Value: recordID()}, {Key: "warning", Value: text()}}, "id")},
		{Key: "svc.Count", Value: object(bson.D{{Key: "count", Value: integer()}}, "count")},
		{Key: "svc.Facets", Value: object(bson.D{
			{Key: "facets", Value: bson.D{{Key: "type", Value: "object"}, {Key: "additionalProperties", Value: list(object(bson.D{{Key: "value", Value: bson.D{}}, {Key: "count", Value: integer()}}, "value", "count"))}}},
			{Key: "window", Value: saying(integer(), "How many records were looked at.")},
			{Key: "truncated", Value: saying(truth(), "A field has more values than are listed.")},
		}, "facets", "window", "truncated")},
		{Key: "svc.BulkResult", Value: object(bson.D{
			{Key: "matched", Value: integer()}, {Key: "succeeded", Value: integer()}, {Key: "failed", Value: integer()}, {Key: "items", Value: list(outcome)},
		}, "succeeded", "failed", "items")},
		{Key: "svc.DryRunResult", Value: object(bson.D{
			{Key: "dryRun", Value: bson.D{{Key: "const", Value: true}}}, {Key: "matched", Value: integer()}, {Key: "succeeded", Value: integer()}, {Key: "failed", Value: integer()},
			{Key: "ids", Value: list(recordID())}, {Key: "items", Value: list(outcome)},
		}, "dryRun", "succeeded", "failed", "ids")},
		{Key: "svc.Run", Value: saying(object(bson.D{
			{Key: "id", Value: text()}, {Key: "status", Value: text()}, {Key: "result", Value: bson.D{}}, {Key: "error", Value: problem},
		}, "id", "status"), "A run, which goes on: its address is in Location.")},
	}
}

// commonResponses are the refusals.
func commonResponses() bson.D {
	texts := []struct {
		status int
		text   string
	}{
		{http.StatusBadRequest, "Something in the request can't be understood, or does not pass validation; errors says where."},
		{http.StatusForbidden, "The credential is not valid, or does not allow this."},
		{http.StatusNotFound, "There is nothing of that name, for this caller."},
		{http.StatusConflict, "It does not go together with what there is."},
		{http.StatusGone, "What came behind that event is not known any more."},
		{http.StatusPreconditionFailed, "The record has changed since."},
		{http.StatusRequestEntityTooLarge, "The body is too large."},
		{http.StatusUnsupportedMediaType, "A body of another type is wanted."},
		{http.StatusRequestedRangeNotSatisfiable, "The file has no such part."},
		{http.StatusUnprocessableEntity, "It is more than may be done at once, or something in it can't be taken."},
		{http.StatusTooManyRequests, "There are too many such requests: Retry-After says when to come again."},
		{http.StatusServiceUnavailable, "Not now: Retry-After says when to come again."},
		{http.StatusGatewayTimeout, "It took too long."},
	}
	var out bson.D
	for _, t := range texts {
		out = append(out, bson.E{Key: "svc." + strconv.Itoa(t.status), Value: problemResponse(t.text)})
	}
	return append(out, bson.E{Key: "svc.problem", Value: problemResponse("Anything else that went wrong.")})
}

func problemResponse(text string) bson.D {
	return bson.D{{Key: "description", Value: text}, {Key: "content", Value: bson.D{
		{Key: api.MediaProblem, Value: bson.D{{Key: "schema", Value: reference("schemas", "svc.Problem")}}},
	}}}
}

// securitySchemes are the credentials; any one of them does.
func securitySchemes() bson.D {
	header := func(name, description string) bson.D {
		return bson.D{{Key: "type", Value: "apiKey"}, {Key: "in", Value: "header"}, {Key: "name", Value: name}, {Key: "description", Value: description}}
	}
	return bson.D{
		{Key: "authToken", Value: header(api.HeaderAuthToken, "The token of a login, or a personal access token.")},
		{Key: "token", Value: header(api.HeaderToken, "A token of a collection, or an admin token of the project.")},
		{Key: "adminToken", Value: header(api.HeaderAdminToken, "The server's admin token.")},
		{Key: "bearer", Value: bson.D{{Key: "type", Value: "http"}, {Key: "scheme", Value: "bearer"}, {Key: "description", Value: "A personal access token, or the server's admin token."}}},
		{Key: "session", Value: bson.D{{Key: "type", Value: "apiKey"}, {Key: "in", Value: "cookie"}, {Key: "name", Value: api.CookieSession}, {Key: "description", Value: "A login in a browser."}}},
	}
}

// security says which credentials an operation takes; open: none will do as well.
func security(open bool) bson.A {
	out := bson.A{}
	if open {
		out = append(out, bson.D{})
	}
	for _, s := range securitySchemes() {
		out = append(out, bson.D{{Key: s.Key, Value: bson.A{}}})
	}
	return out
}
