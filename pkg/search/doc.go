// Package search says what a search is: its config, compiled (Config), and the words that callers write into q (Parse).
//
// Start reading at Config and Parse. What does not live here: what records and queries become in an index, ranking and fusing
// (search/engine), the index itself (search/index), how texts are cut into terms (search/analysis), and how good a search is
// (search/quality).
package search
