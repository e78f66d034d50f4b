// Package mql is MongoDB's query language on raw documents: filters, sorts, projections and updates. It means exactly
// what MongoDB 6.0 means, for the operators on its allow-list; anything else is refused when it is compiled, whatever
// store runs it.
//
// What comes from outside goes through Extended, Measure (limits), Rewrite (rights and casts) and Compile, in this
// order; the Filter that results runs in memory (Match), on a MongoDB server (Raw), or is planned for (Root,
// Implies, Regex.Prefix).
//
// An Update is compiled to a tree of paths (update_tree.go), which one walk through a document follows
// (update_apply.go): it copies what the tree does not name and lets an operator (update_value.go, update_array.go,
// update_rename.go) write what it does. The position $ is asked of the filter (update_position.go). What an upsert
// inserts is Apply, with Insert, of UpsertBase.
//
// Start reading at Compile and Filter, then match.go; for updates at CompileUpdate. What does not live here: which
// fields a caller may name and how values are cast by a schema (pkg/records does it through Rewrite), and indexes
// (pkg/store/embedded).
package mql
