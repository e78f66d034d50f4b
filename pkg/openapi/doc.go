// Package openapi describes the REST API of a project as an OpenAPI 3.1 document: its collections, files and actions, with the types of
// their fields, every parameter and every refusal.
//
// It is pure: a View says what there is and what of it the asker may know and do, and Document makes the document of that. Who asks, and
// what they may, is decided before (pkg/catalog); nothing here looks at a right. Routes that no config changes (users, snapshots, jobs) are
// told in docs/api.md and are no part of it.
//
// Start at Document; records.go has the operations of a collection, fields.go the types of fields, rules.go what validators say.
package openapi
