// Package catalog tells a caller what there is in a project: what they may see and do, in the forms that people, generated clients and
// agents read. It decides nothing: records and actions say what a caller may, and packages such as openapi how that is written down.
//
// Start at Catalog (catalog.go), and Asker. collections.go and actions.go describe what there is, guide.go what the config tells agents, openapi.go what there is to
// call; labels.go picks texts of a language.
package catalog
