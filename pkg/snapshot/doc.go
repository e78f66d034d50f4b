// Package snapshot takes copies of a project's records, files and config as they are at one moment, checks them, and restores them. docs/snapshots.md says what is in one and what is promised,
// docs/restores.md that of restores.
//
// A snapshot is a folder <Project.SnapshotDir>/<profile>/<UTC time>-<short id>, named so when it is whole. Beside it is what is known
// of it and may change: the file <id>.state.json.
//
//	create.go, export.go, files.go   one view of the store, the files that its records name, the config
//	exportfile.go, addresses.go      a file of records; the addresses that records give their files
//	previous.go, mend.go             what is taken from the snapshot before; files that are not what their records say
//	manifest.go, manifestfile.go     what is in a snapshot, and the file that says it
//	state.go, lock.go                what is known of a snapshot, changed by one instance at a time
//	list.go, delete.go, prune.go     those that there are; what goes, and what crashes leave
//	own.go                           profiles that the service keeps for itself
//	reader.go, verify.go, verifyall.go  reading one, checking it, and all of a profile; unlisted.go one without a manifest, findings.go what is found
//	references.go, trace.go, others.go  files that records name: which ones are damaged, what helps, and which other snapshots have them
//	compare.go, sides.go, paths.go   what has become of the records since; comparefiles.go of their files
//	restore.go                       the way of a restore; parts.go, precheck.go what goes where, and whether it can; room.go;
//	                                 load.go collections that are made aside; putback.go files; dryrun.go
//	journal.go, recover.go           what is under way of a restore, and how it is ended, whatever comes
//	found.go                         a restore into a project that is made for it
//	drill.go                         a restore into a database that is made for it
//
// Start reading at Snapshots.Create, and at Snapshots.Restore. What does not live here: when snapshots are taken and which are kept
// (controllers, pkg/snapshot/retention), archives of them (pkg/snapshot/archive), who may do so (pkg/httpapi), and what is derived from
// records, such as search indexes: who keeps that follows the store's feed.
package snapshot
