// Package barrier has all processes that share a store shut their gates (package store/gate) for a database, so that none of them serves
// records while these are replaced.
//
// Each process has a document in a database that they all know, by which it says every half second that it is alive, and which databases
// it has shut. Who wants one shut notes that there, and waits for all that are alive. No clock is compared with that of another machine:
// a process whose document has not changed for a while is dead for who watches it. Its document is removed before anything goes on without it: so one that
// has only stood still learns that when it looks again, and nothing passes its gate before that (gate.See). What a process did not see because it stood still itself
// says nothing of others.
//
// Start reading at Barrier.Shut (shut.go: what one wants of the others) and Barrier.look (what it does for them: closed.go, and who they are: presence.go). What does not live here: what is done behind the gates (pkg/snapshot), and the leases by
// which one process at a time does it (store/lease).
package barrier
