// Package command is what all commands share: the State that holds streams, environment and global flags, the client
// it leads to, the reading of arguments and input, and the one table from errors to exit codes.
//
// Start reading at State, then errors.go. What does not live here: any single command (a directory per noun beside this
// one), the formats (cli/output), the contexts file (cli/settings).
package command
