// Package index is an inverted index on disk: which records have which terms in which fields, how often and where, how long
// the fields are, and vectors. A DB holds the indexes of an instance; an Index has the records of one search.
//
// It is derived data. Nothing is synced by a write; what a crash takes away is what was applied since the last Flush, and
// Index.Position tells from where on the records have to be applied again. A directory that is lost or damaged is begun anew (disk.go):
// by Open, or by Renew when damage shows later, as ErrDamaged.
//
// An Index numbers the versions of records in the order in which they come. A Set is a bitmap of such numbers: who asks
// with a set sees the records of that set alone, and everything that a score is made of — how many records there are, how
// many have a term, how long they are, to which terms a prefix or a misspelled word leads — is counted within it. Scores
// and matches therefore don't tell of records that the caller may not read.
//
// New records are in memory (segment.go) until there are enough of them; then they are written to Pebble in one batch with
// the position that they stand for (flush.go). A View (view.go) is the state of one moment: it reads both, and is what
// queries run on (query.go, phrase.go, expand.go, vector.go). What is wanted of each record at once — ids, lengths of fields, values,
// vectors — is in memory as columns by number (column.go, vector.go).
//
// What to index and how to cut it into terms is decided by packages engine and analysis: this one knows neither languages
// nor rights. Start reading at Index.
package index
