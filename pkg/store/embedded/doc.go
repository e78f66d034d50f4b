// Package embedded is the adapter of the document-store port that keeps everything in one directory of this process,
// in Pebble.
//
// A database is a prefix of the catalog, a collection a number, and a document one key (keys.go). Secondary index
// entries are keys without a document (entries.go); the planner (package plan) turns a filter and a sort into ranges of
// them, and every document that is found there (walk.go, next.go) is matched against the whole filter again, so an index
// can only make a query faster. Only counts and skips trust ranges alone, where the planner says that they are exact.
//
// What a write makes of its document is worked out outside of any lock, for the document as it is then (edit.go,
// write_filter.go). One mutex decides writes and numbers them: an edit holds if its document is still the same
// (commit.go), and a filter that takes long is never matched under it (write_filter.go). Their fsync they wait for together, outside of it. An op whose document others keep taking away chases it
// without stopping them (chase.go). A transaction lays its documents over a snapshot (overlay.go), claims what it writes
// to, so that others wait or lose (intents.go), and ends in one commit (transaction.go). A view is a snapshot with the
// catalog (members.go) and the place in the feed of its moment (view.go).
//
// A commit also has the changes for the feed of its database and the new counters (ledger.go, feed.go, stats.go), so that
// no crash can part them from the documents; watch.go tells of what is on disk. It keeps counts up to date, too, that are
// asked for again and again (tally.go). In the background indexes are built
// (build.go), documents expire (expire.go) and feeds are truncated (retention.go). validate.go checks all of it against
// the documents, repair.go makes it anew, and checkpoint.go copies the store as it is.
//
// # Locks
//
// Store.commit is the mutex above. It guards all that a commit decides or numbers: changes of the catalog (which readers
// see through atomics, catalog.mu and their snapshot), counters, tallies, the ends of feeds, intents and the end of transactions,
// touched, chases and builds, as far as their fields say so. Under it nothing waits for a transaction, and for an fsync
// only a change of the catalog or a Repair. Before it may come Store.expiring (expiry against drops and renames) or the token of
// Store.building (one build at a time). Whoever holds one of the others, catalog.mu, feeds.mu, feed.mu, stamps.mu, disk.mu
// and that of a plan.Cache, takes no further one; Store.state comes before view.mu. Store.checkpoints is by itself.
//
// # Goroutines
//
// What outlives a call is started by Store.background, and Close ends it and waits: the sweeps, and one for each build.
// Transactions and views have a timer besides, which they or Close stop.
//
// Start reading at Open, then Collection.Write and Collection.Find. What does not live here: what filters and sorts
// mean (pkg/mql), how values are ordered as bytes (pkg/document), and the promises the store makes (pkg/store).
package embedded
