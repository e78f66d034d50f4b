// Package analysis cuts texts into the terms by which they are found: words of a language without its endings and stop words,
// as bleve's analyzers have them, or n-grams. What is stored and what is asked for go through the same analyzer.
//
// Start reading at For. What does not live here: which fields are analyzed how (pkg/search/engine, tokens.go), and what terms
// are worth (pkg/search/index).
package analysis
