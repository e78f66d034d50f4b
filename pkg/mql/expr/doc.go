// Package expr is MongoDB's aggregation expression language on raw documents: what stages of pipelines compute with. It
// means what MongoDB 6.0 means, for the operators of one table (table.go); anything else is refused by name.
//
// Compile makes a checked tree in three steps, in the order in which a server finds errors: it parses (compile.go, and
// the file of each family of operators), then it computes what is constant (fold.go), and Eval runs what is left. Values
// are bson.RawValue throughout, type 0 being what is missing; what is computed is written to the arena of an Env, so that
// evaluation does not allocate.
//
// Errors carry the code of a MongoDB server as document.ServerCode.
//
// What differs from MongoDB 6.0.5, and why:
//
//	exp, ln, log, pow, sin and the like    the last digits: they depend on the mathematics library, also on servers; a
//	                                       decimal 0 or 1 of them may have another number of zeros
//	regular expressions                    RE2, as in filters; constant patterns are rewritten for a server, patterns of a
//	                                       field are read by its PCRE there. Options are i, m and s
//	$dateFromString, $toDate               without a format: ISO 8601, 02/03/2020, 3.2.2020, Feb 3, 2020, 3 February 2020, each
//	                                       with a time or without. A server reads more forms, which nobody can list
//	$dateAdd, $dateSubtract                of dates before 1970 with a fraction of a second, a server loses a second
//	$round of integers of 32 bits          to what does not fit gives a long; on a server it overflows
//	$replaceAll of an empty text           between characters; a server puts it between their bytes, which breaks the text
//	a field removed and set again          in one expression comes last; a server remembers its place
//	$sortArray                             equal elements stay in their order; on a server not always
//	$addToSet                              in the order of arrival; a server's is any
//	the bits of a NaN                      may be others; all NaN are equal
//	$$NOW                                  is not computed before the first document, so errors come up a little later
//	memory                                 100 MiB for all that is computed of one document
//	$meta, $function, $accumulator,        are refused by name
//	$toHashedIndexKey
//
// Start reading at Compile, then node.go and table.go. Accumulators of groups and windows are in accumulate.go. What does
// not live here: stages (pkg/mql/pipeline), and which fields a caller may name (Paths tells them what is read).
package expr
