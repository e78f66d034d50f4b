// Package project holds svcctl project: a file per verb, with project.go for what they share. validate and schema work
// without a server, on the loader that the service uses.
package project
