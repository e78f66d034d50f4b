package tei

// DecodeDense and DecodeSparse read answers.
var (
	DecodeDense  = decodeDense
	DecodeSparse = decodeSparse
)
