// Package cli is svcctl: its root command and the few commands that are no noun (get, api-resources, api, version, completion, options). Every noun
// has a package of its own, with a file per verb; the verbs that system models have alike are made by command.Model.
//
// Start reading at Run. A command is an options struct, newX, which reads arguments and flags into it, and runX, which
// does the work through pkg/client. To add one, write cli/<noun>/<verb>.go, add it in <noun>.go, and add a script in
// testdata/script. What does not live here: process state, which cmd/svcctl hands in as a command.State.
package cli
