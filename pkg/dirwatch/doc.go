// Package dirwatch tells which watched directories have changed.
//
// It listens to the file system on each directory tree and looks again from time to time, since events get lost: on
// network file systems, when a queue overflows, when the kernel's limit is reached. A burst of events is one change
// (atomic saves, symlink swaps, checkouts), and a change that leaves the content as it was is none.
//
// Start reading at Watcher. What does not live here: what the files mean (pkg/project), and what is done about a
// change (controllers/).
package dirwatch
