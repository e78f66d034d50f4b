// Package script compiles and runs the JavaScript and TypeScript of projects, and keeps a script from stopping, slowing
// or leaking into anything else.
//
// Compile bundles a file with what it imports, inside the project only, and compiles it once to a Program. An Engine,
// one for the process, compiles what is large in a worker process first, and runs programs: Run takes a Call and gives a Result, *Thrown for ctx.error, or *Failure for
// everything that a script does wrong. Every run has a fresh runtime, so nothing crosses from run to run.
//
// Start reading at Engine.Run (engine.go), then run.go: the life of one run. Before a run: program.go, bundle.go, rewrite.go and exports.go.
// Around it: lanes.go (whose turn it is), goroutines.go, watchdog.go (memory), breaker.go (who rests), workers.go and worker.go (processes). Inside:
// modules.go, loop.go (promises and timers), valuein.go and valueout.go (BSON to JavaScript and back). explain.go says what went wrong.
//
// Values go in and out as deep copies. What a script does not touch is never converted, and what it does not change
// keeps its BSON type.
//
// Everything a script asks of the outside goes through one door, Host.Call; modules.go lists the operations.
//
// What does not live here: which stages there are and what ctx holds in each (pkg/hooks), and the database.
package script
