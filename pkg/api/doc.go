// Package api is the wire format: paths, header and parameter names, and the JSON bodies that the service and its
// clients exchange. It is pure data and imports nothing of ours, so that a client never links server code.
//
// Start reading at paths.go, then problem.go (every refusal) and records.go (the envelopes of collections). What does
// not live here: how a request is served (pkg/httpapi) or sent (pkg/client), and the config files of a project
// (pkg/schema).
package api
