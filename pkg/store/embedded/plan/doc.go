// Package plan is the planner of the embedded store: from a query and a description of the indexes it works out which
// ranges of keys to read, and in which order. It is pure: it sees no documents, no engine and no clock.
//
// A filter becomes conditions by path (conditions.go); what each says about the keys of its path are bounds, sorted
// lists of intervals (bounds.go, intervals.go); an index binds its fields to them one by one, which gives ranges of
// keys (access.go), and these are put together so that documents come in the order that is asked for, where that can be
// (order.go). What a plan leaves out is decided by matching the filter against each document, so all plans find the same:
// bounds may be too wide, never too narrow. choose.go ranks them, cache.go remembers which one was best.
//
// Start reading at Choose. What does not live here: reading (the package above), what filters mean (pkg/mql), and how
// values become keys (document.AppendKey).
package plan
