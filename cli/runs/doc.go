// Package runs is what svcctl action and svcctl job have in common: runs as a table, their logs, what waits for them, and
// the verbs about them.
package runs
