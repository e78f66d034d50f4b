// Package idempotency remembers what became of requests that carry a key, so that one that is repeated is carried out
// once. A key has an entry in the bookkeeping of a database for 24 hours: first that the request is under way, then its
// answer.
//
// An entry whose process is gone does not tell whether its request was carried out. A request that can be repeated
// without harm is then done again: the ids of what it makes come from its entry (Claim.ID), so that what was made before
// is there under the same ids. Any other request is refused until the entry ends.
//
// Start reading at Keys.Begin. What does not live here: which requests have keys, and who may see an answer again
// (pkg/httpapi), and how a create finds what it made before (pkg/records).
package idempotency
