// Package embedding is svcctl embedding: whether the embedding groups of a service, and their members, can be relied on.
//
// Start reading at NewCmd. What does not live here: what the states mean (pkg/embedding).
package embedding
