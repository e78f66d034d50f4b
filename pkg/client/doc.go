// Package client is the only client of the service's API: svcctl, the terminal UI and the end-to-end tests all go
// through it. It has one method for each route.
//
// Start reading at Client and its do method; the other files hold the routes by resource. A refusal is an *Error with
// the problem that the service sent, a service that can't be reached an *UnreachableError. What does not live here:
// the bodies (pkg/api), and where servers and credentials are configured (cli).
package client
