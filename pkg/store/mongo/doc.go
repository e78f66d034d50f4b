// Package mongo keeps documents in MongoDB, 5.0 or later, as a replica set or a sharded cluster. It is the only package
// that talks to the driver.
//
// Writes are acknowledged by a journaled majority. Reads go to the primary, see what a majority has, and see whatever
// this Store wrote or read before, also after another server became primary. Find, Count and Distinct read one snapshot.
// What a context ends, the server stops: its session is killed.
//
// Servers step down, die and cut connections. What is safe to repeat is repeated, with and without a deadline, until no
// primary is found for Options.SelectTimeout: reads of which nothing was told, plain writes (the driver sends them again so
// that the server knows them), transactions that were not committed, and commits (again.go). What is left is a plain write
// that was sent, and for which the driver then finds no connection: it is errs.Unavailable, done or not.
//
// A Write sends what it can together, in transactions whose sums leave no doubt about each op (write.go); an op that
// gives a document back asks the server for the one before, and package mql makes the other (findandwrite.go).
// Transactions are the server's, tried again while they lose against others, and then in turns (transaction.go). Plain
// writes, which wait for transactions, leave connections for their commits (slots.go). A View is a time of the cluster that all
// its reads ask for; servers keep five minutes of that (minSnapshotHistoryWindowInSeconds), and nothing of collections
// that were dropped or renamed meanwhile: reading those is an error, never empty. Watch is a change stream on the
// database, opened again where it broke.
//
// Behind a router (sharded cluster) the package uses only what a router can do: writes by a filter look for the _id
// first, and distinct values are gathered here. Collections may be sharded by their _id, and by nothing else.
//
// Start reading at Open, then inSession, which every operation goes through. What does not live here: what filters and
// updates mean (pkg/mql compiles them to what the server is sent), and the contract (pkg/store, tested by
// store/storetest).
package mongo
