// Package status says how projects are doing: conditions in the Kubernetes form, and a Board that holds them by project.
//
// Controllers judge their own concern and put a Condition on the Board; the API reads the Board. Ready is never set by
// anyone: the Board derives it from the other conditions. Everything is in memory, because a controller that starts
// again judges again.
//
// Start reading at Board. What does not live here: how anything is judged (controllers/), and the wire form of the
// status route (pkg/api).
package status
