// Package gate keeps the records of a database from being written, and for a moment from being read, while all of them are replaced.
// Those who use them go through a Gate, which is a store like the one behind it; who replaces them uses that one, and shuts the gate
// meanwhile.
//
// It holds for this process. Several that share a store shut theirs together by package store/barrier.
//
// Start reading at Gate.Shut. What does not live here: what replaces the records (pkg/snapshot).
package gate
