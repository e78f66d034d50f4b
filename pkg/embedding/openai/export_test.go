package openai

// Decode reads an answer.
var Decode = decode //nolint:gochecknoglobals // for the fuzz test
