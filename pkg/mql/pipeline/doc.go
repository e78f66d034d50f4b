// Package pipeline is MongoDB's aggregation on raw documents: stages that are compiled to a checked tree and run by
// streaming over a Source. It means what MongoDB 6.0 means, for the stages of one table (table.go); anything else is
// refused by name.
//
// A stage of a run is a sink, which takes documents one after the other and hands on what it makes of them. What comes
// first in a pipeline and a store can do better ($match, $sort, $skip, $limit) becomes the Query of the first Find.
//
// Errors carry the code of a MongoDB server as document.ServerCode. What a run holds in memory is counted against its
// Budget.
//
// Start reading at Compile, then run.go and table.go; each stage has a file. What does not live here: expressions
// (pkg/mql/expr), filters and sorts (pkg/mql), and which fields a caller may name.
package pipeline
