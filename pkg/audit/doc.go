// Package audit is the log of who changed what. Each database of the store has a log of its own: that of the system
// models, and that of each project for the records of its collections.
//
// An entry is written in the transaction of the change that it tells of, so there is neither without the other. A sealer,
// one at a time for each database, then gives each entry its number and its hash, which covers the entry and the hash of
// the one before: a chain, in which Verify finds what was changed, taken away or put in by other hands.
//
// Start reading at Entry, then at Log.Write and Log.Seal. What does not live here: which changes are logged (pkg/system,
// pkg/auth, pkg/records), and who may read which entry (pkg/records, pkg/httpapi).
package audit
