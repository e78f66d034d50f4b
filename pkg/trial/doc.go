// Package trial runs a project's own tests: the cases of the files in its directory tests, each against a service of its
// own with a store in memory, a clock that stands still and recorded answers to outbound requests.
//
// Start reading at Run. What does not live here: the form of the files (pkg/schema), the service around one project
// (app.Sandbox), and what people see (cli/project).
package trial
