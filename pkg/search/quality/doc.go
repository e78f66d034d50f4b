// Package quality measures how good a search is by judged queries: nDCG at a rank and recall (Järvelin and Kekäläinen, Cumulated
// gain-based evaluation of IR techniques, 2002), with binary relevance. Golden queries of projects and the table of docs/search.md
// come from it. cranfield.go reads the Cranfield collection in its usual files.
//
// Start reading at Measure.
package quality
