// Package tracetest has a collector of traces for tests, which keeps what it is sent.
//
// Start reading at NewCollector. What does not live here: what makes spans (pkg/tracing).
package tracetest
