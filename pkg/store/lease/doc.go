// Package lease lets one of many processes at a time do what only one may do: run schedules, migrate, index.
//
// A lease is a document of a database, so every store has leases and they are exactly as durable as what they guard.
// Each change of holder gives the lease a larger token. A holder that was paused for longer than it thinks finds out
// at the latest when it writes: Fence makes a transaction fail once somebody else has taken over.
//
// No clock is compared with that of another machine. Who wants a lease watches its document and takes over after it
// has not changed for the lease's time, measured by his own monotonic clock.
//
// Start reading at Leases.Acquire. What does not live here: who waits for which lease, and what is done with it.
package lease
