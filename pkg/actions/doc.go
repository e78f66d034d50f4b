// Package actions does what the actions of projects are called for: it holds query and data against their fields, runs
// the stages validate, handle and return, and gives the answer, or a run that its caller can follow and cancel.
//
// Start reading at Service.Do. Query and data are the same field trees as those of collections (input.go); files are taken
// out of data URLs (files.go). How an answer goes out is for the script to say, within limits (answer.go). What of an
// answer is shown to people is Outcome.Output of the run (output.go).
//
// What does not live here: how a script runs (pkg/script), what it reaches (pkg/records gives the database), how runs live
// and die (pkg/operation), and the door (pkg/httpapi).
package actions
