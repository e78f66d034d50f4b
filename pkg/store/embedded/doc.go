// Package embedded is the adapter of the document-store port that keeps everything in one directory of this process,
// in Pebble.
//
// A database is a prefix of the catalog, a collection a number, and a document one key (keys.go). Secondary index
// entries are keys without a document; the planner (plan.go) turns a filter and a sort into ranges of them, and
// every document it finds is matched against the whole filter again, so an index can only make a query faster. All
// writes pass one mutex that decides and numbers them (write.go), and wait for their fsync together outside of it.
//
// Start reading at Open, then Collection.Write and Collection.Find. What does not live here: what filters and sorts
// mean (pkg/mql), how values are ordered as bytes (pkg/document), and the promises the store makes (pkg/store).
package embedded
