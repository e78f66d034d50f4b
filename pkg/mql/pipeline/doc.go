// Package pipeline is MongoDB's aggregation on raw documents: stages that are compiled to a checked tree and run by
// streaming over a Source. It means what MongoDB 6.0 means, for the stages of one table (table.go); anything else, such as
// $out, $merge, $densify and $redact, is refused by name.
//
// A stage of a run is a sink, which takes documents one after the other and hands on what it makes of them. What comes
// first in a pipeline and a store can do better ($match, $sort, $skip, $limit) becomes the Query of the first Find, which
// also says which fields the rest looks at. $lookup and $graphLookup ask for the values of many documents at once. Facets
// is no stage of MongoDB's but a pipeline that this package makes, in one pass here and of stages on a server.
//
// Errors carry the code of a MongoDB server as document.ServerCode. What a run holds in memory is counted against its
// Budget, in every stage that keeps documents: $sort, $group, $bucketAuto, $facet, $lookup, $graphLookup, $sample and
// $setWindowFields.
//
// What differs from MongoDB 6.0.5, and why:
//
//	the order of groups, of what $graphLookup   here that in which they were found; on a server that of a hash table
//	finds, and of several new fields of
//	$setWindowFields
//	a field removed and set again               by a later stage comes last; a server remembers its place
//	equal values in $bucketAuto                 stay in their order; on a server in any
//	$covariancePop and -Samp                    of decimals, and of infinities that have left the window: the number of zeros
//	$stdDevPop and -Samp of a window            that documents leave: the last digits
//	$graphLookup to lists                       a server that has remembered documents forgets those with an empty list
//	partitions of $setWindowFields              by a field that is in sortBy, too: in ascending order; on a server in either
//	which of two errors                         comes first where stages look ahead; where fields collide in two ways
//	$bucketAuto, $bucket                        refuse _id in output; a server makes two fields of that name of one
//	$expr of a bare path                        of a field that was renamed before: a server takes it for true, or for false
//	$project before a $group by $$ROOT          a server forgets the projection
//	$setWindowFields with a computed partition  a server shows a field of its own in $$ROOT and in a $lookup
//
// Start reading at Compile, then run.go and table.go; each stage has a file, $setWindowFields those that begin with window.
// testdata/cases.txt is read by people, testdata/pipelines.json is what a server has said to it. What does not live here:
// expressions (pkg/mql/expr), filters and sorts (pkg/mql), and which fields a caller may name.
package pipeline
