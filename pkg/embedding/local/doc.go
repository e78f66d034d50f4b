// Package local computes the vectors of texts in the process, by a sentence-transformers folder of the BERT family, such as
// all-MiniLM-L6-v2. No other process, no network, no cgo.
//
// A text goes one way through the package: normalize.go makes words of it and tokenizer.go pieces of a vocabulary, both as
// BERT does to the last character; encoder.go runs the layers of the network, with the products of matmul.go and the
// functions of math.go; pooling.go makes one vector of those of the tokens. folder.go reads what the files of the folder say,
// safetensors.go the weights. A folder that asks for what is not here (another architecture, another pooling, a layer after
// it) is refused when it is loaded: it would give vectors of no meaning.
//
// The vector of a text does not depend on the texts beside it, to the last bit: sequences are laid one after the other and
// not padded, so no mask is needed. Nor does it depend on how many texts are encoded at a time.
//
// On amd64 the products run on AVX2 and FMA; elsewhere, or without them, on plain Go, which takes some six times as long.
//
// The tokens are those of the library tokenizers, with one known difference: it classes characters by the tables of Unicode 8,
// so that some 600 marks and signs that came later are letters to it.
//
// provider.go makes an embedding provider of the type local of it.
//
// What does not live here: which model serves what, groups and health of providers, and caching of vectors.
//
// Start reading at Load and Model.Encode.
package local
