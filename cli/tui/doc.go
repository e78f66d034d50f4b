// Package tui is the terminal UI, svcctl tui: the command, and its screens, a file or a few each: of jobs.go and the like, what is read is in
// …read.go, what is drawn in …view.go, where one file would be too long. Most screens embed table.
//
// Start reading at screens, the list of what there is. The frame around them is cli/tui/frame, what they are drawn with
// cli/tui/widget. What does not live here: anything that the other commands of svcctl don't do, too; all of it goes through
// pkg/client.
package tui
