// Package errs is the one error type of the service.
//
// An *Error has a Kind (what sort of refusal it is), a stable Code (a slug that programs switch on), a public
// Message (what the caller is told) and a wrapped cause (what the log is told). Each door maps Kind to its own
// status in one table: pkg/httpapi to HTTP, whose statuses cli turns into exit codes. An error that is not an *Error is
// internal: its text never leaves the process.
//
// Start reading at Error; the constructors below it are how every package makes one. What does not live here: the
// mapping tables, and sentinels that only one package's callers branch on.
package errs
