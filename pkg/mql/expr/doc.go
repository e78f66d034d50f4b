// Package expr is MongoDB's aggregation expression language on raw documents: what stages of pipelines compute with. It
// means what MongoDB 6.0 means, for the operators of one table (table.go); anything else is refused by name.
//
// Compile makes a checked tree in three steps, in the order in which a server finds errors: it parses (compile.go, and
// the file of each family of operators), then it computes what is constant (fold.go), and Eval runs what is left. Values
// are bson.RawValue throughout, type 0 being what is missing; what is computed is written to the arena of an Env, so that
// evaluation does not allocate.
//
// Errors carry the code of a MongoDB server as document.ServerCode. Where the meaning differs from a server's, the table
// Differences says how, and why.
//
// Start reading at Compile, then node.go and table.go. Accumulators of groups and windows are in accumulate.go. What does
// not live here: stages (pkg/mql/pipeline), and which fields a caller may name (Paths tells them what is read).
package expr
