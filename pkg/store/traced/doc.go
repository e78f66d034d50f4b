// Package traced is a store of which each operation has a span: what it was, on which collection, and how many documents it was about. Filters,
// documents and ids are in none.
//
// An operation has one where it is part of something that has, such as a request: what goes on in the background by itself has none.
//
// Start reading at New. What does not live here: spans as such (pkg/tracing).
package traced
