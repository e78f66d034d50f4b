package ollama

// Decode reads an answer.
var Decode = decode
