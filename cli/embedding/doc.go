// Package embedding holds svcctl embedding: how what makes vectors of texts is.
package embedding
