// Package tree tells what a project is made of, and how each of it is: for svcctl project tree, and for the terminal UI.
//
// Start reading at Of.
package tree
