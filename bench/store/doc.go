// Bench-store measures the embedded document store beside bare Pebble, SQLite and MongoDB doing the same work on the
// same documents in the same run: make bench-store.
//
// It is a module of its own, so that the service does not depend on SQLite. Each engine runs in a process of its own
// (-engine), so that memory is its own, and prints its figures as JSON; the first process puts them side by side.
//
// Start reading at work.go: what is measured. Each engine is a file: embedded.go, pebble.go, sqlite.go, mongod.go.
package main
