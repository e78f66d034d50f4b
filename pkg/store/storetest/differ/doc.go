// Package differ holds a store against a real MongoDB: random documents, indexes, queries and writes are done on both,
// and every answer and every document afterwards has to be the same, to the byte.
//
// The server is sent what was generated, in its own words, and not what packages mql and store/mongo make of it, so the
// compile step is tested, too. A case that differs is made smaller as long as it still does, and printed as Extended
// JSON. What the store does otherwise on purpose is listed in Deliberate.
//
// Start reading at Case, then Run. Answers of the server are also kept as a file (Golden), so that they are checked
// where there is no server. What does not live here: the contract of a store (pkg/store/storetest), and comparisons
// of the two adapters with each other (storetest.Differential).
package differ
