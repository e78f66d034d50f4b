// Package mongo keeps documents in MongoDB, 5.0 or later, as a replica set or a sharded cluster. It is the only package
// that talks to the driver.
//
// Writes are acknowledged by a journaled majority. Reads go to the primary, see what a majority has, and see whatever
// this Store wrote or read before, also after another server became primary. Find and Count read one snapshot.
//
// Start reading at Open, then inSession, which every operation goes through. What does not live here: what filters
// mean (pkg/mql compiles them to what the server is sent), and the contract (pkg/store, tested by store/storetest).
package mongo
