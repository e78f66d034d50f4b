// Package plugin runs and lists plugins: programs on PATH whose name begins with svcctl-, which are commands of svcctl that others
// write. svcctl foo bar runs svcctl-foo-bar, or svcctl-foo with the argument bar.
//
// Start reading at plugin.go. A plugin gets what svcctl was started with: its arguments, its environment, its terminal, and nothing
// that svcctl knows of credentials.
package plugin
