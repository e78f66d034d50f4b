// Package quality measures how good a search is by judged queries: nDCG at a rank and recall (Järvelin and Kekäläinen, Cumulated
// gain-based evaluation of IR techniques, 2002). Relevance has grades, whose gain is 2^grade-1. Golden queries of projects and the
// table of docs/search.md come from it. cranfield.go reads the Cranfield collection in its usual files.
//
// Start reading at Measure.
package quality
