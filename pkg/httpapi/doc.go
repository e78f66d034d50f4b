// Package httpapi is the REST door: it reads requests, calls the services, and writes answers. It holds no rules of
// its own about records or rights.
//
// Start reading at routes.go, the table of every route with the right it needs, then at server.go for what happens
// around a handler: request id, host names, limits, credentials, metrics, log, problem answers. One file per resource
// holds the handlers.
//
// What does not live here: what a caller may do (pkg/access, pkg/records), who they are (pkg/auth), wire types
// (pkg/api).
package httpapi
