// Package query reads what a caller asks of a list: filter, sort, select, page, cursor. It checks every path against
// the fields that there are and those that the caller may see, holds sizes against limits, casts constants, and gives
// what a store takes. Collections and system models are listed through it alike. Guard does the same for pipelines: it makes of
// a caller's stages those that a store may run; testdata/guard.txt shows what comes of them.
//
// Start reading at Resolver.Query. What does not live here: reading URLs (pkg/httpapi), who may see what (pkg/access),
// and what filters mean (pkg/mql).
package query
