// Package catalog tells a caller what there is in a project: what they may see and do, in the forms that people, generated clients and
// agents read. What a caller may, records and actions say; here is left out of a config's words what does not fit that. How an OpenAPI document is written down is
// openapi's, and what a tool or a route takes is that of the doors.
//
// Start at Catalog (catalog.go), and Asker. collections.go and actions.go describe what there is, guide.go what the config tells agents, openapi.go what there is to
// call; labels.go picks texts of a language.
package catalog
