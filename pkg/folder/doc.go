// Package folder is a folder of files that have to be there after a crash, whole: written aside, synced and renamed, linked from one
// folder into another, or copied where links can't be. Every path goes through an os.Root.
//
// A test can have any operation fail (Fault), so that what happens then is known.
//
// Start reading at Folder. What does not live here: what is in the files (pkg/snapshot, pkg/media).
package folder
