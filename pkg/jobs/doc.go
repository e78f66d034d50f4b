// Package jobs runs the jobs of projects: when they are due, and when somebody asks for it.
//
// A slot is a time that a job's schedule names. A slot is claimed by a transaction that takes it off the job's state,
// makes sure that no run of the job is active, and records the run: however many instances try, one of them does it,
// once, ever. No instance has to be chosen before: the first whose clock says that a slot is due claims it. What a run
// writes is fenced by its record (pkg/operation), so that two runs of one job can't overlap in what they write either.
//
// The policy: of several slots that were missed, the newest is run, once, however late; the others are passed over, and
// so is a slot that comes while a run of the job is active, or while the job is suspended. A slot that was run or
// passed over never comes again, also when clocks are set back. A job that is new, or has another schedule, begins
// with the first slot from then on.
//
// Start reading at Jobs.Pass. What does not live here: what schedules mean (pkg/schedule), which slots are due (pkg/schedule/slots), how runs live and die
// (pkg/operation), how a script is run (Runner), and who calls Pass (controllers).
package jobs
