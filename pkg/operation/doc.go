// Package operation is long runs of any kind: of actions, jobs, searches that are made anew, snapshots. Each has a record in its project's database, with
// its status, progress, events and outcome, which anybody can follow and cancel from any instance of the service.
//
// A run belongs to the instance that started it: a goroutine of Runs does it, and shows in the record every few seconds
// that it is alive. A run whose record has been silent for a while is lost: another instance says so in the record, and
// from then on Live.Fence makes every transaction of the run fail, should its instance only have been paused. No
// clock is compared with that of another machine: silence is measured by who watches.
//
// Start reading at Runs.Start (start.go), then Live (live.go, keep.go). What does not live here: what a run does (pkg/jobs and others), when a job
// is due (pkg/jobs), and who may see or cancel what (pkg/httpapi).
package operation
