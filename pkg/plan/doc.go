// Package plan tells what a config would change if it took the place of the one that is served: each change with its
// risk, counted against the records that are stored.
//
// To compare is pure: what differs (compare.go, and a file for each part of a config) and its rules, the table in docs/gitops.md,
// know two compiled projects and nothing else. What depends on records goes through the port Records (count.go), within a time
// of its own. Start reading at Make.
package plan
