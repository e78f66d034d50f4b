// Package traced has a span for each run of a script: the stage that it ran as, its file, and what became of it. What it was given, what it gave
// and what it threw are in none.
//
// Start reading at New. What does not live here: spans as such (pkg/tracing), and how scripts run (pkg/script).
package traced
