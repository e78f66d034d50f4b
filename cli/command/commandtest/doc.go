// Package commandtest is for tests of commands: the state of a process that has nothing, and what options a command line
// makes. What does not live here: what commands do, which the scripts in cli/testdata run against a service.
package commandtest
