// Package tracing makes spans of OpenTelemetry, and hands them to a collector: what a request, a reconcile or a run has done, and how long each
// step of it took.
//
// All of OpenTelemetry is in here. Others hold a *Tracer, which is nil where nothing is traced, and ask it for a Span. What a span may tell is
// the list in attributes.go and nothing else: names of the config, kinds, counts. No content, no id of a user, a record or a credential, no
// text of an error has a way into it.
//
// Start reading at Tracer (tracer.go); export.go is how spans go out. What does not live here: where spans begin and end. Requests are in
// httpapi, tools in mcp, reconciles in controller, runs in operation; store/traced and script/traced are around the ports of those.
package tracing
