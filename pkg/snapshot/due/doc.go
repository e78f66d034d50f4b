// Package due does by itself what a project's profiles say is to be done with snapshots: takes them, checks them, rehearses a restore of the
// newest, and removes those that retention does not keep.
//
// Each of these is a task of a profile, with a state in the project's database. A slot of its schedule is claimed by the transaction that
// records its run: of several instances one does it. The newest slot that was missed is made up for, once. A run that fails, or is lost with
// its instance, is tried again after a pause that doubles, until it succeeds, somebody cancels it or the next slot comes. What is
// done is a run like those that people ask for (Runs): listed, followed and cancelled as they are.
//
//	due.go      Due, what it needs, and how tasks stand
//	pass.go     one look at what is due
//	task.go     one task: its slot, its run, another try
//	retain.go   the task that has no schedule: what retention does not keep
//	state.go    what is kept in the store
//	metrics.go  ages and sizes of the snapshots that this instance has
//
// Start reading at Due.Pass. What does not live here: the work itself (pkg/snapshot), which snapshots are kept (pkg/snapshot/retention), which
// slot is due (pkg/schedule/slots), and who calls Pass (controllers).
package due
