// Package engine keeps the indexes of searches as the records are, and answers from them.
//
// An Engine has the indexes of all projects on this machine (package search/index). For each collection that is searched a shelf
// (shelf.go) takes in which records have changed (intake.go): from the store's feed (tenant.go), and from those who write, who hand them over
// and are told when they can be found (written.go). It reads such records as they are by then unless it knows that what was handed over is
// what they are, so that neither order nor repetition matters, and an index stands for a place in the feed from which it goes on after a crash.
//
// An index that there is none of yet, or that a config asks for in another form, is made aside from all records (build.go) while the one
// before answers. What a record is in an index is said by tokens.go (what scripts say of it by texts.go, and by park.go when they fail), what
// is asked of one by query.go; results.go ranks and fuses.
//
// An index of mode vector has vectors in place of terms: embed.go says what of a record becomes one, vectors.go keeps them in the store,
// standing.go knows which records still lack theirs, embedder.go has these computed, by one instance at a time, and near.go asks for what
// is near.
//
// Whoever asks says which records they may see, by a filter, and which fields: nothing else makes a difference to what is
// found, to its order and its scores. The caller still has to read what was found with the same filter: the index may be a
// moment behind.
//
// Start reading at Engine. What does not live here: configs and the syntax of q (pkg/search), rights and records (pkg/records).
package engine
