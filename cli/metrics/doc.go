// Package metrics is svcctl metrics: what a service measures of itself, read from /metrics and shown by group. What does not live here: what is
// measured, which is beside the code that does it (docs/operations.md lists it), and any history: Prometheus keeps that.
//
// Start reading at metrics.go; read.go makes groups of the text, show.go rows of these.
package metrics
