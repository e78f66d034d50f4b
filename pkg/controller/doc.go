// Package controller runs reconcilers: each key that a source names goes on a rate-limited queue, and a worker calls
// the Reconciler with it until desired and actual are the same.
//
// A reconcile is level-triggered: it gets a key and never an event, reads desired and actual itself, and may be
// repeated at any time. One key never runs twice at once; an error comes back after a growing delay; a panic is an
// error.
//
// Start reading at Controller, then Manager. What does not live here: the reconcilers themselves (controllers/) and
// what they report (pkg/status).
package controller
