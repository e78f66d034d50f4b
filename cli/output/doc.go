// Package output writes what commands have to show: tables in kubectl's look, JSON, YAML and names to stdout, progress
// to stderr.
//
// Start reading at Printer. Whatever comes from a server passes through Escape on its way to a person, so that data
// can't drive the terminal. What does not live here: the streams and whether they are terminals (cli/command).
package output
