package tracing

import "time"

// Patience gives options with other times, for tests.
func Patience(o Options, gather, ask, retry, logging time.Duration) Options {
	o.timing = timing{gather: gather, ask: ask, retry: retry, logging: logging}
	return o
}

// For tests.
const (
	MaxQueue = maxQueue
	MaxSteps = maxSteps
)

// Rejected reads the answer of a collector.
var Rejected = rejected
