// Package runs takes, checks, imports and removes snapshots as runs that anybody can follow: package operation keeps them, package
// snapshot does the work. Of a project one run that changes snapshots goes on at a time, and beside it one that checks them.
//
//	runs.go      starting and finding runs
//	work.go      what a run of each kind does, and gives
//	keep.go      pruning, checking all snapshots of a profile, and drills
//	progress.go  what a run tells on its way
//	restore.go   what restores do and give
//	receive.go   archives that come in while a request is read
//
// Start reading at Service.Start. What does not live here: when runs are due (controllers), and who may start or see which (pkg/httpapi).
package runs
