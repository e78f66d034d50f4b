// Package manual writes the manual pages of svcctl, one a command, from the texts that --help shows.
//
// Start reading at manual.go; page.go writes one in roff.
package manual
