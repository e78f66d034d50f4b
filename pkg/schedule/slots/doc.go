// Package slots keeps in mind which slots of a schedule are done, and says which one is due. It is pure: who uses it gives the time and keeps
// the stretches, in a store most likely.
//
// A slot is a time that a schedule names. Of several slots that were missed the newest is due, once, however late. A slot that is done never
// comes again, also when clocks are set back.
//
// Start reading at Done. What does not live here: what schedules mean (pkg/schedule), and what is done in a slot (pkg/jobs, pkg/snapshot/due).
package slots
