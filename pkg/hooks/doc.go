// Package hooks runs the scripts of a project's collections: the hooks of a stage, the filters of permission sets, the
// expressions that hide fields or make them readonly, and the validators of values.
//
// Start reading at Runner.Run. An Operation is what the stages of one operation have in common: who calls, with what
// request, and the state that scripts hand on. Which stages there are and what ctx holds in each is the table
// schema.HookGroups. Errors of scripts become errors of pkg/errs in errors.go; what went wrong goes to the log, with the
// script's own file and line, and never into an answer.
//
// What does not live here: how a script runs (pkg/script), when a stage runs and what becomes of what it gives back, and
// the database that scripts see (pkg/records).
package hooks
