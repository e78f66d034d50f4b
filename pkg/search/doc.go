// Package search answers what callers write into q: it reads the words (Parse), makes of a search config what is indexed of a
// record and what is asked of the index, and fuses results.
//
// Start reading at Parse. What does not live here: the index itself (search/index), how texts are cut into terms
// (search/analysis), and how good a search is (search/quality).
package search
