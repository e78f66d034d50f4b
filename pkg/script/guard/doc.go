// Package guard makes the built-in functions of goja stop when their run has to stop.
//
// goja looks at its interrupt between instructions of the script only. A built-in that loops by itself, that calls other
// built-ins without end, or that allocates without bound can't be stopped, and one that recurses kills the process. With
// a Meter attached to a runtime, every built-in looks at the meter when it is called and counts how deep calls nest, and
// those that can loop or allocate by themselves are refused what is too much (the tables of rules).
//
// It costs nothing per runtime: goja makes the objects of built-ins from shared templates, when a script first touches
// them. The factories in those templates are wrapped once for the process. goja has no exported way to them, so
// templates.go reads them by the names of their fields, and refuses to start if one is not as expected. It is the only
// file that knows about goja's insides. TestEveryBuiltinIsGuarded walks all built-ins and holds each to it.
//
// Start reading at Meter, then rules.go. What does not live here: time, memory, who decides to stop (pkg/script).
package guard
