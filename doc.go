// Package svc is the root of a content service whose projects are described by files: collections of typed records,
// served over REST, on an embedded store or on MongoDB.
//
// Nothing is imported from here. Where to start reading:
//
//	cmd/svcd        the service: settings, signals; pkg/app puts its parts together
//	cmd/svcctl      the command line; cli holds its commands
//	pkg/httpapi     the REST door: routes.go lists every route with its right
//	pkg/records     what happens to a record, whichever door it comes through
//	pkg/project     a project's config files, compiled; pkg/schema has the types of the files
//	controllers     what brings the service to what the files say
//	pkg/store       the port of the document stores; embedded and mongo are behind it
//	projects        sample projects, which tests use too
//
// ARCHITECTURE.md has the map with who may import whom; arch_test.go holds the code to it.
package svc
