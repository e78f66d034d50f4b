// Package fieldtype is what a field of a record may hold: the field types, the validator rules, and the tree of fields
// that a collection declares.
//
// One file per type (string.go, date.go, …), each turning values from a request body into stored values and constants
// of a query into values that compare with stored ones; All lists them. One func per validator rule, in rules_*.go;
// ruleDefs lists them.
//
// Start reading at Tree.Check (a whole record from a body) and Tree.Cast (a constant in a filter). What does not live
// here: reading config files (pkg/schema), rules that need the store or a script (Check.Deferred hands them over), and
// who may see or set a field (pkg/access).
package fieldtype
