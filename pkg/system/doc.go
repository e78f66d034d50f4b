// Package system keeps the models that belong to the service itself and not to a project: users, organizations, teams, the
// registrations of projects, personal access tokens, the secrets that the service made for itself, and the count of
// failed logins. They live in the database "svc" of the store.
//
// Each model takes bodies as documents, refuses what it does not know, reports all problems at once, and gives typed
// records back.
//
// Start reading at System, then model.go and users.go. What does not live here: finding out who a caller is (pkg/auth), whether a
// caller may use a route (pkg/access), and config files (pkg/schema).
package system
