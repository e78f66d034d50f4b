// Package httpapi is the REST door: it reads requests, calls the services, and writes answers. It holds no rules of
// its own about records or rights.
//
// Start reading at routes.go, the table of every route with the right it needs, which rights.go holds a caller against,
// then at server.go for what happens around a handler: request id, host names, limits, credentials, metrics, log, problem
// answers. config.go has what the door asks of others. One file per resource holds the handlers; mcp.go is the endpoint for
// agents, whose tools (pkg/mcp) it carries out as requests of the same routes.
//
// What does not live here: what a caller may do (pkg/access, pkg/records) and know (pkg/catalog), who they are (pkg/auth), wire types
// (pkg/api).
package httpapi
