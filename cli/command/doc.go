// Package command is what all commands share: the State that holds streams, environment and global flags, the client
// it leads to, the reading of arguments and input, and what errors come to: exit codes (errors.go), what is told of them (report.go), and hints (hint.go).
//
// Start reading at State, then report.go. What does not live here: any single command (a directory per noun beside this
// one), the formats (cli/output), the contexts file (cli/settings).
package command
