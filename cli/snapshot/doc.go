// Package snapshot is svcctl snapshot: copies of a project at one moment are taken, looked at, checked, compared, restored, pruned and carried away,
// and the runs that do it are followed and cancelled.
//
// Start reading at NewCmd; Wait is what all verbs that start a run end with. What does not live here: how a run is shown while it goes on (cli/runs).
package snapshot
