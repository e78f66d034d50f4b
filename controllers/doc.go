// Package controllers holds the reconcilers of the control plane, one per noun: each brings the actual state of one
// thing to what is declared, and says on the status Board how that stands.
//
//	project_controller.go  files on disk -> the generation that is served
//	index_controller.go    the served generation -> the indexes in the store (indexes.go: what that takes)
//	job_controller.go      the served generation's jobs -> runs of what is due
//	search_controller.go   the served generation's searches -> the search indexes of this instance
//
// Start reading at controllers.go, which wires them to their sources, then at control.go, the calls that doors make.
// What does not live here: queues, retries and workers (pkg/controller), loading and compiling (pkg/project),
// slots and runs (pkg/jobs, pkg/snapshot/due).
package controllers
