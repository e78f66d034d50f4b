// Package frame is the terminal UI around its screens: the header, the way from screen to screen, the command line, the
// filter, questions, help, and the lines that say what went wrong. It has a screen read again and again what it shows, and
// goes on after errors of the service.
//
// Start reading at Def and Screen, which are what a screen is, then at Model. What does not live here: what screens show
// (cli/tui), and how things are drawn (cli/tui/widget).
//
// Everything that takes time runs in goroutines that Tasks owns, and ends with them; nothing else than the loop of the
// program touches a screen.
package frame
