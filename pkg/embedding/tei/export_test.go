package tei

// DecodeDense and DecodeSparse read answers.
var (
	DecodeDense  = decodeDense  //nolint:gochecknoglobals // for the fuzz tests
	DecodeSparse = decodeSparse //nolint:gochecknoglobals // for the fuzz tests
)
