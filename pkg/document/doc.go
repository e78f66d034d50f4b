// Package document is the value model of the service: BSON documents, their order, their index keys, their paths, sums
// and products of numbers, and JSON in and out.
//
// Two forms are used. Writes work on bson.D trees (nested documents are bson.D, lists bson.A), made by ParseJSON and
// turned into bytes once, by Marshal. Reads work on bson.Raw as it comes from the store and go out through
// AppendJSON, which never builds a tree.
//
// Start reading at ParseJSON and AppendJSON, then Compare (MongoDB's order of values) and AppendKey (the same order
// as bytes). AppendExtended and ParseExtended are for exports: they keep every type and every bit. What does not live
// here: what a filter means (pkg/mql) and what a field may hold (pkg/fieldtype).
package document
