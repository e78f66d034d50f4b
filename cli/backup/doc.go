// Package backup is svcctl backup: everything that a project holds as one archive, made and restored while it is served.
//
// Start reading at NewCmd. What does not live here: the runs that make and restore backups, which are those of snapshots (cli/snapshot).
package backup
