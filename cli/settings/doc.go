// Package settings keeps the contexts of svcctl: which servers there are, with which credentials, and which pair of
// them is current. The file is private to its owner, replaced in one step, and locked while it is changed.
//
// Start reading at File. What does not live here: flags and environment, which win over the file (cli/command).
package settings
