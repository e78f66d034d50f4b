// Package gate keeps the records of a database from being read and written for the moment in which all of them are replaced. Those who
// use them go through a Gate, which is a store like the one behind it; who replaces them uses that one, and shuts the gate meanwhile.
//
// It holds for this process. Of several that share a database, each has its own.
//
// Start reading at Gate.Shut. What does not live here: what replaces the records (pkg/snapshot).
package gate
