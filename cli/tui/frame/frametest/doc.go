// Package frametest drives the terminal UI in tests, without a terminal and without waiting: inside a bubble of testing/synctest
// it runs the commands of a program as its library does, and serves it by a handler in the process.
//
// Start reading at Drive, and at Terminal, which is a terminal for the few tests that need one.
package frametest
