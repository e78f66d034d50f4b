// Package media keeps the files of one project's records in one folder, and the pictures that are derived from them.
//
// An upload goes by Store.Stage (streamed to a temporary file, hashed, its type taken from its bytes, synced), then
// Staged.Put (linked under its name, which no other file has), then the record is written, then Staged.Keep. Whoever
// gives up before that calls Staged.Discard, as for a transaction. A file in place is never changed, so a record always
// finds what it names, and a crash leaves at worst a file that no record names: Store.Sweep removes those.
//
// The layout is <folder>/<Place.Dir>/<record>/<field>/<name>; <folder>/.tmp has what is being uploaded,
// <folder>/.claims the locks by which several processes share the folder (claims.go). Every path goes through an
// os.Root, and symbolic links are not followed inside either.
//
// A Hold keeps files in place for as long as a snapshot is taken of the records that name them; its PutBack brings files of a
// snapshot back, in two steps, so that records and files change together (hold.go, putback.go).
//
// Store.Image gives what a filter makes of a file. Images has these for all projects: made once however many ask at
// a moment, so many at once as the memory allows (images.go), and kept on the disk, of which those used longest ago go first (kept.go).
//
// Start reading at Store in store.go. What does not live here: who may read a file and its headers (pkg/httpapi), which
// files a record names (pkg/records), what a filter does (pkg/imagefilter), and assets, which are files of the project's
// directory.
package media
