// Package service has the commands that look at a service as a whole: svcctl status, how it and its projects are, and svcctl check,
// whether this machine and the service are ready for each other.
//
// Start reading at status.go, then check.go; checks.go has what is checked. How one project is has cli/project.
package service
