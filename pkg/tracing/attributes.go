package tracing

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/svcctl/svc/pkg/errs"
)

// Attribute is something that a span tells. These functions are all that there are: each says where its value comes from, so that nothing
// that callers write gets out.
type Attribute struct{ kv attribute.KeyValue }

// maxText is how many bytes of a text a span keeps.
const maxText = 256

// Method is that of a request, if it is a known one.
func Method(method string) Attribute {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
	default:
		method = "_OTHER" // as OpenTelemetry has it
	}
	return Attribute{attribute.String("http.request.method", method)}
}

// Route is the pattern of a route.
func Route(pattern string) Attribute { return Attribute{attribute.String("http.route", pattern)} }

// Status is that of an answer.
func Status(status int) Attribute {
	return Attribute{attribute.Int("http.response.status_code", status)}
}

// Namespace is that of a project that is served.
func Namespace(name string) Attribute { return Attribute{attribute.String("svc.namespace", name)} }

// Collection is one that a config declares.
func Collection(name string) Attribute { return Attribute{attribute.String("svc.collection", name)} }

// Store is the kind of the store.
func Store(kind string) Attribute { return Attribute{attribute.String("db.system.name", kind)} }

// Database is a database of the store: that of a project, or the service's own.
func Database(name string) Attribute { return Attribute{attribute.String("db.namespace", name)} }

// Stored is a collection of the store, by the name that a config or the service itself gave it.
func Stored(name string) Attribute { return Attribute{attribute.String("db.collection.name", name)} }

// Operation is the kind of an operation of the store.
func Operation(name string) Attribute { return Attribute{attribute.String("db.operation.name", name)} }

// Count is how many operations a write has.
func Count(n int) Attribute { return Attribute{attribute.Int("db.operation.batch.size", n)} }

// Returned is how many documents came back.
func Returned(n int64) Attribute { return Attribute{attribute.Int64("db.response.returned_rows", n)} }

// Stage is what a script runs as: a stage of a hook or an action, or the name of a rule.
func Stage(name string) Attribute { return Attribute{attribute.String("svc.script.stage", name)} }

// Script is the file of a script, within its project.
func Script(file string) Attribute { return Attribute{attribute.String("svc.script.file", file)} }

// Outcome is what became of a script: a word of the list that its metrics have, too.
func Outcome(word string) Attribute { return Attribute{attribute.String("svc.script.outcome", word)} }

// Tool is one that agents have.
func Tool(name string) Attribute { return Attribute{attribute.String("svc.mcp.tool", name)} }

// Code is the number of the error of a tool.
func Code(n int) Attribute { return Attribute{attribute.Int("rpc.jsonrpc.error_code", n)} }

// Controller is one of those that bring actual to desired.
func Controller(name string) Attribute { return Attribute{attribute.String("svc.controller", name)} }

// Kind is that of a run.
func Kind(name string) Attribute { return Attribute{attribute.String("svc.run.kind", name)} }

// Name is that of the action or job of a run, or the profile of a snapshot.
func Name(name string) Attribute { return Attribute{attribute.String("svc.run.name", name)} }

// errorType is the kind of an error, in a word: neither its text nor its code, which may be a script's.
func errorType(kind errs.Kind) (word string, ours bool) {
	switch kind {
	case errs.Invalid:
		return "invalid", false
	case errs.Denied:
		return "denied", false
	case errs.NotFound, errs.Method:
		return "not_found", false
	case errs.Conflict, errs.Precondition:
		return "conflict", false
	case errs.TooLarge, errs.MediaType, errs.Limit, errs.Throttled:
		return "limit", false
	case errs.Unavailable:
		return "unavailable", true
	case errs.Timeout:
		return "timeout", true
	case errs.Full:
		return "full", true
	case errs.Internal:
	}
	return "internal", true
}
