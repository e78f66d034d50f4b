// Package app puts the service together: it opens the store, wires models, controllers and the HTTP door, and runs them
// until it is told to stop. It is the only package that knows all others; only cmd/svcd and end-to-end tests import it.
//
// Start reading at New (app.go), which is the wiring in order, then at App.Run (run.go). What does not live here: settings, signals and
// exit codes (cmd/svcd).
package app
